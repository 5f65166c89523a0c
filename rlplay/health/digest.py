"""What is kept of an update to judge a run by: a few numbers and places, so that a long run fits in memory."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlplay.health.broken_numbers import Pull, Unfit, hardest, of_one_token, unfit, without_tokens
from rlplay.health.counts import (
    GOLD_COLUMNS,
    WinCount,
    alike_prompts,
    broken_marks,
    compared,
    containing,
    long_answers,
    marked,
    marks_within,
    openings,
    repetition,
    tails,
    texts,
    values,
    whole_marks,
)
from rlplay.health.given_answers import GivenAnswers, given_answers
from rlplay.health.paid_numbers import TwiceNumbers, cut_masked, twice_numbers, weightless
from rlplay.health.pair_numbers import PairNumbers, pair_numbers
from rlplay.health.part_numbers import PartNumbers, TinyGroups, part_numbers, tiny_groups
from rlplay.health.prompt_numbers import prompt_keys, row_keys
from rlplay.health.reference_numbers import ReferenceGap, reference_gap
from rlplay.health.sampler_numbers import (
    SamplerGap,
    Surprise,
    against_reference,
    later_surprise,
    most_unlikely,
    sampler_gap,
    surprise,
)
from rlplay.health.trained_tokens import TrainedTokens, trained_tokens
from rlplay.health.turn_numbers import TurnNumbers, not_sampled, turn_numbers
from rlplay.trace.lenses_of_others import staleness
from rlplay.trace.records import Array, Sampled, spans
from rlplay.trace.update import Update

EXAMPLES = 3
EXACT = 2**53
"""From here on JSON's readers round whole numbers."""


@dataclass(frozen=True)
class TokenPlace:
    """Where a finding can be seen: an answer of an update, and one of its tokens."""

    update: int
    answer: int
    token: int = 0


@dataclass(frozen=True)
class AnswerExample:
    """An answer beside what its prompt's row says."""

    place: TokenPlace
    prompt: str
    answer: str
    reward: float | None
    columns: dict[str, str | int | float]


@dataclass(frozen=True)
class Digest:
    """An update in brief; None where it has no such thing."""

    update: int
    finished: bool
    broken: tuple[str, ...]  # metrics that are not finite
    answers: int
    walks: bool  # moves in a small world, and not text
    tokens: bool  # whether tokens are on record, and not only the words of another trainer's answers
    prompts_known: bool  # whether the prompts' tokens are on record
    prompts_alike: tuple[int, int]  # different prompts whose tokens are known; of these, with the tokens of another
    prompt_tokens: int  # of all prompts together
    template_marks: int  # in the prompts, each one token
    groups: int
    cut: int
    ends_known: bool  # whether the run says which answers were cut
    ended_earned: float | None  # mean reward of the answers that ended
    cut_earned: float | None  # mean reward of those that were cut
    limit: int  # tokens of the longest answer that was cut; 0 without one
    scored: bool
    reward: float | None  # of every answer, if all earned the same
    best: float | None  # the largest reward
    silent: bool  # every advantage is 0
    longer: dict[str, WinCount]  # in tokens and in characters: the longer answer earned more; see `_longer`
    gold: dict[str, WinCount]  # by column: the answer that contains the column's value earned more
    contained: dict[str, int]  # by column: how many answers contain its value
    empty: int  # answers that are nothing but the token that ends them
    shift: float | None  # how much probability the update moved, see `_shift`
    repeats: float  # mean seq-rep-4
    long_answers: int  # of at least twice the tokens of which repeated sequences are counted
    mismatch: float | None  # mean k3 between the log-probabilities that sampled and those of the first step, nats
    apart: bool  # whether another program sampled, such as vLLM
    broken_marks: dict[str, int]
    openings: Counter[str]
    marks_within: Counter[str]
    tails: Counter[str]
    examples: tuple[AnswerExample, ...]
    places: dict[str, TokenPlace]
    """By name: "cut", "mark", "repeated", "longest", "mismatch", "moved", "unlikely", "pulled", "broken …",
    "not sampled" and "reference"."""
    surprise: Surprise | None = None
    later: Surprise | None = None  # of the turns behind the first of each answer
    gap: SamplerGap | None = None
    ahead_of_reference: tuple[float, float] | None = None  # see `against_reference`
    unfit: dict[str, Unfit] = field(default_factory=dict)  # what of its tokens' numbers is not finite
    without_tokens: int = 0  # answers of which the policy sampled nothing
    all_zero: tuple[str, int] = ("", 0)  # the token 0, and answers that are nothing else
    pull: Pull | None = None  # the token that pulled hardest
    trained: TrainedTokens | None = None  # which tokens the loss covers
    turns: TurnNumbers | None = None  # prompts that go on where an answer ended
    reference: ReferenceGap | None = None
    parts: PartNumbers | None = None
    tiny: TinyGroups | None = None
    pairs: PairNumbers | None = None
    prompts: frozenset[int] = frozenset()  # see `row_keys`
    prompt_texts: frozenset[int] = frozenset()  # see `prompt_keys`
    given: dict[str, GivenAnswers] = field(default_factory=dict)  # by column: whether its value stands in the prompts
    shift_before_last: bool = False  # `shift` is without the last optimizer step, whose result nobody saw
    scores: dict[str, WinCount] = field(default_factory=dict)  # by gold score of 0 and 1: the right answer earned more
    twice: TwiceNumbers | None = None
    weightless: tuple[str, ...] = ()  # the parts of the reward, if each of them has the weight 0
    cut_masked: int = 0  # answers that were cut and are in no step's loss
    episodes: bool = False  # an environment has written a part of an answer
    age: float | None = None  # mean number of updates by which the weights that sampled were older than the policy


