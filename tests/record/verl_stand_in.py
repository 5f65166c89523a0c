"""A stand-in for verl's two trainers: the calls and shapes of verl 0.9.1, as its source has them, and no training."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

NAMES = {
    "old_log_probs": -1.0, "rollout_log_probs": -1.0, "ref_log_prob": -1.0, "entropy": 1.0, "advantages": 0.3,
}  # fmt: skip
PROMPTS, RESPONSES = ((5, 6), (5, 6), (7, 8, 9), (7, 8, 9)), ((1, 2, 3), (4,), (5, 6, 7, 8), (9, 10))
MASKS = ((1, 1, 1), (1,), (1, 0, 0, 1), (1, 1))
SCORES = (1.0, 0.0, 0.5, 0.25)


def numbers(step: int) -> dict[str, list[torch.Tensor]]:
    """What verl knows of each token, by its names; of each answer."""
    torch.manual_seed(step)
    return {name: [scale * torch.rand(len(each)) for each in RESPONSES] for name, scale in NAMES.items()}


class Config(dict[str, Any]):
    """A configuration, as omegaconf's: a mapping with `get`, whose values are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def config(folder: Any, **loss: Any) -> Config:
    """A configuration of GRPO with verl's defaults."""
    actor = Config(
        policy_loss=Config(loss_mode="vanilla"), loss_agg_mode="token-mean", clip_ratio=0.2, clip_ratio_low=0.2,
        clip_ratio_high=0.28, clip_ratio_c=3.0, use_kl_loss=False, entropy_coeff=0, ppo_epochs=1,
        ppo_mini_batch_size=2, grad_clip=1.0, optim=Config(lr=1e-6, weight_decay=0.01),
    )  # fmt: skip
    actor.update(loss)
    rollout = Config(n=2, temperature=0.9, top_p=1.0, top_k=-1)
    return Config(
        actor_rollout_ref=Config(actor=actor, rollout=rollout, model=Config(path="Qwen/Qwen3-0.6B")),
        data=Config(train_batch_size=2, max_response_length=8),
        algorithm=Config(adv_estimator="grpo", norm_adv_by_std_in_grpo=True, use_kl_in_reward=False),
        trainer=Config(default_local_dir=str(folder), experiment_name="sums"),
    )  # fmt: skip


class Tokenizer:
    """Decodes a token as its number."""

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        return " ".join(str(int(i)) for i in ids)


def modules() -> dict[str, types.ModuleType]:
    """New modules with the trainers and the tracking."""
    named = ("verl.utils.tracking", "verl.trainer.ppo.ray_trainer", "verl.trainer.ppo.v1.trainer_base")
    tracking, older, newer = (types.ModuleType(name) for name in named)

    class Tracking:
        def __init__(self) -> None:
            self.seen: list[tuple[int, dict[str, Any]]] = []

        def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
            self.seen.append((step, dict(data)))

    class Trainer:
        def __init__(self, config: Config) -> None:
            self.config, self.tokenizer, self.global_steps, self.logger = config, Tokenizer(), 0, Tracking()
            self.updated: list[Any] = []

    class RayPPOTrainer(Trainer):
        def _update_actor(self, batch: Any) -> str:
            self.updated.append(batch)
            return "updated"

        def fit(self, steps: int) -> None:
            self.logger.log(data={"val-core/sums/acc/mean@1": 0.25}, step=0)
            for self.global_steps in range(1, steps + 1):
                assert self._update_actor(tensors(self.global_steps)) == "updated"
                data = {"critic/score/mean": 0.4, "actor/grad_norm": 2.0, "timing_s/step": 3.5, "note": "text"}
                self.logger.log(data=data, step=self.global_steps)

    class PPOTrainer(Trainer):
        def _compute_metrics(self, batch: Any, metrics: Any, timing_raw: Any, global_steps: int, epoch: int) -> None:
            metrics["critic/score/mean"] = 0.4

        def fit(self, steps: int) -> None:
            for self.global_steps in range(1, steps + 1):
                metrics = {"actor/grad_norm": 2.0, "timing_s/step": 3.5}
                self._compute_metrics(queued(self.global_steps), metrics, {}, global_steps=self.global_steps, epoch=0)
                self.logger.log(data=metrics, step=self.global_steps)

    tracking.Tracking, older.RayPPOTrainer, newer.PPOTrainer = Tracking, RayPPOTrainer, PPOTrainer  # type: ignore[attr-defined]
    newer.tq = types.SimpleNamespace(kv_batch_get=kv_batch_get)  # type: ignore[attr-defined]
    return {each.__name__: each for each in (tracking, older, newer)}


