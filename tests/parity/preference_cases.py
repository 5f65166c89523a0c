"""Losses of preferences, rewards and given answers against TRL's trainers, on the same logits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from recipe.pretraining import masked_loss
from rlplay.algorithms.apply import resolve
from rlplay.algorithms.pair_functions import bradley_terry
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.engine.answer_weights import weights_of
from rlplay.engine.pair_loss import Compared, imitated, kto_baseline, pair_loss
from rlplay.engine.tensors import Tensors
from tests.parity import case
from tests.parity.pairs import PAIRS, Pairs, pairs

Given = dict[str, Any]

_SAME_NAME = [
    (title, "dpo", {"algorithm": name}, {"loss_type": loss, "beta": 0.1})
    for title, name, loss in (
        ("Length-normalised DPO", "dpo-norm", "sigmoid_norm"), ("NCA", "nca", "nca_pair"), ("BCO", "bco", "bco_pair"),
        ("SPPO", "sppo", "sppo_hard"), ("AOT", "aot", "aot"), ("AOT, unpaired", "aot-unpaired", "aot_unpaired"),
        ("APO-zero", "apo-zero", "apo_zero"), ("APO-down", "apo-down", "apo_down"),
        ("DiscoPOP", "discopop", "discopop"),
    )
]  # fmt: skip
ROWS: list[tuple[str, str, Given, Given]] = [
    ("DPO (sigmoid)", "dpo", {"algorithm": "dpo"}, {"loss_type": "sigmoid", "beta": 0.1}),
    ("IPO", "dpo", {"algorithm": "ipo"}, {"loss_type": "ipo", "beta": 0.1}),
    ("Hinge (SLiC)", "dpo", {"algorithm": "hinge", "beta": 0.6}, {"loss_type": "hinge", "beta": 0.6}),
    ("Robust DPO", "dpo", {"algorithm": "robust-dpo"}, {"loss_type": "robust", "beta": 0.1, "label_smoothing": 0.1}),
    *_SAME_NAME,
    ("AOT", "dpo", {"algorithm": "aot", "label_smoothing": 0.2},
     {"loss_type": "aot", "beta": 0.1, "label_smoothing": 0.2}),
    ("AOT, unpaired", "dpo", {"algorithm": "aot-unpaired", "label_smoothing": 0.2},
     {"loss_type": "aot_unpaired", "beta": 0.1, "label_smoothing": 0.2}),
    ("EXO", "dpo", {"algorithm": "exo"}, {"loss_type": "exo_pair", "beta": 0.1, "label_smoothing": 0.001}),
    ("DiscoPOP", "dpo", {"algorithm": "discopop", "beta": 0.3, "discopop_tau": 0.4},
     {"loss_type": "discopop", "beta": 0.3, "discopop_tau": 0.4}),
    *(("f-DPO", "dpo", {"algorithm": name, "f_divergence_type": kind, "f_alpha_divergence_coef": 0.3},
       {"loss_type": loss, "beta": 0.1, "f_divergence_type": kind} | extra)
      for name, loss in (("dpo", "sigmoid"), ("ipo", "ipo"))
      for kind, extra in (("forward_kl", {}), ("js_divergence", {}),
                          ("alpha_divergence", {"f_alpha_divergence_coef": 0.3}))),
    *(("LD-DPO", "dpo", {"algorithm": name, "ld_alpha": 0.3}, {"loss_type": loss, "beta": 0.1, "ld_alpha": 0.3})
      for name, loss in (("dpo", "sigmoid"), ("ipo", "ipo"), ("aot", "aot"))),
    *(("WPO", "dpo", {"algorithm": name, "use_weighting": True},
       {"loss_type": loss, "beta": 0.1, "use_weighting": True})
      for name, loss in (("wpo", "sigmoid"), ("nca", "nca_pair"))),
    *(("MPO", "dpo", {"algorithm": "mpo", **extra},
       {"loss_type": ["sigmoid", "bco_pair", "sft"], "beta": 0.1, "loss_weights": [0.8, 0.2, 1.0], **extra})
      for extra in ({}, {"ld_alpha": 0.5})),
    ("CPO", "cpo", {"algorithm": "cpo", "loss_type": "cpo_hinge"},
     {"loss_type": "hinge", "beta": 0.1, "cpo_alpha": 1.0}),
    ("CPO", "cpo", {"algorithm": "cpo", "loss_type": "cpo_ipo"}, {"loss_type": "ipo", "beta": 0.1, "cpo_alpha": 1.0}),
    ("CPO", "cpo", {"algorithm": "cpo", "label_smoothing": 0.2},
     {"loss_type": "sigmoid", "beta": 0.1, "cpo_alpha": 1.0, "label_smoothing": 0.2}),
    ("AlphaPO", "cpo", {"algorithm": "alphapo"}, {"loss_type": "simpo", "beta": 0.1, "cpo_alpha": 0.0, "alpha": 0.25}),
    ("AlphaPO", "cpo", {"algorithm": "cpo", "alpha": -0.2},
     {"loss_type": "sigmoid", "beta": 0.1, "cpo_alpha": 1.0, "alpha": -0.2}),
    ("CPO", "cpo", {"algorithm": "cpo"}, {"loss_type": "sigmoid", "beta": 0.1, "cpo_alpha": 1.0}),
    ("CPO", "cpo", {"algorithm": "cpo", "cpo_alpha": 0.0}, {"loss_type": "sigmoid", "beta": 0.1, "cpo_alpha": 0.0}),
    ("SimPO", "cpo", {"algorithm": "simpo"}, {"loss_type": "simpo", "beta": 0.1, "cpo_alpha": 0.0}),
    ("SimPO", "cpo", {"algorithm": "simpo", "cpo_alpha": 1.0, "simpo_gamma": 1.6, "beta": 2.0},
     {"loss_type": "simpo", "beta": 2.0, "cpo_alpha": 1.0, "simpo_gamma": 1.6}),
    ("KTO", "kto", {"algorithm": "kto"}, {"beta": 0.1, "desirable_weight": 1.0, "undesirable_weight": 1.0}),
    ("APO-zero, unpaired", "kto",
     {"algorithm": "apo-zero-unpaired", "desirable_weight": 1.5, "undesirable_weight": 0.7},
     {"loss_type": "apo_zero_unpaired", "beta": 0.1, "desirable_weight": 1.5, "undesirable_weight": 0.7}),
    ("KTO", "kto", {"algorithm": "kto", "desirable_weight": 1.5, "undesirable_weight": 0.7},
     {"beta": 0.1, "desirable_weight": 1.5, "undesirable_weight": 0.7}),
    ("ORPO", "orpo", {"algorithm": "orpo"}, {"beta": 0.1}),
]  # fmt: skip
"""Row of the table, function of `trl_preference.py`, rlplay's settings, arguments of that function."""
_TPO: list[tuple[str, str, Given, Given]] = [
    ("TPO, gold = chosen", "tpo", {"algorithm": "cpo", "loss_type": mine, "cpo_alpha": alpha, "beta": 0.3},
     {"loss_type": theirs, "beta": 0.3, "tpo_alpha": alpha})
    for mine, theirs in (("cpo", "sigmoid"), ("cpo_hinge", "hinge"), ("cpo_ipo", "ipo"), ("simpo", "tpo-l"))
    for alpha in (0.0, 0.7)
]  # fmt: skip
"""TPO imitates a third answer; where that is the chosen one, it is CPO or SimPO with imitation."""


