"""Checks of whether the weights move: a gradient that reaches none, steps that rounding takes back or that are tiny."""

from __future__ import annotations

import math

from rlplay.health.finding import Evidence, Finding, NoTick, Points
from rlplay.health.policy_checks import VISIBLE
from rlplay.health.run_kind import REWARDED
from rlplay.health.trend import WINDOW, learns
from rlplay.trace.numbers import number, percent

ENOUGH, SURE = 3, 5
"""Updates in a row that show a gradient of 0, which is exact, or weights that stay; those that show a small step."""
ROUNDED = 0.02
"""Share of the weights that change, below which rounding takes the steps back.

Adam's step is about the learning rate. In bfloat16 it moves a weight only if it is more than 1/512 of it: with weights
of standard deviation 0.02, as in a trained model, at 1e-6 these are 1 %, at 1e-5 10 %. Measured on tiny models in
bfloat16 at 1e-6: 0 to 2.4 % of GRPO, DPO and SFT (24 runs), in float32 at least 60 %. Numbers that are 0 move at any
rate, as biases of models without training, GPT-2's and Qwen2's: 4 to 34 % (9 runs). Then most tensors still hold no
number that changed, and at most NEAR_0 of all do. Of an adapter, B begins at 0, and half of the numbers move.
"""
NEAR_0 = 0.4
GAINED = 0.05
"""Share of a loss that must be gone before it shows that the steps count. DPO in bfloat16 at 1e-6
lost at most 0.02 % (3 seeds), with no noise about it."""
EXACT = 1e-7
"""Learning rate from which Adam's step moves a weight in float32: the numbers around 0.4 are 3e-8 apart."""
HALF_PRECISION = 5e-4
"""Distance from 1 to the next number above which weights are in half precision: bfloat16 0.0078, float16 0.00098."""
STEP = 5e-6
"""Relative change of the weights in an update below which it leads nowhere: a hundred of them, all in one direction,
add up to 0.05 %. A usual rate of 1e-6 on weights of standard deviation 0.02 gives 5e-5."""


def no_gradient(run: Evidence) -> Finding | None:
    """The loss has a signal, and no weight moves: its gradient is 0, or the optimizer has other weights."""
    signal = _with_signal(run)
    norms = [x for n, x in run.known("grad_norm") if n in signal][-ENOUGH:]
    changed = [x for n, x in run.known("weights/changed") if n in signal][-ENOUGH:]
    if any(changed) or max(len(norms), len(changed)) < ENOUGH:
        return None
    if len(norms) == ENOUGH and not any(norms):
        return _blocked(run, bool(changed))
    if len(changed) < ENOUGH or _half(run) or _still_begins(run) or _newest_rate(run) < EXACT:
        return None
    return _elsewhere(run, norms)


def _blocked(run: Evidence, looked: bool) -> Finding:
    trained = _newest(run, "weights/trained", 1)
    share = f" {_share(trained[-1][1])} of the model's weights are set to be trained." if trained else ""
    still = " Not one of the trained weights that were looked at has changed." if looked else ""
    return Finding(
        "no gradient",
        "No gradient reaches the weights",
        f"The gradient norm was exactly 0 in the last {ENOUGH} updates whose answers had something to teach."
        f"{still}{share}",
        "The loss does not depend on what is trained: the weights are frozen, something between them and the loss is "
        "detached, or they are multiplied by 0, as an adapter's A is where its B is frozen at 0.",
        "Print the parameters with requires_grad, and the norm of each one's gradient after a backward pass. With "
        "adapters, let both of their matrices train, and call enable_input_require_grads with gradient checkpointing.",
        place=run.example,
    )


def _elsewhere(run: Evidence, norms: list[float]) -> Finding:
    least = min(norms, default=0.0)
    norm = f", although the gradient norm was {number(least)} or more" if least else ""
    return Finding(
        "no gradient",
        "The optimizer moves no weight of the model",
        f"Not one of the trained weights that were looked at has changed in the last {ENOUGH} updates{norm}. The "
        f"{run.learning_rate} is not 0, and the weights are not in half precision.",
        "The optimizer holds other tensors than those that the model computes with. It was made before adapters were "
        "added or the model was loaded, or the model was replaced after it.",
        "Make the optimizer last, from the parameters of the model that is trained.",
        place=run.example,
    )


def _newest_rate(run: Evidence) -> float:
    """The newest learning rate; infinite if none is on record."""
    return next((x for _, x in reversed(run.known("learning_rate"))), math.inf)


def _with_signal(run: Evidence) -> set[int]:
    """The updates whose gradient is not meant to be 0."""
    if run.kind not in REWARDED:
        return {n for n, _ in run.series("grad_norm")}
    dead = {n for n, x in run.known("frac_reward_zero_std") if x >= 1} | {
        n for n, x in run.known("reward_std") if not x
    }
    dead |= {each.update for each in run.digests if each.silent or each.reward is not None}
    told = {n for name in ("frac_reward_zero_std", "reward_std") for n, _ in run.known(name)}
    return (told | {each.update for each in run.digests}) - dead


def _newest(run: Evidence, name: str, count: int) -> Points:
    return run.known(name)[-count:]


