"""Checks of who sampled: the policy that learns, at its temperature, with its weights of now, from all tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlplay.health.finding import RECENT, Evidence, Finding, NoTick
from rlplay.health.gap_shape import GapShape
from rlplay.health.lag_checks import lagging
from rlplay.health.mismatch_checks import APART, agreement, growth, level, measured, shape_of
from rlplay.health.own_sampler import CUT, by_own_settings, own_cut
from rlplay.health.sampler_numbers import SamplerGap, Surprise
from rlplay.trace.numbers import number, percent

ENOUGH = 10_000
"""Sampled tokens that a verdict is about: those of the newest updates, and of as many before as it takes."""
FEWEST = 100
HOTTER, COLDER = 6.0, 8.0
"""Standard errors of −log p − H, pooled over five updates, from which the sampler is another policy.

Measured in every window of five updates of 58 healthy runs of rlplay (17 lessons and worlds, up to 400 updates) and 8
of TRL's GRPO and RLOO on a tiny model, at temperatures 1 and 1.3: at most +2.7 and at least −5.1, the latter with
nearly certain policies, whose rare tokens are rarely among the sampled ones. With 16 answers of at most 12 tokens an
update, a sampler at temperature 1.2 instead of 1 came to +7, 1.5 to +11, 0.7 to −14, and top_p 0.9 to −8 and −15.
"""
SHARE, LEAST = 0.1, 0.02
"""The excess that counts: this share of the entropy, and so many nats. Bfloat16 alone moves it by about 0.002."""
UNSURE = 4.0
"""Standard errors from which an excess is no ✓: healthy runs had 2.7 at most."""
SPREAD = 0.9
"""How many times the excess the sum over tokens that are four nats less likely than the entropy says is, from which a
temperature is not the likeliest cause: 0.42 to 0.77 with temperatures 1.2 and 1.4, 1.2 to 4 with another expert for 3
or 8 % of the tokens, 0.8 to 1.0 with weights of two bits (a small policy that learns, three seeds of 3,000 to 9,000
tokens).
"""
SAME_AT_FIRST = 3
"""Updates at the beginning of a run, in which a sampler that never gets new weights is still right."""
LEFT_OUT, ONE_SIDED, SEEN = 0.01, 0.9, 30
"""Probability of what the sampler never says, the share of tokens that are likelier under it, and how many it takes.

Whatever the sampler is, the mean ratio is 1 if it can say every token. With TRL on a tiny model, over 1,000 tokens:
0.92 to 0.96, 110 to 175 standard errors from 1, and every token likelier, with top_p 0.9 or with 0.95 and noise; within
2.5 standard errors of 1 with noise alone (20 runs), another temperature, older or the first weights.
"""
BELOW, NEVER_ABOVE = 0.98, 1.01
"""The mean and the largest ratio that say the same where only they were logged. In those runs the mean was 0.92 to 0.97
with top_p, and 0.996 to 1.005 with noise alone.
"""


def other_policy(run: Evidence) -> Finding | None:
    """The answers are not the policy's own samples."""
    return by_own_settings(run, _is_pinned(run) or lagging(run) or _suits_reference(run) or _another(run))


def pooled(run: Evidence) -> Surprise:
    """The surprise of the newest updates."""
    total = Surprise()
    for place, each in enumerate(reversed(run.digests)):
        if place >= RECENT and total.tokens >= ENOUGH:
            break
        total += each.surprise or Surprise()
    return total


def _begun(run: Evidence) -> Surprise:
    """The surprise of the first updates, if they are on record."""
    first = [each.surprise for each in run.digests[:SAME_AT_FIRST] if each.update < run.first + SAME_AT_FIRST + 1]
    return sum((each for each in first if each is not None), Surprise())


