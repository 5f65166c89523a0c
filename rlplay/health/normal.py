"""What looks like a fault in a run and is none: said only where the run shows it, with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rlplay.algorithms.baselines import BASELINES
from rlplay.health.finding import Evidence, Points
from rlplay.health.policy_checks import CLIP_SHARE, no_kl
from rlplay.health.rate_checks import warms_up_only
from rlplay.trace.metrics import ROUNDING
from rlplay.trace.numbers import number

SEVERAL = 5
"""Updates that show it."""
NEAR_ZERO = 0.02
"""A loss that people ask about because it is so small."""
CLOSE = 0.01
"""How far a first loss may be from the value that it must begin with; dropout and bfloat16 move it."""


@dataclass(frozen=True)
class Normal:
    """A thing that is normal, and why; `sure` where the settings on record imply it, else it is only likely."""

    title: str
    text: str
    sure: bool = True


def normal(run: Evidence) -> list[Normal]:
    """What is normal in this run, although many people ask about it."""
    return [found for look in _LOOKS if (found := look(run)) is not None]


def _one_step(run: Evidence) -> bool | None:
    """Whether each batch has one optimizer step, with ratios of 1; None if the run does not say."""
    if run.stated("num_iterations") and run.settings.num_iterations > 1:
        return False
    rewards, steps = run.known("reward"), run.known("grad_norm")
    if run.metrics_only and 0 < 2 * len(rewards) <= len(steps):  # TRL logs a reward where it samples, else the step
        return False
    stated = run.stated("num_iterations") and run.stated("num_minibatches")
    return run.settings.ratio_stays_one if stated else None


def _loss_of_rewards(run: Evidence) -> Normal | None:
    """With a ratio of 1 the surrogate is the advantage, whose mean over a group is 0 if it is centred."""
    losses, centred = run.known("loss"), BASELINES[run.settings.baseline].siblings
    varies = any(x > 0 for _, x in run.known("reward_std"))
    if run.kind != "rewards" or len(losses) < SEVERAL or not varies or not centred:
        return None
    one, small = _one_step(run), max(abs(x) for _, x in losses) <= NEAR_ZERO
    if small and one is not False:
        norms = run.known("grad_norm")
        moves = f" Its gradient is not 0 (norm {_span(norms)})." if any(x for _, x in norms) else ""
        text = f"{_span(losses)}. {_CANCELS[_lengths_alike(run)]}{moves} Watch the reward."
        return Normal("A loss near 0", text, one is True and run.stated("aggregation"))
    if min(x for _, x in losses) >= -NEAR_ZERO:
        return None
    return Normal(
        "A loss below 0",
        f"{_span(losses)}. A policy gradient's loss is minus a weighted mean of ratio · advantage: it may have either "
        "sign, and measures no progress. Watch the reward.",
    )


def _lengths_alike(run: Evidence) -> bool:
    """Whether each answer counts the same in the loss, whatever its length."""
    return run.stated("aggregation") and run.settings.aggregation == "seq_mean_token_mean"


_CANCELS = {
    True: "With one optimizer step per batch the ratio is 1, so the surrogate's mean is the mean advantage, which is 0 "
          "in each group.",
    False: "With one optimizer step per batch the ratio is 1, so the surrogate is the advantage, whose mean is 0 in "
           "each group; what is left comes from unequal lengths or a KL penalty.",
}  # fmt: skip


def _loss_is_penalty(run: Evidence) -> Normal | None:
    """Where the advantages cancel exactly, the loss is the KL penalty, which rises as the policy learns."""
    chosen, losses, kls = run.settings, run.known("loss"), run.known("kl")
    penalty = run.stated("beta") and chosen.beta > 0 and chosen.kl_placement == "loss" and not chosen.entropy_in_loss
    centred = BASELINES[chosen.baseline].siblings
    if run.kind != "rewards" or not (penalty and centred and _lengths_alike(run) and _one_step(run)):
        return None
    if len(losses) < SEVERAL or not kls or losses[-1][1] <= ROUNDING:
        return None
    return Normal(
        "A loss that rises",
        f"{number(losses[-1][1])} at update {losses[-1][0]}. The advantages cancel, so it is the KL penalty alone: "
        f"beta is {number(chosen.beta)}, and the KL {number(kls[-1][1])}.",
    )


def _nothing_clipped(run: Evidence) -> Normal | None:
    """Nothing has moved before the only step of a batch."""
    shares, one = run.known(CLIP_SHARE), _one_step(run)
    if run.kind != "rewards" or len(shares) < SEVERAL or any(x for _, x in shares) or one is False:
        return None
    return Normal(
        "A clip ratio of 0",
        "With one optimizer step per batch the ratio is computed before anything has moved: it is 1, and nothing can "
        "be clipped.",
        one is True,
    )


def _kl_begins_at_zero(run: Evidence) -> Normal | None:
    """Policy and reference are the same model before the first step."""
    kls = run.known("kl")
    if run.kind != "rewards" or not kls or no_kl(run):
        return None
    if kls[0][0] != max(run.first, 1) or abs(kls[0][1]) > ROUNDING:
        return None
    return Normal(
        "A KL of 0 at first",
        "Before the first step policy and reference are the same model.",
    )


def _long_gradient(run: Evidence) -> Normal | None:
    """The norm is measured before the gradient is cut."""
    norms, most = run.known("grad_norm")[-SEVERAL:], run.settings.max_grad_norm
    if len(norms) < SEVERAL or not run.stated("max_grad_norm") or most <= 0 or min(x for _, x in norms) <= most:
        return None
    return Normal(
        "grad_norm above max_grad_norm",
        f"{_span(norms)} of late is the norm before clipping; each step's gradient is scaled down to {number(most)}.",
    )


def _warming_up(run: Evidence) -> Normal | None:
    """A warm-up begins at a learning rate of 0."""
    rates = run.known("learning_rate")
    if len(rates) < 2 or rates[0][1] != 0 or not any(rate for _, rate in rates) or warms_up_only(run):
        return None
    begun = next(n for n, rate in rates if rate)
    return Normal("A learning rate of 0 at first", f"It warms up, and is above 0 from update {begun} on.")


def _first_loss(run: Evidence) -> Normal | None:
    """What a loss begins with that cannot tell the answers apart yet."""
    losses = run.known("loss")
    if not losses or losses[0][0] != max(run.first, 1):
        return None
    begun = _BEGINS.get(run.settings.loss_type) if run.stated("loss_type") else _BEGINS.get(_USUAL.get(run.kind, ""))
    if begun is None or run.settings.loss_weights or run.settings.use_weighting:
        return None
    value, formula, why = begun(run.settings.beta)
    if not abs(losses[0][1] - value) <= CLOSE * max(1.0, value):
        return None
    return Normal(f"A first loss of {number(losses[0][1])}", f"{why}: {formula}.", run.stated("loss_type"))


_SAME = "Before the first step policy and reference are the same model, so every margin is 0"
_UNTOLD = "The model does not tell the two answers of a pair apart yet"
_BEGINS: dict[str, Callable[[float], tuple[float, str, str]]] = {
    "sigmoid": lambda _: (math.log(2), "log 2", _SAME),
    "hinge": lambda _: (1.0, "1", _SAME),
    "ipo": lambda beta: ((0.5 / beta) ** 2 if beta > 0 else math.nan, "(1/2β)²", _SAME),
    **dict.fromkeys(("sigmoid_norm", "robust", "aot", "aot_unpaired"), lambda _: (math.log(2), "log 2", _SAME)),
    **dict.fromkeys(("nca_pair", "bco_pair"), lambda _: (2 * math.log(2), "2·log 2", _SAME)),
    **dict.fromkeys(("apo_zero", "apo_down"), lambda _: (1.0, "1", _SAME)),
    "discopop": lambda _: (0.5 + math.log(2) / 2, "½·log 2 + ½", _SAME),
    "sppo_hard": lambda beta: (0.5 / beta**2 if beta > 0 else math.nan, "2·(1/2β)²", _SAME),
    **dict.fromkeys(("kto", "apo_zero_unpaired"), lambda _: (0.5, "1 − σ(0)", _SAME)),
    "reward": lambda _: (math.log(2), "log 2", _UNTOLD),
}
"""By loss_type: the value of the first loss at some β, its formula, and why."""
_USUAL = {"pairs": "sigmoid", "kto": "kto", "reward model": "reward"}
"""The usual loss_type of a kind of run that does not state it."""


def _no_accuracy(run: Evidence) -> Normal | None:
    """A margin of 0 counts as behind."""
    right = run.known("rewards/accuracies")
    if run.kind != "pairs" or not right or right[0] != (max(run.first, 1), 0.0):
        return None
    return Normal(
        "An accuracy of 0 at first",
        "Before the first step policy and reference are the same model, so no answer of a pair is ahead.",
    )


def _prompts_left_out(run: Evidence) -> Normal | None:
    """Fine-tuning learns the answers alone."""
    now = run.newest
    if run.kind != "imitation" or now is None or now.prompt_tokens <= now.answers:
        return None
    return Normal(
        "Prompts without a loss",
        f"The loss of update {now.update} counts its {now.answers} answers; the {now.prompt_tokens} tokens of their "
        "prompts are read, and not learned.",
    )


_LOOKS: tuple[Callable[[Evidence], Normal | None], ...] = (
    _loss_of_rewards, _loss_is_penalty, _first_loss, _nothing_clipped, _kl_begins_at_zero, _no_accuracy, _long_gradient,
    _warming_up, _prompts_left_out,
)  # fmt: skip


def _span(points: Points) -> str:
    low, high = min(x for _, x in points), max(x for _, x in points)
    return number(low) if low == high else f"{number(low)} to {number(high)}"
