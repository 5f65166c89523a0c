"""What a TRL trainer computed, watched from inside, and the same quantities by own formulas in float64."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

Kept = dict[str, Any]


class Spy:
    """Keeps what the trainer samples and the inputs of each micro-batch, with an own pass over it."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.generations: list[Kept] = []
        self.passes: list[Kept] = []
        generate, loss = trainer._generate_and_score_completions, trainer._compute_loss

        @functools.wraps(generate)
        def generated(inputs: Any) -> Any:
            out = generate(inputs)
            if trainer.model.training:
                self.generations.append(_kept(out))
            return out

        @functools.wraps(loss)
        def lost(model: Any, inputs: Any) -> Any:
            if torch.is_grad_enabled():
                self.passes.append(self._own(inputs))
            return loss(model, inputs)

        trainer._generate_and_score_completions, trainer._compute_loss = generated, lost

    def _own(self, inputs: Kept) -> Kept:
        trainer = self.trainer
        model = trainer.accelerator.unwrap_model(trainer.model)
        scores = self._scores(model, inputs)
        chosen = inputs["completion_ids"][..., None]
        own = scores.gather(-1, chosen)[..., 0].requires_grad_()
        kept = _kept(inputs)
        if "old_logps" in inputs and trainer.beta:
            kept["reference"] = self._scores(trainer.ref_model, inputs).gather(-1, chosen)[..., 0]
        loss, ratio, clipped = objective(own, inputs, trainer)
        (gradient,) = torch.autograd.grad(loss, own)
        entropy = -(scores.exp() * scores).sum(-1)
        return kept | {
            "logprobs": own.detach(), "gradient": gradient, "loss": float(loss.detach()), "clipped": clipped,
            "ratio": ratio, "entropy": entropy, "step": trainer.state.global_step,
        }  # fmt: skip

    @torch.no_grad()
    def _scores(self, model: Any, inputs: Kept) -> Tensor:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        logits = model(input_ids=ids, attention_mask=attention).logits[:, :-1].double() / self.trainer.temperature
        return logits.log_softmax(-1)[:, -inputs["completion_ids"].shape[1] :]

    def save(self, path: Path) -> None:
        """For another process to compare with."""
        torch.save({"generations": self.generations, "passes": self.passes}, path)


def _kept(values: Kept) -> Kept:
    return {k: v.detach().clone() if isinstance(v, Tensor) else v for k, v in values.items() if k != "rlplay_row"}


def objective(own: Tensor, inputs: Kept, trainer: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The part of a micro-batch in the step's loss, and the ratio and the clip state of each token.

    Shao et al. 2024 (arXiv:2402.03300), Yu et al. 2025 (arXiv:2503.14476), Zheng et al. 2025 (arXiv:2507.18071),
    Ahmadian et al. 2024 (arXiv:2402.14740).
    """
    args, mask = trainer.args, inputs["completion_mask"].double()
    steps, advantages = trainer.current_gradient_accumulation_steps, inputs["advantages"].double()[:, None]
    counts = mask.sum(1, keepdim=True).clamp(min=1)
    if "old_logps" in inputs:
        log_ratio = (own * mask).sum(1, keepdim=True) - inputs["old_logps"].double()[:, None]
    else:
        log_ratio = own - inputs.get("old_per_token_logps", own.detach()).double()
        if args.importance_sampling_level == "sequence":
            log_ratio = (log_ratio * mask).sum(1, keepdim=True) / counts
    ratio, low, high = log_ratio.exp(), trainer.epsilon_low, trainer.epsilon_high
    each = -torch.min(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    clipped = ((ratio > 1 + high) & (advantages > 0)).int() - ((ratio < 1 - low) & (advantages < 0)).int()
    clipped = clipped.expand_as(mask) * mask.int()
    weight = ratio.detach().expand_as(mask)
    if "old_logps" in inputs:
        return each.mean() / steps, weight, clipped
    if trainer.beta:
        away = inputs["ref_per_token_logps"].double() - own
        each = each + trainer.beta * (away.exp() - away - 1) * (ratio if args.use_bias_correction_kl else 1)
    if trainer.loss_type == "dapo":
        share = steps / args.steps_per_generation / trainer.accelerator.num_processes
        loss = (each * mask).sum() / (inputs["num_items_in_batch"] * share)
    else:
        loss = ((each * mask).sum(1, keepdim=True) / counts).mean() / steps
    return loss, weight, clipped
