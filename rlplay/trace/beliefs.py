"""The next-token distribution at one place of the answers, as every update of a run recorded it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlplay.trace.known import MOST, Known
from rlplay.trace.records import AnyRecord, Array, Sampled, Survey
from rlplay.trace.update import Update

CANDIDATES = 16
"""Candidates kept of each token, best first; some runs record the whole vocabulary."""
MOST_CANDIDATES = 2**25
"""Candidates kept of all tokens, of 8 bytes each; 320 updates of 256 answers of 40 tokens with 10 each have as many."""

NEIGHBOURS, LONG = 5, 40
"""Updates that a mean is taken over where they ask other prompts, and how many a run has before that is done."""


class Context(NamedTuple):
    """Where a token was chosen. A `state` names a square of a world; otherwise `before` are the answer's tokens so far.

    With a `prompt` (the bytes of its token ids), only answers to that prompt count.
    """

    before: tuple[int, ...] = ()
    prompt: bytes | None = None
    state: str = ""


class Belief(NamedTuple):
    """The probabilities of the recorded candidates by token id, or by action of a world; the mean over `prompts`.

    A token that was no candidate of a prompt counts as 0 there, so a share is at least what it says; the rest of 1 is
    the probability of all others.
    """

    shares: dict[int, float]
    prompts: int


@dataclass(eq=False)
class _Kept:
    prompts: list[bytes]  # [G]
    group: Array  # [N]
    offsets: Array  # [N + 1]
    token_ids: Array  # [T]
    mask: Array  # [T]
    top_ids: Array  # [T, ≤ CANDIDATES]
    top_logprobs: Array
    survey: Survey | None
    found: tuple[Context, Belief | None] | None = None  # at the place last asked for


class Beliefs(Known[_Kept]):
    """The candidates of every update of the live branch, at the sampling temperature of each.

    The policy of an update is the one that sampled its answers, so that of update 1 is untrained.
    """

    def __init__(self, by_update: Callable[[], dict[int, Any]] = dict) -> None:
        super().__init__(by_update)
        self.pieces: dict[int, str] = {}
        self._place: Context | None = None

    @property
    def most(self) -> int:
        """Updates to keep: fewer if their answers have many tokens, so that twice as many have `MOST_CANDIDATES`."""
        candidates = sum(kept.top_ids.size for kept in self._kept.values())
        if not candidates:
            return MOST
        return max(1, min(MOST, MOST_CANDIDATES * len(self._kept) // (2 * candidates)))

    @property
    def known(self) -> int:
        """How many updates have been read."""
        return len(self._kept)

    def add(self, record: AnyRecord) -> None:
        """Take any record; only the last one of an update's sampling has all answers."""
        if not isinstance(record, Sampled) or not record.done:
            return
        ids, ends = record.prompt_ids, record.prompt_offsets
        prompts = [ids[ends[g] : ends[g + 1]].tobytes() for g in range(len(record.prompts))]
        kept = _Kept(
            prompts, record.group, record.offsets, record.token_ids, record.mask,
            record.top_ids[:, :CANDIDATES].copy(), record.top_logprobs[:, :CANDIDATES].copy(), record.survey,
        )  # fmt: skip
        seen = np.unique(kept.top_ids).tolist()
        self.pieces.update((each, record.pieces[each]) for each in seen if each in record.pieces)
        self._keep(record.update, kept)

    def place(self, update: Update | None, cursor: tuple[int, int]) -> Context | None:
        """Where the token at `cursor` (completion, token) was chosen; None before any answer, or in an empty one.

        The place keeps the prompt if at least half of the updates have asked it; otherwise it stands for the same
        beginning of an answer to any prompt.
        """
        sampled = None if update is None else update.sampled
        if update is None or sampled is None or cursor[0] >= update.completions:
            return None
        row, token = cursor
        start, end = sampled.offsets[row : row + 2].tolist()
        token = min(token, end - start - 1)
        if token < 0 or not sampled.mask[start + token]:
            return None
        if sampled.survey is not None:
            return Context(state=update.situation(start + token))
        group = int(sampled.group[row])
        ends = sampled.prompt_offsets
        prompt = sampled.prompt_ids[ends[group] : ends[group + 1]].tobytes()
        asked = sum(prompt in kept.prompts for kept in self._kept.values())
        before = tuple(sampled.token_ids[start : start + token].tolist())
        return Context(before, prompt if 2 * asked >= max(len(self._kept), 1) else None)

    def at(self, place: Context) -> dict[int, Belief]:
        """The distribution at `place` in every update that has been there, by ascending update."""
        if place != self._place:
            self._place = place
        for kept in self._kept.values():
            if kept.found is None or kept.found[0] is not self._place:
                kept.found = self._place, _belief(kept, place)
        found = ((number, self._kept[number].found) for number in sorted(self._kept))
        return {number: each[1] for number, each in found if each is not None and each[1] is not None}

    def name(self, place: Context, token: int) -> str:
        """The text of a token, or the action of a world; "" for a token of a run that is compared with this one."""
        surveys = (kept.survey for kept in reversed(self._kept.values()))
        if place.state and (survey := next(filter(None, surveys), None)) is not None:
            return survey.actions[token] if token < len(survey.actions) else ""
        return self.pieces.get(token, "")


