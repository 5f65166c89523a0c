"""One update of a run, assembled from its records, for the screen, the exports and the replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import numpy as np

from rlplay.trace.records import (
    AnyRecord,
    Array,
    Choice,
    Credited,
    Finished,
    Labelled,
    Sampled,
    Scored,
    Searched,
    Stepped,
    Withheld,
    spans,
)

Phase = Literal["sample", "score", "credit", "update", "after"]
T = TypeVar("T")
PHASES: tuple[Phase, ...] = ("sample", "score", "credit", "update", "after")


class Update:
    """Everything known so far about update `number`; later records fill in what is still None."""

    def __init__(self, number: int, step_word: str = "token") -> None:
        """`step_word` is what the policy samples, "move" in a world; the run's scenario says it, no record does."""
        self.number = number
        self.step_word = step_word
        self.sampled: Sampled | None = None
        self.labels: dict[int, Choice] = {}  # the user's, by pair
        self.withheld: list[int] = []  # the tokens whose credit is taken away
        self.scored: Scored | None = None
        self.credited: Credited | None = None
        self.searched: list[Searched] = []
        self.steps: list[Stepped] = []
        self.finished: Finished | None = None
        self.shares: Array | None = None  # float32 [T] in what moved a target that was asked about; never recorded
        self._known: tuple[list[object], dict[object, Any]] = [], {}

    def add(self, record: AnyRecord) -> None:
        """Take a record of this update; records of other kinds are ignored."""
        match record:
            case Sampled():
                self.sampled = record
            case Labelled():
                self.labels[record.pair] = record.choice
            case Withheld():
                self.withheld = record.tokens
            case Scored():
                self.scored = record
            case Credited():
                self.credited = record
            case Searched():
                here = record.kind, record.iteration
                self.searched = [s for s in self.searched if (s.kind, s.iteration) < here] + [record]
            case Stepped():
                self.steps = [s for s in self.steps if s.step < record.step] + [record]
            case Finished():
                self.finished = record
            case _:
                pass

    def once(self, work: Callable[[Update], T]) -> T:
        """What the function `work` makes of this update, computed anew only when a record has come or changed."""
        records: list[object] = [self.sampled, self.scored, self.credited, self.finished, self.shares, *self.steps]
        before, known = self._known
        if len(before) != len(records) or any(one is not other for one, other in zip(before, records, strict=True)):
            known = {}
            self._known = records, known
        if work not in known:
            known[work] = work(self)
        return cast("T", known[work])

    @property
    def phase(self) -> Phase:
        """The last phase that has a record."""
        if self.finished is not None:
            return "after"
        if self.steps or self.searched:
            return "update"
        if self.credited is not None:
            return "credit"
        return "score" if self.scored is not None else "sample"

    @property
    def tokens(self) -> int:
        """T, the number of completion tokens."""
        return 0 if self.sampled is None else len(self.sampled.token_ids)

    @property
    def completions(self) -> int:
        """N, the number of completions."""
        return 0 if self.sampled is None else len(self.sampled.group)

    def situation(self, token: int) -> str:
        """The true state in which a sampled token was chosen, where an environment names its states."""
        sampled = self.sampled
        assert sampled is not None
        row = int(np.searchsorted(sampled.offsets, token, side="right")) - 1
        turns, prompt = int(sampled.mask[sampled.offsets[row] : token].sum()), int(sampled.group[row])
        if turns:
            return sampled.states[row][turns - 1] if row in sampled.states else ""
        return str(sampled.columns[prompt].get("start") or sampled.prompts[prompt])

    def scatter(self, rows: Array, values: Array) -> Array:
        """Flat values over the completions `rows` laid out over all T tokens; NaN elsewhere. float32 [T, ...]."""
        assert self.sampled is not None
        if len(rows) == self.completions and np.array_equal(rows, np.arange(len(rows))):
            return np.array(values, dtype=np.float32)
        out = np.full((self.tokens, *values.shape[1:]), np.nan, dtype=np.float32)
        out[spans(self.sampled.offsets, rows)] = values
        return out

    def latest_step(self, field: str) -> Array | None:
        """A `Stepped` array over all T tokens, each from the last optimizer step that saw it; None if none did."""
        out: Array | None = None
        for step in self.steps:
            values = getattr(step, field)
            if values is None:
                continue
            fresh = self.scatter(step.rows, values)
            out = fresh if out is None else np.where(np.isnan(fresh), out, fresh)
        return out

    def pull(self) -> Array | None:
        """How hard the update pulled each token's log-probability up (+) or down (-): float32 [T].

        The sum over the update's optimizer steps of -dL/dlogp, times the number of sampled tokens in the step,
        so that a token with advantage 1 and ratio 1 under a token-mean loss shows 1.
        """
        if not self.steps or self.sampled is None:
            return None
        total = np.zeros(self.tokens, dtype=np.float32)
        seen = np.zeros(self.tokens, dtype=bool)
        for step in self.steps:
            index = spans(self.sampled.offsets, step.rows)
            count = int(self.sampled.mask[index].sum()) if step.tokens is None else step.tokens
            total[index] -= step.dloss_dlogp * count
            seen[index] = True
        return np.where(seen, total, np.nan).astype(np.float32)

    def new_logprobs(self) -> Array | None:
        """Log-probabilities under the policy after the update, float32 [T], NaN where not re-evaluated.

        None before the update's end, or if its trainer did not look at the tokens again.
        """
        if self.finished is None or self.sampled is None or not len(self.finished.rows):
            return None
        return self.scatter(self.finished.rows, self.finished.logprobs)
