"""Labels of the user: asks for them when the engine begins to wait, and on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from rlplay.link.messages import Prefer, Status
from rlplay.trace.questions import Imagined
from rlplay.trace.records import Choice
from rlplay.ui.main.playground import Feature, Playground

if TYPE_CHECKING:
    from rlplay.ui.labels.label_screen import LabelScreen
    from rlplay.ui.session.session import Session

NONE_WAITS = "No pair needs a label now. With labeller=user (k), each update asks after sampling its pairs."


def label(play: Playground, session: Session | None = None, letter: str = "") -> None:
    """Ask the user to label the waiting pairs, of the run on the screen or of the compared run called `letter`."""
    from rlplay.ui.labels.label_screen import LabelScreen
    from rlplay.ui.labels.labelling import Labelling

    session = session or play.session
    update = session.run.newest
    if update is None or update.sampled is None or not session.asks:
        return
    say = play.send if session is play.session else session.source.send
    play.app.push_screen(LabelScreen(session, Labelling(update, session.asks), say, letter))


def labelling(play: Playground) -> LabelScreen | None:
    """The open dialogue that asks for labels."""
    from rlplay.ui.labels.label_screen import LabelScreen

    return next((each for each in reversed(play.app.screen_stack) if isinstance(each, LabelScreen)), None)


class Labels(Feature):
    """Opens the dialogue for labels."""

    def __init__(self, playground: Playground) -> None:
        self._playground = playground
        self._waited = False
        playground.join({"prefer": self._prefer}, self)

    async def receive(self, event: Status | Imagined) -> None:
        """Ask as soon as the engine waits, unless another dialogue is open."""
        if isinstance(event, Status):
            waited, self._waited = self._waited, event.waits
            if event.waits and not waited and self._playground.at_home:
                label(self._playground)

    async def _prefer(self, play: Playground, argument: Any) -> None:
        waiting = play.session.asks
        choices = argument if isinstance(argument, list) else [argument]
        if not waiting:
            play.app.notify(NONE_WAITS)
        elif argument is None:
            label(play)
        elif any(choice not in get_args(Choice) for choice in choices):
            play.app.notify("Choose a, b or skip.")
        elif (dialogue := labelling(play)) is not None:
            await dialogue.action_choose(choices[0])
        else:
            for pair, choice in zip(waiting, choices, strict=False):
                await play.send(Prefer(pair, choice))
