"""Drives the training loop: how far to go, what to record, how to go back.

Stepping, running, pausing, rewinding and headless runs are all this one object. It commits every record to the run
file before anybody is told of it, and the end of an update after its snapshot (`update_end.py`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np

from rlplay.algorithms.own_choices import allow_running
from rlplay.algorithms.setting_values import exact
from rlplay.algorithms.settings import Settings
from rlplay.containment import OwnError
from rlplay.engine import ranks
from rlplay.engine.answering import Answering, unless_large
from rlplay.engine.batch import Batch
from rlplay.engine.change_record import changes_of
from rlplay.engine.evaluate import Evaluating
from rlplay.engine.loop import Moment, train
from rlplay.engine.out_of_memory import begins_again, is_out_of_memory, release, remedy
from rlplay.engine.own_metrics import measured
from rlplay.engine.phases import ends_phase, point_after
from rlplay.engine.preference_pairs import Unlabelled
from rlplay.engine.prepare import Progress, prepare
from rlplay.engine.replays import Seen, unseen
from rlplay.engine.run_status import RunStatus
from rlplay.engine.run_writer import run_writer
from rlplay.engine.sample import Sampling
from rlplay.engine.snapshots import KEPT_AT_CLOSE, SnapshotStore
from rlplay.engine.stages import stage_at
from rlplay.engine.state import Halt
from rlplay.engine.stopwatch import Stopwatch, spent_on
from rlplay.engine.update_end import UpdateEnd
from rlplay.engine.value_learning import explore
from rlplay.engine.vine import Vining
from rlplay.engine.withheld import check_tokens
from rlplay.scenario.schema import Job
from rlplay.scenario.script import Until
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.pairs import identical_answers
from rlplay.trace.parts import EVALUATE, OTHER, PARTS
from rlplay.trace.records import (
    AnyRecord,
    Choice,
    Evaluated,
    Finished,
    Labelled,
    Looked,
    Notice,
    Rewound,
    Sampled,
    Staged,
    Started,
    Stepped,
    Withheld,
)
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.settings_timeline import Point, SettingsTimeline, next_point
from rlplay.trusted import is_distrust

_LOOK_EVERY = 0.1
"""Seconds between looks at completions that are being sampled, unless stepping by token."""
_LOOK_SHARE = 10
"""A look that is costly waits until this many times its cost has passed, so that looking stays a small part."""


class Driver(Answering):
    """Advances one run. `sink` is told of every record, already committed, and of completions being sampled."""

    def __init__(self, job: Job, sink: Callable[[AnyRecord], None]) -> None:
        self._job = job
        self._sink = sink
        self._point: Point = (1, "sample")  # the phase under way, or about to begin
        self._begun = False  # whether that phase has begun
        self._kept: Batch | None = None
        self._pairs: list[int] = []  # of this update, once they are drawn: those that can have a label
        self._look_again = 0.0

    def load(self, progress: Progress) -> None:
        """Load model and task, open the run file, and go to the last snapshot if the job resumes a run.

        Raises ValueError, one line, if the job names something that is not there or does not fit.
        """
        self._state, self._plan, started = ranks.together(lambda: prepare(self._job, progress))
        self._clock = Stopwatch(self._state.lm.device)
        path = Path(self._job.run)
        if self._job.resume:
            with RunReader(path) as reader:
                started, self._timeline = reader.started, reader.timeline()
                self._state.choices = {(each.update, each.pair): each.choice for each in reader.every(Labelled)}
                self._state.withheld = {each.update: each.tokens for each in reader.every(Withheld)}
                reached, branched = max(reader.updates(), default=0), reader.branched
            for settings in self._timeline.ever():
                allow_running(settings)
        else:
            reached = branched = 0
            self._timeline = SettingsTimeline(started.settings)
        self._writer, self._store = self._written(path, None if self._job.resume else started)
        self._last_end = UpdateEnd(self._store, self._commit, lambda text: self.note("warning", text))
        self._sink(started)
        if self._job.resume:
            self._arrive(reached, branched)
            self._forget_withheld()
        self._remark()
        self._cross()
        self._moments: Iterator[Moment] = measured(train(self._state, self._plan))
        progress("ready", 1.0)

    def _written(self, path: Path, started: Started | None) -> tuple[RunWriter, SnapshotStore]:
        """What keeps records and snapshots of the run file at `path`, a new one that begins with `started` or known."""
        writer = run_writer(path, started)
        return writer, SnapshotStore(writer, path, self._plan.stages)

    def _arrive(self, reached: int, branched: int) -> None:
        """Go to the state in which a run is resumed that has reached an update, and is a copy as far as another."""
        # What a branch begins with is not its own to do again: without its snapshot, that is repeated silently.
        self._go_to(max(self._store.nearest(reached), min(branched, reached)))
        self._store.forget_after(self._state.update)
        self._emit(Rewound(update=self._state.update, abandoned=reached))

    def advance(self, until: Until, count: int, interrupted: Callable[[], bool]) -> int:
        """Go on to the end of `count` tokens, phases, optimizer steps or updates, or "forever" to max_updates.
        Returns how many of them are left where pairs wait for the user's labels (`asks`), else 0.

        `interrupted` is asked at every moment of the loop. If the loop raises (a Halt, a reward function's error), the
        state goes back to the end of the last update and the exception goes on to the caller. Where memory is short and
        less of it may do, the update begins again.
        """
        with self._clock, closing(self._last_end):
            while count > 0:
                try:
                    with spent_on(self._point[1] if self._point[1] in PARTS else OTHER):
                        moment = next(self._moments)
                except ranks.LostProcess:
                    raise
                except BaseException as error:
                    self._last_end.close()
                    if self._tries_with_less(error):
                        continue
                    self._go_to(self._done)
                    if isinstance(error, OwnError):
                        first = "" if is_distrust(error) else "fix it, "
                        raise Halt(f"{error}; {first}then go on") from error
                    raise
                self._tell(moment, closely=until == "token")
                if self._ends(moment, until):
                    count -= 1
                at_limit = isinstance(moment, Finished) and moment.update == self._plan.max_updates
                if isinstance(moment, Unlabelled):
                    return count
                if interrupted() or (until == "forever" and at_limit):
                    break
        return 0

    def set(self, changes: SomeSettings) -> None:
        """Change settings from the next phase on, or when `changes_of` says. Raises ValueError as that, before the
        first change is recorded."""
        point = next_point(self._point) if self._begun else self._point
        for change in changes_of(self._state, self._latest, changes, point):
            self._emit(change)
        if not self._begun:
            self._state.settings = self._settings_at(self._point)
            if self._point[1] == "sample":
                explore(self._state)

    def asks(self) -> list[int]:
        """The pairs of the update under way that wait for `prefer`; empty where the user does not label."""
        return self._state.unlabelled(self._point[0], self._pairs) if self._labelling else []

    def prefer(self, pair: int, choice: Choice) -> None:
        """The user's label of a pair; it may change until all have one. Raises ValueError, one line, if none is due."""
        if not (self._labelling and pair in self._pairs):
            raise ValueError(f"pair {pair} isn't awaiting a label; with labeller=user, pairs do once they are sampled")
        self._state.choices[self._point[0], pair] = choice
        self._emit(Labelled(update=self._point[0], pair=pair, choice=choice))

    def withhold(self, update: int, tokens: list[int]) -> None:
        """Take the credit of tokens away in `update`, the next one that begins; without tokens, give it back.

        Raises ValueError, one line, if that is not the next one, or the tokens are no places.
        """
        if not (self._at_border and update == self._done + 1):
            raise ValueError(
                f"credit is taken away before an update begins: go to the end of update {update - 1} first"
            )
        if self._settings_at((update, "update")).loss_type == "reward":
            raise ValueError(f"update {update} teaches the reward model, so its tokens have no credit")
        if tokens:
            check_tokens(tokens)
        self._state.withheld = self._state.withheld | {update: tokens}
        self._emit(Withheld(update=update, tokens=tokens))

    def rewind(self, update: int) -> None:
        """Go back to the end of `update` (0: the start), settings included; an update under way is given up.

        Raises ValueError if that update has not been reached.
        """
        reached = self._done
        if not 0 <= update <= reached:
            raise ValueError(f"cannot rewind to update {update}: this run has reached update {reached}")
        self._go_to(update)
        self._state.choices = {place: choice for place, choice in self._state.choices.items() if place[0] <= update}
        self._forget_withheld()
        self._store.forget_after(update)
        self._emit(Rewound(update=update, abandoned=reached, asked=True))

    def note(self, level: str, text: str, detail: str = "") -> None:
        """Record something the user should know; `level` is "info", "warning" or "error"."""
        self._emit(Notice(update=self._done, level=level, text=text, detail=detail))

    def look(self, lens: str, completion: int, token: int) -> None:
        """Record what the user has before them: a colour and a token of the batch. Nothing else changes."""
        self._emit(Looked(update=self._point[0], phase=self._point[1], lens=lens, completion=completion, token=token))

    def status(self) -> RunStatus:
        """Where the run is."""
        finished = self._done >= self._plan.max_updates
        return RunStatus(self._done, self._point[1], self._latest, finished, self._store.latest)

    def close(self) -> None:
        """Keep the state if it is not kept yet, and close the run file. Raises RunFileError if that is full."""
        try:
            if not (self._begun and self._point[1] in ("update", "after")):  # else the weights are in between
                self._last_end.keep(self._state, always=True)
            self._store.thin(KEPT_AT_CLOSE)
        finally:
            self._writer.close()

    @property
    def _labelling(self) -> bool:
        settings = self._state.settings
        return self._point[1] == "score" and settings.labeller == "user" and not settings.rewarded

    @property
    def _latest(self) -> Settings:
        """The settings with every change, those that wait for the next phase included."""
        return exact(self._timeline.latest())

    def _settings_at(self, point: Point) -> Settings:
        """The settings that a phase beginning at `point` reads."""
        return exact(self._timeline.at(*point))

    @property
    def _at_border(self) -> bool:
        """Whether no update is under way."""
        return self._point[1] == "sample" and not self._begun

    @property
    def _done(self) -> int:
        """Updates finished, their evaluation included."""
        return self._point[0] - 1

    def _tries_with_less(self, error: BaseException) -> bool:
        """If memory was short, begin the update again without caches for sampling, or if there are none with half of
        `per_device_train_batch_size`; False if memory was not short, or if that cannot help."""
        (update, phase), lm = self._point, self._state.lm
        changed = remedy(self._latest, phase, lm.fixed) if is_out_of_memory(error) else None
        if changed is None:
            return False
        lm.save_memory()
        release(error)
        self._go_to(self._done)
        self.set(changed)
        self.note("warning", begins_again(update, phase, changed), "".join(traceback.format_exception_only(error)))
        return True

    def _tell(self, moment: Moment, closely: bool) -> None:
        """Keep count of the phases, and let the run file and the sink know what happened."""
        if self._last_end.is_due:
            self._last_end.close()
        self._remark()
        if isinstance(moment, (Evaluating, Unlabelled)):
            return
        self._begun = self._begun or not isinstance(moment, Evaluated)
        if isinstance(moment, Vining):
            return
        if isinstance(moment, Sampling):
            began = time.monotonic()
            if closely or (began >= self._look_again and not self._last_end.is_pending):
                self._last_end.close()
                with spent_on("record"):
                    self._sink(moment.record())
                now = time.monotonic()
                self._look_again = max(began + _LOOK_EVERY, now + _LOOK_SHARE * (now - began))
            return
        if isinstance(moment, Finished):
            timings = self._clock.take()
            moment = msgspec.structs.replace(moment, timings=timings, seconds=sum(timings.values()))
        if isinstance(moment, Evaluated):
            moment = msgspec.structs.replace(moment, seconds=self._clock.take_part(EVALUATE))
        if isinstance(moment, Sampled):
            compared = len(moment.group) > len(moment.prompts)
            self._pairs = np.flatnonzero(~identical_answers(moment)).tolist() if compared else []
        if ends_phase(moment):
            self._enter(point_after(self._point, moment))
        if isinstance(moment, Finished):
            self._kept = unless_large(self._state.batch)
            self._last_end.begin(moment, self._state, stage_at(self._plan.stages, self._done) == self._state.stage)
            self._cross()
        else:
            self._emit(moment)

    def _remark(self) -> None:
        """Tell what came up about the model itself."""
        remarks = self._state.lm.remarks
        while remarks:
            self.note("info", remarks.pop(0))

    def _cross(self) -> None:
        """Between two updates: hand the policy on if the next one begins a stage, say so once, and keep its start."""
        stages = self._plan.stages
        index = stage_at(stages, self._done)
        if index != self._state.stage:
            self._state.cross(index)
        begun = any(isinstance(turn, Staged) and turn.index == index for turn in self._timeline.changes)
        if len(stages) > 1 and not begun:
            name, settings = stages[index].name, msgspec.structs.asdict(stages[index].settings)
            staged = Staged(update=self._done + 1, index=index, stages=len(stages), name=name, settings=settings)
            self._emit(staged)
            self._enter(self._point)
        if self._done == stages[index].begins and self._aside is None:
            self._last_end.keep(self._state)

    def _enter(self, point: Point) -> None:
        self._point, self._begun = point, False
        self._state.settings = self._settings_at(point)

    def _emit(self, record: AnyRecord) -> None:
        self._last_end.close()
        if self._aside is None:
            self._commit(record)
        else:
            self._timeline.add(record)
            self._aside.append(record)

    @spent_on("record")
    def _commit(self, record: AnyRecord) -> None:
        self._writer.append(record)
        self._timeline.add(record)
        self._sink(record)

    def _forget_withheld(self) -> None:
        """What was withheld at the end of the last finished update, or earlier, stays, as a changed setting does."""
        self._state.withheld = {at: tokens for at, tokens in self._state.withheld.items() if at <= self._done + 1}

    def _ends(self, moment: Moment, until: Until) -> bool:
        match until:
            case "token":
                return not isinstance(moment, (Evaluating, Evaluated, Vining))
            case "phase":
                return ends_phase(moment)
            case "step":
                return isinstance(moment, Stepped)
            case "update":
                return isinstance(moment, Finished)
            case _:
                return False

    def _go_to(self, update: int, seen: Seen = unseen) -> None:
        """Restore the nearest snapshot at or before `update` and repeat, silently, what came after it."""
        self._state.settings = self._settings_at((self._store.nearest(update) + 1, "sample"))
        self._state.batch = self._kept = None
        self._store.restore(self._state, update)
        self._enter((self._state.update + 1, "sample"))
        explore(self._state)
        self._moments = measured(train(self._state, self._plan))
        self._repeat(update, seen)

    def _repeat(self, update: int, seen: Seen = unseen) -> None:
        """Go on to the end of `update`, silently: all of it is on record."""
        while self._done < update:
            moment = next(self._moments)
            if isinstance(moment, Unlabelled):
                raise ValueError(f"the pairs of update {self._point[0]} have no labels; labeller=gold needs none")
            if ends_phase(moment):
                self._enter(point_after(self._point, moment))
            if isinstance(moment, Finished):
                self._cross()
            seen(moment)
        self._clock.take()
