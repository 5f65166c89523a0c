"""TRL's GRPO, GMPO and RLOO trainers on fixed tensors: their own advantages, loss, gradient and metrics.

The trainers are made without their `__init__`; in place of a model stands a table of log-probabilities. Everything
between the rewards and the loss is TRL's code.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tests.parity.fixed import END, GENERATIONS, MAX_LENGTH, PAD, Fixed

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer
    from trl.experimental.gmpo import GMPOConfig, GMPOTrainer
    from trl.trainer.utils import add_fused_lm_head

TRAINERS: dict[str, tuple[Any, Any]] = {
    "grpo": (GRPOTrainer, GRPOConfig),
    "gmpo": (GMPOTrainer, GMPOConfig),
    "rloo": (RLOOTrainer, RLOOConfig),
}


class Table(nn.Module):
    """Stands for a model with TRL's fused head: knows the log-probability of each token of its completions."""

    is_gradient_checkpointing = False

    def __init__(self, logprobs: Tensor, entropy: Tensor) -> None:
        super().__init__()
        self.logprobs, self.entropy, self.asked = logprobs, entropy, 0

    def forward(self, input_ids: Tensor, labels: Tensor, **_: Any) -> SimpleNamespace:
        """log_probs and entropy [B, P + L − 1] of the next B rows, 0 where nothing is scored, as TRL's head does it."""
        rows = torch.arange(self.asked, self.asked + len(labels)) % len(self.logprobs)
        self.asked += len(labels)
        scored = labels[:, 1:] != -100
        return SimpleNamespace(log_probs=_laid(self.logprobs[rows], scored), entropy=_laid(self.entropy[rows], scored))


def _laid(values: Tensor, scored: Tensor) -> Tensor:
    left = values.new_zeros(len(values), scored.shape[1] - values.shape[1])
    return torch.where(scored, torch.cat([left, values], dim=1), 0.0)


def one_process() -> Any:
    """An accelerator of one process on a CPU."""

    def same(value: Tensor, *_: Any, **__: Any) -> Tensor:
        return value

    return SimpleNamespace(
        device=torch.device("cpu"), num_processes=1, process_index=0, is_main_process=True, sync_gradients=True,
        parallelism_config=None, autocast=nullcontext,
        gather=same, gather_for_metrics=same, reduce=same, pad_across_processes=same,
    )  # fmt: skip


