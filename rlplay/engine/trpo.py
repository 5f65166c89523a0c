"""TRPO's search for a step (Schulman et al. 2015, arXiv:1502.05477): the natural gradient, and how far to follow it.

    maximise Σ_t weight_t·w_t·A_t   subject to   mean_t KL(old ‖ new) ≤ max_kl

Near the old policy the KL is ½ Δᵀ F Δ, F being the Fisher matrix, so that the best direction solves F x = g, with g
the surrogate's gradient. Conjugate gradient needs only products F v. The step goes as far along x as the limit allows
and is shortened until the surrogate really gains and the exact KL, over the whole vocabulary, really keeps the limit.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from rlplay.algorithms import divergences
from rlplay.engine.batch import Batch
from rlplay.engine.model import LanguageModel
from rlplay.engine.natural_gradient import Trial, conjugate_gradient, length_to, line_search
from rlplay.engine.passes import forward, rows_at_once
from rlplay.engine.state import Halt, State
from rlplay.engine.tensors import Tensors
from rlplay.engine.transfer import to_device
from rlplay.trace.numbers import compact
from rlplay.trace.records import Notice, Searched

_GRAPH_COPIES = 8
"""Copies of its logits that the graph of a pass holds which is differentiated twice."""


_NOT_TWICE = ("not implemented", "double backward", "differentiate twice", "not have been used in the graph")
"""What torch says where a second derivative is missing."""


def search(batch: Batch, state: State, weights: Tensor) -> Generator[Searched | Notice, None, dict[str, float]]:
    """Move the policy by TRPO's step from its parameters' gradients, a record per iteration; returns metrics.

    `weights` [N, L] are those of the surrogate, whose gradient the policy's parameters hold; it is taken from them,
    so that the optimizer leaves the policy alone. If no step is accepted, the weights stay and a Notice says so.

    Raises Halt, before the weights are touched, if the model cannot be differentiated twice.
    """
    settings, lm = state.settings, state.lm
    parameters = {name: p for name, p in lm.policy.named_parameters() if p.grad is not None}
    gradient = -torch.cat([p.grad.flatten() for p in parameters.values()])  # of what is maximised
    lm.policy.zero_grad(set_to_none=True)
    fisher = Fisher(lm, list(parameters.values()), batch)
    found = None
    for found in conjugate_gradient(fisher.product, gradient, settings.cg_iterations, settings.cg_damping):
        length = length_to(settings.max_kl, found.curvature)
        yield Searched(
            update=batch.update, kind="cg", iteration=found.iteration, iterations=settings.cg_iterations,
            residual=found.residual, step=length, kl=None, gain=length * found.slope, accepted=False,
        )  # fmt: skip
    del fisher
    if found is None:
        yield _unmoved(batch, "the surrogate has no gradient")
        return _metrics(0.0, None)
    step = length_to(settings.max_kl, found.curvature) * found.x
    trial = yield from _moved(batch, state, parameters, step, weights)
    if not trial.accepted:
        tried = f"none of {trial.iteration} steps gained anything within max_kl={compact(settings.max_kl)}"
        yield _unmoved(batch, f"{tried}; more cg_iterations or cg_damping may find a better direction")
    return _metrics(found.residual, trial)


def _moved(
    batch: Batch, state: State, parameters: dict[str, Tensor], step: Tensor, weights: Tensor
) -> Generator[Searched, None, Trial]:
    """Try shorter and shorter steps from where the parameters are; they end on the accepted one, or where they were."""
    settings, old = state.settings, copy.deepcopy(state.lm.policy).requires_grad_(False)
    steps = _split(step, list(parameters.values()))

    @torch.no_grad()
    def place(fraction: float) -> None:
        for (name, parameter), whole in zip(parameters.items(), steps, strict=True):
            start = old.get_parameter(name)
            parameter.copy_(start + fraction * whole if fraction else start)

    def measure(fraction: float) -> tuple[float, float]:
        place(fraction)
        return compared(batch, state.lm, old, weights)

    for trial in line_search(measure, settings.max_kl, settings.line_search_steps):
        if not trial.accepted and trial.iteration == settings.line_search_steps:
            place(0.0)
        yield Searched(
            update=batch.update, kind="line", iteration=trial.iteration, iterations=settings.line_search_steps,
            residual=None, step=trial.fraction, kl=trial.kl, gain=trial.gain, accepted=trial.accepted,
        )  # fmt: skip
    return trial


class Fisher:
    """The Fisher matrix of the policy as it is: the Hessian at old = new of the mean over tokens of KL(old ‖ new).

    F = mean_t J_tᵀ M_t J_t, with J the derivative of a token's logits z by the parameters and
    M = (diag(p) − p pᵀ) / temperature² the Hessian of its KL by z, p = softmax(z / temperature). The Hessian's other
    term has the KL's first derivative as a factor, which is 0 here.
    """

    def __init__(self, lm: LanguageModel, parameters: list[Tensor], batch: Batch) -> None:
        self._lm, self._parameters, self._batch = lm, parameters, batch
        self._parts = _parts(batch, lm, _GRAPH_COPIES)
        self._kept = _Pass(lm, parameters, batch, self._parts[0]) if len(self._parts) == 1 else None

    def product(self, vector: Tensor) -> Tensor:
        """F v for `vector` [P], the parameters' entries one after the other. Raises Halt as `search` does."""
        pieces = _split(vector, self._parameters)
        total = torch.zeros_like(vector)
        for rows in self._parts:
            part = self._kept or _Pass(self._lm, self._parameters, self._batch, rows)
            total += torch.cat([piece.flatten() for piece in part.product(pieces)])
        return total / self._batch.mask.sum()


