"""The load-balancing loss of a mixture of experts against TRL's own pass, on a model of some thousand weights."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import torch
from torch.nn.utils import parameters_to_vector
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from rlplay.algorithms.apply import resolve
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.model import LanguageModel
from rlplay.engine.routers import balance
from rlplay.tasks.task import Example
from tests.parity.case import Case, Pairs

VOCABULARY, COEFFICIENT = 11, 0.3
PROMPTS = [[0, 1], [1, 3, 0]]
LENGTHS = (4, 2, 3, 5)


def compare(dtype: torch.dtype, seed: int) -> Pairs:
    """The loss, and the gradient of the coefficient times it by all weights."""
    from trl import GRPOTrainer
    from trl.trainer.utils import add_fused_lm_head

    lm, settings = _model(dtype, seed), resolve({"router_aux_loss_coef": COEFFICIENT})
    batch = _batch(lm, seed)
    found = balance(batch, torch.arange(len(LENGTHS)), SimpleNamespace(settings=settings, lm=lm))  # type: ignore[arg-type]
    own = _gradient(lm)

    mask = torch.cat([batch.prompts.mask[batch.group], batch.completion_mask.long()], dim=1)
    ids = torch.cat([batch.prompts.ids[batch.group], batch.ids], dim=1)
    add_fused_lm_head(lm.policy, temperature=1.0)
    trainer = SimpleNamespace(accelerator=SimpleNamespace(autocast=nullcontext, is_main_process=False))
    *_, theirs = GRPOTrainer._get_per_token_logps_and_entropies(
        trainer, lm.policy, ids, mask, batch.ids.shape[1], compute_aux_loss=True
    )
    (COEFFICIENT * theirs).backward()
    loss = torch.tensor(found["aux_loss"], dtype=dtype)
    return {"loss": (loss, theirs.detach().to(dtype)), "dloss_dweights": (own, _gradient(lm))}


def _gradient(lm: LanguageModel) -> torch.Tensor:
    """The gradient of all weights, which are then without one."""
    parameters = list(lm.policy.parameters())
    found = parameters_to_vector([torch.zeros_like(p) if p.grad is None else p.grad for p in parameters])
    lm.policy.zero_grad()
    return found


def _model(dtype: torch.dtype, seed: int) -> LanguageModel:
    torch.manual_seed(seed)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        head_dim=4, intermediate_size=8, moe_intermediate_size=6, num_experts=4, num_experts_per_tok=2,
        max_position_embeddings=16, initializer_range=0.5,
        experts_implementation="eager",  # the faster products are not for float64
    )  # fmt: skip
    policy = Qwen3MoeForCausalLM(config).to(dtype).eval()
    return LanguageModel(policy, policy, SimpleNamespace(pad_token_id=0), torch.device("cpu"), frozenset({2}))


def _batch(lm: LanguageModel, seed: int) -> Batch:
    shape = len(LENGTHS), max(LENGTHS)
    nothing = torch.zeros(*shape, 0)
    ids = torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))
    return Batch(
        update=1, prompts=Prompts.padded(lm, [Example("", {})] * 2, PROMPTS), group=torch.tensor([0, 0, 1, 1]),
        ids=ids, lengths=torch.tensor(LENGTHS), old_logprobs=nothing, entropy=nothing, top_ids=nothing,
        top_logprobs=nothing, truncated=torch.zeros(len(LENGTHS), dtype=torch.bool),
        environment=torch.zeros(shape, dtype=torch.bool), temperature=1.0,
    )  # fmt: skip


def cases() -> list[Case]:
    """The one that there is."""
    return [Case("Router balance", "TRL 1.16.0", "router balance", compare)]