def run(
    kind: str, batch: Fixed, *, micro_batches: int = 1, token_advantages: Tensor | None = None, **given: Any
) -> dict[str, Tensor]:
    """What the trainer `kind` makes of the batch: advantages [N], loss, dloss_dlogp [N, L] and its logged metrics.

    `given` are fields of the trainer's config. With `micro_batches` the batch is one optimizer step's gradient
    accumulation. `token_advantages` [N, L] take the place of TRL's own in the loss.
    """
    trainer = _trainer(kind, batch, micro_batches, given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = trainer._generate_and_score_completions([{"prompt": ""} for _ in batch.prompts])
    advantages = inputs["advantages"]
    if token_advantages is not None:
        inputs["advantages"] = token_advantages
    now = batch.logprobs.clone().requires_grad_()
    model, loss = Table(now, batch.entropy), now.new_zeros(())
    for rows in torch.arange(len(now)).chunk(micro_batches):
        part = {name: value[rows] if value.dim() else value for name, value in inputs.items()}
        loss = loss + trainer._compute_loss(model, part)
    (gradient,) = torch.autograd.grad(loss, now)
    logged = {name: torch.tensor(sum(v) / len(v), dtype=torch.double) for name, v in trainer._metrics["train"].items()}
    return {"advantages": advantages, "loss": loss.detach(), "dloss_dlogp": gradient} | logged


def adapting(batches: list[Fixed], **given: Any) -> dict[str, Tensor]:
    """The losses of GRPOTrainer on some batches, a step each, and what each makes of the weight of its bonus."""
    trainer, losses = _trainer("grpo", batches[0], 1, given | {"use_adaptive_entropy": True}), []
    for batch in batches:
        own = _trainer("grpo", batch, 1, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = own._generate_and_score_completions([{"prompt": ""} for _ in batch.prompts])
        losses.append(trainer._compute_loss(Table(batch.logprobs, batch.entropy), inputs).detach())
    coefficients = torch.tensor(trainer._metrics["train"]["entropy_coef"], dtype=torch.double)
    return {"losses": torch.stack(losses), "entropy_coef": coefficients}


def logprobs(model: Any, ids: Tensor, attention: Tensor, keep: int, temperature: float) -> Tensor:
    """TRL's log-probabilities [B, keep] of the last `keep` tokens under a model of transformers, which it changes."""
    add_fused_lm_head(model, temperature=temperature)
    trainer = object.__new__(GRPOTrainer)
    trainer.accelerator = one_process()
    return trainer._get_per_token_logps_and_entropies(model, ids, attention, keep)[0].detach()


def _trainer(kind: str, batch: Fixed, micro_batches: int, given: dict[str, Any]) -> Any:
    cls, config = TRAINERS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = config(
            output_dir="unused", use_cpu=True, bf16=False, report_to=[], num_generations=GENERATIONS,
            per_device_train_batch_size=len(batch.prompts) // micro_batches, num_iterations=2,
            gradient_accumulation_steps=micro_batches, **{"max_completion_length": MAX_LENGTH} | given,
        )  # fmt: skip
    trainer = object.__new__(cls)
    for name in ("beta", "num_generations", "num_iterations", "max_completion_length", "mask_truncated_completions"):
        setattr(trainer, name, getattr(args, name))
    for name in ("loss_type", "scale_rewards", "multi_objective_aggregation", "importance_sampling_level",
                 "top_entropy_quantile", "off_policy_mask_threshold", "entropy_coef", "use_adaptive_entropy",
                 "normalize_advantages", "reward_clip_range"):  # fmt: skip
        setattr(trainer, name, getattr(args, name, None))
    weights = args.reward_weights or [1.0] * batch.rewards.shape[1]
    trainer.__dict__ |= {
        "args": args,
        "accelerator": one_process(),
        "state": SimpleNamespace(global_step=0),
        "model": Table(batch.old, batch.entropy),
        "ref_model": Table(batch.ref, batch.entropy),
        "_tokenizer": SimpleNamespace(pad_token_id=PAD, eos_token_id=END),
        "eos_token_ids": [END],
        "epsilon_low": args.epsilon,
        "epsilon_high": args.epsilon if args.epsilon_high is None else args.epsilon_high,
        "reward_weights": torch.tensor(weights, dtype=batch.rewards.dtype),
        "reward_funcs": [None] * len(weights),
        "reward_func_names": [f"reward{i}" for i in range(len(weights))],
        "current_gradient_accumulation_steps": micro_batches,
        "_entropy_bonus_enabled": any(getattr(args, name, 0) for name in ("entropy_coef", "use_adaptive_entropy")),
        "_last_world_entropy": float("inf"),
        "_entropy_window_stats": None,
        "_metrics": {"train": defaultdict(list)},
        "_logs": defaultdict(list, rewards=defaultdict(list), extra=defaultdict(list)),
        "_pending_extra_logs": {},
        "_pending_metrics": {},
        "_calculate_rewards": lambda *_: batch.rewards,
    }  # fmt: skip
    for name in ("aux_loss_enabled", "use_vllm", "tools", "environments", "environment_factories", "_is_vlm",
                 "pad_to_multiple_of"):  # fmt: skip
        trainer.__dict__[name] = None
    trainer.use_vllm = batch.sampling is not None
    for word in ("correction", "mode", "clip_max", "clip_min"):
        option = f"vllm_importance_sampling_{word}"
        setattr(trainer, option, getattr(args, option, None))
    own = None
    if bool(batch.environment.any()):
        own = [row[:n].int().tolist() for row, n in zip(batch.sampled, batch.lengths.tolist(), strict=True)]
    few = batch.prompts, batch.completions, batch.completions
    sampling = None
    if batch.sampling is not None:
        sampling = [row[:n].tolist() for row, n in zip(batch.sampling, batch.lengths.tolist(), strict=True)]
    many = batch.prompts, batch.completions, own, batch.completions, sampling, {}, None, None
    trainer._generate = lambda _: few if kind == "rloo" else many
    return trainer
