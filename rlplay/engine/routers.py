"""The loss that keeps the experts of a mixture busy alike, beside what a policy learns from its answers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine import ranks
from rlplay.engine.batch import Batch
from rlplay.engine.checkpointing import checkpointed
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import positions_of, rows_at_once
from rlplay.engine.state import Halt, State
from rlplay.engine.stopwatch import spent_on


def balance(batch: Batch, rows: Tensor, state: State) -> dict[str, float]:
    """Add the gradient of `router_aux_loss_coef` times the load-balancing loss of the completions `rows`, int64 on the
    CPU, to the parameters'; returns that loss as a metric, nothing where the coefficient is 0.

    As TRL's trainers have it: over prompts and completions, each completion with its own prompt; of parts that one pass
    takes, the mean. So it has a pass of its own, in which completions share nothing. Raises Halt, one line, if the
    model has no routers.
    """
    coefficient, lm = state.settings.router_aux_loss_coef, state.lm
    if not coefficient:
        return {}
    if not has_routers(lm):
        raise Halt(
            f"router_aux_loss_coef needs a mixture of experts that gives its routers' logits, and "
            f"{type(lm.policy).__name__} does not; set it to 0"
        )
    own, size = ranks.mine(rows), rows_at_once(lm, batch.ids.shape[1])

    def added() -> float:
        total = 0.0
        for part in torch.split(own, size) if len(own) else ():
            share = len(part) / len(rows)
            with spent_on("forward"):
                loss = load_balance(lm, batch, part)
            with spent_on("backward"):
                (coefficient * share * loss).backward()  # type: ignore[no-untyped-call]
            total += share * float(loss.detach())
        return total

    return {"aux_loss": sum(ranks.each(added))}


def with_balance(metrics: dict[str, Any], routed: dict[str, float], settings: Settings) -> dict[str, Any]:
    """A step's metrics, its loss included, with what `balance` has found."""
    if not routed:
        return metrics
    return metrics | routed | {"loss": metrics["loss"] + settings.router_aux_loss_coef * routed["aux_loss"]}


def has_routers(lm: LanguageModel) -> bool:
    """Whether the model is a mixture of experts whose load transformers can measure."""
    return hasattr(lm.policy.config.get_text_config(), "output_router_logits")


def load_balance(lm: LanguageModel, batch: Batch, rows: Tensor) -> Tensor:
    """experts · Σ_e (share of choices that are e)·(mean probability of e) over layers and tokens of the completions
    `rows` with their prompts: a scalar (Fedus et al. 2021, arXiv:2101.03961).

    It is the number of experts that a token is sent to if all are busy alike.
    """
    tokens = batch.tokens(rows)
    group, width = tokens.group, int(tokens.known.lengths.max())
    inside = torch.arange(width, device=tokens.ids.device) < tokens.lengths[:, None]
    mask = torch.cat([tokens.prompts.mask[group], inside.to(tokens.prompts.mask.dtype)], dim=1)
    with checkpointed(lm.policy) if lm.checkpointing else nullcontext():
        out: Any = lm.policy(
            input_ids=torch.cat([tokens.prompts.ids[group], tokens.ids[:, :width]], dim=1),
            attention_mask=mask,
            position_ids=positions_of(mask),
            use_cache=False,
            logits_to_keep=1,
            output_router_logits=True,
        )
    found: Tensor = out.aux_loss
    return found
