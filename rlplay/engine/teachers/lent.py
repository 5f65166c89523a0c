"""A state that computes with other weights than its own, which nothing happens to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from torch import Tensor
from torch.func import functional_call

from rlplay.engine.log_softmax import widened
from rlplay.engine.model import POLICY, VALUE
from rlplay.engine.state import State


def lent(state: State, weights: Mapping[str, Tensor]) -> State:
    """The state with a policy and a value head of these weights, by the names in `State.parameters`.

    What is frozen stays, in float32 if it is in bfloat16: differences of passes in bfloat16 would be rounding.
    """

    def own(prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): w.to(state.lm.device) for n, w in weights.items() if n.startswith(prefix)}

    head: Any = _Lent(state.value_head, own(VALUE))
    return replace(state, lm=replace(state.lm, policy=_Lent(state.lm.policy, own(POLICY))), value_head=head)


class _Lent:
    """A module of the state with `weights` in place of its own, by their names in it."""

    def __init__(self, module: Any, weights: dict[str, Tensor]) -> None:
        self.module = module
        self.weights = {name: widened(own.detach()) for name, own in module.named_parameters()} | weights

    def __call__(self, *given: Any, **named: Any) -> Any:
        return functional_call(self.module, self.weights, given, named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def get_input_embeddings(self) -> Any:
        """By their precision a pass is laid out."""
        own = self.module.get_input_embeddings().weight
        return SimpleNamespace(weight=widened(own.detach()))