def window_of(updates: int, columns: int, place: Context) -> int:
    """Over how many neighbouring updates a picture takes means, an odd number; 1: every update as it is.

    As many as share a column; and where updates ask other prompts, so that one differs from the next by its prompts,
    at least `NEIGHBOURS` in a run of `LONG` updates or more.
    """
    in_a_column = -(-updates // max(columns, 1))
    other_prompts = not place.state and place.prompt is None and updates >= LONG
    window = max(in_a_column, NEIGHBOURS if other_prompts else 1)
    return window + 1 - window % 2


def shares_over(found: dict[int, Belief], tokens: list[int], window: int) -> Array:
    """The probabilities of `tokens` at every update of `found`, ascending: float64 [updates, tokens].

    Each is the mean over the updates on record at most `window // 2` away, so over fewer at both ends.
    """
    known = np.array(sorted(found))
    shares = np.array([[found[update].shares.get(token, 0.0) for token in tokens] for update in known.tolist()])
    sums = np.pad(np.cumsum(shares.reshape(len(known), -1), axis=0), ((1, 0), (0, 0)))
    first = np.searchsorted(known, known - window // 2, side="left")
    past = np.searchsorted(known, known + window // 2, side="right")
    return np.asarray((sums[past] - sums[first]) / (past - first)[:, None])


def _belief(kept: _Kept, place: Context) -> Belief | None:
    if place.state:
        if kept.survey is None or place.state not in kept.survey.states:
            return None
        row = np.exp(kept.survey.logprobs[kept.survey.states.index(place.state)].astype(np.float64))
        return Belief(dict(enumerate(row.tolist())), 1)
    length = len(place.before)
    fits = np.diff(kept.offsets) > length
    if place.prompt is not None:
        fits &= np.array([prompt == place.prompt for prompt in kept.prompts], dtype=bool)[kept.group]
    rows = np.flatnonzero(fits)
    here = kept.offsets[rows] + length
    same = kept.mask[here] == 1
    if length:
        prefix = kept.token_ids[kept.offsets[rows][:, None] + np.arange(length)]
        same &= (prefix == np.array(place.before)).all(axis=1)
    rows, here = rows[same], here[same]
    if not len(rows) or not kept.top_ids.shape[1]:
        return None
    # The answers of a group share the prompt and the tokens before, so one distribution: count it once.
    here = here[np.unique(kept.group[rows], return_index=True)[1]]
    logprobs = kept.top_logprobs[here].astype(np.float64)
    ids, places = np.unique(kept.top_ids[here], return_inverse=True)
    shares = np.bincount(places.ravel(), np.exp(logprobs).ravel(), len(ids)) / len(here)
    kept_shares = {int(each): float(share) for each, share in zip(ids, shares, strict=True) if np.isfinite(share)}
    return Belief(kept_shares, len(here)) if kept_shares else None