def digest(update: Update) -> Digest | None:
    """The digest of an update whose answers have all been sampled; None of others."""
    sampled = update.sampled
    if sampled is None or not sampled.done or not len(sampled.group) or not len(sampled.token_ids):
        return None
    lengths, answers = np.diff(sampled.offsets), texts(sampled)
    rewards = np.full(len(lengths), np.nan) if update.scored is None else update.scored.rewards
    known = rewards[np.isfinite(rewards)]
    held = containing(sampled, answers)
    mismatch, reference = _mismatch(update), reference_gap(update)
    everybody, repeats = np.ones(len(lengths), dtype=bool), repetition(sampled)
    places = {"longest": _last_token(update.number, sampled, int(lengths.argmax()))}
    if (cut := sampled.truncated.astype(bool) & (lengths > 0)).any():
        places["cut"] = _last_token(update.number, sampled, int(cut.argmax()))
    if repeats.any():
        places["repeated"] = _last_token(update.number, sampled, int(repeats.argmax()))
    if len(marks := marked(sampled)):
        places["mark"] = _place(update, int(marks[0]))
    broken, pull = unfit(update), hardest(update)
    tokens = {f"broken {name}": found.token for name, found in broken.items()}
    tokens |= {"pulled": pull.token} if pull else {}
    tokens |= {"unlikely": token} if (token := most_unlikely(sampled)) is not None else {}
    trained, turns = trained_tokens(update), turn_numbers(sampled)
    assert trained is not None
    strangers = {
        "pulled stranger": trained.token, "stranger": trained.stranger, "not sampled": not_sampled(sampled)
    }  # fmt: skip
    tokens |= {name: token for name, token in strangers.items() if token is not None}
    places |= {name: _place(update, token) for name, token in tokens.items()}
    if turns is not None and turns.broken is not None:
        places["turn"] = TokenPlace(update.number, *turns.broken)
    for name, found in (("mismatch", mismatch), ("moved", _moved(update))):
        if found is not None:
            places[name] = found[1]
    if reference is not None:
        places["reference"] = _place(update, reference.token)
    return Digest(
        update=update.number,
        finished=update.finished is not None,
        broken=_broken(update),
        answers=len(lengths),
        walks=sampled.survey is not None,
        tokens=bool((sampled.token_ids >= 0).all()),
        prompts_known=any(sampled.prompt_texts),
        prompts_alike=alike_prompts(sampled),
        prompt_tokens=len(sampled.prompt_ids),
        template_marks=whole_marks(sampled),
        groups=len(np.unique(sampled.group)),
        cut=int(sampled.truncated.sum()),
        ends_known=sampled.ends_known,
        ended_earned=_mean(rewards[sampled.truncated == 0]),
        cut_earned=_mean(rewards[sampled.truncated == 1]),
        limit=int(lengths[sampled.truncated == 1].max(initial=0)),
        scored=len(known) > 0,
        reward=float(known[0]) if len(known) and np.ptp(known) == 0 else None,
        best=float(known.max()) if len(known) else None,
        silent=update.credited is not None and not update.credited.advantages.any(),
        longer=_longer(sampled, rewards, answers),
        gold={name: compared(sampled.group, rewards, has, everybody) for name, has in held.items()},
        contained={name: int(has.sum()) for name, has in held.items()},
        empty=int(((lengths == 1) & (sampled.truncated == 0)).sum()),
        shift=_shift(update),
        shift_before_last=update.new_logprobs() is None,
        repeats=float(repeats.mean()),
        long_answers=long_answers(sampled),
        mismatch=None if mismatch is None else mismatch[0],
        apart=sampled.sampling_logprobs is not None,
        reference=reference,
        broken_marks=broken_marks(sampled),
        openings=openings(sampled),
        marks_within=marks_within(sampled, marks),
        tails=tails(sampled),
        examples=_examples(update, answers, rewards, held),
        places=places,
        surprise=surprise(update),
        later=later_surprise(update),
        gap=sampler_gap(update),
        ahead_of_reference=against_reference(update),
        unfit=broken,
        without_tokens=without_tokens(sampled),
        all_zero=of_one_token(sampled),
        pull=pull,
        trained=trained,
        turns=turns,
        parts=part_numbers(update, held),
        tiny=tiny_groups(update),
        pairs=pair_numbers(update, held),
        prompts=row_keys(sampled),
        prompt_texts=prompt_keys(sampled),
        given=given_answers(sampled),
        scores=_scores(update, rewards),
        twice=twice_numbers(update, held),
        weightless=weightless(update),
        cut_masked=cut_masked(update),
        episodes=not sampled.mask.all(),
        age=None if (old := staleness(update)) is None or not len(old) else float(old.mean()),
    )


