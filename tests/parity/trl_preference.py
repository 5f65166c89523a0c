"""TRL's trainers of preferences, rewards and given answers on fixed logits: their own loss and gradient.

As in `trl_policy.py`, the trainers are made without their `__init__` and a table stands for the model.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tests.parity.pairs import PAD, PAIRS, Pairs
from tests.parity.trl_policy import one_process

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import DPOTrainer, KTOTrainer, RewardTrainer, SFTTrainer
    from trl.experimental.cpo import CPOTrainer
    from trl.experimental.orpo import ORPOTrainer
    from trl.experimental.tpo import TPOTrainer


class Table(nn.Module):
    """Stands for a model: answers its calls with the given logits [B, W, V] in turn, or through TRL's fused head."""

    is_gradient_checkpointing = False

    def __init__(self, *logits: Tensor) -> None:
        super().__init__()
        self.logits, self.asked = logits, 0

    def forward(self, input_ids: Tensor, *_: Any, labels: Tensor | None = None, **__: Any) -> SimpleNamespace:
        logits = self.logits[self.asked % len(self.logits)]
        self.asked += 1
        if labels is None:
            return SimpleNamespace(logits=logits)
        scored, logprobs = labels[:, 1:] != -100, logits[:, :-1].log_softmax(-1)
        own = logprobs.gather(-1, labels[:, 1:, None].clamp(min=0))[..., 0]
        zeros = torch.zeros_like(own)
        return SimpleNamespace(
            log_probs=torch.where(scored, own, 0.0), label_mask=scored,
            log_sum_sq_probs=(2 * logprobs).logsumexp(-1), entropy=zeros, mean_logits=zeros, is_top1=zeros.bool(),
        )  # fmt: skip


class _Rows(nn.Module):
    """A table some of whose rows are asked for several times."""

    def __init__(self, table: Table, rows: Tensor) -> None:
        super().__init__()
        self.table, self.rows = table, rows

    def forward(self, **given: Any) -> SimpleNamespace:
        return SimpleNamespace(logits=self.table(**given).logits[self.rows])


def dpo(p: Pairs, loss_type: str | list[str], **given: Any) -> dict[str, Tensor]:
    """DPOTrainer's loss, its gradient by the logits, and its logged rewards; `given` are fields of DPOConfig."""
    types = [loss_type] if isinstance(loss_type, str) else loss_type
    own: dict[str, Any] = {"label_smoothing": 0.0, "f_divergence_type": "reverse_kl", "f_alpha_divergence_coef": 0.5}
    own |= {"loss_weights": [1.0] * len(types)} | given | {"loss_types": types, "ref_model": Table(p.ref_logits)}
    own["args"] = SimpleNamespace(discopop_tau=given.get("discopop_tau", 0.05), gradient_checkpointing_kwargs=None)
    trainer = _bare(DPOTrainer, **own)
    inputs = {"input_ids": p.ids, "attention_mask": p.attention, "completion_mask": p.mask.long()}
    return _differentiated(trainer, p.logits, lambda model: trainer._compute_loss(model, inputs, False))


def kto(
    p: Pairs, beta: float, desirable_weight: float, undesirable_weight: float, loss_type: str = "kto"
) -> dict[str, Tensor]:
    """KTOTrainer's; chosen completions are the desirable ones, the mismatched logits are those of its KL term."""
    trainer = _bare(
        KTOTrainer, loss_type=loss_type, beta=beta, calculate_KL=loss_type == "kto",
        desirable_weight=desirable_weight, undesirable_weight=undesirable_weight,
    )  # fmt: skip
    trainer.ref_model = Table(*([p.ref_mismatched] if trainer.calculate_KL else []), p.ref_logits)
    inputs = {"input_ids": p.ids, "attention_mask": p.attention, "completion_mask": p.mask.long()}
    inputs |= {f"KL_{name}": value for name, value in inputs.items()}
    inputs["label"] = torch.arange(2 * PAIRS) < PAIRS
    before = (p.mismatched,) if trainer.calculate_KL else ()
    return _differentiated(trainer, p.logits, lambda model: trainer._compute_loss(model, inputs, False), before)


def cpo(p: Pairs, loss_type: str, **given: Any) -> dict[str, Tensor]:
    """CPOTrainer's, with loss_type="simpo" SimPO's; `given` are fields of CPOConfig."""
    own: dict[str, Any] = {"simpo_gamma": 0.5, "alpha": 0.0, "label_smoothing": 0.0}
    return _paired(_bare(CPOTrainer, loss_type=loss_type, **own | given), p)


