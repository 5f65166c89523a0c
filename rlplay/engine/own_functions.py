"""The user's functions in the engine: a trial on tensors before they train, and a check that results are finite."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.own_choices import OWN, allow_all, is_own, place
from rlplay.algorithms.own_trial import BOUNDS, fits, trial
from rlplay.algorithms.settings import Settings, row
from rlplay.containment import OwnError
from rlplay.engine.tensors import Tensors
from rlplay.trace.numbers import compact


def allow_functions(settings: Settings) -> None:
    """Allow the functions that the settings name, after a trial in numpy, as the screen calls them, and in torch.

    Raises OwnError, one line with the file, the line and what to do.
    """
    allow_all(settings)
    for setting in OWN:
        if is_own(getattr(settings, setting)):
            _try_out(setting, settings)


_SHOWN = ("ratio", "advantages", "returns", "baseline")
"""The quantities of a token that a message quotes."""


def _try_out(setting: str, settings: Settings) -> None:
    """Call a function as training does: a surrogate with gradients, an advantage in float64 without."""
    known = {name: torch.from_numpy(values) for name, values in trial().items()}
    if setting == "surrogate":
        known = {name: values.float() if values.is_floating_point() else values for name, values in known.items()}
        logprobs = known["logprobs"].requires_grad_()
        known["log_ratio"] = logprobs - known["old_logprobs"]
        known["ratio"] = known["log_ratio"].exp()
    found = call_choice(row(settings, setting).compute, Tensors(known["raw"]), known | BOUNDS, settings)
    if not isinstance(found, Tensor) or not fits(tuple(found.shape)):
        raise OwnError(f"{place(getattr(settings, setting))} gives {type(found).__name__} in training; use only xp")


def check_finite(setting: str, settings: Settings, found: Tensor, mask: Tensor, known: dict[str, Any]) -> None:
    """Raises OwnError, one line, if the user's function made a number that is not finite from finite ones.

    `found` and `mask` are [N, L]; `known` holds what the function was given. The line quotes the first such token.
    """
    given = {name: values for name, values in known.items() if isinstance(values, Tensor) and values.ndim == 2}
    bad = ~found.detach().isfinite() & mask
    for values in given.values():
        bad = bad & values.isfinite()  # else the run has diverged, and the function only passes that on
    if not bool(bad.any()):
        return
    first = tuple(bad.nonzero()[0].tolist())
    values_there = ", ".join(f"{name} {compact(given[name][first].item(), 3)}" for name in _SHOWN if name in given)
    raise OwnError(
        f"{place(getattr(settings, setting))} gives {compact(found[first].item())} for {int(bad.sum())} of "
        f"{int(mask.sum())} tokens, first for one with {values_there}"
    )