def _longer(sampled: Sampled, rewards: Array, answers: list[str]) -> dict[str, WinCount]:
    """Without episodes, whose number of moves is part of the task.

    An answer that ended is compared with others that ended, and one that was cut with others that were cut: an answer
    may earn less for its missing end, and not for its length.
    """
    if not sampled.mask.all():
        return {}
    sizes = {"tokens": np.diff(sampled.offsets), "characters": np.array([len(text) for text in answers])}
    cut = sampled.truncated.astype(bool)
    return {unit: compared(sampled.group, rewards, size, ~cut) + compared(sampled.group, rewards, size, cut)
            for unit, size in sizes.items()}  # fmt: skip


def _scores(update: Update, rewards: Array) -> dict[str, WinCount]:
    """Of scores that say right or wrong: a score with more levels may be against the reward because that is gamed."""
    if update.sampled is None or update.scored is None:
        return {}
    known = {name: np.asarray(score, dtype=np.float64) for name, score in update.scored.gold.items()}
    return {name: compared(update.sampled.group, rewards, x, np.isfinite(x)) for name, x in known.items()
            if np.isin(x[np.isfinite(x)], (0, 1)).all()}  # fmt: skip


def _mean(rewards: Array) -> float | None:
    known = rewards[np.isfinite(rewards)]
    return float(known.mean()) if len(known) else None


def _broken(update: Update) -> tuple[str, ...]:
    last = update.finished or (update.steps[-1] if update.steps else None)
    return () if last is None else tuple(sorted(name for name, x in last.metrics.items() if not math.isfinite(x)))


def _last_token(update: int, sampled: Sampled, answer: int) -> TokenPlace:
    return TokenPlace(update, answer, int(np.diff(sampled.offsets)[answer]) - 1)


def _place(update: Update, token: int) -> TokenPlace:
    """Where a token of the flat arrays is."""
    assert update.sampled is not None
    answer = int(np.searchsorted(update.sampled.offsets, token, side="right")) - 1
    return TokenPlace(update.number, answer, token - int(update.sampled.offsets[answer]))