def tpo(p: Pairs, loss_type: str, **given: Any) -> dict[str, Tensor]:
    """TPOTrainer's, where the answer to imitate is the chosen one."""
    own: dict[str, Any] = {"tpo_l_gamma": 0.5, "label_smoothing": 0.0}
    trainer = _bare(TPOTrainer, loss_type=loss_type, **own | given)
    third = torch.cat([torch.arange(2 * PAIRS), torch.arange(PAIRS)]) if trainer.tpo_alpha else torch.arange(2 * PAIRS)
    inputs = {"input_ids": p.ids, "attention_mask": p.attention, "completion_mask": p.mask.long()}
    inputs = {name: value[third] for name, value in inputs.items()}
    return _differentiated(trainer, p.logits, lambda model: trainer._compute_loss(_Rows(model, third), inputs, False))


def orpo(p: Pairs, beta: float) -> dict[str, Tensor]:
    """ORPOTrainer's; its likelihood term covers the prompts too."""
    return _paired(_bare(ORPOTrainer, beta=beta), p)


def reward(p: Pairs, margin: bool, center: float | None) -> dict[str, Tensor]:
    """RewardTrainer's; the gradient is by the scores [2P]."""
    trainer = _bare(RewardTrainer, args=SimpleNamespace(center_rewards_coefficient=center))
    inputs = {"input_ids": p.ids, "attention_mask": p.attention} | ({"margin": p.margin} if margin else {})
    return _differentiated(trainer, p.scores[:, None], lambda model: trainer.compute_loss(model, inputs))


def sft(p: Pairs, loss_type: str = "nll") -> dict[str, Tensor]:
    """SFTTrainer's on all completions, prompts read and not learnt."""
    trainer = _bare(
        SFTTrainer, compute_loss_func=None, label_smoother=None,
        args=SimpleNamespace(loss_type=loss_type, average_tokens_across_devices=False),
    )  # fmt: skip
    inputs = {"input_ids": p.ids, "attention_mask": p.attention, "labels": p.ids.where(p.mask, -100)}
    return _differentiated(trainer, p.logits, lambda model: trainer.compute_loss(model, inputs))


def _paired(trainer: Any, p: Pairs) -> dict[str, Tensor]:
    inputs = {}
    for name, rows in (("chosen", slice(PAIRS)), ("rejected", slice(PAIRS, None))):
        inputs[f"{name}_input_ids"], inputs[f"{name}_attention_mask"] = p.ids[rows], p.attention[rows]
        inputs[f"{name}_labels"] = p.ids.where(p.mask, -100)[rows]

    def loss(model: Table) -> Tensor:
        value, metrics = trainer.get_batch_loss_metrics(model, inputs)
        for name, number in metrics.items():
            trainer._metrics["train"][name].append(number)
        return value

    return _differentiated(trainer, p.logits, loss)


def _bare(cls: Any, **own: Any) -> Any:
    trainer, model = object.__new__(cls), torch.nn.Module()  # a module, for accelerate looks for peft's in it
    model.is_gradient_checkpointing = False
    trainer.__dict__ |= {
        "accelerator": one_process(),
        "model": model,
        "args": SimpleNamespace(gradient_checkpointing_kwargs=None, device=torch.device("cpu")),
        "is_encoder_decoder": False,
        "pad_token_id": PAD,
        "padding_value": PAD,
        "_metrics": {"train": defaultdict(list)},
        "_total_train_tokens": 0,
        "_tp_size": 1,
    }
    for name in ("aux_loss_enabled", "precompute_ref_logps", "use_weighting", "ld_alpha"):
        trainer.__dict__[name] = None
    trainer.__dict__ |= own
    return trainer


def _differentiated(trainer: Any, logits: Tensor, loss: Any, before: tuple[Tensor, ...] = ()) -> dict[str, Tensor]:
    now = logits.clone().requires_grad_()
    value = loss(Table(*before, now))
    (gradient,) = torch.autograd.grad(value, now)
    logged = {name: torch.tensor(v[-1], dtype=torch.double) for name, v in trainer._metrics["train"].items()}
    return {"loss": value.detach(), "gradient": gradient} | logged
