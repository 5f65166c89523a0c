"""What the verb that opens the editor does."""

from __future__ import annotations

from typing import Any

from rlplay.trace.kinds import SomeSettings
from rlplay.ui.main.playground import Action, Playground


async def _write(play: Playground, argument: Any) -> None:
    """Open the editor with an exercise; without a name, with the one that was open last."""
    from rlplay.exercises.checks import CHECKS
    from rlplay.ui.writing.writing_screen import WritingScreen

    writing, panels = play.session.writing, play.panels
    name = argument or writing.name
    if not name:
        play.app.notify("No exercise is set yet. Lessons with one: l lists them all.")
        return
    if isinstance(play.app.screen, WritingScreen):
        return
    writing.open(name)
    before = panels.stage
    on_map = CHECKS[name].unit == "squares" and play.session.world is not None
    panels.show_stage("map" if on_map else "answers")
    panels.splits.reset()
    panels.main.add_class("-writing")

    async def closed(settings: SomeSettings | None) -> None:
        panels.main.remove_class("-writing")
        panels.set_stage(before)
        play.app.call_after_refresh(play.session.touch, "update")  # not before there is room again
        if settings:
            await play.perform("set", settings)

    play.app.push_screen(WritingScreen(play.session, play.point), closed)


ACTIONS: dict[str, Action] = {
    "write": _write,
}
