"""What the verbs about the panels do: show one, put the cursor in it, copy or save it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rlplay.trace.chosen_answers import answer_to
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.curves.first_views import NAMED
from rlplay.ui.main.playground import Action, Playground
from rlplay.ui.main.stages import fitting
from rlplay.ui.parts.panel import Panel
from rlplay.verbs import VERBS

PREVIEW = 60
"""Characters of the copied text that the notification shows."""


def completion_named(update: Update | None, argument: dict[str, Any]) -> int:
    """The answer that a script names, by its number or by its prompt; the first if there is none such."""
    if "prompt" in argument and update is not None:
        with suppress(ValueError):
            return answer_to(update, argument["prompt"], argument.get("candidate", ""), argument.get("token", 0))
    return int(argument.get("completion", 0))


async def _focus(play: Playground, argument: Any) -> None:
    play.paint()  # a script points at a token as soon as the engine has it
    play.panels.tokens.focus()
    if isinstance(argument, dict):
        play.point(completion_named(play.session.shown, argument), int(argument.get("token", 0)))
        play.app.call_after_refresh(play.panels.tokens.reveal_cursor)  # an update may have moved its answer


async def _panel(play: Playground, argument: Any) -> None:
    panels = play.panels
    if argument is None:
        panels.turn([stage for stage in fitting(play.session) if stage != "all" or not panels.presenting])
        play.inspect()
    else:
        panels.focus(argument)


async def _stage(play: Playground, argument: Any) -> None:
    stages = fitting(play.session)
    if argument not in (None, *stages):
        play.app.notify(f"This run has no {argument}: p shows {', '.join(stages)}.", severity="warning")
    else:
        play.panels.show_stage(argument or stages[0])
        play.inspect()


async def _present(play: Playground, _argument: Any) -> None:
    play.panels.present()


async def _curve(play: Playground, argument: Any) -> None:
    if argument is None:
        play.panels.focus("curves")
        return
    name = play.session.run.history.named(str(argument))
    play.panels.make_room(name)
    play.panels.curves.put_up(name)


def _named_view(name: str) -> Action:
    async def action(play: Playground, _argument: Any) -> None:
        play.panels.make_room(name)
        play.panels.curves.put_up(name)

    return action


async def _walk(play: Playground, argument: Any) -> None:
    """Let the user walk on the map, or show the best walk; "ended" only tells those who wait for it."""
    if argument == "ended":
        return
    if (panel := _map(play)) is None:
        play.app.notify("This run has no map to walk on.")
    else:
        panel.begin_walk(argument == "best")


async def _paint(play: Playground, argument: Any) -> None:
    """Give the user brushes for the map; "painted" only tells those who wait for it."""
    session = play.session
    if argument == "painted":
        return
    if not session.has_engine or session.cannot("set"):
        play.app.notify("Only a run of rlplay's own engine can be painted.")
    elif (panel := _map(play)) is None:
        play.app.notify("This run has no map to paint.")
    else:
        session.back_to_live()
        assert session.world is not None
        panel.begin_painting(session.world, session.run.timeline.latest().get("squares", {}))


def _map(play: Playground) -> CurvePanel | None:
    """The panel with the map, which gets the keys; None in a run without squares."""
    curves, world = play.panels.curves, play.session.world
    if world is None or world.arms:
        return None
    if not any(panel.on_map and panel.region for panel in curves.seen):
        play.panels.show_stage("map")
    panel = next(panel for panel in curves.seen if panel.on_map)
    panel.focus()
    return panel


async def _copy(play: Playground, _argument: Any) -> None:
    focused = play.app.focused
    what, text = (focused.clipping() if isinstance(focused, Panel) else None) or play.panels.tokens.clipping()
    if not text:
        play.app.notify("Nothing to copy here yet.")
        return
    play.app.copy_to_clipboard(text)
    line = visible(text)
    play.app.notify(f"Copied {what}: “{line[:PREVIEW]}{'…' * (len(line) > PREVIEW)}”", markup=False)


async def _shot(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screenshot.cells import capture
    from rlplay.ui.screenshot.save import keep

    try:
        files, missing = keep(capture(play.app), play.session.source.path)
    except OSError as error:
        play.app.notify(f"Cannot save the view: {error}", severity="error", markup=False)
        return
    kinds = ", ".join(path.suffix[1:] for path in files)
    play.app.notify(f"Saved as {kinds}: {files[0].with_suffix('')}{'. ' * bool(missing)}{missing}", markup=False)


ACTIONS: dict[str, Action] = {
    "focus": _focus,
    "panel": _panel,
    "stage": _stage,
    "present": _present,
    "curve": _curve,
    **{name: _named_view(name) for name in NAMED if name in VERBS},
    "walk": _walk,
    "paint": _paint,
    "copy": _copy,
    "shot": _shot,
}