class _Pass:
    """One pass over the completions `rows`, kept so that J v and Jᵀ u can be computed from it repeatedly.

    Jᵀ u is a backward pass. It is linear in u, so its own derivative by u, along v, is J v.
    """

    def __init__(self, lm: LanguageModel, parameters: list[Tensor], batch: Batch, rows: Tensor) -> None:
        self._parameters, self._temperature = parameters, batch.temperature
        with sdpa_kernel(SDPBackend.MATH):  # fused attention kernels have no second derivative
            chunks = list(forward(lm, lm.policy, batch.tokens(rows)))
        self._logits = [chunk.logits for chunk in chunks]
        (there,) = to_device([rows], batch.ids.device)
        masks = [batch.mask[there[chunk.rows], : chunk.width] for chunk in chunks]
        self._tokens = [chunk.counted(mask)[..., None] for chunk, mask in zip(chunks, masks, strict=True)]
        self._cotangents = [torch.zeros_like(logits, requires_grad=True) for logits in self._logits]
        self._vjps = _grad(self._logits, parameters, self._cotangents, create_graph=True)

    def product(self, vector: Sequence[Tensor]) -> Sequence[Tensor]:
        """Σ_t J_tᵀ M_t J_t v, in the shapes of the parameters."""
        jvps = _grad(self._vjps, self._cotangents, vector)
        products = [self._logit_fisher(*each) for each in zip(self._logits, self._tokens, jvps, strict=True)]
        return _grad(self._logits, self._parameters, products)

    def _logit_fisher(self, logits: Tensor, tokens: Tensor, jvp: Tensor) -> Tensor:
        """M times a change `jvp` of the logits, for as many `tokens` as they are before: shaped like them."""
        p = (logits.detach() / self._temperature).softmax(-1)
        products: Tensor = p * (jvp - (p * jvp).sum(-1, keepdim=True)) * tokens / self._temperature**2
        return products.to(logits.dtype)


def _grad(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], along: Sequence[Tensor], create_graph: bool = False
) -> tuple[Tensor, ...]:
    """`torch.autograd.grad`, with what cannot be differentiated twice explained."""
    try:
        return torch.autograd.grad(outputs, inputs, along, retain_graph=True, create_graph=create_graph)
    except (RuntimeError, NotImplementedError) as error:
        what = str(error).strip().partition("\n")[0]
        if not any(sign in what for sign in _NOT_TWICE):
            raise
        raise Halt(f"surrogate=trpo needs second derivatives, which this model has not ({what})") from None


@torch.no_grad()
def compared(batch: Batch, lm: LanguageModel, old: Any, weights: Tensor) -> tuple[float, float]:
    """The policy against `old`: exact KL(old ‖ new), mean over sampled tokens in nats, and the surrogate's gain."""
    assert batch.advantages is not None
    divergence = gain = 0.0
    for rows in _parts(batch, lm):
        tokens, (there,) = batch.tokens(rows), to_device([rows], batch.ids.device)
        for before, now in zip(forward(lm, old, tokens), forward(lm, lm.policy, tokens), strict=True):
            here = (there[before.rows], slice(before.width))
            p, q = ((chunk.logits.float() / batch.temperature).log_softmax(-1) for chunk in (before, now))
            own = (chunk.logprobs(batch.ids[here], batch.temperature) for chunk in (before, now))
            old_ratio, ratio = ((logprobs - batch.old_logprobs[here]).exp() for logprobs in own)
            mask = batch.mask[here]
            gained = (weights * batch.advantages)[here] * (ratio - old_ratio)
            divergence += float(before.spread(divergences.full(Tensors, p, q))[mask].double().sum())
            gain += float(gained[mask].double().sum())
    return divergence / int(batch.mask.sum()), gain


def _parts(batch: Batch, lm: LanguageModel, copies: int = 1) -> tuple[Tensor, ...]:
    """All completions, int64 on the CPU, cut into parts of which a pass takes so many `copies` of the logits."""
    return torch.split(torch.arange(len(batch.group)), rows_at_once(lm, batch.ids.shape[1], copies))


def _split(vector: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    """A vector [P] in the shapes of the parameters."""
    pieces = torch.split(vector, [p.numel() for p in parameters])
    return [piece.view_as(p) for piece, p in zip(pieces, parameters, strict=True)]


def _unmoved(batch: Batch, reason: str) -> Notice:
    return Notice(
        update=batch.update, level="warning", text=f"update {batch.update} left the policy as it was: {reason}"
    )


def _metrics(residual: float, trial: Trial | None) -> dict[str, float]:
    taken = trial if trial is not None and trial.accepted else Trial(0, 0.0, 0.0, 0.0, False)
    return {
        "cg_residual": residual,
        "step_fraction": taken.fraction,
        "kl_old_exact": taken.kl,
        "surrogate_gain": taken.gain,
    }
