"""Two runs side by side: their progress, their differences, and how the one behind catches up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import shown
from rlplay.link.messages import Advance, AnyCommand, Pause
from rlplay.plain_yaml import PlainYamlError
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario
from rlplay.trace.clock import by_step
from rlplay.trace.records import Started
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.session.session import Session

_BEGUN = ("scenario", "model", "seed", "device", "dtype")
_SOURCES = ("task", "dataset", "dataset_config", "dataset_train_split", "reward", "prompts", "stages",
            "eval_prompts", "eval_generations")  # fmt: skip
"""Fields of a scenario that define its prompts, rewards and stages."""
_PROGRAMS = ("rlplay", "torch", "transformers", "products")
"""Programs whose versions may affect rounding or sampling."""
_SHARES = ("threads", "processes")
"""Into how many parts a sum is cut, which may affect rounding, too."""
_WITHHELD = "tokens without credit"
_KEPT = 8
"""Updates kept in memory, of both runs together."""


class RunPair:
    """Two runs with their letters, and the place at which to compare them: an update, or a step of their trainers."""

    def __init__(self, one: Session, other: Session, letters: str = "AB", among: Sequence[Session] = ()) -> None:
        """`among` are all that are compared: they have one kind of place."""
        self.both, self.letters, self._among = (one, other), letters, among or (one, other)
        self.picked: int | None = None  # chosen by the user; None: the newest that both have finished
        self._loaded: dict[tuple[int, int], Update | None] = {}
        self._rewinds: list[int] = []  # of both, when they were last followed

    @property
    def by_step(self) -> bool:
        """Whether the runs are compared at equal steps, as their updates are of different ones."""
        return by_step([session.run.history.clock for session in self._among])

    @property
    def number(self) -> int:
        """The compared place."""
        return min(map(self.reached, self.both)) if self.picked is None else self.picked

    def reached(self, session: Session) -> int:
        """The newest place of a run."""
        return session.run.history.clock.last if self.by_step else session.run.finished

    @property
    def where(self) -> str:
        """The compared place in words."""
        return f"step {self.number:,}" if self.by_step else f"update {self.number}"

    @property
    def numbers(self) -> tuple[int, int]:
        """The update of each run that is compared: the same, or those with the same step."""
        return self._numbers_at(self.number)

    def _numbers_at(self, place: int) -> tuple[int, int]:
        if not self.by_step:
            return place, place
        one, other = (session.run.history.clock.update_at(place) or 0 for session in self.both)
        return one, other

    @property
    def marked(self) -> tuple[int | None, int | None]:
        """The update to mark in a view of each run: the one that the user chose."""
        return (None, None) if self.picked is None else self.numbers

    def updates(self) -> tuple[Update | None, Update | None]:
        """The compared update of each run; None if its answers were not kept."""
        one, other = (self._update(side) for side in (0, 1))
        return one, other

    def _update(self, side: int) -> Update | None:
        session, number = self.both[side], self.numbers[side]
        if not 0 < number <= session.run.finished:
            return None
        if (side, number) not in self._loaded:
            while len(self._loaded) >= _KEPT:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[side, number] = session.run.find(number)
        return self._loaded[side, number]

    def follow(self) -> None:
        """Where one of the runs went back, drop the loaded updates, which may be replaced, and an undone choice."""
        rewinds = [session.run.rewinds for session in self.both]
        if rewinds != self._rewinds:
            self._rewinds = rewinds
            self._loaded.clear()
            if self.picked is not None and self.picked > min(map(self.reached, self.both)):
                self.picked = None

    def move(self, step: int) -> bool:
        """Go to the previous or next place that both recorded; False if there is none. RunFileError if damaged."""
        beyond = [number for number in self._places() if (number - self.number) * step > 0]
        if beyond:
            self.picked = min(beyond) if step > 0 else max(beyond)
        return bool(beyond)

    def _places(self) -> list[int]:
        """The places that both recorded: of steps, the last one of each update of the run with fewer updates."""
        one, other = (set(session.source.recorded()) for session in self.both)
        if not self.by_step:
            return sorted(one & other)
        fewer = int(len(other) < len(one))
        clock, kept = self.both[fewer].run.history.clock, (one, other)[fewer]
        places = [clock.place(update) for update in sorted(kept)]
        both = [(place, *self._numbers_at(place)) for place in places]
        return [place for place, mine, its in both if mine in one and its in other]

    @property
    def starting(self) -> str:
        """The letter of a run that is still starting; empty if none is."""
        unknown = (
            letter
            for letter, session in zip(self.letters, self.both, strict=True)
            if session.failed is None and (session.run.started is None or session.status is None)
        )
        return next(unknown, "")

    def differences(self, now: bool = False) -> list[str]:
        """How the second run differs at the compared update, or in its settings `now`: "beta 0 → 0.1"."""
        return [_difference(name, a, b) for name, a, b in self._differing(now)]

    def values(self, side: int) -> list[str]:
        """The values of what differs, of the first run (side 0) or of the second one (1): "beta 0.1"."""
        return [visible(f"{name} {_short(name, both[side])}") for name, *both in self._differing(now=False)]

    @property
    def earlier(self) -> list[str]:
        """What differed before the compared update, and no longer does: settings, and tokens without credit."""
        now = {name for name, _, _ in (*self._settings(self.numbers), *self._withheld(self.numbers))}
        clocks = [session.run.history.clock for session in self.both]
        changed = {(side, at) for side, session in enumerate(self.both) for at in (1, *session.changed_at)}
        places = {clocks[side].place(at) if self.by_step else at for side, at in changed}
        earlier = [self._numbers_at(place) for place in places if place < self.number]
        before = {name for numbers in earlier for name, _, _ in self._settings(numbers)}
        withheld = {at for session in self.both for at in session.run.history.withheld}
        before |= {_WITHHELD for at in withheld if at < self.number and self._withheld((at, at))}
        return [name for name in (*KNOBS, _WITHHELD) if name in before - now]

    @property
    def names_files(self) -> bool:
        """Whether data or rewards come from files: runs record their names, not their contents."""
        return any(
            session.run.started is not None
            and any(getattr(_scenario(session.run.started), name) for name in ("dataset", "reward"))
            for session in self.both
        )

    def _differing(self, now: bool) -> list[tuple[str, Any, Any]]:
        begun = [session.run.started for session in self.both]
        if begun[0] is None or begun[1] is None:
            return []
        one, other = (_begun(started) for started in begun if started is not None)
        differing = [(name, one[name], other[name]) for name in one if one[name] != other[name]]
        aside = [each for each in differing if each[0] in (*_SHARES, *_PROGRAMS)]
        differing = [each for each in differing if each not in aside]
        withheld = [] if now else self._withheld(self.numbers)
        return [*differing, *self._settings(None if now else self.numbers), *withheld, *aside]

    def _settings(self, numbers: tuple[int, int] | None) -> list[tuple[str, Any, Any]]:
        """The settings that differ in the updates `numbers` of the runs; None: the current settings."""
        updates = (None, None) if numbers is None else (Update(max(number, 1)) for number in numbers)
        one, other = (session.on_record(update) for session, update in zip(self.both, updates, strict=True))
        return [(name, one.get(name), other.get(name)) for name in KNOBS if one.get(name) != other.get(name)]

    def _withheld(self, numbers: tuple[int, int]) -> list[tuple[str, Any, Any]]:
        """The tokens whose credit was taken away in the updates `numbers` of the runs, if they differ."""
        one, other = (session.run.history.withheld.get(at, []) for session, at in zip(self.both, numbers, strict=True))
        return [(_WITHHELD, one, other)] if one != other else []

    @property
    def identical(self) -> bool:
        """Whether both runs have equal tokens and numbers at the compared update, as before a branch diverges."""
        one, other = self.updates()
        if one is None or other is None or one.sampled is None or other.sampled is None:
            return False
        numbers = [None if each.finished is None else each.finished.metrics for each in (one, other)]
        return np.array_equal(one.sampled.token_ids, other.sampled.token_ids) and numbers[0] == numbers[1]

    def advance_commands(self, count: int | None) -> list[tuple[Session, AnyCommand]]:
        """The commands with which the run behind plays `count` updates; None: all that it lacks.

        If both runs are at the same update, both get the command. With `count` None, running engines pause instead.
        """
        running = [each for each in self.both if each.status is not None and each.status.running]
        if running and count is None:
            return [(session, Pause()) for session in running]
        live = [each for each in self.both if each.source.live and each.failed is None and each not in running]
        ahead = max(session.run.finished for session in self.both)
        behind = [session for session in live if session.run.finished < ahead]
        if behind:
            return [(session, Advance("update", count or ahead - session.run.finished)) for session in behind]
        return [(session, Advance("update", count)) for session in live] if count else []


class MomentPair(RunPair):
    """One run at two of its updates."""

    def __init__(self, session: Session, before: int, after: int) -> None:
        super().__init__(session, session)
        self._moments = before, after

    @property
    def numbers(self) -> tuple[int, int]:
        """The two updates."""
        return self._moments

    @property
    def marked(self) -> tuple[int | None, int | None]:
        """The two updates, where both views are of the same run."""
        return self._moments

    def values(self, side: int) -> list[str]:
        """Which update it is: what else differs, the head of the comparison says."""
        return [f"update {self._moments[side]}"]


def _scenario(started: Started) -> Scenario:
    """The run's scenario; an empty one if it was not recorded."""
    try:
        return scenario_of(started)
    except (msgspec.MsgspecError, PlainYamlError, TypeError):  # written by another program
        return Scenario(started.scenario, started.title, "")


