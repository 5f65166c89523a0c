"""Labels of the user: asks for them when the engine begins to wait, and on request."""

from __future__ import annotations

from typing import Any, get_args

from rlplay.link.messages import Prefer, Status
from rlplay.trace.questions import Imagined
from rlplay.trace.records import Choice
from rlplay.ui import dialogues
from rlplay.ui.playground import Feature, Playground

NONE_WAITS = "No pair needs a label now. With labeller=user (k), each update asks after sampling its pairs."


class Labels(Feature):
    """Opens the dialogue for labels."""

    def __init__(self, playground: Playground) -> None:
        self._playground = playground
        self._waited = False
        playground.join({"prefer": self._prefer}, self)

    async def heard(self, event: Status | Imagined) -> None:
        """Ask as soon as the engine waits, unless another dialogue is open."""
        if isinstance(event, Status):
            waited, self._waited = self._waited, event.waits
            if event.waits and not waited and self._playground.at_home:
                dialogues.label(self._playground)

    async def _prefer(self, play: Playground, argument: Any) -> None:
        waiting = play.session.asks
        choices = argument if isinstance(argument, list) else [argument]
        if not waiting:
            play.app.notify(NONE_WAITS)
        elif argument is None:
            dialogues.label(play)
        elif any(choice not in get_args(Choice) for choice in choices):
            play.app.notify("Choose a, b or skip.")
        elif (dialogue := dialogues.labelling(play)) is not None:
            await dialogue.action_choose(choices[0])
        else:
            for pair, choice in zip(waiting, choices, strict=False):
                await play.send(Prefer(pair, choice))
