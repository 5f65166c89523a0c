"""What a choice of an axis consists of: its computation, and all that is said of it anywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol


class Chosen(Protocol):
    """The settings that a choice reads to say what it does."""

    @property
    def clip_range(self) -> tuple[float, float]:
        """ε and ε_high."""

    @property
    def importance_sampling_level(self) -> str:
        """What the ratio is taken of."""

    @property
    def delta(self) -> float | None:
        """The bound of a dual clip."""

    @property
    def num_iterations(self) -> int:
        """Passes over each batch."""

    @property
    def num_minibatches(self) -> int:
        """Optimizer steps of each pass."""

    @property
    def gamma(self) -> float:
        """The discount."""

    @property
    def lam(self) -> float:
        """GAE's λ."""

    @property
    def cpo_alpha(self) -> float:
        """The weight of imitation."""


@dataclass(frozen=True)
class Choice:
    """One word that a setting may take.

    `compute(xp, …)` takes what it needs by name: quantities of the batch, and settings. It is None of a function that
    may not run here. `about` is the clause that the knob's help says of it; `trl` and `verl` are their names for it,
    empty where they have none.
    """

    name: str
    compute: Callable[..., Any] | None
    about: str
    paper: str = ""
    trl: str = ""
    verl: str = ""


@cache
def wanted(compute: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a computation takes besides `xp`; those that it has a default for are its own constants."""
    parameters = list(inspect.signature(compute).parameters.values())[1:]
    return tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)


def called(compute: Callable[..., Any] | None, xp: Any, quantities: Mapping[str, Any], settings: Any) -> Any:
    """`compute` with what it asks for: a quantity by its name, else the setting of that name."""
    assert compute is not None, "a function that this process may not run"
    given = {name: quantities[name] if name in quantities else getattr(settings, name) for name in wanted(compute)}
    return compute(xp, **given)


def listed(choices: Mapping[str, Choice]) -> str:
    """What a knob says of its choices: "token: each token. sequence: …"."""
    return " ".join(f"{choice.name}: {choice.about}" for choice in choices.values())
