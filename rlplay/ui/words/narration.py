"""What just happened, in plain words with the recorded numbers, and what to try next.

Backticks mark keys. Every number comes from a record.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.settings import Settings
from rlplay.health.finding import Finding
from rlplay.trace.history import History
from rlplay.trace.numbers import number, percent
from rlplay.trace.records import Array, Sampled, Stepped
from rlplay.trace.update import Update
from rlplay.ui.format.shown_text import literal, quoted
from rlplay.ui.words import pair_updates as pairs
from rlplay.ui.words import step_search as search
from rlplay.ui.words import value_updates as values
from rlplay.ui.words.diagnoses import warning
from rlplay.ui.words.mean_changes import on_average
from rlplay.ui.words.samplers import gap_in_words

STILL = 1e-4
"""A ratio this close to 1 counts as unchanged."""
NOISE = 1e-6
"""A smaller difference between two updates is rounding."""
BEGIN = "Nothing has been sampled yet."
BEGIN_NEXT = "`.` samples one token of every answer, `u` plays a whole update, `space` runs freely."
BEGIN_REPLAY = "This is the start of the recording: nothing has been sampled yet."
REPLAY_NEXT = {
    "": "`.` shows the next token of every answer, `u` the whole update, `space` plays on.",
    "sample": "`n` shows what the answers earned.",
    "score": "`n` shows which answers the update favoured.",
    "credit": "`s` shows one optimizer step, `n` all of them.",
    "update": "`s` shows the next step, `u` what the update changed.",
    "after": "`u` shows the next update, `space` plays on, `z` goes back.",
}
"""The next keys in a recording, by phase: it shows what was recorded, and samples nothing."""
STEERED_NEXT = "`u` waits for the next update, `space` lets the trainer run or pauses it."
LOOKING_NEXT = "`[` and `]` look at the updates before and after, `v` goes back."
NUMBERS_NEXT = (
    "`↑` `↓` show other curves, `h` what they say of the run; RlplayCallback (TRL) or rlplay.record keeps answers."
)
END_NEXT = "The recording ends here: `z` goes back, `space` plays it from the start."

ENDED_NEXT = "The engine has ended: `r` starts it again, `F12` shows why."

DETAILS = " `h` for details."
"""Added after a problem: the key for health."""

Place = Literal["live", "ended", "looking", "replay", "end"]
"""What the screen shows: a "live" engine, one that has "ended", an older update ("looking"), a recording ("replay"), or
the "end" of one."""


@dataclass(frozen=True)
class Narration:
    """`happened` describes the records, `next` the keys to press, `warning` a problem, if there is one.

    One that is `urgent` is shown above a lesson's text, too.
    """

    happened: str
    next: str
    warning: str = ""
    urgent: bool = False


def narrate(
    update: Update | None,
    history: History,
    settings: Settings,
    place: Place = "live",
    undoes: bool = True,
    finding: Finding | None = None,
) -> Narration:
    """One to three sentences about the state of the update, and about the gravest `finding`.

    `undoes`: whether the run can go back.
    """
    if update is not None and update.sampled is None and update.finished is not None:
        numbers = f"The numbers of update {update.number} are on record, and none of its answers."
        return Narration(numbers, NUMBERS_NEXT, warning(finding) + DETAILS * (finding is not None))
    if update is None or update.sampled is None:
        if place == "ended":
            return Narration(BEGIN, ENDED_NEXT)
        begin = Narration(BEGIN, BEGIN_NEXT) if place == "live" else Narration(BEGIN_REPLAY, REPLAY_NEXT[""])
        return begin if place != "end" else Narration("The recording holds no update yet.", "")
    speak = {"sample": _sample, "score": _score, "credit": _credit, "update": _update, "after": _after}[update.phase]
    happened, then = speak(update, history, settings)
    wrong = warning(finding)
    wrong += DETAILS * bool(wrong)
    if place == "live":
        return Narration(happened, then if undoes else STEERED_NEXT, wrong)
    if place in ("looking", "ended"):
        return Narration(happened, LOOKING_NEXT if place == "looking" else ENDED_NEXT, wrong)
    begun = update.phase != "sample" or update.sampled.done
    then = END_NEXT if place == "end" else REPLAY_NEXT[update.phase if begun else ""]
    return Narration(happened, then, wrong)


def narrate_start(question: str, live: bool) -> Narration:
    """The narration while the engine starts or the recording opens."""
    return Narration(question, "Engine starting… keys that you press are queued." if live else "")


def narrate_asking(pairs: int) -> Narration:
    """The narration while `pairs` pairs wait for the user's labels."""
    wait = "1 pair waits" if pairs == 1 else f"{pairs} pairs wait"
    return Narration(
        f"{wait} for your label: which of the two answers is better? The update learns from your choice.",
        "`A` shows them side by side.",
    )


