"""How token losses become one number: a weight for every token, so that L = Σ weight·token loss. Rows at the end.

`mask` bool [N, L] is True for tokens that count; `counted` is the same as numbers in the precision of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice, call_choice


def seq_mean_token_mean(xp: Any, mask: Any, counted: Any) -> Any:
    """1/(N·n_i): every completion counts the same, so tokens of long ones count less (GRPO)."""
    return counted / (mask.shape[0] * xp.clip(xp.count_over(mask), low=1))


def token_mean(xp: Any, mask: Any, counted: Any) -> Any:
    """1/Σn: every token counts the same (DAPO, arXiv:2503.14476)."""
    return counted / xp.clip(xp.count_over(mask).sum(), low=1)


def constant(xp: Any, mask: Any, counted: Any, max_completion_length: int) -> Any:  # noqa: ARG001
    """1/(N·L_max): no bias by length (Dr. GRPO, arXiv:2503.20783)."""
    return counted / (mask.shape[0] * max_completion_length)


def seq_mean_token_sum(xp: Any, mask: Any, counted: Any) -> Any:  # noqa: ARG001
    """1/N: a completion counts with all its tokens (REINFORCE)."""
    return counted / mask.shape[0]


@dataclass(frozen=True)
class Aggregation(Choice):
    """An aggregation: `sum` is the beginning of the written loss, `weight` the weight of one token in it."""

    sum: str = ""
    weight: str = ""


AGGREGATIONS: dict[str, Aggregation] = {
    row.name: row
    for row in (
        Aggregation(
            "seq_mean_token_mean", seq_mean_token_mean, "every answer counts alike.", verl="seq-mean-token-mean",
            sum="1/N Σᵢ 1/nᵢ Σₜ", weight="1/(N·n)",
        ),
        Aggregation(
            "token_mean", token_mean, "every token counts alike.", "arXiv:2503.14476", verl="token-mean",
            sum="1/Σnᵢ Σᵢ Σₜ", weight="1/Σn",
        ),
        Aggregation(
            "constant", constant, "the sum, divided by the max length.", "arXiv:2503.20783",
            verl="seq-mean-token-sum-norm", sum="1/(N·{longest}) Σᵢ Σₜ", weight="1/(N·{longest})",
        ),
        Aggregation(
            "seq_mean_token_sum", seq_mean_token_sum, "the losses of an answer's tokens are summed, so longer answers "
            "count more.",
            verl="seq-mean-token-sum", sum="1/N Σᵢ Σₜ", weight="1/N",
        ),
    )
}  # fmt: skip


def token_weights(xp: Any, name: str, mask: Any, counted: Any, longest: int) -> Any:
    """The weight of every token's loss under the aggregation `name`, [N, L]; `longest` is max_completion_length."""
    known = {"mask": mask, "counted": counted, "max_completion_length": longest}
    return call_choice(AGGREGATIONS[name].compute, xp, known, None)
