"""Checks of the reference: that training began with it, that it stays as it is, and that it does not hold too hard."""

from __future__ import annotations

import math

import numpy as np

from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.health.finding import Evidence, Finding, NoTick
from rlplay.health.run_kind import COMPARED, REWARDED
from rlplay.health.trend import ceiling
from rlplay.health.weight_checks import SURE
from rlplay.trace.numbers import number, percent

APART = 5e-3
"""KL to the reference before the first step, nats per token, from which the reference is another model.

Measured on TRL's GRPO, DPO and KTO (3 seeds each): 0 to the bit in float32 and in bfloat16, up to 2.5e-4 with a
reference in bfloat16 beside a policy in float32. Weights of 0.4 with noise of 0.02 give 0.06 to 0.18, of 0.05 0.2 to
0.8.
"""
LOGGED = 0.1
"""The same where only a mean over an unknown number of optimizer steps was logged, which have moved the policy."""
NATS = 1.0
"""The same for pairs, where sums over whole answers are logged: nats per answer."""
USUAL = 0.1
"""TRL's β of pairs, for a run that does not state its own."""
IMPLICIT = ("rewards/chosen", "rewards/rejected")
BELOW = 0.01
"""Nats per token by which a KL is below 0 beyond chance. k3 is never below 0, and k1 only by chance."""
HOLDS = 2.0
"""β from which the KL term outweighs an advantage of 1 as soon as a token's log-probability has moved by half a nat.

GRPO at β = 5 gained nothing in 16 updates (3 seeds); at β = 1 it learned, later than without.
"""


def another_start(run: Evidence) -> Finding | None:
    """The reference is not the model that training began with, or it is the model that is trained."""
    return _moves_along(run) or _differs_by_tokens(run) or _differs_by_metrics(run)


def _begins(run: Evidence) -> int | None:
    """The first update if it is where the training, or its stage, began; None if it goes on from a checkpoint."""
    numbers = [*run.history.updates, *(each.update for each in run.digests)]
    known = [n for n in numbers if n >= max(run.first, 1)]
    first = max(run.first, 1)
    steps = run.history.clock.steps(first)
    return first if known and min(known) == first and (steps is None or steps[0] <= 1) else None


def _differs_by_tokens(run: Evidence) -> Finding | None:
    first = run.digests[0] if run.digests else None
    if first is None or first.reference is None or first.update != _begins(run) or first.reference.kl < APART:
        return None
    return _other_model(
        run,
        f"Before the first step of update {first.update}, policy and reference differ by a KL of "
        f"{number(first.reference.kl)} nats per token. It should be 0: nothing has been learned yet.",
    )


def _differs_by_metrics(run: Evidence) -> Finding | None:
    """From the KL that was logged of the first update, or from the implicit rewards of pairs."""
    first = _begins(run)
    if run.digests and run.digests[0].reference is not None:
        return None
    if run.kind in REWARDED:
        found = dict(run.known("kl")).get(first or 0, 0.0)
        one = run.stated("num_iterations") and run.settings.steps == 1
        later = [x for n, x in run.known("kl") if n != first][:SURE]
        if found < (APART if one else LOGGED) or not later or found < max(later) / 3:
            return None
        said = f"a KL of {number(found)} nats per token"
    else:
        found = max((abs(dict(run.known(name)).get(first or 0, 0.0)) for name in IMPLICIT), default=0.0)
        beta = run.settings.beta if run.stated("beta") and run.settings.beta else USUAL
        if not compares(run) or found / beta < NATS:
            return None
        said = f"{number(found / beta)} nats per answer (an implicit reward of {number(found)})"
    return _other_model(
        run,
        f"Already in update {first}, policy and reference differ by {said}. It should be 0 before the first step.",
    )


def compares(run: Evidence) -> bool:
    """Whether pairs are compared with a reference."""
    free = any(word in run.source for word in ("CPO", "ORPO", "SimPO"))
    loss = PAIR_LOSSES.get(run.settings.loss_type)
    return run.kind in COMPARED and not free and (loss is None or loss.with_reference)