def narrate_stopped(error: str) -> Narration:
    """The narration after the engine stopped at an error."""
    return Narration(
        "", "`space` tries again, `u` for one update; `F12` shows where it happened.", literal(error), True
    )


def narrate_problem(problem: str, place: Place) -> Narration:
    """The narration for an update that cannot be shown, with the keys that leave it."""
    past = {"live": "`u` plays the next update.", "ended": ENDED_NEXT, "looking": LOOKING_NEXT}
    past["replay"] = REPLAY_NEXT["after"]
    return Narration("", past.get(place, END_NEXT), literal(problem))


def narrate_undone(update: int, last: int, settings: str = "") -> Narration:
    """The narration after going back to the end of `update`: later updates, up to `last`, and `settings` are undone."""
    where = f"the end of update {update}" if update else "the start"
    undone = f"Update {last}" if last == update + 1 else f"Updates {update + 1}–{last}"
    happened = f"Back at {where}."
    if last > update:
        happened += f" {undone} undone (grey in the curves)."
    return Narration(
        f"{happened} Settings also changed back: {settings}." if settings else happened,
        f"`u` plays update {update + 1} again, exactly as before unless you change a setting.",
    )


def narrate_run(history: History, step_word: str = "token") -> Narration:
    """The progress of a free run, whose policy samples tokens or moves; its phases pass too fast to describe."""
    updates = history.updates
    if not updates:
        return Narration("The first update is running.", "`space` pauses.")
    parts = []
    for name, words, unit in (
        ("reward", "reward", ""),
        ("rewards/margins", "margin", ""),
        ("eval_reward", "held out", ""),
        ("completions/mean_length", "length", f" {step_word}s"),
        ("entropy", "entropy", " nats"),
    ):
        measured, values = history.of_stage(name)
        if values:
            since = f"{number(values[0])} → " if len(values) > 1 else ""
            when = f" (update {measured[-1]})" if measured[-1] < updates[-1] else ""
            parts.append(f"{words} {since}{number(values[-1])}{unit}{when}")
    head = f"Running. {_count(len(updates), 'update')}"
    return Narration(f"{head}: {', '.join(parts)}." if parts else f"{head}.", "`space` pauses.")


def _sample(update: Update, _history: History, settings: Settings) -> tuple[str, str]:
    sampled = update.sampled
    assert sampled is not None
    lengths, word = _lengths(sampled), update.step_word
    if not sampled.done:
        done = f"{sampled.position} of at most {settings.max_completion_length} tokens"
        if word == "move":  # squares are tokens, too, and count towards that limit
            done = _count(int(lengths.max(initial=0)), "move")
        return (
            f"Sampling: {done}, {int(sampled.truncated.sum())} of {len(lengths)} answers still open.",
            f"`.` samples the next {'move or square' if word == 'move' else word}, `n` finishes all answers.",
        )
    if not settings.rewarded:
        return pairs.given(update), pairs.IMITATED_NEXT if settings.kind == "imitation" else pairs.COMPARED_NEXT
    texts = {(int(g), tuple(row)) for g, row in zip(sampled.group, _rows(sampled, sampled.token_ids), strict=True)}
    happened = (
        f"{_count(len(lengths), 'answer')} to {_count(len(sampled.prompts), 'prompt')}: {len(texts)} different, "
        f"{lengths.mean():.1f} {word}s long on average. {_openings(sampled)}"
    )
    return f"{happened} {gap_in_words(update, settings)}".rstrip(), "`n` scores them: how many will do well?"


