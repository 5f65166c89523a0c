"""What the verbs that move the engine do, and those that go through its updates."""

from __future__ import annotations

from typing import Any

from rlplay.link.messages import Advance, Pause, Rewind, Withhold
from rlplay.scenario.script import Until
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible_lines
from rlplay.ui.main.playground import Action, Playground


def _advance(until: Until) -> Action:
    async def action(play: Playground, argument: Any) -> None:
        await play.send(Advance(until, int(argument or 1)), "stepping")

    return action


async def _run(play: Playground, argument: Any) -> None:
    status = play.session.status
    if argument is not None:
        await play.send(Advance("update", int(argument)), "running")
    elif not play.unasked and (play.session.asked == "running" or (status is not None and status.running)):
        await play.send(Pause(), "pausing")
    else:
        await play.send(Advance("forever"), "running")


async def _undo(play: Playground, _argument: Any) -> None:
    status = play.session.status
    newest = play.session.run.newest
    if status is None or newest is None:
        play.app.notify("There is nothing to undo yet.")
        return
    # Undo first discards an update in progress, then finished ones; while going back, it counts from the target.
    target = status.update if newest.number > status.update else status.update - 1
    if play.session.going_back_to is not None:
        target = play.session.going_back_to - 1
    if target < 0:
        play.app.notify("This is the start of the run.")
        return
    await _rewind(play, target)


async def _rewind(play: Playground, argument: Any) -> None:
    target = int(argument or 0)
    for panel in play.panels.curves.panels:
        panel.end_painting()  # its squares go back, too
    await play.send(Rewind(target), f"going back to update {target}")
    play.session.going_back_to = target


async def _withhold(play: Playground, argument: Any) -> None:
    status = play.session.status
    if argument is None or status is None:
        play.app.notify("A script takes credit away: 'withhold: [3, 4]' is for tokens 3 and 4 of the next update.")
        return
    await play.send(Withhold(status.update + 1, list(argument)))


async def _resume(play: Playground, _argument: Any) -> None:
    if play.session.failed is None:
        play.app.notify("The engine is running: nothing to resume.")
        return
    play.session.recover()
    play.listen()


def _look(direction: int) -> Action:
    async def action(play: Playground, _argument: Any) -> None:
        try:
            found = play.session.look(direction)
        except RunFileError as error:
            play.app.notify(visible_lines(str(error)), severity="error", markup=False)
            return
        if not found:
            play.app.notify("The recording has no older update." if direction < 0 else "This is the newest update.")

    return action


async def _live(play: Playground, _argument: Any) -> None:
    play.session.back_to_live()


ACTIONS: dict[str, Action] = {
    "run": _run,
    "token": _advance("token"),
    "phase": _advance("phase"),
    "step": _advance("step"),
    "update": _advance("update"),
    "undo": _undo,
    "rewind": _rewind,
    "withhold": _withhold,
    "resume": _resume,
    "older": _look(-1),
    "newer": _look(1),
    "live": _live,
}
