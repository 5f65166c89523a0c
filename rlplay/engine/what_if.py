"""What other settings would make of the batch at hand: credit and loss once more, no sampling and no forward pass.

The log-probabilities are those of each completion's last optimizer step; before one, those it was sampled with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import msgspec
import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms.apply import apply_all
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch, Passes
from rlplay.engine.correct import correct
from rlplay.engine.covariance import chosen
from rlplay.engine.credit_phase import assigned, credited
from rlplay.engine.objective import Inputs, objective, value_loss
from rlplay.engine.optimize import brought, minibatches, stepped
from rlplay.engine.own_functions import allow_functions
from rlplay.engine.policy_gradient import kl_gradient, log_correction, seen_of
from rlplay.engine.score import weighted, weights_of
from rlplay.engine.state import State
from rlplay.engine.token_shares import share_of
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import Imagined
from rlplay.trace.records import Stepped

_FIXED = ("sampling", "update")
"""Groups of settings that decide what is sampled and how often it is used: the batch at hand has both behind it."""
_READ = (
    "old_logprobs", "ref_logprobs", "teacher_logprobs", "advantages", "values", "returns", "sampling_logprobs",
    "correction",
)  # fmt: skip
"""What a loss reads of a batch, where it is there."""

_ASKED = ("teacher_model_kind", "teacher_context", "success_reward_threshold")
"""What decides who the teacher is and what it reads."""


def what_if(state: State, settings: Settings, changes: SomeSettings, seed: int) -> Imagined:
    """Credit and loss of the batch at hand as they were, and as `changes` to the latest `settings` would make them.

    Raises ValueError, one line, if the changes do not fit together or need samples or a pass that nobody has made.
    """
    batch = state.batch
    if state.settings.loss_type != "policy_gradient":
        raise ValueError("a preview needs loss_type=policy_gradient: other losses have no credit to imagine anew")
    if batch is None:
        raise ValueError("after a start, an undo or a resume the engine has no answers until the next update")
    if batch.advantages is None:
        raise ValueError("this update has no credit yet; a preview needs phase ③")
    learned = batch.passes
    if batch.update <= state.update if learned is None else learned.settings.loss_type != "policy_gradient":
        # Of an earlier stage; pairs without a label are not even passed over.
        raise ValueError("the last answers have no rewards; those of this stage come with its first update")
    passes = learned or Passes.begun(batch, state.settings, state.kl_coef, state.entropy_coef)
    wanted = apply_all(settings, changes)
    allow_functions(wanted)
    held = {name: getattr(passes.settings, name) for name, knob in KNOBS.items() if knob.group in _FIXED}
    new = msgspec.structs.replace(wanted, **held)
    asked = dataclasses.replace(state, settings=new, adapted=(passes.beta, passes.settings.beta))
    adapting = passes.settings.use_adaptive_entropy and new.use_adaptive_entropy
    bonus = passes.entropy_coef if adapting else state.entropy.used(new)
    if (needed := next(_missing(batch, passes, new), None)) is not None:
        raise ValueError(needed)
    other = _reweighted(batch, asked)
    given = assigned(other, new, asked.kl_coef)
    before = _steps(batch, passes, passes.settings, (passes.beta, passes.entropy_coef), seed)
    critic = batch.values if new.baseline == "value" else None
    other = dataclasses.replace(other, advantages=given.advantages, returns=given.returns, values=critic)
    correct(other, new)
    after = _steps(other, passes, new, (asked.kl_coef, bonus), seed)
    return Imagined(
        changes=changes,
        update=batch.update,
        settings=msgspec.structs.asdict(new),
        held=[name for name in held if getattr(wanted, name) != getattr(settings, name)],
        credited=credited(other, given, new),
        before=before,
        after=after,
        losses=(_loss(before), _loss(after)),
    )


def _missing(batch: Batch, passes: Passes, new: Settings) -> Iterator[str]:
    """What the new settings ask for and the batch does not have."""
    old = passes.settings
    if batch.from_sampler and not batch.step_metrics:
        yield "the policy has not read the sampler's answers yet: with old_logprobs_of=sampler its first step does"
    if new.loss_type != "policy_gradient":
        yield "pairs are drawn for a whole update: another kind of loss takes effect with the next"
    if new.baseline == "value" and batch.values is None:
        yield "baseline=value needs the value head's predictions, which the next update makes"
    if new.baseline == "greedy" and batch.greedy_rewards is None:
        yield "baseline=greedy needs the greedy answer to each prompt, which the next update samples"
    if new.returns == "vine" and (batch.vine_values is None or new.vine_samples != old.vine_samples):
        yield "returns=vine needs answers continued from each step or turn, which the next update samples"
    if batch.ref_logprobs is None and new.reads_reference:
        yield "a KL to the reference needs its pass, which observe=light leaves out; the next update makes it"
    if "full" in {s.kl_estimator for s in (old, new) if s.kl_placement == "loss" and s.beta}:
        yield "kl_estimator=full needs a forward pass for whole distributions, which the next update makes"
    if new.kl_estimator == "full" and new.kl_placement == "reward" and batch.exact_kl is None:
        yield "kl_estimator=full needs a forward pass for whole distributions, which the next update makes"
    if any(s.distils_in_loss and s.mode_row.whole for s in (old, new)):
        yield "a divergence over whole distributions needs a forward pass, which the next update makes"
    if new.distils and (
        batch.teacher_logprobs is None or any(getattr(old, name) != getattr(new, name) for name in _ASKED)
    ):
        yield "a teacher is asked when credit is given; with the next update"
    if new.entropy_in_loss and passes.entropy is None:
        yield "an entropy bonus needs a forward pass for whole distributions, which the next update makes"


def _reweighted(batch: Batch, state: State) -> Batch:
    """The batch with its rewards weighted anew. ValueError if they were never computed."""
    weights = weights_of(state)
    if weights == batch.weights:
        return batch
    for name in weights:
        if name not in batch.parts:
            raise ValueError(f"reward {name!r} had no weight when these answers were scored; the next update counts it")
    if batch.step_ends is not None and bool(batch.step_ends.any()):
        raise ValueError("step scores are weighted when they are given; other weights act on the next update")
    parts = {name: batch.parts[name] for name in weights}
    rewards = torch.from_numpy(weighted(parts, weights))
    return dataclasses.replace(batch, rewards=rewards, outcomes=rewards, parts=parts, weights=weights)


def _steps(batch: Batch, passes: Passes, settings: Settings, weights: tuple[float, float], seed: int) -> list[Stepped]:
    """The loss of every minibatch of the pass, as an optimizer step would record it; `weights` are β and that of the
    entropy bonus."""
    parts = minibatches(len(batch.group), passes.settings.num_minibatches, seed, batch.update, passes.epoch)
    return [_step(batch, number, rows, passes, settings, weights, seed) for number, rows in enumerate(parts)]


def _loss(steps: list[Stepped]) -> float:
    return float(np.mean([step.metrics["loss"] for step in steps]))


def _step(
    batch: Batch,
    number: int,
    rows: Tensor,
    passes: Passes,
    settings: Settings,
    weights: tuple[float, float],
    seed: int,
) -> Stepped:
    """All of it on the CPU, where what a step has seen is."""
    beta, bonus = weights
    names = [name for name in _READ if getattr(batch, name) is not None]
    known = {name: values[rows] for name, values in zip(names, batch.on_host(*names), strict=True)}
    share = share_of(batch, rows, settings)
    if settings.reads_covariance:
        step = passes.epoch * passes.settings.num_minibatches + number
        share = chosen(batch, rows, share, settings, passes.logprobs[rows], (seed, batch.update, step))
    entropy = None if passes.entropy is None else passes.entropy[rows]
    old_logprobs, ref_logprobs = known["old_logprobs"], known.get("ref_logprobs")
    with torch.enable_grad():
        own = passes.logprobs[rows].detach().requires_grad_()
        taught = None if batch.taught is None else batch.taught[rows, None]
        inputs = Inputs(
            own, old_logprobs, ref_logprobs, known["advantages"], entropy=entropy,
            sampling_logprobs=known.get("sampling_logprobs"),
            log_correction=log_correction(known.get("correction"), settings),
            teacher_logprobs=known.get("teacher_logprobs"), taught=taught,
        )  # fmt: skip
        terms = objective(inputs, share.weights, settings, beta, share.keep, share.bonus, bonus, share.held)
        dkl_dlogp = kl_gradient(terms, own)
        (gradient,) = torch.autograd.grad(terms.loss, own)
    (seen,) = brought([seen_of(rows, own, terms, share, gradient, dkl_dlogp)])
    loss = seen.metrics["loss"]
    if batch.values is not None:
        assert passes.values is not None
        critic = passes.values[rows], known["values"], known["returns"]
        error = value_loss(*critic, share.weights > 0, settings.cliprange_value, share.tokens)
        loss += settings.vf_coef * error.item()
    return stepped(batch, seen, {"loss": loss, "kl_coef": beta}, step=number)
