"""What a model would say if it ended after each of its layers: the logit lens (nostalgebraist 2020, "interpreting GPT:
the logit lens", LessWrong).

What a layer hands on takes the place of what the last layer hands on, so whatever comes after the layers, a norm, the
head, a cap of the logits, is the model's own. After the last layer that is the model's own distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from rlplay.engine.checkpointing import layers_of
from rlplay.engine.probe import Beginning, readable
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import State
from rlplay.engine.weights_after import weights_after
from rlplay.engine.weights_moved import last_before
from rlplay.engine.world_policy import WorldPolicy
from rlplay.trace.moved_weights import LayerReading
from rlplay.trace.questions import LayersRead, ReadLayers

CANDIDATES = 5
"""Tokens of each reading."""
_APART = 0.1
"""Nats by which the last reading of a likely token may differ from the model's own; bfloat16 rounds that much."""


def read_layers(question: ReadLayers, state: State, store: SnapshotStore) -> LayersRead:
    """The readings before and after an update, at the run's temperature.

    Raises ValueError, one line, if the prefix cannot be asked about, the weights are not at hand, or the model has no
    layers that can be read so.
    """
    lm = state.lm
    if not 0 <= question.token_id < lm.vocabulary:
        raise ValueError(f"a token id is outside the model's vocabulary of {lm.vocabulary}")
    if isinstance(lm.policy, WorldPolicy):
        raise ValueError("the policy of a world has no layers between its input and its output to read")
    beginning = readable(Beginning.of(question.prefix, state), lm)
    since = last_before(question.update, state, store)
    both = []
    for update in (since, question.update):
        with weights_after(update, state, store) as weights:
            lent = {name: weight.to(lm.device) for name, weight in weights.policy().items()}
        logprobs = layer_logprobs(lm.policy, lent, beginning.ids, state.settings.temperature)
        both.append([_reading(row, question.token_id) for row in logprobs])
    ids = {question.token_id, *(i for readings in both for reading in readings for i in reading.top_ids)}
    return LayersRead(
        question.prefix, question.token_id, question.update, since,
        before=both[0], after=both[1], pieces={i: lm.piece(i) for i in ids},
    )  # fmt: skip


def _reading(logprobs: Tensor, token: int) -> LayerReading:
    top = logprobs.topk(min(CANDIDATES, len(logprobs)))
    own = logprobs[token]
    return LayerReading(
        top.indices.tolist(), top.values.exp().tolist(), float(own.exp()), int((logprobs > own).sum()) + 1
    )  # fmt: skip


@torch.no_grad()
def layer_logprobs(model: Any, weights: dict[str, Tensor], ids: list[int], temperature: float) -> Tensor:
    """Log-probabilities [layers + 1, V] of the next token after `ids`, read before the first layer and after each.

    The model is lent the `weights`. Raises ValueError, one line, if its layers cannot be read.
    """
    layers, device = layers_of(model), next(model.parameters()).device
    if not layers:
        raise ValueError(f"{type(model).__name__} has no layers between its input and its output to read")

    def passed(tokens: list[list[int]]) -> Tensor:
        given = {"input_ids": torch.tensor(tokens, device=device), "use_cache": False, "logits_to_keep": 1}
        logits: Tensor = functional_call(model, weights, (), given).logits[:, -1]
        return (logits.float() / temperature).log_softmax(-1)

    with _recorded(layers) as hidden:
        own = passed([ids])
    read = None
    if len(hidden) == len(layers) + 1 and len({tuple(each.shape) for each in hidden}) == 1 and hidden[0].ndim == 2:
        with _replaced(layers[-1], torch.stack(hidden)):
            read = passed([[ids[-1]]] * len(hidden))
    if read is None or not _close(read[-1], own[0]):
        raise ValueError(f"the layers of {type(model).__name__} hand on more than one vector, which cannot be read")
    return read


def _close(one: Tensor, other: Tensor) -> bool:
    likely = other.exp() > 1e-3
    return bool(((one - other).abs()[likely] <= _APART).all())


@contextmanager
def _recorded(layers: list[nn.Module]) -> Iterator[list[Tensor]]:
    """The hidden states [1, d] of the last position that a pass gives to the first layer, then those after each."""
    hidden: list[Tensor] = []

    def before(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hidden.append((args[0] if args else kwargs["hidden_states"])[:, -1])

    def after(_module: nn.Module, _args: Any, output: Any) -> None:
        hidden.append(_first(output)[:, -1])

    with ExitStack() as hooks:
        hooks.callback(layers[0].register_forward_pre_hook(before, with_kwargs=True).remove)
        for layer in layers:
            hooks.callback(layer.register_forward_hook(after).remove)
        yield hidden


@contextmanager
def _replaced(layer: nn.Module, hidden: Tensor) -> Iterator[None]:
    """Within it, `layer` hands on `hidden` [N, 1, d], whatever it gets."""

    def after(_module: nn.Module, _args: Any, output: Any) -> Any:
        return hidden if isinstance(output, Tensor) else (hidden, *output[1:])

    handle = layer.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def _first(output: Any) -> Tensor:
    tensor: Tensor = output if isinstance(output, Tensor) else output[0]
    return tensor