def _begun(started: Started) -> dict[str, Any]:
    """Everything except the settings that affects a run's answers and numbers."""
    scenario = _scenario(started)
    found = {name: getattr(started, name) for name in _BEGUN} | {name: getattr(scenario, name) for name in _SOURCES}
    found |= {name: getattr(started, name) for name in _SHARES}
    return found | {name: started.versions.get(name) for name in _PROGRAMS}


def _difference(name: str, one: Any, other: Any) -> str:
    """One difference, "beta 0 → 0.1"; or only that the values differ, if a few words cannot show how."""
    short = _short(name, one), _short(name, other)
    return visible(f"{name} differ" if short[0] == short[1] else f"{name} {short[0]} → {short[1]}")


def _short(name: str, value: Any) -> str:
    if name == "stages" and value:
        return " + ".join(f"{stage.name} {stage.updates}" for stage in value)
    if name == "prompts" and value:
        return f"{len(value)} given"
    if name == _WITHHELD:
        return str(len(value))
    if name == "reward" and value:
        return " + ".join(value)
    return shown(value) if value not in (None, []) else "none"


def place(session: Session) -> str:
    """The progress of a run, in a few words."""
    if session.failed is not None:
        return f"ended: {session.failed.text}"
    if session.loading is not None and session.status is None:
        return f"{session.loading.what} {session.loading.fraction:.0%}"
    status: Any = session.status
    reached = f"update {session.run.finished}{session.run.history.clock.aside(session.run.finished)}"
    if session.asks and status.waits:
        return f"{reached} · waiting for your labels: press A"
    doing = "" if not session.source.live else " · running" if status and status.running else " · paused"
    return f"{reached}{doing}"
