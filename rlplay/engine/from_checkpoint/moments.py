"""Adam's moments in a checkpoint's `optimizer.pt`, by the names of the parameters here.

The file is a pickle of somebody else's, so torch reads it as data alone (`weights_only`), and its numbers stay in the
file until they are asked for. It names no parameters: they are told by their order and shape, the matrices before the
biases and norms, as transformers groups them by weight decay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlplay.trace.text import visible

_ADAM = ("exp_avg", "exp_avg_sq", "step")
_BETAS, _EPSILON = (0.9, 0.999), 1e-8
"""Those of rlplay's AdamW, torch's and transformers' defaults."""


@dataclass(frozen=True)
class Moments:
    """The moments by parameter, and why some of it could not be had, in lines."""

    by_name: Mapping[str, Mapping[str, Tensor]]
    lacking: tuple[str, ...] = ()


class SavedOptimizer:
    """What an `optimizer.pt` says; nothing, and why in `damage`, if it cannot be read, or if there is no file."""

    def __init__(self, file: Path | None) -> None:
        self.rate: float | None = None
        """The learning rate of the next step."""
        self.damage = ""
        self._groups: Any = None
        self._states: Any = None
        if file is None:
            return
        try:
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
            self._groups, self._states = list(content["param_groups"]), dict(content["state"])
            self.rate = float(self._groups[0]["lr"])
        except Exception as error:  # a file of somebody else's makes torch raise anything
            self._groups = None
            self.damage = visible(str(error).partition("\n")[0])[:120] or type(error).__name__

    def moments(self, parameters: Mapping[str, Tensor]) -> Moments:
        """Those of the trained `parameters`, which are in the order of the model; none if the file holds others."""
        if self._groups is None:
            lack = f"Adam's moments: optimizer.pt cannot be read as data ({self.damage}), so they begin at 0"
            return Moments({}, (lack,) if self.damage else ())
        try:
            found = _by_name(self._groups, self._states, parameters)
            others = tuple(_others(self._groups[0]))
        except (LookupError, TypeError, ValueError, AttributeError):
            found, others = None, ()
        if found is None:
            lack = "Adam's moments: optimizer.pt is of other parameters or of another optimizer, so they begin at 0"
            return Moments({}, (lack,))
        return Moments(found, others)


def _others(group: Mapping[str, Any]) -> list[str]:
    """What of Adam's own constants rlplay does not have."""
    betas, epsilon = tuple(group.get("betas", _BETAS)), group.get("eps", _EPSILON)
    if betas == _BETAS and epsilon == _EPSILON:
        return []
    return [f"Adam's betas {betas} and epsilon {epsilon:g}: rlplay has {_BETAS} and {_EPSILON:g}"]


def _by_name(groups: Any, states: Any, parameters: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]] | None:
    order = [name for name, p in parameters.items() if p.ndim > 1] + [n for n, p in parameters.items() if p.ndim <= 1]
    places = [place for group in groups for place in group["params"]]
    if len(order) != len(places):
        return None
    found = {}
    for name, place in zip(order, places, strict=True):
        state = states.get(place)
        if state is None:  # it never had a gradient
            continue
        if not all(isinstance(state.get(key), Tensor) for key in _ADAM):
            return None
        if any(state[key].shape != parameters[name].shape for key in _ADAM[:2]) or state["step"].numel() != 1:
            return None
        found[name] = {key: state[key] for key in _ADAM}
    return found or None