def _another(run: Evidence) -> Finding | None:
    """−log p of the answers is not the entropy."""
    found = pooled(run)
    entropy = found.entropy / max(found.tokens, 1)
    if found.tokens < FEWEST or abs(found.excess) < max(SHARE * entropy, LEAST):
        return None
    sure = found.excess / found.error
    cut = run.settings.top_p < 1 or run.settings.top_k > 0
    if -COLDER < sure < HOTTER or (sure < 0 and cut):  # top_p makes answers likelier, as it should
        return None
    if sure > 0 and _equal_at_first(run, found):
        return _old_weights(run, f"{_compared(found)} In the first updates both were equal.", never=False)
    if sure > 0 and (grown := growth(run)) is not None:
        rose = f"The mismatch of sampling and training rose from {number(grown[0])} to {number(grown[1])}."
        return _old_weights(run, f"{_compared(found)} {rose}", never=False)
    shape = None if level(measured(run)[1] or [(0, 0.0)]) < APART else shape_of(run)
    if shape is None:  # the sampler's own numbers are unknown, or are those of another distribution than it samples
        return _of_temperature(run, found, None) if _fits(found) else _less_likely(run, found)
    return _of_temperature(run, found, shape) if _on_a_line(shape, sure > 0) else None


LINE, SCATTER, TILT = 0.82, 0.4, 0.1
"""r² of the line on which the differences of a hotter sampler lie over log p, of a colder one's, and the line's slope.

Measured on a small policy that learns (three seeds, three stretches of each run): 0.85 to 0.94 at temperature 1.4 and
0.87 to 0.93 at 1.2, with the temperature right within 0.05; 0.46 to 0.72 at 0.7, which seldom says an unlikely token;
at most 0.21 with noise, 0.15 with another expert for few tokens as long as most are open, and 0.33 to 0.77 with weights
of two bits.
"""


def _on_a_line(shape: GapShape, hotter: bool) -> bool:
    """Whether the sampler's log-probabilities are those of training, but for a temperature."""
    times, fit = shape.temperature()
    return fit >= LINE and times > 1 + TILT if hotter else fit >= SCATTER and times < 1 - TILT


def _of_temperature(run: Evidence, found: Surprise, shape: GapShape | None) -> Finding:
    hotter = found.excess > 0
    at = f" the {number(run.settings.temperature)} that log-probabilities are computed with" if run.stated(
        "temperature") else " that of the log-probabilities"  # fmt: skip
    times, fit = (1.0, 0.0) if shape is None else shape.temperature()
    fits = (
        ""
        if shape is None
        else f" The sampler's log-probabilities are those of training at {number(times, 2)} times the temperature: the "
        f"differences lie on a line over log p ({percent(fit)} of their variance)."
    )
    return Finding(
        "sampler",
        f"The sampler is {'hotter' if hotter else 'colder'} than the policy",
        f"{_compared(found)} If the policy had sampled them, both would be equal, within {number(found.error)}.{fits}",
        f"The answers come from another distribution than the policy's: a temperature {'above' if hotter else 'below'}"
        f"{at}, or {'older weights' if hotter else 'top_p, top_k or min_p'}. A ratio of new to old log-probabilities "
        "does not show it where both are the trainer's.",
        "Let the sampler have the run's temperature"
        f"{'' if hotter else ', top_p 1 and top_k 0'}: look at its own options (generation_config, the "
        "server's defaults).",
        ("temperature",) if hotter else ("temperature", "top_p", "top_k"),
        run.place("unlikely"),
    )


def _fits(found: Surprise) -> bool:
    return found.excess < 0 or found.far <= SPREAD * found.tokens * found.excess


def _less_likely(run: Evidence, found: Surprise) -> Finding:
    return Finding(
        "sampler",
        "The answers are less likely than the policy's own would be",
        f"{_compared(found)} If the policy had sampled them, both would be equal, within {number(found.error)}. "
        f"{percent(found.far / (found.tokens * found.excess))} of the difference is in tokens far less likely than the "
        "entropy says.",
        "Few tokens carry the difference, so a temperature is not the likeliest cause: a sampler of lower precision or "
        "with other experts, older weights, or a context that the trainer does not score them after (a template that "
        "rewrites it, wrong positions).",
        "Record the sampler's own log-probabilities (sampling_logprobs), which tell these apart; compare one answer's "
        "tokens and log-probabilities in both.",
        ("temperature",),
        run.place("unlikely"),
    )


def _compared(found: Surprise) -> str:
    minus, entropy = found.surprise / found.tokens, found.entropy / found.tokens
    return (
        f"−log p of the sampled tokens averages {number(minus)} nats, the policy's entropy {number(entropy)} "
        f"({number(found.tokens)} tokens, {number(abs(found.excess) / found.error, 2)} standard errors apart)."
    )


