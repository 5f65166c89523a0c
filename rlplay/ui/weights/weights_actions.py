"""What the verb that shows the weights does."""

from __future__ import annotations

from typing import Any

from rlplay.ui.main.playground import Action, Playground
from rlplay.ui.session.answer_at import answer_at


async def _weights(play: Playground, argument: Any) -> None:
    """Show what the update on the screen, or the last finished one, moved in the weights."""
    from rlplay.ui.weights.weights_screen import VIEWS, WeightsScreen

    shown = play.session.shown
    place = answer_at(None if shown is None else shown.sampled, play.panels.tokens.cursor)
    play.app.push_screen(WeightsScreen(play.session, place, argument if argument in VIEWS else VIEWS[0]))


ACTIONS: dict[str, Action] = {
    "weights": _weights,
}