def _mismatch(update: Update) -> tuple[float, TokenPlace] | None:
    """The mean k3 before anything has moved, and the token that is farthest off.

    Of a trainer that records no step it is that between the sampler and `old_logprobs`, which are the policy's.
    """
    sampled = update.sampled
    if sampled is None or (update.steps and update.steps[0].step != 0):
        return None
    if not update.steps and sampled.sampling_logprobs is None:
        return None
    index = spans(sampled.offsets, update.steps[0].rows) if update.steps else np.arange(len(sampled.mask))
    own = sampled.mask[index] == 1
    before = sampled.old_logprobs if sampled.sampling_logprobs is None else sampled.sampling_logprobs
    now = update.steps[0].logprobs if update.steps else sampled.old_logprobs
    off = (now - before[index])[own].astype(np.float64)
    if sampled.sampling_logprobs is not None:
        known = ~np.isnan(off)  # vLLM gives none where it has computed NaN
        own[own], off = known, off[known]
    if not len(off) or not np.isfinite(off).all():
        return None
    with np.errstate(over="ignore"):
        k3 = float((np.expm1(off) - off).mean())
    return k3, _place(update, int(index[own][np.abs(off).argmax()]))


def _moved_to(update: Update) -> Array | None:
    """The log-probabilities after the update, or else those that its last optimizer steps saw, before they moved it.

    None where each token was seen by the first step alone, which has moved nothing yet.
    """
    if (new := update.new_logprobs()) is not None or update.finished is None or update.sampled is None:
        return new
    later = [step for step in update.steps if step.step > 0]
    if not later:
        return None
    seen = np.full(update.tokens, np.nan, dtype=np.float32)
    for step in later:
        seen[spans(update.sampled.offsets, step.rows)] = step.logprobs
    return seen if np.any(np.nan_to_num(seen - update.sampled.old_logprobs)) else None


def _shift(update: Update) -> float | None:
    """The total variation between old and new policy, mean over the sampled tokens, in [0, 1].

    Where w = new/old on tokens that the old policy sampled, max(0, 1 - w) has the mean ½ Σ|new - old|. Unlike k3 it is
    bounded: one rare token that becomes a hundred times as likely does not make it large.
    """
    new = _moved_to(update)
    if new is None or update.sampled is None:
        return None
    off = new - update.sampled.old_logprobs
    off = off[(update.sampled.mask == 1) & np.isfinite(off)]
    return float(-np.expm1(np.minimum(off, 0.0)).mean()) if len(off) else None


def _moved(update: Update) -> tuple[float, TokenPlace] | None:
    """The token whose probability the update has changed most."""
    new = _moved_to(update)
    if new is None or update.sampled is None:
        return None
    change = np.abs(np.exp(new) - np.exp(update.sampled.old_logprobs))
    change = np.where(update.sampled.mask == 1, np.nan_to_num(change), 0.0)
    return float(change.max()), _place(update, int(change.argmax()))


def _examples(update: Update, answers: list[str], rewards: Array, held: dict[str, Array]) -> tuple[AnswerExample, ...]:
    """Answers to different prompts; first those that contain what a column of their prompt says.

    If a column is named as the right answer, the others do not count.
    """
    sampled = update.sampled
    assert sampled is not None
    held = {name: has for name, has in held.items() if name.lower() in GOLD_COLUMNS} or held
    has = np.any(list(held.values()), axis=0) if held else np.zeros(len(answers), dtype=bool)
    of_group = [np.flatnonzero(sampled.group == group) for group in range(len(sampled.prompts))]
    chosen = [int(rows[np.argmax(has[rows])]) for rows in of_group if len(rows)]
    firsts = sorted(chosen, key=lambda row: not has[row])[:EXAMPLES]
    return tuple(
        AnswerExample(
            TokenPlace(update.number, row),
            sampled.prompts[int(sampled.group[row])],
            answers[row],
            float(rewards[row]) if np.isfinite(rewards[row]) else None,
            _as_read(sampled.columns[int(sampled.group[row])]) if sampled.columns else {},
        )
        for row in firsts
    )


def _as_read(columns: dict[str, Any]) -> dict[str, str | int | float]:
    """The columns that an answer may contain, as the reward function gets them: a number is not a text."""
    numbers = {name for name, value in columns.items() if type(value) in (int, float) and abs(value) < EXACT}
    return {name: columns[name] if name in numbers else text for name, text in values(columns).items()}
