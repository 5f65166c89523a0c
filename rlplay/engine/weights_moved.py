"""What an update moved in the weights: of every tensor the norm of its change, and how many directions that has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor

from rlplay.engine.model import POLICY, VALUE
from rlplay.engine.model_parts import Adapted, Place, adapted, is_tied, places
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import REWARD, State
from rlplay.engine.weights_after import WeightsAfter, at_hand, weights_after
from rlplay.engine.world_policy import is_table
from rlplay.trace.moved_weights import MovedWeight
from rlplay.trace.questions import Weigh, Weighed

OPERATIONS = 4e10
"""Floating-point operations for the ranks of one update, at most: about a second of a processor."""
SHOWN = 48
"""Singular values that an answer names, at most."""
_TELL_EVERY = 0.25
"""Seconds between two answers about a model so large that reading its weights takes long."""


def weigh(question: Weigh, state: State, store: SnapshotStore, interrupted: Callable[[], bool]) -> Iterator[Weighed]:
    """What `question.update` moved, and those before it back to the last whose weights are at hand.

    Norms come first, then ranks, those of the largest relative change first, until `OPERATIONS` are spent or something
    else is asked; without all norms the answer is refused, but not `done`.

    Raises ValueError, one line, if the weights are not at hand, or a snapshot is damaged.
    """
    since = last_before(question.update, state, store)
    with weights_after(since, state, store) as old, weights_after(question.update, state, store) as new:
        yield from _answers(state, old, new, interrupted)


def last_before(update: int, state: State, store: SnapshotStore) -> int:
    """The last update before `update` whose weights are at hand. Raises ValueError, one line, if either's are not."""
    there = at_hand(state, store)
    earlier = [each for each in there if each < update]
    if update not in there or not earlier:
        others = [str(each) for each in there[1:]]
        hint = f"; those of {', '.join(others[-5:])} are" if others else ""
        raise ValueError(f"the weights of update {update} were not kept{hint}")
    return earlier[-1]


@torch.no_grad()
def _answers(state: State, old: WeightsAfter, new: WeightsAfter, interrupted: Callable[[], bool]) -> Iterator[Weighed]:
    """About the policy, or about the reward model where the update trained that alone."""
    device = state.lm.device if state.lm.device.type == "cuda" else torch.device("cpu")
    both = old.names & new.names
    models: list[tuple[Any, str]] = [(state.lm.policy, POLICY)]
    if state.reward_model is not None and any(name.startswith(REWARD) for name in new.names):
        models.append((state.reward_model, REWARD))
    answer, weights, told = Weighed(new.update, old.update), list[Weight](), time.monotonic()
    for model, prefix in models:
        if any(weight.moved for weight in answer.weights):
            break
        weights, layers = trained_weights(model, prefix, both)
        if not weights:
            raise ValueError(f"the reward model begins in update {new.update}; ask about the next one")
        answer = _headline(state, old, new, model, prefix, layers)
        for weight in weights:
            answer = replace(answer, weights=[*answer.weights, weight.described(old, new, device)])
            if interrupted():
                yield Weighed(new.update, old.update, refused="the engine was asked something else meanwhile")
                return
            if time.monotonic() - told >= _TELL_EVERY:
                told = time.monotonic()
                yield answer
    ranked = _ranked(weights, answer.weights, old, new, device, interrupted)
    yield replace(answer, weights=ranked, done=True)


def _headline(
    state: State, old: WeightsAfter, new: WeightsAfter, model: Any, prefix: str, layers: int
) -> Weighed:  # fmt: skip
    """All but the weights."""
    lora = next((each for each in adapted(model, prefix)), None)
    numbers = {f"{prefix}{name}": parameter.numel() for name, parameter in model.named_parameters()}
    answer = Weighed(
        new.update, old.update, model="policy" if prefix == POLICY else "reward model", layers=layers,
        frozen=sum(count for name, count in numbers.items() if name not in state.parameters), tied=is_tied(model),
        adapters=0 if lora is None else state.parameters[lora.down].shape[0],
    )  # fmt: skip
    if not is_table(model):
        return answer
    moved = (new.read_exact(_TABLE).cpu() - old.read_exact(_TABLE).cpu()).T.tolist()
    pieces = [state.lm.piece(token) for token in range(len(moved))]
    squares = {piece: row for piece, row in zip(pieces, moved, strict=True) if any(row)}
    return replace(answer, squares=squares, moves=pieces[: model.config.num_actions])


_TABLE = f"{POLICY}head.weight"
"""A table's numbers [moves, squares]."""


