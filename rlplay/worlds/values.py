"""What Q-learning and SARSA need of a world."""

from __future__ import annotations

from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.worlds.world import World


def no_values(settings: Settings, world: World | None, table: bool) -> str | None:
    """Why the values of moves cannot be learned here, in one line; None if they can, or if nobody asks for them.

    `table` says whether the policy is a table, with a number per square and move.
    """
    if settings.loss_type not in VALUE_LOSSES:
        return None
    if world is None or not table:
        return f"loss_type={settings.loss_type} needs a world with model: table, which holds a Q per move"
    if settings.max_completion_length < world.tokens:
        return (
            f"loss_type={settings.loss_type} needs max_completion_length of {world.tokens} or more: in a cut episode, "
            "nobody sees what follows the last move"
        )
    return None