def padded(rows: Any, width: int, left: bool = False) -> torch.Tensor:
    """Rows of different lengths as one tensor."""
    made = torch.zeros(len(rows), width, dtype=torch.as_tensor(rows[0]).dtype)
    for place, row in enumerate(rows):
        values = torch.as_tensor(row)
        made[place, width - len(row) :] = values if left else made[place, width - len(row) :]
        if not left:
            made[place, : len(row)] = values
    return made


def tensors(step: int) -> Any:
    """A `DataProto` of the older trainer: prompts are padded on the left, responses on the right."""
    scores = [torch.tensor([0.0] * (len(row) - 1) + [score]) for row, score in zip(RESPONSES, SCORES, strict=True)]
    present = [
        padded([[1] * len(row) for row in PROMPTS], 4, left=True), padded([[1] * len(row) for row in RESPONSES], 6)
    ]  # fmt: skip
    batch = {
        "prompts": padded(PROMPTS, 4, left=True), "responses": padded(RESPONSES, 6),
        "attention_mask": torch.cat(present, dim=1), "response_mask": padded(MASKS, 6),
        "token_level_scores": padded(scores, 6),
    } | {name: padded(values, 6) for name, values in numbers(step).items() if name != "entropy"}  # fmt: skip
    others = {
        "uid": np.array(["a", "a", "b", "b"], dtype=object), "acc": np.array([1, 0, 0, 1]),
        "reward_model": np.array([{"ground_truth": "3"}] * 2 + [{"ground_truth": "4"}] * 2, dtype=object),
    }  # fmt: skip
    return types.SimpleNamespace(batch=batch, non_tensor_batch=others, meta_info={"reward_extra_keys": ["acc"]})


def queued(step: int) -> Any:
    """A `KVBatchMeta` of the newer trainer; the last entry fills the batch up."""
    keys = ["a_0_0", "a_1_0", "b_0_0", "b_1_0", "b_1_0_pad"]
    tags = [{"is_padding": key.endswith("pad")} for key in keys]
    return types.SimpleNamespace(keys=keys, tags=tags, partition_id=f"step {step}")


def kv_batch_get(keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
    """Columns of the queue: nested tensors, and lists for what is none. What is absent is left out."""
    rows = [("a_0_0", "a_1_0", "b_0_0", "b_1_0").index(key) for key in keys]
    scores = [torch.tensor([0.0] * (len(row) - 1) + [score]) for row, score in zip(RESPONSES, SCORES, strict=True)]
    columns = {"prompts": PROMPTS, "responses": RESPONSES, "response_mask": MASKS, "rm_scores": scores}
    columns |= numbers(int(partition_id.removeprefix("step ")))  # type: ignore[arg-type]
    found: dict[str, Any] = {
        name: torch.nested.nested_tensor([torch.as_tensor(columns[name][i]) for i in rows], layout=torch.jagged)
        for name in select_fields if name in columns
    }  # fmt: skip
    truths = ["3", "3", "4", "4"]
    return found | {"reward_model": types.SimpleNamespace(tolist=lambda: [{"ground_truth": truths[i]} for i in rows])}


@contextmanager
def imported(found: dict[str, types.ModuleType]) -> Iterator[None]:
    """Let the modules be imported already."""
    before = {name: sys.modules.get(name) for name in found}
    sys.modules.update(found)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name)
            else:
                sys.modules[name] = module
