"""Search in the answers on the screen: the query, its matches, and the way from match to match."""

from __future__ import annotations

import numpy as np

from rlplay.trace.answers import columns
from rlplay.trace.find import Found, Query, find, names, parse, unknown
from rlplay.trace.records import Array
from rlplay.trace.text import quote, visible
from rlplay.trace.update import Update
from rlplay.ui.format.shown_text import literal
from rlplay.ui.session.session import Session


class Finder:
    """A search stays until it is cleared, and applies to every update on the screen."""

    def __init__(self) -> None:
        self.query: Query | None = None
        self.found: Found | None = None
        self._update: Update | None = None
        self._listed: list[int] = []
        self._reached: list[int] = []  # those that are not folded away

    def ask(self, typed: str, session: Session) -> str:
        """Search for `typed` from now on. If it is invalid, returns why, in one line, and keeps the old search."""
        parts = [name.split("/")[1] for name in session.run.history.names() if name.count("/") == 2]
        try:
            query = parse(typed, columns(session.shown))
            if query is not None and (name := unknown(query, session.shown, parts)) is not None:
                raise ValueError(f"nothing is called {quote(name)}; known: {', '.join(names(session.shown))}")
        except ValueError as error:
            return visible(str(error))
        self.query = query
        return ""

    def filter(self, update: Update | None, listed: list[int]) -> list[int]:
        """Search `update`, and return the matching ones of the answers `listed`, in the same order."""
        self._update, self._listed, self.found = update, listed, None
        if self.query is not None and update is not None and update.sampled is not None:
            found = self.found = find(self.query, update)
            self._listed = [completion for completion in listed if found.answers[completion]]
        self._reached = self._listed
        return self._listed

    def keep(self, listed: list[int]) -> None:
        """Go only to these of the matching answers; the others are folded away."""
        self._reached = listed

    @property
    def count(self) -> str:
        """The number of matching answers, "3 of 64"; empty without a search."""
        if self.query is None:
            return ""
        return f"{len(self._listed)} of {0 if self._update is None else self._update.completions}"

    @property
    def summary(self) -> str:
        """The search text and the number of matches."""
        if self.query is None:
            return ""
        stops = None if self.found is None else self.found.stops
        return f"{self.count if stops is None else f'{int(stops.sum())} found'} · {self._sought}"

    @property
    def nothing(self) -> str:
        """The message for an empty list of matches; empty without a search."""
        if self.found is None or self.query is None:
            return ""
        return f"No answer matches {literal(self._sought)}. `esc` shows all of them again."

    @property
    def wants_clipped(self) -> bool:
        """Whether the search is for clipped tokens."""
        query = self.query
        return query is not None and any(condition.name == "clip_state" for condition in query.conditions)

    @property
    def _sought(self) -> str:
        """The query as typed; text in quotes."""
        query = self.query
        return "" if query is None else f"“{visible(query.text)}”" if query.text else visible(query.typed)

    def next(self, cursor: tuple[int, int], step: int) -> tuple[int, int] | None:
        """The next match after the `cursor`, or before it with step −1, wrapping around; None without matches."""
        if self.found is None or self._update is None or self._update.sampled is None or not self._reached:
            return None
        places = self._places()
        rank = np.full(self._update.completions, -1)
        rank[self._reached] = np.arange(len(self._reached))
        longest = int(np.diff(self._update.sampled.offsets).max()) + 1
        keys = rank[places[:, 0]] * longest + places[:, 1]
        sorted_by = np.argsort(keys, kind="stable")
        here = int(rank[cursor[0]]) * longest + cursor[1] if cursor[0] < len(rank) else -1
        at = int(np.searchsorted(keys[sorted_by], here, side="right" if step > 0 else "left")) - (step < 0)
        completion, token = places[sorted_by[at % len(places)]].tolist()
        return completion, token

    def _places(self) -> Array:
        """Completion and token of every match, int64 [P, 2]; for an answer without matching tokens, its first token."""
        assert self.found is not None
        assert self._update is not None
        assert self._update.sampled is not None
        listed = np.array(self._reached, dtype=np.int64)
        stops = np.flatnonzero(self.found.stops) if self.found.stops is not None else np.zeros(0, dtype=np.int64)
        offsets = self._update.sampled.offsets
        owners = np.searchsorted(offsets, stops, side="right") - 1
        seen = np.isin(owners, listed)
        places = np.stack([owners[seen], (stops - offsets[owners])[seen]], axis=1)
        without = listed[~np.isin(listed, owners)]
        return np.concatenate([places, np.stack([without, np.zeros_like(without)], axis=1)])