def _openings(sampled: Sampled) -> str:
    firsts = Counter(int(row[0]) for row in _rows(sampled, sampled.token_ids) if len(row))
    if not firsts:
        return ""
    (first, count), *others = firsts.most_common(3)
    said = [f"{count} begin with {literal(quoted(sampled.pieces.get(first, '?')))}"]
    said += [f"{count} with {literal(quoted(sampled.pieces.get(token, '?')))}" for token, count in others]
    return f"{_listed(said)}."


def _score(update: Update, _history: History, settings: Settings) -> tuple[str, str]:
    if not settings.rewarded:
        return pairs.labelled(update), pairs.LABELLED_NEXT
    sampled, scored = update.sampled, update.scored
    assert sampled is not None
    assert scored is not None
    rewards = scored.rewards
    known = rewards[np.isfinite(rewards)]
    kinds = np.unique(known)
    if not len(kinds):
        happened = "No answer was scored."
    elif len(kinds) == 1:
        happened = f"Every answer earned {number(kinds[0])}."
    elif len(kinds) == 2:
        best = int((known == kinds[1]).sum())
        happened = f"{best} of {len(known)} answers earned {number(kinds[1])}, the others {number(kinds[0])}."
    else:
        happened = f"Reward {number(known.mean())} on average, from {number(kinds[0])} to {number(kinds[-1])}."
    if len(kinds) and len(known) < len(rewards):
        happened += f" {_count(len(rewards) - len(known), 'more answer')} got no score."
    if settings.axes_known and BASELINES[settings.baseline].siblings:
        of_group = [rewards[(sampled.group == group) & ~np.isnan(rewards)] for group in range(len(sampled.prompts))]
        flat = sum(len(np.unique(mine)) < 2 for mine in of_group)
        if flat:
            happened += (
                f" {flat} of {_count(len(sampled.prompts), 'group')} without signal: "
                "all answers in a group earned the same."
            )
    return happened, "`n` gives credit: which answers will the update favour?"


def _credit(update: Update, _history: History, settings: Settings) -> tuple[str, str]:
    following = "`s` takes one optimizer step, `u` all of them."
    if settings.kind == "reward model":
        return pairs.COMPARED, following
    if settings.kind == "action values":
        return values.errors(update), values.STEP_NEXT
    sampled, credited = update.sampled, update.credited
    assert sampled is not None
    assert credited is not None
    mask = (sampled.mask == 1) & np.isfinite(credited.advantages)
    if not mask.any():
        return "The run records no advantages.", following
    rows = [row[kept] for row, kept in zip(_rows(sampled, credited.advantages), _rows(sampled, mask), strict=True)]
    lengths, word = _lengths(sampled), update.step_word
    if all(len(row) == 0 or np.ptp(row) < 1e-6 for row in rows):
        signs = np.array([np.sign(row[0]) if len(row) else 0 for row in rows])
        up, down, none = (signs > 0), (signs < 0), int((signs == 0).sum())
        happened = f"{int(up.sum())} answers get a positive advantage, {int(down.sum())} a negative one"
        happened += f", {none} neither." if none else "."
        if up.any() and down.any():
            happened += (
                f" The positive ones are {lengths[up].mean():.1f} {word}s long on average, "
                f"the negative ones {lengths[down].mean():.1f}."
            )
    else:
        advantages = credited.advantages[mask]
        happened = (
            f"Advantages differ from {word} to {word}, from {_signed(advantages.min())} to "
            f"{_signed(advantages.max())}: "
            f"{int((advantages > 0).sum())} are positive, {int((advantages < 0).sum())} negative."
        )
    return happened, following


def _update(update: Update, _history: History, settings: Settings) -> tuple[str, str]:
    if settings.surrogate_row.trust_region:
        return search.narrate(update, settings)
    step = update.steps[-1]
    ratio = step.importance_ratio
    count = step.epochs * step.minibatches
    following = "`s` takes the next step, `u` the rest." if step.step + 1 < count else "`u` shows what it changed."
    held = float(np.abs(ratio - 1).max(initial=0.0)) < STILL
    rewarded = settings.loss_type == "policy_gradient"
    if not rewarded or not settings.axes_known or not np.isfinite(ratio).any():
        return _unjudged(step) if rewarded else _without_ratios(update, settings), following
    if count == 1 and held:
        loss = f" ({number(step.metrics['loss'])})" if "loss" in step.metrics else ""
        return (
            "With one optimizer step per batch every ratio is 1 and nothing is clipped; that is normal. "
            f"The loss{loss} does not measure progress here.",
            following,
        )
    head = f"Optimizer step {step.step + 1} of {count}"
    if step.step == 0 and held:
        return f"{head}: every ratio is still 1, because the policy has not moved since it sampled.", following
    spread = f"{head}: ratios from {number(ratio.min())} to {number(ratio.max())}"
    if not (settings.surrogate_row.band or settings.level_row.band):
        return f"{spread}; this objective does not clip.", following
    return f"{spread}. {_clipping(step, settings, update.step_word)}", following


