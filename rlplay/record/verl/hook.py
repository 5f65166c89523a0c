"""Adds the recorder to verl's trainers, at once or when they are imported."""

from __future__ import annotations

import functools
import importlib.abc
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from rlplay.record.saying import said_by, say
from rlplay.record.verl import compat
from rlplay.record.verl.batches import Answer, of_queue, of_tensors
from rlplay.record.verl.recording import COMPLETIONS, VerlRecording

_MARK = "rlplay_records"
_MODULES = (*compat.TRAINERS, compat.TRACKING[0])


class _Current:
    """The recording of the trainer that trains in this process, if any."""

    def __init__(self) -> None:
        self.recording: VerlRecording | None = None
        self._of: Any = None
        self._ended = False

    def of(self, trainer: Any) -> VerlRecording | None:
        """Its recording; None once one of this process has failed."""
        if self._ended:
            return None
        if self.recording is None or self._of() is not trainer:
            self.recording, self._of = VerlRecording(trainer), weakref.ref(trainer)
            say(f"recording in {self.recording.path}")
        return self.recording

    def guarded(self, part: Callable[..., None], *arguments: Any) -> None:
        """Do a part of the recording. If it fails, one line says so, and training goes on without."""
        try:
            part(*arguments)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # Rust's panics, as in a tokenizer, are no Exception
            recording, self.recording, self._ended = self.recording, None, True
            say(f"the recording ends here, training goes on ({said_by(error)})")
            if recording is not None:
                with suppress(Exception):  # such as a full disk, which has been said already
                    recording.remark(f"The recording ends here ({said_by(error)}).")


CURRENT = _Current()


def install() -> None:
    """Watch the trainers of verl: those that are imported already, and the others as soon as they are."""
    for module in [sys.modules[name] for name in _MODULES if name in sys.modules]:
        patch(module)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def patch(module: Any) -> None:
    """Wrap what is needed of a module of verl; says so in one line if this release lacks it."""
    try:
        if module.__name__ == compat.TRACKING[0]:
            _wrap(getattr(module, compat.TRACKING[1]), compat.TRACKING[2], _log)
        else:
            trainer, method = compat.TRAINERS[module.__name__]
            queue = method == compat.TRAINERS["verl.trainer.ppo.v1.trainer_base"][1]
            _wrap(getattr(module, trainer), method, functools.partial(_of_queue, module) if queue else _of_tensors)
    except Exception as error:  # else the import of verl would fail
        say(f"this release of verl is not recorded ({said_by(error)}); 0.9.1 is")


def _wrap(kind: type, method: str, around: Callable[..., Any]) -> None:
    original = compat.wrapped(kind, method)
    if getattr(original, _MARK, False):
        return

    @functools.wraps(original)
    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        return around(functools.partial(original, self), self, *arguments, **named)

    setattr(recorded, _MARK, True)
    setattr(kind, method, recorded)


def _of_queue(module: Any, original: Callable[..., Any], trainer: Any, batch: Any, *others: Any, **named: Any) -> Any:
    """The newer trainer computes the metrics of a step, while the queue still holds its answers."""
    result = original(batch, *others, **named)
    CURRENT.guarded(_record, trainer, functools.partial(of_queue, module, batch, COMPLETIONS))
    return result


def _of_tensors(original: Callable[..., Any], trainer: Any, batch: Any, *others: Any, **named: Any) -> Any:
    """The older trainer updates the actor."""
    CURRENT.guarded(_record, trainer, functools.partial(of_tensors, batch, COMPLETIONS))
    return original(batch, *others, **named)


def _record(trainer: Any, read: Callable[[bool], tuple[Sequence[Answer], int]]) -> None:
    recording = CURRENT.of(trainer)
    if recording is not None:
        recording.answers(int(trainer.global_steps), *read(recording.rejects))


def _log(original: Callable[..., Any], _tracking: Any, data: Any, step: Any, *others: Any, **named: Any) -> Any:
    """verl logs the numbers of a step."""
    recording = CURRENT.recording
    if recording is not None:
        CURRENT.guarded(lambda: recording.logged(int(step), data))
    return original(data, step, *others, **named)


class _Finder(importlib.abc.MetaPathFinder):
    """Sees the modules of verl as they are imported, and leaves finding them to others."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that others find, with a loader that patches the module when it has run.

        None if they fail or their loader cannot be changed: they are asked once more, and training goes unrecorded.
        """
        if name not in _MODULES:
            return None
        try:
            others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
            spec = next((found for found in others if found is not None), None)
            if spec is not None and spec.loader is not None:
                _patch_after(spec.loader, name)
        except Exception:
            return None
        return spec


def _patch_after(loader: Any, name: str) -> None:
    """Let a loader patch the module of this name when it has run it; it may have others to load."""
    run = loader.exec_module

    def patched(module: Any) -> None:
        run(module)
        if module.__name__ == name:
            patch(module)

    loader.exec_module = patched
