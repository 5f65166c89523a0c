"""What a question about teachers takes of the host's memory, as measured in four layers of 512 on a CPU."""

from __future__ import annotations

from rlplay import host_memory
from rlplay.engine.model import POLICY, VALUE
from rlplay.engine.state import State
from rlplay.trace.update import Update

_OF_A_STEP = 4
"""Vectors of the size of what is trained for an optimizer step: three wait, and memory is not given back at once."""
_BESIDE = 5
"""For the target, the momentum and the direction at hand."""
_EARLIER = 2
"""More, for what is kept of an update while one before it is looked at."""
_OPTIMIZER = 3
"""In a second state that takes the steps again: both moments, and the gradient."""


def check_memory(state: State, updates: list[Update], repeated: int) -> None:
    """Raises ValueError, one line, if the host lacks memory to look at these updates.

    The steps of so many of them are `repeated`, each in a state of its own.
    """
    steps = max(len(update.steps) for update in updates)
    wanted = needed(state, steps, earlier=len(updates) > 1, states=repeated)
    if too_large := host_memory.too_large(wanted):
        fewer = f"ask of an update with fewer optimizer steps than {steps}, or " if steps > 1 else ""
        raise ValueError(f"{too_large}: {fewer}train a smaller model or adapters (--use_peft)")


def needed(state: State, steps: int, earlier: bool, states: int) -> int:
    """Bytes on the host for an update of so many steps, with so many second states; those may be on a device."""
    trained = sum(4 * p.numel() for name, p in state.parameters.items() if name.startswith((POLICY, VALUE)))
    vectors = _OF_A_STEP * steps + _BESIDE + _EARLIER * earlier
    if state.lm.device.type not in ("cpu", "mps"):
        return vectors * trained
    policy: int = sum(p.numel() * p.element_size() for p in state.lm.policy.parameters())
    return vectors * trained + states * (policy + _OPTIMIZER * trained)
