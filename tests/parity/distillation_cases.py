"""Distillation against TRL's trainers that distil: loss, and gradient by the student's logits."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.apply import resolve
from rlplay.engine.credit_phase import assigned
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.token_shares import share_of
from tests.parity import ours
from tests.parity.case import Case, Pairs
from tests.parity.fixed import GENERATIONS, MAX_LENGTH, Fixed, fixed

VOCABULARY = 50
Given = dict[str, Any]

DISTILLATION: list[tuple[Given, Given]] = [
    ({"algorithm": "gkd", "distillation_alpha": beta, "temperature": temperature},
     {"beta": beta, "temperature": temperature})
    for beta, temperature in ((0.0, 1.0), (0.3, 1.0), (0.5, 0.7), (1.0, 1.0))
]  # fmt: skip
"""rlplay's settings, and the arguments of DistillationTrainer's loss, which are GKD's, too."""

SELF: list[tuple[str, Given, Given]] = [
    ("SDPO", {"algorithm": "sdpo"}, {"distillation_mode": "sampled_token", "distillation_is_clip": 2.0}),
    ("SDPO", {"algorithm": "sdpo", "distillation_weight": 0.3, "baseline": "group_mean", "scale_rewards": "group"},
     {"distillation_mode": "sampled_token", "distillation_weight": 0.3, "distillation_is_clip": 2.0}),
    ("SDPO", {"algorithm": "sdpo", "distillation_mode": "full_logits", "distillation_alpha": 0.5,
              "distillation_is_clip": None},
     {"distillation_mode": "full_logits", "distillation_alpha": 0.5, "distillation_is_clip": None}),
    ("SDFT", {"algorithm": "sdft", "distillation_topk": 5},
     {"distillation_mode": "topk_logits", "distillation_topk": 5, "distillation_alpha": 0.5,
      "distillation_is_clip": 2.0}),
    ("SDFT", {"algorithm": "sdft", "distillation_topk": 5, "distillation_add_tail": True, "distillation_alpha": 0.0},
     {"distillation_mode": "topk_logits", "distillation_topk": 5, "distillation_add_tail": True,
      "distillation_alpha": 0.0, "distillation_is_clip": 2.0}),
]  # fmt: skip
"""Row of the table, rlplay's settings, fields of SDPOConfig, whose loss is SDFT's, too."""


class Drawn:
    """Student's and teacher's logits [N, L, V] and the completions' ids [N, L] beside a fixed batch."""

    def __init__(self, given: Fixed, seed: int) -> None:
        generator = torch.Generator().manual_seed(1000 + seed)
        shape = *given.mask.shape, VOCABULARY
        self.student = (2 * torch.randn(shape, generator=generator)).to(given.old.dtype).requires_grad_()
        self.teacher = (self.student.detach() + torch.randn(shape, generator=generator)).to(given.old.dtype)
        self.ids = torch.randint(0, VOCABULARY, shape[:2], generator=generator)
        self.taught = torch.rand(shape[0], generator=generator) < 0.7

    def logprobs(self, logits: Tensor, temperature: float = 1.0) -> Tensor:
        """Of the completions' tokens [N, L]."""
        return (logits / temperature).log_softmax(-1).gather(-1, self.ids[..., None])[..., 0]


def own(given: Fixed, drawn: Drawn, mine: Given, taught: Tensor | None) -> tuple[Tensor, Tensor]:
    """rlplay's loss and its gradient by the student's logits."""
    knobs, batch, rows = resolve(ours.SIZES | mine), ours.as_batch(given), torch.arange(len(given.group))
    t = knobs.temperature
    batch.taught, batch.teacher_logprobs = taught, drawn.logprobs(drawn.teacher, t)
    batch.advantages = assigned(batch, knobs, 0.0).advantages
    share = share_of(batch, rows, knobs)
    inputs = Inputs(
        drawn.logprobs(drawn.student, t), given.old, None, batch.advantages,
        distribution=(drawn.student / t).log_softmax(-1), teacher=(drawn.teacher / t).log_softmax(-1),
        teacher_logprobs=batch.teacher_logprobs, taught=None if taught is None else taught[:, None],
    )  # fmt: skip
    loss = objective(inputs, share.weights, knobs, 0.0, share.keep, share.bonus).loss
    return loss.detach(), torch.autograd.grad(loss, drawn.student)[0]


def beside(own_found: tuple[Tensor, Tensor], loss: Tensor, drawn: Drawn) -> Pairs:
    """Both losses and gradients."""
    (gradient,) = torch.autograd.grad(loss, drawn.student)
    return {"loss": (own_found[0], loss.detach()), "dloss_dlogits": (own_found[1], gradient)}