def _unjudged(step: Stepped) -> str:
    """The last step of a run whose algorithm or whose ratios are not on record."""
    head = f"Optimizer step {step.step + 1} of {step.epochs * step.minibatches}"
    known = step.importance_ratio[np.isfinite(step.importance_ratio)]
    if not len(known):
        return f"{head}: its ratios are not on record."
    return f"{head}: ratios from {number(known.min())} to {number(known.max())}."


def _without_ratios(update: Update, settings: Settings) -> str:
    """The last step of an update whose loss has no ratios."""
    step, sampled = update.steps[-1], update.sampled
    assert sampled is not None
    if settings.kind == "action values":
        return values.step(step.metrics, int(sampled.mask.sum()))
    said = pairs.loss_and_accuracy(step.metrics)
    return f"Optimizer step {step.step + 1} of {step.epochs * step.minibatches}: {said}"


def _clipping(step: Stepped, settings: Settings, step_word: str) -> str:
    whole, high, low, outside = (
        step.metrics.get(name)
        for name in ("clip_ratio/region_mean", "clip_ratio/high_mean", "clip_ratio/low_mean", "ratio_outside")
    )
    if whole is None or high is None or low is None:
        return ""
    what = "answers" if settings.level_row.one_ratio else f"{step_word}s"
    shares = f"{percent(high)} high, {percent(low)} low"
    said = f"{percent(whole)} of the {what} are clipped: zero surrogate gradient ({shares})"
    if outside is not None and outside > whole:
        said += f"; {percent(outside)} are outside the band, but the rest of these are not clipped"
    return f"{said}."


def _after(update: Update, history: History, settings: Settings) -> tuple[str, str]:
    finished = update.finished
    assert finished is not None
    answers = not settings.rewarded
    parts = [
        f"Update {update.number}: {pairs.loss_and_accuracy(finished.metrics) if answers else _reward(update, history)}"
    ]
    following = "`u` plays the next update, `space` runs freely, `z` goes back"
    if settings.kind == "action values":
        return " ".join(filter(None, [*parts, values.worth(finished.metrics, settings)])), f"{following}."
    which_way = ("pulled up", "pushed down") if answers else ("with A > 0", "with A < 0")
    moved = on_average(update, which_way)
    if moved:
        parts.append(f"On average, {', '.join(moved)}.")
    if gap := gap_in_words(update, settings):
        parts.append(gap)
    if "kl_old" in finished.metrics and not answers:  # on answers that others wrote, it does not estimate a KL
        parts.append(f"KL of this update {number(finished.metrics['kl_old'])}.")
    return " ".join(parts), f"{following}{'' if settings.kind == 'reward model' else ', `Y` tells why'}."


def _reward(update: Update, history: History) -> str:
    assert update.finished is not None
    now, loss = (update.finished.metrics.get(name, math.nan) for name in ("reward", "loss"))
    if math.isnan(now):
        return "its reward is not on record." if math.isnan(loss) else f"loss {number(loss)}."
    earlier = dict(zip(*history.series("reward"), strict=True)).get(update.number - 1)
    against = "" if earlier is None or abs(now - earlier) < NOISE else f" ({_signed(now - earlier)})"
    held = dict(zip(*history.series("eval_reward"), strict=True)).get(update.number)
    return f"reward {number(now)}{against}{'' if held is None else f', held out {number(held)}'}."


def _rows(sampled: Sampled, flat: Array) -> list[Array]:
    return np.split(flat, sampled.offsets[1:-1])


def _lengths(sampled: Sampled) -> Array:
    """How many tokens the policy has sampled of each completion: [N]; those of an environment do not count."""
    return np.array([int(row.sum()) for row in _rows(sampled, sampled.mask)])


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