def _equal_at_first(run: Evidence, now: Surprise) -> bool:
    """Whether the excess was not there when the run began."""
    begun = _begun(run)
    if begun.tokens < FEWEST or run.digests[0].update > run.first + 1:
        return False
    return begun.excess < 3 * begun.error and begun.excess + 2 * begun.error < now.excess / 2


def _is_pinned(run: Evidence) -> Finding | None:
    """The sampler's log-probabilities are the reference's."""
    gaps = [each.gap for each in run.recent(RECENT) if each.gap is not None]
    if len(gaps) < 2 or not all(_is_reference(gap) for gap in gaps):
        return None
    own = max(gap.reference_kl or 0.0 for gap in gaps)
    away = gaps[-1].trained_kl or 0.0
    return _old_weights(
        run,
        f"The sampler's log-probabilities are those of the reference (KL {number(own)} nats per token), "
        f"while training is {number(away) if away < FAR_AWAY else f'more than {number(FAR_AWAY)}'} away from it.",
    )


def _suits_reference(run: Evidence) -> Finding | None:
    """The answers suit the reference better than the policy."""
    ahead = [each.ahead_of_reference for each in run.recent(RECENT) if each.ahead_of_reference is not None]
    mean = sum(each[0] for each in ahead) / max(len(ahead), 1)
    error = math.sqrt(sum(each[1] ** 2 for each in ahead)) / max(len(ahead), 1)
    if len(ahead) < 2 or mean > -HOTTER * error or mean > -LEAST:
        return None
    return _old_weights(
        run,
        f"In the last {len(ahead)} updates the sampled tokens were less likely under the policy than under the "
        f"reference: log policy − log reference averages {number(mean)} nats. Of the policy's own samples it is a KL, "
        "which is never below 0.",
    )


FAR_AWAY = 10.0
"""Nats per token from which a k3 on another policy's samples says no more than "far": few tokens make it up."""
AS_REFERENCE, MOVED = 0.1, 3e-3
"""The share of the distance from training to the reference that the sampler may be off the reference, and the KL that
training must have moved before this means anything. Training that is more than a nat away counts as one nat: where few
tokens make it up, a sampler some updates old is a nat off the reference and still ten times nearer to it."""


def _is_reference(gap: SamplerGap) -> bool:
    if gap.reference_kl is None or gap.trained_kl is None or gap.trained_kl <= MOVED:
        return False
    return gap.reference_kl < AS_REFERENCE * min(gap.trained_kl, 1.0)


def _old_weights(run: Evidence, evidence: str, never: bool = True) -> Finding:
    return Finding(
        "sampler",
        "The sampler does not have the new weights",
        evidence,
        (
            "The answers come from older weights, most likely those that the run began with: the sampler never gets "
            "the trained ones, or it loads the base model without the adapter."
            if never
            else "The answers come from older weights: those that the run began with, as the sampler never gets the "
            "trained ones or loads the base model without the adapter; or, if it is asynchronous, those of some "
            "updates ago."
        )
        + " So what is learned does not show in an answer.",
        "Send the weights to the sampler after each update, the adapter's too (merge it, or load it under a new name), "
        "and compare one answer's log-probabilities in both.",
        place=run.place("unlikely"),
    )


def leaves_out(run: Evidence) -> Finding | None:
    """The sampler's log-probabilities are normalised over the tokens that top_p, top_k or min_p keep."""
    found = gap_of(run)
    if found is None:
        return _ratio_below_one(run)
    apart = found.above + found.below
    lost = 1 - found.ratio
    if apart < SEEN or found.above < ONE_SIDED * apart or lost < max(LEFT_OUT, HOTTER * found.error):
        return None
    return _left_out(
        run,
        f"Of {apart} tokens whose log-probabilities differ, {found.above} are likelier under the sampler, by at most "
        f"{number(found.largest)} nats. The mean ratio of training to sampler is {number(found.ratio)} ± "
        f"{number(found.error)}; if the sampler could say every token, it would be 1.",
        found.ratio,
    )


