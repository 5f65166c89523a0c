"""The callback: finds its trainer, opens the recording, and passes on what happens."""

from __future__ import annotations

import platform
import sys
import time
import uuid
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

from accelerate.utils import broadcast_object_list
from transformers import Trainer, TrainerCallback

from rlplay.record.recorder import Recorder
from rlplay.record.trl.change import GIVEN, SAMPLING, change
from rlplay.record.trl.offline import Offline
from rlplay.record.trl.online import Online
from rlplay.record.trl.remote import Remote
from rlplay.record.trl.settings import settings_of

TRAINERS: dict[str, type[Online | Offline]] = {
    "GRPOTrainer": Online, "RLOOTrainer": Online, "DPOTrainer": Offline, "KTOTrainer": Offline, "SFTTrainer": Offline,
    "RewardTrainer": Offline,
}  # fmt: skip
"""The trainers of TRL that are recorded, subclasses included."""


class RlplayCallback(TrainerCallback):  # type: ignore[misc]
    """Records the trainer that it is added to; `rlplay replay PATH` shows the run, also while it trains.

    `path` is a new folder; without it, `rlplay` in the trainer's output_dir. `completions` is the number of answers
    that are kept of every `every`-th update, over all processes; metrics are kept of every update. Training goes on if
    the recording fails, for example because the disk is full; one line on standard error says so.

    With `listen`, `rlplay attach PATH` pauses the run, goes on update by update and changes settings. It listens on
    this machine only, and a screen needs the token in PATH/remote.json, which only this user can read. Without a
    screen training runs on.

    Raises TypeError when training begins if the trainer is none of `TRAINERS`, ValueError if rlplay lacks its loss.
    """

    def __init__(
        self, path: str | Path | None = None, completions: int = 64, every: int = 1, listen: bool = False
    ) -> None:
        self.path = None if path is None else Path(path)
        self.seconds = 0.0  # spent on recording so far
        self._completions, self._every = completions, every
        self._listens = listen
        self._remote: Remote | None = None
        self._observed: Online | Offline | None = None
        self._failed = False
        self._seen = 0  # the last optimizer step after which a screen could steer

    def on_train_begin(self, args: Any, *_: Any, **__: Any) -> None:
        """Open the recording."""
        trainer = _caller()
        names = {kind.__name__ for kind in type(trainer).__mro__}
        kind = next((name for name in TRAINERS if name in names), None)
        if kind is None:
            raise TypeError(f"RlplayCallback records {', '.join(TRAINERS)}; this is a {type(trainer).__name__}")
        settings = settings_of(trainer, kind)
        process = trainer.accelerator
        shared = [str(self.path or _free(Path(args.output_dir) / "rlplay")), uuid.uuid4().hex]
        broadcast_object_list(shared)
        self.path = Path(shared[0])
        share = max(1, self._completions // process.num_processes)
        recorder = Recorder(self.path, share, self._every, process.process_index, process.num_processes)
        model = process.unwrap_model(trainer.model)
        recorder.begin(
            f"TRL {version('trl')} {kind}",
            settings,
            title=f"TRL · {Path(args.output_dir).resolve().name}",
            model=str(getattr(model.config, "_name_or_path", "") or type(model).__name__),
            parameters=sum(p.numel() for p in model.parameters()),
            seed=args.seed,
            device=str(model.device),
            dtype=str(next(model.parameters()).dtype).removeprefix("torch."),
            versions={"trl": version("trl"), "torch": version("torch"), "python": platform.python_version()},
            run_id=shared[1],
        )
        self._observed = TRAINERS[kind](trainer, recorder, self._guarded)
        self._trainer, self._settings = trainer, settings
        if self._listens and process.is_main_process:
            self._guarded(self._open_door)

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        """An optimizer step was made."""
        if self._observed is not None:
            self._guarded(self._observed.step)

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """If the update is complete, record it; its logged numbers may follow at once."""
        if self._observed is not None and not control.should_log:
            self._guarded(self._observed.end)
            self._steered(state.global_step)

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        """Record the update that these numbers belong to, or those of an evaluation."""
        if self._observed is not None and logs:
            self._guarded(self._observed.logged, logs)
            self._steered(state.global_step)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Close the recording."""
        if self._observed is not None:
            self._guarded(self._observed.close)
        if self._remote is not None:
            self._remote.close()

    def _open_door(self) -> None:
        assert self.path is not None
        self._remote = Remote(self.path, SAMPLING if isinstance(self._observed, Online) else GIVEN)

    def _steered(self, step: int) -> None:
        """Once after each optimizer step, in all processes: let a screen pause the run and change settings."""
        if not self._listens or self._observed is None or step == self._seen:
            return
        self._seen = step
        there = self._remote
        changes = [there.between_steps(self._observed.finished, self._settings) if there is not None else {}]
        broadcast_object_list(changes)
        for name, value in changes[0].items():
            try:
                refused = change(self._trainer, name, value)
            except (AttributeError, TypeError, ValueError) as error:
                refused = str(error)
            if not refused:
                self._guarded(self._observed.changed, name, value, self._settings.get(name))
                self._settings[name] = value
            elif self._remote is not None:
                self._remote.refuse(f"{name} stays as it is: {refused}.")

    def _guarded(self, work: Any, *values: Any) -> None:
        """Do `work` and count its time; if it fails, say so once and record nothing more."""
        if self._failed:
            return
        begun = time.perf_counter()
        try:
            work(*values)
        except Exception as error:
            self._failed = True
            print(f"rlplay: the recording at {self.path} ends here ({error}); training goes on", file=sys.stderr)
        self.seconds += time.perf_counter() - begun


def _free(wanted: Path) -> Path:
    """`wanted`, or with a number if it exists: a run in the same output_dir was recorded before."""
    path, count = wanted, 1
    while path.exists():
        count += 1
        path = wanted.with_name(f"{wanted.name}-{count}")
    return path


def _caller() -> Any:
    """The trainer that called this callback, which transformers does not pass on."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if isinstance(found := frame.f_locals.get("self"), Trainer):
            return found
        frame = frame.f_back
    raise RuntimeError("RlplayCallback was not called by a trainer; add it with trainer.add_callback(RlplayCallback())")