def _other_model(run: Evidence, evidence: str) -> Finding:
    return Finding(
        "reference",
        "The reference is not the model that training began with",
        evidence,
        "The reference was loaded from other weights, lacks an adapter that the policy began with, or runs with "
        "dropout. TRL takes the model without its adapters as reference. The KL then pulls towards another model.",
        "Leave ref_model out or give it the same weights. Merge an adapter of an earlier training into the model "
        "before a new one begins.",
        ("beta",),
        run.digests[0].places.get("reference") if run.digests else None,
    )


def _moves_along(run: Evidence) -> Finding | None:
    """Reference and policy stay equal to the bit, although the weights move and nobody asked for that."""
    if run.settings.sync_ref_model:
        return None
    moved = {n for n, x in run.known("weights/changed") if x > 0.5} or {n for n, x in run.known("grad_norm") if x > 0}
    later = [each for each in run.digests if each.reference is not None and each.update - 1 in moved][-SURE:]
    equal = [each for each in later if each.reference is not None and each.reference.equal]
    if len(later) >= SURE and len(equal) == len(later):
        said = f"In each of the last {len(later)} updates, every token has the same log-probability under both"
    else:
        metrics = [x for name in IMPLICIT for n, x in run.known(name) if n - 1 in moved]
        if later or not compares(run) or len(metrics) < 2 * SURE or any(metrics):
            return None
        said = f"The implicit rewards were exactly 0 in each of {len(metrics) // 2} updates"
    return Finding(
        "reference",
        "The reference moves along with the policy",
        f"{said}, although the weights move.",
        "Both are the same object, or the reference is copied from the policy in every step. The KL is then always 0 "
        "and holds nothing; a loss of pairs has nothing to compare with.",
        "Give the trainer a frozen copy as ref_model (create_reference_model in TRL), or leave it out.",
        ("beta",),
        run.place("longest"),
    )


def negative(run: Evidence) -> Finding | None:
    """The KL to the reference is below 0."""
    values = np.array([x for _, x in run.known("kl")][-20:])
    if len(values) < SURE:
        return None
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    if mean > -BELOW or mean + 3 * error > 0:
        return None
    return Finding(
        "negative kl",
        "The KL to the reference is negative",
        f"It was {number(mean)} ± {number(2 * error)} nats per token on average over the last {len(values)} updates. A "
        "KL is never below 0.",
        "The answers are not drawn from the policy that the KL is computed with: another temperature, top-p or top-k, "
        "a forbidden end token, or tokens of padding and prompt that count. The policy then earns by being unlikely "
        "where the reference is likely.",
        "Sample at temperature 1 with top_p 1 and top_k 0, mask everything but the answer's own tokens, or use the "
        "estimator k3.",
        ("temperature", "top_p", "top_k", "beta"),
        run.place("longest"),
    )


def held(run: Evidence) -> Finding | None:
    """β is so large that hardly any reward is worth leaving the reference for."""
    beta, rewards = run.settings.beta, np.array([x for _, x in run.known("reward")])
    if not run.stated("beta") or beta < HOLDS or run.settings.loss_type != "policy_gradient" or len(rewards) < SURE:
        return None
    share = max(2, len(rewards) // 4)
    begin, end = rewards[:share], rewards[-share:]
    noise = math.sqrt((begin.var(ddof=1) + end.var(ddof=1)) / share)
    if end.mean() - begin.mean() > 2 * noise or ceiling(run):
        return None
    kl = run.mean("kl", SURE)
    gap = "" if kl is None else f" The KL to the reference is {number(kl)} nats per token."
    return Finding(
        "held",
        "The KL penalty is too strong",
        f"beta is {number(beta)}, and the reward has not risen: from {number(float(begin.mean()))} to "
        f"{number(float(end.mean()))} in {len(rewards)} updates.{gap}",
        f"At beta {number(beta)} the KL term pulls a token back as hard as an advantage of 1 pulls it away once its "
        f"log-probability has moved by {number(1 / beta)} nats, so its probability changes by no more than about "
        f"{percent(math.expm1(1 / beta))}.",
        "Lower beta to 0.1 or less; many runs on verifiable rewards use 0.",
        ("beta",),
        run.place("longest"),
    )


def equal_start(run: Evidence) -> str:
    first = run.digests[0] if run.digests else None
    if first is None or first.reference is None or first.update != _begins(run):
        return NoTick("the updates on record do not show where training began")
    if first.reference.kl >= APART:
        return ""
    return f"KL {number(first.reference.kl)} nats per token before the first step of update {first.update}"