@dataclass(frozen=True)
class Weight:
    """A trained weight by its name in `State.parameters`, or one that adapters train, and where it is."""

    name: str
    place: Place
    lora: Adapted | None = None

    @property
    def _trained(self) -> tuple[str, ...]:
        return (self.name,) if self.lora is None else (self.lora.up, self.lora.down)

    def before(self, old: WeightsAfter, device: torch.device) -> Tensor:
        """W in float32, with what adapters add."""
        tensors = [old.read_exact(name).to(device) for name in self._trained]
        return tensors[0] if self.lora is None else self.lora.merged(*tensors)

    def change(self, old: WeightsAfter, new: WeightsAfter, device: torch.device) -> Tensor:
        """Δ in float32, or where adapters train it a small matrix with the same singular values that are not 0."""
        before, after = ([weights.read_exact(name).to(device) for name in self._trained] for weights in (old, new))
        if self.lora is None:
            return after[0] - before[0]
        # B₁A₁ − B₀A₀ = [B₁ −B₀][A₁; A₀], whose singular values are those of the product of both triangles.
        up, down = torch.cat([after[0], -before[0]], 1), torch.cat([after[1], before[1]], 0)
        small: Tensor = self.lora.scaling * (torch.linalg.qr(up).R @ torch.linalg.qr(down.T).R.T)
        return small

    def described(self, old: WeightsAfter, new: WeightsAfter, device: torch.device) -> MovedWeight:
        """All but the rank."""
        both = [(old.read(name), new.read(name)) for name in self._trained]
        weight = self.before(old, device)
        return MovedWeight(
            name=_shown(self.name), layer=self.place.layer, part=self.place.part, label=self.place.label,
            shape=list(weight.shape),
            numbers=sum(after.numel() for _, after in both),
            changed=sum(int((before.to(after.device) != after).sum()) for before, after in both),
            size=_norm(weight), moved=_norm(self.change(old, new, device)),
        )  # fmt: skip


def trained_weights(model: Any, prefix: str, names: frozenset[str]) -> tuple[list[Weight], int]:
    """Those of `names` that belong to `model`, whose own begin with `prefix`, in its order; and how many layers it has.

    The policy comes with its value head.
    """
    found, layers = places(model)
    pairs = {each.down: each for each in adapted(model, prefix)}
    second = {each.up for each in pairs.values()}
    own = [(f"{prefix}{name}", place) for name, place in found.items()]
    weights = [
        Weight(pairs[name].name if name in pairs else name, place, pairs.get(name))
        for name, place in own
        if name in names and name not in second
    ]
    if prefix == POLICY:
        head = Place(layers + 1, "value", "value head")
        weights += [Weight(name, head) for name in sorted(names, reverse=True) if name.startswith(VALUE)]
    return weights, layers


def _ranked(
    weights: Sequence[Weight], described: list[MovedWeight], old: WeightsAfter, new: WeightsAfter, device: torch.device,
    interrupted: Callable[[], bool],
) -> list[MovedWeight]:  # fmt: skip
    """The descriptions with ranks, as many as `OPERATIONS` allow."""
    left, ranked = OPERATIONS, list(described)
    for at in sorted(range(len(described)), key=lambda at: -_relative(described[at])):
        each, weight = described[at], weights[at]
        if len(each.shape) != 2 or not each.moved:
            continue
        cost = operations(*(each.shape if weight.lora is None else [2 * new.read(weight.lora.down).shape[0]] * 2))
        if cost > left:
            continue
        if interrupted():
            break
        left -= cost
        values = singular_values(weight.change(old, new, device))
        shares = (values / values.sum())[:SHOWN].tolist()
        ranked[at] = replace(each, rank=effective_rank(values), spectrum=shares)
    return ranked


def _shown(name: str) -> str:
    """A name as it is in the model: without what rlplay and peft put around it."""
    return name.removeprefix(POLICY).removeprefix(REWARD).removeprefix("base_model.model.").replace(".base_layer", "")


def _relative(weight: MovedWeight) -> float:
    return weight.moved / weight.size if weight.size else float(weight.moved > 0)


def _norm(weight: Tensor) -> float:
    """The Frobenius norm, added up in float64."""
    return float(torch.linalg.vector_norm(weight, dtype=torch.float64))


def operations(rows: int, columns: int) -> float:
    """Floating-point operations of `singular_values`, roughly: a product, and the eigenvalues of its result."""
    least, most = sorted((rows, columns))
    return 2.0 * most * least**2 + 10.0 * least**3


def singular_values(matrix: Tensor) -> Tensor:
    """The singular values of a matrix [n, m], largest first, in float64: roots of the eigenvalues of MᵀM, or of MMᵀ if
    that is smaller. Those below 1e-8 of the largest are lost in its rounding."""
    tall = (matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T).double()
    values: Tensor = torch.linalg.eigvalsh(tall.T @ tall).clamp(min=0).sqrt().flip(0).cpu()
    return values


def effective_rank(values: Tensor) -> float:
    """exp of the entropy of the singular values as shares of their sum (Roy and Vetterli 2007, EUSIPCO).

    As many equal singular values as that have the same entropy: 1 for one direction, at most the number of values.
    """
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())
