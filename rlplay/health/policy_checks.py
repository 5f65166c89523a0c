"""Checks of how the policy moves: too far, too little, into repetition, without exploring, away from the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlplay.health.digest import Digest
from rlplay.health.finding import NOT_USED, Evidence, Finding, NoTick
from rlplay.health.trend import WINDOW, ceiling, risen, trend
from rlplay.trace.numbers import number, percent

FAR, TIMES = 0.2, 2
"""Total variation of an update that is too far, and in how many of the last `WINDOW` updates.

Total variation is half the mean of |w - 1|. Where every ratio stays within PPO's clip range of 0.2 it is at most 0.1;
0.2 is twice that. Measured on the bundled model: 0.01 to 0.06 in runs that learn with one step per batch, about 0.1
with PPO's eight, 0.26 to 0.82 with a learning rate 25 times too large. The KL is no good for this: its estimator
w - 1 - log w makes the mean exceed 1 nat if one rare token in a hundred answers becomes a thousand times as likely.
"""
STILL = 1e-6
"""KL of an update, nats per token, below which it leads nowhere: a hundred such updates, all in one direction, add up
to 100² × 1e-6 = 0.01 nats, which PPO implementations allow a single update (Spinning Up's target_kl)."""
VISIBLE = math.sqrt(STILL / 2)
"""Total variation that a KL of `STILL` allows at most (Pinsker); that of `FAR` needs a KL of 2·FAR² at least."""
SLOW = 5
REPEATS = 0.3
"""Mean seq-rep-4 of an answer: text by people has 0.006, greedy decoding that loops 0.44 (arXiv:1908.04319)."""
LONG_ANSWERS = 16
"""Answers that are long enough to repeat themselves, from which a mean of them says something."""
CLIP_SHARE, CLIPPED = "clip_ratio/region_mean", 0.3
"""The share of clipped tokens that is too large if five updates in a row reach it: PPO with eight steps on a batch had
at most 0.17 in an update while it learned, sixteen steps with a rate 2.5 times too large 0.33."""
COLLAPSED = 0.2
KEPT = 0.5
"""Share of its first entropy from which a policy explores as before; below, the reward has to have paid for it."""
CERTAIN = 0.05
"""Entropy in nats from which it cannot fall any more."""
FAR_AWAY, LOST = 1.0, 5.0
"""KL to the reference in nats per token: from 1 on where the reward does not rise, from 5 on always. At 5 the policy's
tokens are e⁵ = 150 times as likely as under the reference, so the reference says little about it."""
AT_FIRST = 0.05
"""KL to the reference in nats per token that an update with many steps may reach, and that no start from it has."""
CRITIC, EXPLAINED = 8, 0.05
"""Updates after which a critic should explain a share of the returns' variance, and that share."""


def too_far(run: Evidence) -> Finding | None:
    """The update moves the policy too far."""
    moved = [(each.update, each.shift) for each in run.recent(WINDOW) if each.shift is not None]
    far = [(n, shift) for n, shift in moved if shift > FAR]
    if len(far) < TIMES or run.settings.loss_type != "policy_gradient":
        return None
    update, worst = max(far, key=lambda point: point[1])
    kl = dict(run.series("kl_old")).get(update)
    size = f", a KL of {number(kl)} nats per token" if kl is not None and math.isfinite(kl) else ""
    steps = run.settings.steps
    digest = next(each for each in run.digests if each.update == update)
    many = steps > 4
    return Finding(
        "step too large",
        "The steps are too large",
        f"{len(far)} of the last {len(moved)} updates moved more than {percent(FAR)} of the probability; update "
        f"{update} moved {percent(worst)}{size}. PPO's clip range of 0.2 corresponds to about 10 %.",
        f"The {run.learning_rate} is too large for this model{f', with {steps} optimizer steps on each batch' * many}."
        " What one update learns, the next one destroys.",
        f"{'Lower num_iterations, or lower' if many else 'Lower'} learning_rate to a tenth, and begin again: the "
        "weights are already damaged.",
        ("num_iterations", "learning_rate") if many else ("learning_rate",),
        digest.places.get("moved"),
    )


def too_short(run: Evidence) -> Finding | None:
    """The update moves the policy hardly at all."""
    learned = {each.update for each in run.recent(WINDOW) if each.finished and not each.silent}
    moved = [x for n, x in run.series("kl_old") if n in learned and math.isfinite(x)]
    if len(moved) < SLOW or max(moved) >= STILL or run.settings.loss_type != "policy_gradient":
        return None
    return Finding(
        "step too small",
        "The steps are too small",
        f"The KL of an update was at most {number(max(moved))} nats per token over {len(moved)} updates, although "
        "their advantages are not 0.",
        f"The {run.learning_rate} is too small: the policy hardly moves.",
        "Raise learning_rate, ten times at first.",
        ("learning_rate",),
        run.place("moved"),
    )


def clipped(run: Evidence) -> Finding | None:
    """Many tokens are clipped, update after update."""
    points = run.known(CLIP_SHARE)[-SLOW:]
    if len(points) < SLOW or min(share for _, share in points) < CLIPPED:
        return None
    mean = sum(share for _, share in points) / len(points)
    many = run.stated("num_iterations") and run.settings.steps > 1
    return Finding(
        "clipped",
        "Many tokens are clipped",
        f"In each of the last {len(points)} updates at least {percent(CLIPPED)} of the tokens were clipped, "
        f"{percent(mean)} on average: their surrogate has no gradient.",
        f"The policy leaves the clip range within an update: the {run.learning_rate} is large for so many optimizer "
        "steps on one batch, or the sampler is not the policy that learns.",
        f"{'Lower num_iterations, or lower' if many else 'Lower'} learning_rate.",
        ("num_iterations", "learning_rate") if many else ("learning_rate",),
        run.place("moved"),
    )


def few_clipped(run: Evidence) -> str:
    points = run.known(CLIP_SHARE)[-SLOW:]
    if run.stated("num_iterations") and run.settings.ratio_stays_one:
        return NoTick("one optimizer step per batch: nothing can be clipped")
    if len(points) < SLOW or not any(share for _, share in points):
        return ""
    return f"at most {percent(max(share for _, share in points))} of the tokens of the last {len(points)} updates"


def steps(run: Evidence) -> str:
    moved = [each.shift for each in run.recent(WINDOW) if each.shift is not None and each.finished]
    kls = [kl for _, kl in run.known("kl_old")][-WINDOW:]
    if len(moved) >= SLOW and max(moved) > VISIBLE and sum(shift > FAR for shift in moved) < TIMES:
        span = f"{percent(min(moved))} to {percent(max(moved))}"
        before = ", before its last optimizer step" if run.now.shift_before_last else ""
        return f"each of the last {len(moved)} updates moved {span} of the probability of what was sampled{before}"
    if run.metrics_only and len(kls) >= SLOW and STILL <= max(kls) <= 2 * FAR**2:
        return f"the KL of an update was at most {number(max(kls))} nats per token in the last {len(kls)}"
    return ""


def repetition(run: Evidence) -> Finding | None:
    """Answers repeat themselves."""
    last = run.recent(3)
    share = sum(each.repeats for each in last) / len(last)
    if share < REPEATS:
        return None
    first = run.digests[0]
    before = f"; in update {first.update} it was {percent(first.repeats)}" if first.update < last[0].update else ""
    return Finding(
        "repetition",
        "Answers repeat themselves",
        f"{_over(last)} {percent(share)} of an answer's four-token sequences occur earlier in it{before}.",
        "Repeating something earns more than saying anything else, or the policy has lost the way to end.",
        "Let the reward count each thing once, or give nothing for repeated text; a larger beta slows the drift.",
        ("reward_weights", "beta"),
        run.place("repeated"),
    )


def _over(digests: Sequence[Digest]) -> str:
    count = len(digests)
    return f"In update {digests[0].update}" if count == 1 else f"In the last {count} updates"


def varied(run: Evidence) -> str:
    last = run.recent(3)
    count, answers = sum(each.long_answers for each in last), sum(each.answers for each in last)
    if count < LONG_ANSWERS or count < answers / 2:
        return ""
    share = sum(each.repeats for each in last) / len(last)
    return f"{percent(share)} of the four-token sequences of the last {answers} answers repeat"


def collapsed(run: Evidence) -> Finding | None:
    """The policy has become certain, and the reward has gained nothing by it."""
    entropy = [(n, x) for n, x in run.series("entropy") if math.isfinite(x)]
    reward = trend(run.series("reward"))
    if not run.finished or len(entropy) < SLOW or reward is None or reward.rises or ceiling(run):
        return None
    (begin, first), (end, last) = entropy[0], entropy[-1]
    if not 0 <= last < COLLAPSED * first or _paid_off(run):
        return None
    setting = "exploration_rate" if run.settings.kind == "action values" else "learning_rate"
    bonus = run.settings.entropy_coef
    change = f"{'Raise' if setting == 'exploration_rate' else 'Lower'} {setting}"
    if bonus < 0:
        setting, change = "entropy_coef", "Set entropy_coef to 0 or above: below 0 it rewards certainty"
    return Finding(
        "entropy",
        "The policy has stopped exploring",
        f"Entropy fell from {number(first)} nats at update {begin} to {number(last)} at {end}, and the reward did not "
        "rise.",
        "The policy is certain of its answers before it has found good ones, so it tries nothing else.",
        f"Go back to an earlier update. {change}.",
        (setting,),
        run.place("longest"),
    )


def _paid_off(run: Evidence) -> bool:
    """Whether the reward is higher than at the start."""
    reward = run.known("reward")
    return len(reward) > 1 and reward[-1][1] > reward[0][1] + 0.05


def explores(run: Evidence) -> str:
    points = run.known("entropy")
    if len(points) < SLOW:
        return ""
    (begin, first), (end, last) = points[0], points[-1]
    if first < CERTAIN:
        return NoTick(f"{number(first)} nats at update {begin} already: it cannot fall")
    span = f"from {number(first)} at update {begin} to {number(last)} nats at {end}"
    if last >= KEPT * first:
        return span
    return f"{span}, while the reward rose" if _paid_off(run) else NoTick(span)


def away(run: Evidence) -> Finding | None:
    """The policy is far from its reference."""
    kls = sorted(x for _, x in run.series("kl")[-3:])
    kl, reward = (kls[len(kls) // 2] if kls else None), trend(run.series("reward"))
    if kl is None or kl < FAR_AWAY or (kl < LOST and (reward is None or risen(run) or ceiling(run))):
        return None
    return Finding(
        "kl",
        "The policy is far from its reference",
        f"The KL to the reference is {number(kl)} nats per token (median of the last {len(kls)} updates)"
        f"{'' if kl >= LOST else ', and the reward does not rise'}.",
        f"Nothing holds the policy near its start: beta is {number(run.settings.beta)}."
        if "beta" in run.on_record
        else "Too little may hold the policy near its start: the run does not state its beta.",
        "Raise beta, or lower learning_rate.",
        ("beta", "learning_rate"),
        run.place("longest"),
    )


def no_kl(run: Evidence) -> bool:
    """Whether the KL on record is exactly 0 throughout. NeMo-RL and OpenRLHF log 0 where they compute none."""
    kls = run.known("kl")
    return len(kls) > (0 if run.metrics_only else 1) and not any(kl for _, kl in kls)


def near(run: Evidence) -> str:
    points = run.known("kl")
    if not points:
        return ""
    if no_kl(run):
        return NoTick("exactly 0 in every update: none is computed, or the policy has not moved")
    begun, first = points[0]
    if begun == max(run.first, 1) and abs(first) > AT_FIRST:
        return NoTick(f"{number(first)} nats per token in the first update already, where it should be near 0")
    last = points[-3:]
    most = max(kl for _, kl in last)
    span = f"{number(most)} nats per token in update {points[-1][0]}"
    if len(last) > 1:
        span = f"at most {number(most)} nats per token in the last {len(last)} updates"
    return f"{span} (from {number(FAR_AWAY)} on is far)" if most < FAR_AWAY else NoTick(f"{span} is far")


def critic(run: Evidence) -> Finding | None:
    """The critic predicts no better than a constant."""
    points = [(n, x) for n, x in run.series("explained_variance") if math.isfinite(x)]
    untrained = run.stated("vf_coef") and not run.settings.vf_coef
    if len(points) < (CRITIC if untrained else WINDOW) or max(x for _, x in points[-SLOW:]) > EXPLAINED:
        return None
    spread = run.mean("reward_std", SLOW)
    if not spread or ceiling(run):
        return None
    if risen(run) and not untrained:  # advantages that teach are good enough
        return None
    now = f" ({number(run.settings.vf_coef)} now)" if "vf_coef" in run.on_record else ""
    return Finding(
        "critic",
        "The critic explains nothing",
        f"Explained variance was at most {number(max(x for _, x in points[-SLOW:]))} in the last {SLOW} updates; "
        "0 is no better than a constant.",
        "The values that advantages are measured against say nothing about the returns.",
        f"Raise vf_coef{now}, or use a group baseline, which needs no critic.",
        ("vf_coef",),
        run.place("longest"),
    )


def explains(run: Evidence) -> str:
    points = run.known("explained_variance")
    if not points:
        return NOT_USED if run.finished else ""
    if len(points) < CRITIC:
        return ""
    best = max(x for _, x in points[-SLOW:])
    text = f"explained variance {number(best)}, the best of the last {SLOW} updates"
    return text if best > EXPLAINED else NoTick(text)
