"""Settings as far as records need to know of them: by name, and the kind of update that they make."""

from __future__ import annotations

from typing import Any, Literal, Protocol

SomeSettings = dict[str, Any]
"""Some settings by name: those that a change, an algorithm, a scenario or another trainer names."""
Kind = Literal["rewards", "learned rewards", "action values", "pairs", "imitation", "reward model"]
"""In order: rewards by rule, rewards by a reward model, Q-learning or SARSA, a preference loss, fine-tuning, training a
reward model.

Only the first three have rewards and advantages. The others have labels: which answer is chosen and which is rejected.
"""

REWARDED: tuple[Kind, ...] = ("rewards", "learned rewards", "action values")


class Learning(Protocol):
    """What the statistics of an update depend on in its settings."""

    @property
    def kind(self) -> Kind:
        """What the update learns from."""

    @property
    def num_iterations(self) -> int:
        """Passes over the batch."""
