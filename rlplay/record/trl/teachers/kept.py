"""What is kept of an update while somebody asks: its micro-batches, and the weights and moments that it began with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from rlplay.first_order import Vector
from rlplay.record.trl.teachers.adam import Adam
from rlplay.trace.records import Array

Forward = Callable[..., Any]
"""A model's forward pass, with TRL's head."""


Again = Callable[[Forward], tuple[Tensor, Tensor | None]]
"""Takes a forward pass once more: the log-probabilities [N, L] of its tokens, and their entropies if there are any."""


PICTURES = "the answers are about pictures, which a question does not hold"


def pictured(options: Mapping[str, Any]) -> bool:
    """Whether a forward pass with these arguments sees pictures."""
    return options.get("pixel_values") is not None


@dataclass
class Pass:
    """A micro-batch: how to take its forward pass again, and the derivatives of its loss by what came out."""

    again: Again
    by_answer: Callable[[Array], Iterable[tuple[int, Array]]]
    """Numbers [N, L] as those of each answer's tokens, with the answer's number in the update."""
    gradient: Tensor  # of the step's loss by each log-probability, [N, L]
    by_entropy: Tensor | None = None  # the same by each entropy


@dataclass
class KeptStep:
    """An optimizer step, by the names of the weights that it moved."""

    weights: Vector  # before it, on the CPU
    moments: Vector  # the first moments before it, on the CPU; in the first step those of all weights
    squares: Vector  # the second moments before it, on the CPU; empty in the first step, where nobody needs them
    settings: dict[str, dict[str, float]]
    clip: float  # the factor that made the gradient shorter


@dataclass
class KeptBatch:
    """The answers that an update learned from."""

    passes: list[list[Pass]]  # of each step
    lengths: list[int]  # tokens of each answer
    recorded: list[int]  # the answers on record, in their order there


@dataclass
class KeptUpdate:
    """An update that has ended; the model and the optimizer are as it has left them."""

    number: int
    steps: list[KeptStep]
    batch: KeptBatch


def copied(adam: Adam, names: list[str], which: str = "") -> Vector:
    """A copy on the CPU of the weights, or of one of their moments."""
    found = ((name, adam.moment(name, which) if which else adam.parameters[name].detach()) for name in names)
    return {name: each.to("cpu", copy=True) for name, each in found}


def kept_step(adam: Adam, clip: float, first: bool) -> KeptStep:
    """The step at hand, before it is taken."""
    names = adam.moving()
    settings = {
        name: {
            "lr": float(adam.setting(name, "lr")), "beta1": float(adam.setting(name, "betas")[0]),
            "beta2": float(adam.setting(name, "betas")[1]), "eps": float(adam.setting(name, "eps")),
            "decay": float(adam.setting(name, "weight_decay")), "count": adam.count(name) + 1,
        }
        for name in names
    }  # fmt: skip
    moments = copied(adam, [*adam.parameters] if first else names, "exp_avg")
    return KeptStep(copied(adam, names), moments, {} if first else copied(adam, names, "exp_avg_sq"), settings, clip)