def compared(p: Pairs, given: Given) -> tuple[Tensor, Compared]:
    """The log-probabilities' logits, and rlplay's loss of them."""
    logits, mask = p.logits.clone().requires_grad_(), p.mask[:, 1:]
    chosen = torch.arange(2 * PAIRS) < PAIRS
    z = kto_baseline(((token_logprobs(p, p.mismatched) - token_logprobs(p, p.ref_mismatched)) * mask).sum(-1))
    own, ref, settings = token_logprobs(p, logits), token_logprobs(p, p.ref_logits), resolve(given)
    weights = None
    if settings.use_weighting:
        drawn = (2 * p.logits[:, :-1].log_softmax(-1)).logsumexp(-1)
        weights = weights_of(own.detach(), drawn, mask)
    baseline = z if "kto_baseline" in PAIR_LOSSES[settings.loss_type].reads else None
    found = pair_loss(own, ref, mask, chosen, baseline, settings, weights)
    if given["algorithm"] == "orpo":
        # TRL's likelihood term covers the prompts too, where rlplay's does not.
        both = p.attention[:PAIRS, 1:].bool()
        found.loss = found.loss - imitated(own[:PAIRS], mask[:PAIRS], "sft") + imitated(own[:PAIRS], both, "sft")
        del found.metrics["nll_loss"]
    return logits, found


