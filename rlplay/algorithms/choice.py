"""What a choice of an axis consists of: its computation and all texts about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary


class Chosen(Protocol):
    """The settings that a choice reads to describe itself."""

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
    def ratio_stays_one(self) -> bool:
        """Whether every ratio is 1."""

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

    @property
    def loss_type(self) -> str:
        """The loss on given answers; of several, the first."""

    @property
    def loss_weights(self) -> Mapping[str, float]:
        """The weights of several losses on given answers."""


@dataclass(frozen=True)
class Choice:
    """One value that a setting may take, by name.

    `compute(xp, …)` names its arguments after quantities of the batch and after settings. It is None for a function
    that may not run here. `about` is its clause in the knob's help. `trl` and `verl` are its names there, empty if it
    has none.
    """

    name: str
    compute: Callable[..., Any] | None
    about: str
    paper: str = ""
    trl: str = ""
    verl: str = ""


_argument_names: WeakKeyDictionary[Callable[..., Any], tuple[str, ...]] = WeakKeyDictionary()
"""The arguments of each computation, as long as it exists: a user's file defines a new one with every edit."""


def argument_names(compute: Callable[..., Any]) -> tuple[str, ...]:
    """The arguments of a computation besides `xp`, by name; those with a default are its own constants."""
    names = _argument_names.get(compute)
    if names is None:
        parameters = list(inspect.signature(compute).parameters.values())[1:]
        names = tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)
        _argument_names[compute] = names
    return names


def reading(choices: Mapping[str, Choice], name: str) -> tuple[str, ...]:
    """The names of the choices whose computation takes the argument `name`."""
    computed = ((choice.name, choice.compute) for choice in choices.values())
    return tuple(chosen for chosen, compute in computed if compute is not None and name in argument_names(compute))


def call_choice(compute: Callable[..., Any] | None, xp: Any, quantities: Mapping[str, Any], settings: Any) -> Any:
    """`compute` with the arguments that it names: the quantity of that name, else the setting."""
    if compute is None:
        raise ValueError("the run's settings name a function that is no built-in one and may not run here")
    names = argument_names(compute)
    return compute(xp, **{name: quantities[name] if name in quantities else getattr(settings, name) for name in names})


def describe_choices(choices: Mapping[str, Choice]) -> str:
    """The choices as a knob's help describes them: "token: each token. sequence: …"."""
    return " ".join(f"{choice.name}: {choice.about}" for choice in choices.values())