def whole(trainer: str, mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """Divergences over the whole vocabulary, averaged over all tokens."""
    given = fixed(dtype, seed)
    drawn = Drawn(given, seed)
    found = own(given, drawn, mine, None)
    if trainer == "gkd":
        from trl.experimental.gkd import GKDTrainer

        labels = torch.where(given.mask, drawn.ids, -100)
        loss = GKDTrainer.generalized_jsd_loss(drawn.student, drawn.teacher, labels=labels, **theirs)
    else:
        from trl.trainer.distillation_trainer import _chunked_divergence_loss

        same = torch.eye(VOCABULARY, dtype=dtype)
        loss, _, _ = _chunked_divergence_loss(drawn.student, drawn.teacher, same, same, given.mask, **theirs)
    return beside(found, loss, drawn)


def self_taught(mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> Pairs:
    """SDPO's and SDFT's loss, some completions without a teacher, by an older policy's answers."""
    from trl.experimental.sdpo import SDPOConfig, SDPOTrainer
    from trl.experimental.sdpo.sdpo_trainer import DistillationLogits

    given = fixed(dtype, seed)
    drawn = Drawn(given, seed)
    found = own(given, drawn, mine, drawn.taught)
    trainer = object.__new__(SDPOTrainer)
    config = {"distillation_weight": 1.0, "distillation_alpha": 1.0, "distillation_topk": None,
              "distillation_add_tail": False} | theirs  # fmt: skip
    assert config.keys() <= SDPOConfig.__dataclass_fields__.keys()
    logits = DistillationLogits(
        drawn.ids, given.mask.to(dtype), given.mask.to(dtype) * drawn.taught[:, None].to(dtype), drawn.student,
        drawn.teacher,
    )  # fmt: skip
    advantages = assigned(ours.as_batch(given), resolve(ours.SIZES | {"algorithm": "grpo"}), 0.0).advantages
    trainer.__dict__ |= {
        "args": SimpleNamespace(**config), "model": SimpleNamespace(training=True), "teacher_model": None,
        "use_teacher_server": False, "current_gradient_accumulation_steps": 1,
        "accelerator": SimpleNamespace(gather=lambda x: x), "_metrics": {"train": defaultdict(list)},
        "importance_sampling_level": "token", "epsilon_low": 0.2, "epsilon_high": 0.2, "loss_type": "grpo",
        "max_completion_length": MAX_LENGTH, "num_generations": GENERATIONS,
        "_compute_teacher_student_logits": lambda *_: logits,
    }  # fmt: skip
    inputs = {"completion_ids": drawn.ids, "completion_mask": given.mask.to(dtype), "advantages": advantages,
              "old_per_token_logps": given.old}  # fmt: skip
    return beside(found, trainer.compute_loss(SimpleNamespace(training=True), inputs), drawn)


def weighted(gamma: float, dtype: torch.dtype, seed: int) -> Pairs:
    """IW-OPD: sampled tokens, weighted by how far teacher and student were apart before them."""
    from trl.experimental.iw_opd import IWOPDTrainer

    given = fixed(dtype, seed)
    drawn = Drawn(given, seed)
    found = own(given, drawn, {"algorithm": "iw-opd", "iw_opd_gamma": gamma}, None)
    trainer = object.__new__(IWOPDTrainer)
    trainer.__dict__ |= {
        "temperature": 1.0, "iw_opd_gamma": gamma, "iw_opd_epsilon": 1e-8, "model": SimpleNamespace(training=True),
        "_metrics": {"train": defaultdict(list)},
    }  # fmt: skip
    labels = torch.where(given.mask, drawn.ids, -100)
    teachers = drawn.logprobs(drawn.teacher)
    return beside(found, trainer._compute_iw_opd_loss(drawn.student, drawn.ids, labels, teachers, given.old), drawn)


def cases() -> list[Case]:
    """All of them."""
    against = "TRL 1.16.0"
    found = [
        Case(row, against, f"{row} {theirs}", partial(whole, trainer, mine, theirs))
        for row, trainer in (("Distillation", "distillation"), ("GKD", "gkd"))
        for mine, theirs in DISTILLATION
    ]
    found += [Case(row, against, f"{row} {theirs}", partial(self_taught, mine, theirs)) for row, mine, theirs in SELF]
    found += [Case("IW-OPD", against, f"IW-OPD {gamma}", partial(weighted, gamma)) for gamma in (0.0, 0.5)]
    return found