def token_logprobs(p: Pairs, logits: Tensor) -> Tensor:
    """[2P, W − 1], of each token given those before it."""
    return logits[:, :-1].log_softmax(-1).gather(-1, p.ids[:, 1:, None])[..., 0]


def compare(function: str, mine: Given, theirs: Given, dtype: torch.dtype, seed: int) -> case.Pairs:
    """Loss, gradient by the logits and every metric that both sides log."""
    from tests.parity import trl_preference

    p = pairs(dtype, seed)
    other = getattr(trl_preference, function)(p, **theirs)
    logits, found = compared(p, mine)
    own = _differentiated(found.loss, logits) | found.metrics
    if found.rewards is not None:
        won, lost = found.rewards.chunk(2)
        own |= {"rewards/chosen": won.mean(), "rewards/rejected": lost.mean(), "rewards/margins": (won - lost).mean()}
        own["rewards/accuracies"] = (won > lost).to(dtype).mean()
    if "kto/kl" in own:
        own["kl"] = own["kto/kl"]  # TRL's name for it; in rlplay `kl` is the one to the reference, of every loss
    shared = own.keys() & other.keys()
    assert {"loss", "gradient", "rewards/margins"} <= shared
    return {name: (own[name], other[name]) for name in shared}


def reward_model(margin: bool, center: float | None, dtype: torch.dtype, seed: int) -> case.Pairs:
    """A reward model's loss of its scores."""
    from tests.parity import trl_preference

    p = pairs(dtype, seed)
    scores = p.scores[:, None].clone().requires_grad_()
    apart = p.margin if margin else torch.zeros_like(p.margin)
    chosen, rejected = scores[:, 0].chunk(2)
    loss = bradley_terry(Tensors, chosen - rejected, apart, chosen, rejected, center or 0.0).mean()
    return _beside(_differentiated(loss, scores), trl_preference.reward(p, margin, center))


def imitation(loss: Callable[[Pairs, Tensor], Tensor], name: str, dtype: torch.dtype, seed: int) -> case.Pairs:
    """Supervised fine-tuning on all completions."""
    from tests.parity import trl_preference

    p = pairs(dtype, seed)
    logits = p.logits.clone().requires_grad_()
    return _beside(_differentiated(loss(p, logits), logits), trl_preference.sft(p, name))


def _differentiated(loss: Tensor, by: Tensor) -> dict[str, Tensor]:
    (gradient,) = torch.autograd.grad(loss, by)
    return {"loss": loss.detach(), "gradient": gradient}


def _beside(own: dict[str, Tensor], other: dict[str, Tensor]) -> case.Pairs:
    return {name: (value, other[name]) for name, value in own.items()}


def _dtypes(theirs: Given) -> tuple[torch.dtype, ...]:
    """TRL's alpha_divergence has no float64."""
    alone = theirs.get("f_divergence_type") == "alpha_divergence"
    return (torch.float32,) if alone else tuple(case.LIMITS)


def cases() -> list[case.Case]:
    """All of them."""
    against = "TRL 1.16.0"
    paired = [
        case.Case(row, against, f"{row} {theirs}", partial(compare, function, mine, theirs), _dtypes(theirs))
        for row, function, mine, theirs in [*ROWS, *_TPO]
    ]
    rewards = [
        case.Case("Reward model", against, f"reward model {m} {c}", partial(reward_model, m, c))
        for m, c in ((False, None), (True, None), (True, 0.01))
    ]
    losses: dict[str, tuple[str, str, Callable[[Pairs, Tensor], Tensor]]] = {
        "SFT of log-probabilities": (
            "SFT", "nll", lambda p, logits: imitated(token_logprobs(p, logits), p.mask[:, 1:], "sft")
        ),
        "SFT of packed rows": ("SFT", "nll", lambda p, logits: masked_loss(logits, p.ids, p.mask.long())),
        "DFT": ("DFT", "dft", lambda p, logits: imitated(token_logprobs(p, logits), p.mask[:, 1:], "dft")),
    }  # fmt: skip
    sft = [case.Case(row, against, name, partial(imitation, loss, kind)) for name, (row, kind, loss) in losses.items()]
    return paired + rewards + sft
