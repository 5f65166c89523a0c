"""The callback: finds its trainer, opens the recording, and passes on what happens."""

from __future__ import annotations

import inspect
import platform
import shlex
import uuid
import weakref
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list, gather_object
from transformers import Trainer, TrainerCallback

from rlplay.algorithms.setting_values import check
from rlplay.record.format import free
from rlplay.record.recorder import Recorder
from rlplay.record.saying import said_by, say
from rlplay.record.trl import compat
from rlplay.record.trl.change import ANY, GIVEN, SAMPLING, change
from rlplay.record.trl.guard import Guard, Part
from rlplay.record.trl.observer import Observer
from rlplay.record.trl.offline import Offline
from rlplay.record.trl.online import Online
from rlplay.record.trl.steering import Remote
from rlplay.record.trl.texts import ends_of
from rlplay.record.trl.trainer_kind import KnownTrainer, recognise
from rlplay.record.trl.trainer_options import settings_of
from rlplay.trace.kinds import SomeSettings


class RlplayCallback(TrainerCallback):  # type: ignore[misc]
    """Records the trainer that it is added to; `rlplay replay PATH` shows the run, also while it trains.

    `path` is a new folder; without it, `rlplay` in the trainer's output_dir. `completions` is the number of answers
    that are kept of every `every`-th update, over all processes; metrics are kept of every update.

    Any trainer of transformers is recorded: those of TRL that rlplay knows with all numbers of their tokens, others
    with texts, rewards and metrics. Training goes on as without the callback, whatever fails in it; one line on
    standard error says what is no longer recorded. A second `train()` continues the recording. After training nothing
    of the callback is left on the trainer.

    With `listen`, `rlplay attach PATH` pauses the run, goes on update by update and changes settings. It listens on
    this machine only, and a screen needs the token in PATH/remote.json, which only this user can read. Without a
    screen training runs on.

    Raises ValueError if `completions` or `every` is less than 1.
    """

    def __init__(
        self, path: str | Path | None = None, completions: int = 64, every: int = 1, listen: bool = False
    ) -> None:
        if completions < 1 or every < 1:
            raise ValueError("completions and every are 1 or more")
        self.path = None if path is None else Path(path).resolve()
        self._wanted = self.path  # before a number was added to it
        self._completions, self._every, self._listens = completions, every, listen
        self._guard = Guard(self._note)
        self._spent = 0.0
        self._trainer: Any = None  # while it trains
        self._of: Any = None  # a weak reference to the trainer of the recording
        self._step = 0  # the last optimizer step that was heard of
        self._recorder: Recorder | None = None
        self._remote: Remote | None = None
        self._observed: Observer | None = None  # while it trains
        self._continued: Observer | None = None  # the same, also between two trainings
        self._settings: SomeSettings = {}
        self._seen = 0  # the last optimizer step after which a screen could steer

    @property
    def seconds(self) -> float:
        """Spent on recording so far."""
        return self._spent + self._guard.seconds

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy records nothing of what this one does: it is a new callback with the same arguments."""
        return RlplayCallback, (self._wanted, self._completions, self._every, self._listens)

    def on_train_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Open the recording, or continue it."""
        self._ended()  # if an earlier training raised where nothing is wrapped
        self._spent, self._seen, self._step = self.seconds, 0, state.global_step
        self._guard = Guard(self._note)
        self._guard(Part.RECORDING, self._begin, args)
        if self._guard.alive(Part.RECORDING) and self._listens and self._trainer.accelerator.is_main_process:
            self._guard(Part.STEERING, self._open_door)

    def on_step_begin(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Record the update before, if its numbers were to be logged and another callback has changed that."""
        if self._observed is not None and state.global_step:
            self._guard(Part.RECORDING, self._observed.end)
            self._steered(state.global_step)

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """The gradients are there; while a screen asks, keep what the step begins with."""
        if self._observed is not None:
            self._guard(Part.TEACHERS, self._observed.teachers.step_begins)

    def on_optimizer_step(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """An optimizer step was made, after which the trainer counts it."""
        self._made(state.global_step + 1)

    def _made(self, step: int) -> None:
        if self._observed is not None and step > self._step:  # else the callback was added twice
            self._step = step
            self._guard(Part.RECORDING, self._observed.step, step)

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """If the update is complete, record it; its logged numbers may follow at once."""
        self._made(state.global_step)  # a loop of somebody's own may not have said so
        if self._observed is not None and not control.should_log:
            self._guard(Part.RECORDING, self._observed.end)
            self._steered(state.global_step)

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        """Record the update that these numbers belong to, or those of an evaluation."""
        if self._observed is not None and logs:
            self._guard(Part.RECORDING, self._observed.logged, logs)
            self._steered(state.global_step)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Close the recording, and leave the trainer as it was."""
        self._ended()

    def _ended(self) -> None:
        """The training is over, or it has raised."""
        observed, self._observed = self._observed, None
        if observed is not None:
            self._guard(Part.RECORDING, observed.close)
            self._guard(Part.END, observed.detach)
        if self._remote is not None:
            self._guard(Part.END, self._close_door)
        self._trainer = None

    def _heard(self, _call: Any) -> None:
        """An event is about to be told to the callbacks: is this one still among them?"""
        if self._observed is not None and not any(each is self for each in self._trainer.callback_handler.callbacks):
            self._ended()

    def _begin(self, args: Any) -> None:
        """Open the recording or continue it, and watch the trainer.

        Raises OSError in all processes if one of them cannot: the others would wait for it during training.
        """
        self._trainer = _caller()
        kind, settings = _options(self._trainer)
        named, loss = (each.get("algorithm") for each in (self._settings, settings))
        again = self._of is not None and self._of() is self._trainer and named == loss
        reached = gather_object([self._continued.update if again and self._continued is not None else 0])
        place = [str(free(self._wanted or Path(args.output_dir) / "rlplay")), uuid.uuid4().hex]
        broadcast_object_list(place)
        problem = ""
        try:
            if all(reached):
                self._continue(max(reached), settings)
            else:
                self._open(args, kind, settings, *place)
            assert self._continued is not None
            self._continued.attach(self._trainer, self._guard, self._ended, self._heard)
            self._observed = self._continued
        except Exception as error:
            problem = said_by(error)
        if problems := [each for each in gather_object([problem]) if each]:
            self._give_up()
            raise OSError(problems[0])
        self._settings, self._guard.where = settings, str(self.path)
        self._of = weakref.ref(self._trainer)
        if self._trainer.accelerator.is_main_process:
            say(f"recording to {self.path}; watch it with: rlplay replay {shlex.quote(str(self.path))}")
            for line in _unknown(self._trainer, kind, settings):
                self._guard.remark(line)

    def _continue(self, update: int, settings: SomeSettings) -> None:
        """Go on with the open recording. Raises OSError if its file is gone."""
        assert self._continued is not None
        assert self._recorder is not None
        self._guard.where = str(self.path)
        self._recorder.reopen()
        self._continued.update = update  # this process may have stopped recording earlier than others
        for name, value in settings.items():
            if value != self._settings.get(name):
                self._continued.changed(name, value, self._settings.get(name))

    def _open(self, args: Any, kind: KnownTrainer, settings: SomeSettings, path: str, run_id: str) -> None:
        """Open a new recording. Raises OSError if it cannot be written."""
        process, self._continued = self._trainer.accelerator, None
        self.path = Path(path)
        share = max(1, self._completions // process.num_processes)
        self._recorder = Recorder(self.path, share, self._every, process.process_index, process.num_processes)
        self._describe(self._recorder, args, kind, settings, run_id)
        classes = {"": Observer, "GRPOTrainer": Online, "RLOOTrainer": Online}
        self._continued = classes.get(kind.kind, Offline)(self._recorder, "algorithm" in settings)
        if self._wanted not in (None, self.path) and process.is_main_process:
            self._guard.remark(f"{self._wanted} holds a recording already, so this one is at {self.path}")

    def _give_up(self) -> None:
        """Record nothing: another process cannot."""
        observed, self._observed, self._continued = self._observed, None, None
        if observed is not None:
            observed.detach()
            observed.close()

    def _describe(self, recorder: Recorder, args: Any, kind: KnownTrainer, settings: SomeSettings, run_id: str) -> None:
        trainer = self._trainer
        model = trainer.accelerator.unwrap_model(trainer.model)
        first = next(model.parameters(), None)
        name = getattr(getattr(model, "config", None), "name_or_path", "") or type(model).__name__
        recorder.begin(
            f"TRL {version('trl')} {kind.name}" if _of_trl(trainer) else f"{type(trainer).__module__} {kind.name}",
            settings,
            title=f"{'TRL' if _of_trl(trainer) else kind.name} · {Path(args.output_dir).resolve().name}",
            model=str(name),
            parameters=sum(p.numel() for p in model.parameters()),
            seed=args.seed,
            device="" if first is None else str(first.device),
            dtype="" if first is None else str(first.dtype).removeprefix("torch."),
            versions={"trl": version("trl"), "torch": version("torch"), "python": platform.python_version()},
            run_id=run_id,
            ends=self._guard(Part.ANSWERS, ends_of, trainer) or {},
        )

    def _note(self, text: str) -> None:
        """Say in the recording what was said about it."""
        if self._recorder is not None and self._continued is not None:
            self._recorder.remark(self._continued.update, text)

    def _open_door(self) -> None:
        assert self.path is not None
        assert self._observed is not None
        changeable = SAMPLING if isinstance(self._observed, Online) else GIVEN
        known = "algorithm" in self._settings
        self._remote = Remote(self.path, changeable if known else ANY, self._observed.teachers)

    def _close_door(self) -> None:
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()

    def _steered(self, step: int) -> None:
        """Once after each optimizer step, in all processes: let a screen pause the run and change settings."""
        if not self._listens or self._observed is None or step == self._seen:
            return
        self._seen = step
        changes = [self._guard(Part.STEERING, self._asked, self._observed.finished) or {}]
        self._guard(Part.COUNT, broadcast_object_list, changes)
        if self._remote is None:
            for name, value in changes[0].items():
                self._guard(Part.STEERING, self._change, name, value)

    def _asked(self, finished: int) -> dict[str, Any]:
        """What a screen wants changed; waits as long as it pauses the run."""
        if self._remote is None:
            return {}
        if not self._guard.alive(Part.RECORDING):  # nothing says any more when an update has ended
            self._remote.refuse("The recording has ended. Training goes on and cannot be steered.")
            self._close_door()
            return {}
        return self._remote.between_steps(finished, self._settings, self._change)

    def _change(self, name: str, value: Any) -> str:
        """Give a setting another value in this process; why that cannot be done, or ""."""
        assert self._observed is not None
        try:
            value = check(name, value)
            refused = change(self._trainer, name, value)
        except (AttributeError, TypeError, ValueError) as error:
            return said_by(error)
        if not refused:
            self._guard(Part.RECORDING, self._observed.changed, name, value, self._settings.get(name))
            self._settings[name] = value
        return refused


def _options(trainer: Any) -> tuple[KnownTrainer, SomeSettings]:
    """Which trainer it is, and its settings; an unknown one if it lacks what a trainer of that kind has."""
    kind = recognise(trainer)
    try:
        return kind, settings_of(trainer, kind)
    except Exception:
        return KnownTrainer(kind.name, "", False), {}


def _unknown(trainer: Any, kind: KnownTrainer, settings: SomeSettings) -> list[str]:
    """What the recording will not have, in lines of one sentence each."""
    lines = [
        f"TRL {version('trl')} has no {kind.kind}.{name.name}; the recording lacks {name.missing}"
        for name in compat.gone(trainer, kind.kind)
    ]
    if not kind.kind:
        lines.append(
            f"{kind.name} is none of the trainers that the recorder knows: texts, rewards and metrics are recorded as "
            "far as it shows them; not known are log-probabilities, advantages, derivatives and the formula of its loss"
        )
    elif "algorithm" not in settings:
        lines.append(f"the recorder does not know the loss of this {kind.name}: no formulas and no clipping are shown")
    names = getattr(trainer, "reward_func_names", [])
    if len(set(names)) < len(names):
        lines.append("several reward functions have one name, so rewards are not recorded: give each its own __name__")
    if getattr(trainer, "processing_class", None) is None:
        lines.append(f"this {kind.name} has no tokenizer, so no texts are recorded")
    return lines


def _of_trl(trainer: Any) -> bool:
    return any(each.__module__.split(".")[0] == "trl" for each in type(trainer).__mro__)


def _caller() -> Any:
    """The trainer that called this callback, which transformers does not pass on."""
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(found := frame.f_locals.get("self"), Trainer):
            return found
        frame = frame.f_back
    raise RuntimeError("RlplayCallback was not called by a trainer; add it with trainer.add_callback(RlplayCallback())")