def rounded(run: Evidence) -> Finding | None:
    """The optimizer's steps are smaller than the distance between two numbers of the weights' type."""
    rated = _at_full_rate(run)
    changed = [x for n, x in run.known("weights/changed") if n in rated][-ENOUGH:]
    steps = [x for n, x in run.known("weights/step") if n in rated][-ENOUGH:]
    if len(changed) < ENOUGH or not _half(run) or _still_begins(run):
        return None
    most, norm = max(changed), run.mean("grad_norm", ENOUGH)
    still = len(steps) == ENOUGH and not any(steps) and most < NEAR_0
    if (most >= ROUNDED and not still) or norm == 0 or _gains(run):
        return None
    gap = _newest(run, "weights/rounding", 1)[-1][1]
    kind = "bfloat16" if gap > 4 * HALF_PRECISION else "float16"
    push = "" if norm is None else f", although the gradient norm is {number(norm)}"
    none = ", in more than half of the tensors not one (numbers near 0 move at any rate)" if still else ""
    late = (
        ""
        if max(rated) == max(n for n, _ in run.known("weights/changed"))
        else " at half of the highest learning rate or more"
    )
    return Finding(
        "rounding",
        "The steps are lost in rounding",
        f"Each of the last {ENOUGH} updates{late} changed at most {percent(most)} of the trained weights that were "
        f"looked at{none}{push}. The weights are in {kind}.",
        f"A number in {kind} is {percent(gap / 2)} to {percent(gap)} away from the next one. At this "
        f"{run.learning_rate} the optimizer's step is less than half of that for nearly every weight, which stays "
        "what it was.",
        'Keep the trained weights in float32: load the model with dtype="float32" and set bf16=True, which computes in '
        "bfloat16. Or train an adapter in float32.",
        ("learning_rate",),
        run.example,
    )


def _at_full_rate(run: Evidence) -> set[int]:
    """The updates whose learning rate is at least half of the highest: at the end of a schedule all steps are tiny."""
    rates = dict(run.known("learning_rate"))
    peak = max(rates.values(), default=0.0)
    return {n for n, _ in run.known("weights/changed") if rates.get(n, peak) >= peak / 2}


def _gains(run: Evidence) -> bool:
    """Whether so much is learned that the steps do count: a loss of pairs falls without any noise, even by 1e-4."""
    losses = [] if run.kind in REWARDED else [x for _, x in run.known("loss")][-WINDOW:]
    return learns(run, 2.0) and (not losses or losses[-1] < (1 - GAINED) * losses[0])


def _half(run: Evidence) -> bool:
    """Whether the trained weights are in half precision."""
    gap = _newest(run, "weights/rounding", 1)
    return bool(gap) and gap[-1][1] > HALF_PRECISION


def _still_begins(run: Evidence) -> bool:
    """Whether the learning rate is 0, or rises yet."""
    rates = [x for _, x in run.known("learning_rate")[-ENOUGH:]]
    return bool(rates) and (not rates[-1] or rates[-1] > rates[0])


def move(run: Evidence) -> str:
    changed, step = _newest(run, "weights/changed", 1), _newest(run, "weights/step", 1)
    if changed and step and changed[-1][1] >= ROUNDED and step[-1][1] >= STEP:
        (update, share), (_, moved) = changed[-1], step[-1]
        looked = f"update {update} changed {percent(share)} of the weights that were looked at"
        return f"{looked}; the median tensor moved by {number(moved)} of its norm"
    taught = _with_signal(run)
    norms = [x for n, x in run.known("grad_norm") if n in taught][-WINDOW:]
    if changed or len(norms) < ENOUGH or not all(norms):
        return ""
    text = f"gradient norm {number(min(norms))} to {number(max(norms))} in {len(norms)} updates"
    if max((each.shift or 0.0 for each in run.recent(WINDOW)), default=0.0) > VISIBLE:
        return f"{text}, after which answers have other probabilities"
    return f"{text}, and it learns" if learns(run) else NoTick(f"{text}; whether they move, weights/changed would tell")


def few(run: Evidence) -> Finding | None:
    """Only vectors are trained, such as the scale of one norm."""
    matrices, trained = _newest(run, "weights/matrices", 1), _newest(run, "weights/trained", 1)
    if not matrices or not trained or matrices[-1][1] or len(run.known("weights/matrices")) < SURE or learns(run, 2.0):
        return None
    return Finding(
        "few weights",
        "Hardly any weights are trained",
        f"No matrix of the model is trained, only vectors, which are {_share(trained[-1][1])} of its weights.",
        "Everything else is frozen (requires_grad is False). Scales and biases alone can hardly change what the model "
        "says.",
        "Print the parameters with requires_grad. Unfreeze the model, or train an adapter.",
        place=run.example,
    )


def _share(share: float) -> str:
    return percent(share) if share >= 0.001 else f"{number(100 * share)} %"


def small_steps(run: Evidence) -> Finding | None:
    """The weights hardly move; where no pass after the step says how far the policy moved, they themselves tell."""
    taught = _with_signal(run)
    moved = [x for n, x in run.known("weights/step") if n in taught]
    rates = [x for _, x in run.known("learning_rate")]
    begins = bool(rates) and (not any(rates) or rates[-1] > rates[-ENOUGH:][0])
    if len(moved) < SURE or max(moved) >= STEP or begins or learns(run):
        return None
    return Finding(
        "step too small",
        "The steps are too small",
        f"Each of {len(moved)} updates moved the weights by at most {number(max(moved))} of their norm (the "
        "median over the tensors that were looked at).",
        f"The {run.learning_rate} is too small: a hundred such updates, all in one direction, do not change what the "
        "model says.",
        "Raise learning_rate, ten times at first.",
        ("learning_rate",),
        run.example,
    )