def _ratio_below_one(run: Evidence) -> Finding | None:
    """The same by what a trainer logs of the ratios of tokens or answers."""
    mean, most = (run.known(f"sampling/importance_sampling_ratio/{name}")[-RECENT:] for name in ("mean", "max"))
    if len(mean) < RECENT or len(most) < RECENT:
        return None
    if max(x for _, x in mean) > BELOW or max(x for _, x in most) > NEVER_ABOVE:
        return None
    return _left_out(
        run,
        f"In the last {RECENT} updates the ratio of training to sampler was {number(mean[-1][1])} on average and "
        f"{number(max(x for _, x in most))} at most; if the sampler could say every token, its mean would be 1.",
        mean[-1][1],
    )


def _left_out(run: Evidence, evidence: str, ratio: float) -> Finding:
    cut = own_cut(run)
    at = f" ({', '.join(cut)})" if cut else ""
    ours = run.settings.logprobs_mode == "processed_logprobs" and not run.source
    return Finding(
        "left out",
        "The ratio counts tokens that the sampler cannot say",
        evidence,
        f"The sampler's log-probabilities are those of the tokens that its top_p, top_k or min_p keep{at}; training's "
        f"are of all tokens. So each ratio is the probability that is kept, {percent(ratio)} on average, and an "
        "answer's is the product over its tokens.",
        "Sample with top_p 1, top_k 0 and min_p 0, or let the sampler report raw_logprobs (logprobs_mode)."
        if ours
        else "Sample with top_p 1, top_k 0 and min_p 0, or take the log-probabilities of training as the old ones.",
        CUT if ours else CUT[:2],
        run.place("mismatch"),
    )


@dataclass(frozen=True)
class PooledGap:
    """`SamplerGap` over several updates."""

    tokens: int
    ratio: float
    error: float
    above: int
    below: int
    largest: float


def gap_of(run: Evidence) -> PooledGap | None:
    """The gap over the newest updates; None where the sampler's log-probabilities are not on record."""
    gaps = [each.gap for each in run.recent(RECENT) if each.gap is not None]
    tokens = sum(gap.tokens for gap in gaps)
    if not tokens:
        return None
    return PooledGap(
        tokens,
        sum(gap.ratio * gap.tokens for gap in gaps) / tokens,
        math.sqrt(sum((gap.ratio_error * gap.tokens) ** 2 for gap in gaps)) / tokens,
        sum(gap.above for gap in gaps),
        sum(gap.below for gap in gaps),
        max(gap.largest for gap in gaps),
    )


def samples(run: Evidence) -> str:
    """What is compared of the sampler: its answers with the policy's entropy, its log-probabilities with training's.

    What neither agrees nor is clearly wrong takes the ✓ from both.
    """
    found, agrees = pooled(run), agreement(run)
    _, points = measured(run)
    own = _own_samples(run, found) if found.tokens >= FEWEST else NoTick("")
    if isinstance(agrees, NoTick) and (points and shape_of(run) is not None):
        return agrees
    if isinstance(own, NoTick) and own:
        return own
    return "; ".join(each for each in (own, agrees) if each and not isinstance(each, NoTick)) or agrees


def drawn(run: Evidence) -> bool:
    """Whether −log p and the entropy show that the policy drew the answers as it is scored, temperature included."""
    found = pooled(run)
    return found.tokens >= FEWEST and not isinstance(_own_samples(run, found), NoTick)


def _own_samples(run: Evidence, found: Surprise) -> str:
    """−log p beside the entropy, and the difference that would have shown."""
    entropy = found.entropy / found.tokens
    shows = max(HOTTER * found.error, SHARE * entropy, LEAST)
    if shows > max(entropy, 0.2) or run.settings.top_p < 1 or run.settings.top_k > 0:
        return NoTick("")
    if found.excess > max(UNSURE * found.error, LEAST) or found.excess < -COLDER / HOTTER * shows:
        return NoTick(
            f"−log p {number(found.surprise / found.tokens)}, entropy {number(entropy)} nats over "
            f"{number(found.tokens)} tokens: neither equal nor clearly apart"
        )
    return (
        f"−log p {number(found.surprise / found.tokens)}, entropy {number(entropy)} nats over {number(found.tokens)} "
        f"tokens (a difference from {number(shows, 2)} on would show)"
    )
