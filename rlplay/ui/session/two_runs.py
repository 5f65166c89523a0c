"""Two runs side by side: where they stand, what is different about them, and how the one behind catches up."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import shown
from rlplay.link.messages import Advance, AnyCommand, Pause
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario
from rlplay.trace.records import Started
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.session.session import Session

_BEGUN = ("scenario", "model", "seed", "device", "dtype")
_SOURCES = ("task", "dataset", "dataset_config", "dataset_train_split", "reward", "prompts", "stages",
            "eval_prompts", "eval_generations")  # fmt: skip
"""What of a scenario says where prompts and rewards come from, and in which stages they are learned from."""
_PROGRAMS = ("rlplay", "torch", "transformers")
"""Programs of which another version may round or sample in another way, as another number of threads may."""
_KEPT = 8
"""Updates held in memory, of both together."""


class RunPair:
    """Two of the runs, called by their letters, and the update at which they are compared."""

    def __init__(self, one: Session, other: Session, letters: str = "AB") -> None:
        self.both, self.letters = (one, other), letters
        self.picked: int | None = None  # chosen by hand; else the newest that both have finished
        self._loaded: dict[tuple[int, int], Update | None] = {}

    @property
    def number(self) -> int:
        """The update that is compared."""
        return min(session.finished for session in self.both) if self.picked is None else self.picked

    def updates(self) -> tuple[Update | None, Update | None]:
        """That update of each run; None where nothing was kept of its answers."""
        one, other = (self._update(side) for side in (0, 1))
        return one, other

    def _update(self, side: int) -> Update | None:
        session, number = self.both[side], self.number
        if not 0 < number <= session.finished:
            return None
        if (side, number) not in self._loaded:
            while len(self._loaded) >= _KEPT:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[side, number] = session.find(number)
        return self._loaded[side, number]

    def forget(self) -> None:
        """One of the runs went back: what was loaded may have been done again."""
        self._loaded.clear()
        if self.picked is not None and self.picked > min(session.finished for session in self.both):
            self.picked = None

    def move(self, step: int) -> bool:
        """To the update before or after that both have on record; False if there is none. RunFileError if damaged."""
        common = sorted(set(self.both[0].source.recorded()) & set(self.both[1].source.recorded()))
        beyond = [number for number in common if (number - self.number) * step > 0]
        if beyond:
            self.picked = min(beyond) if step > 0 else max(beyond)
        return bool(beyond)

    @property
    def starting(self) -> str:
        """The letter of the one that is not known yet; empty if both are."""
        unknown = (
            letter
            for letter, session in zip(self.letters, self.both, strict=True)
            if session.failed is None and (session.started is None or session.status is None)
        )
        return next(unknown, "")

    def differences(self, now: bool = False) -> list[str]:
        """What is different about the other at the update that is compared, or as it is set `now`: "beta 0 → 0.1"."""
        return [_difference(name, a, b) for name, a, b in self._differing(now)]

    def unlike(self) -> list[str]:
        """What the other has where the two differ: "beta 0.1"."""
        return [visible(f"{name} {_short(name, its)}") for name, _, its in self._differing(now=False)]

    @property
    def earlier(self) -> list[str]:
        """The settings that differed before the update that is compared, and no longer do."""
        now = {name for name, _, _ in self._settings(max(self.number, 1))}
        changed = {at for session in self.both for at in session.changed_at}
        before = {name for at in {1, *changed} if at < self.number for name, _, _ in self._settings(at)}
        return [name for name in KNOBS if name in before - now]

    @property
    def names_files(self) -> bool:
        """Whether data or rewards come from files, of which runs keep the names and not what was in them."""
        return any(
            session.started is not None
            and any(getattr(_scenario(session.started), name) for name in ("dataset", "reward"))
            for session in self.both
        )

    def _differing(self, now: bool) -> list[tuple[str, Any, Any]]:
        begun = [session.started for session in self.both]
        if begun[0] is None or begun[1] is None:
            return []
        one, other = (_begun(started) for started in begun if started is not None)
        differing = [(name, one[name], other[name]) for name in one if one[name] != other[name]]
        aside = [each for each in differing if each[0] in ("threads", *_PROGRAMS)]
        differing = [each for each in differing if each not in aside]
        return [*differing, *self._settings(None if now else max(self.number, 1)), *aside]

    def _settings(self, number: int | None) -> list[tuple[str, Any, Any]]:
        """The settings that differ in an update; None: as they are set now."""
        at = None if number is None else Update(number)
        one, other = (session.settings_of(at) for session in self.both)
        return [(name, one.get(name), other.get(name)) for name in KNOBS if one.get(name) != other.get(name)]

    @property
    def alike(self) -> bool:
        """Whether both have the same answers there, token by token, and the same numbers: a branch until it parts."""
        one, other = self.updates()
        if one is None or other is None or one.sampled is None or other.sampled is None:
            return False
        numbers = [None if each.finished is None else each.finished.metrics for each in (one, other)]
        return np.array_equal(one.sampled.token_ids, other.sampled.token_ids) and numbers[0] == numbers[1]

    def onward(self, count: int | None) -> list[tuple[Session, AnyCommand]]:
        """Who is told what so that the run behind plays `count` updates, None being all that it lacks.

        Where both stand at the same update, both are told to; where something runs, it is told to pause instead.
        """
        running = [each for each in self.both if each.status is not None and each.status.running]
        if running and count is None:
            return [(session, Pause()) for session in running]
        live = [each for each in self.both if each.source.live and each.failed is None and each not in running]
        ahead = max(session.finished for session in self.both)
        behind = [session for session in live if session.finished < ahead]
        if behind:
            return [(session, Advance("update", count or ahead - session.finished)) for session in behind]
        return [(session, Advance("update", count)) for session in live] if count else []


def _scenario(started: Started) -> Scenario:
    """What the run played; an empty one where that is not on record."""
    try:
        return scenario_of(started)
    except (msgspec.MsgspecError, TypeError):  # written by another program
        return Scenario(started.scenario, started.title, "")


def _begun(started: Started) -> dict[str, Any]:
    """Everything besides the settings that answers and numbers of a run depend on."""
    scenario = _scenario(started)
    found = {name: getattr(started, name) for name in _BEGUN} | {name: getattr(scenario, name) for name in _SOURCES}
    return found | {"threads": started.threads} | {name: started.versions.get(name) for name in _PROGRAMS}


def _difference(name: str, one: Any, other: Any) -> str:
    """What something is in both, "beta 0 → 0.1"; only that they differ, where a few words cannot say how."""
    short = _short(name, one), _short(name, other)
    return visible(f"{name} differ" if short[0] == short[1] else f"{name} {short[0]} → {short[1]}")


def _short(name: str, value: Any) -> str:
    if name == "stages" and value:
        return " + ".join(f"{stage.name} {stage.updates}" for stage in value)
    if name == "prompts" and value:
        return f"{len(value)} given"
    if name == "reward" and value:
        return " + ".join(value)
    return shown(value) if value not in (None, []) else "none"


def place(session: Session) -> str:
    """Where a run stands, in a few words."""
    if session.failed is not None:
        return f"ended: {session.failed.text}"
    if session.loading is not None and session.status is None:
        return f"{session.loading.what} {session.loading.fraction:.0%}"
    status: Any = session.status
    if session.asks and status.waits:
        return f"update {session.finished} · waits for your labels, a shows them"
    doing = "" if not session.source.live else " · running" if status and status.running else " · paused"
    return f"update {session.finished}{doing}"
