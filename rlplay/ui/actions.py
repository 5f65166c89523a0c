"""What each verb does on the screen. Keys, the palette, footer clicks and scenario scripts all call these actions."""

from __future__ import annotations

from typing import Any

from rlplay.link.messages import Advance, Pause, Rewind
from rlplay.scenario.script import Until
from rlplay.trace.lenses import CYCLE, LENSES
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import quote, visible, visible_lines
from rlplay.ui import dialogues
from rlplay.ui.answer_actions import find, match, sort, unfold
from rlplay.ui.format.legend import coming
from rlplay.ui.playground import Action, Playground
from rlplay.ui.plot.first_views import NAMED
from rlplay.ui.session.facts import facts_of
from rlplay.ui.widgets.panel import Panel
from rlplay.ui.words import clipping
from rlplay.verbs import VERBS

PREVIEW = 60
"""Characters of the copied text that the notification shows."""


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
    await play.send(Rewind(target), f"going back to update {target}")
    play.session.going_back_to = target


async def _resume(play: Playground, _argument: Any) -> None:
    if play.session.failed is None:
        play.app.notify("The engine is running: nothing to resume.")
        return
    play.session.recover()
    play.listen()


def _lens_step(step: int) -> Action:
    async def action(play: Playground, argument: Any) -> None:
        if argument == "auto":
            play.lens_choice = None
        elif argument is not None:
            if argument not in LENSES:
                play.app.notify(
                    f"There is no statistic {quote(argument)}; known: {', '.join(LENSES)}.",
                    severity="warning",
                    markup=False,
                )
                return
            play.lens_choice = str(argument)
        else:
            play.lens_choice = _next_lens(play, step)
        play.session.touch("look")
        if play.lens_choice in ("importance_ratio", "clip_state"):
            play.panels.narrator.remark(_clipping(play), play.spot())

    return action


def _next_lens(play: Playground, step: int) -> str | None:
    """The next statistic that has values; None (automatic) past either end, or if the current one has none."""
    shown, here = play.session.shown, play.lens.name
    there = [name for name in CYCLE if shown is not None and facts_of(shown).lens(name) is not None]
    names = there if len(there) > 1 else list(CYCLE)
    if play.lens_choice is None:
        return [name for name in names if name != here][0 if step > 0 else -1]
    at = names.index(here) + step if here in names else -1
    return names[at] if 0 <= at < len(names) else None


async def _colours(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.colours import ColoursScreen

    play.app.push_screen(ColoursScreen(play.session, play.lens_choice, play.panels.tokens.palette))


async def _focus(play: Playground, argument: Any) -> None:
    play.panels.tokens.focus()
    if isinstance(argument, dict):
        play.point(int(argument.get("completion", 0)), int(argument.get("token", 0)))


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


async def _largest(play: Playground, _argument: Any) -> None:
    found, what = play.panels.tokens.next_largest()
    if found is not None:
        play.point(*found)
    elif not what:
        shown = play.session.shown
        what = f"{play.lens.title} {coming(play.lens, 'sample' if shown is None else shown.phase)}."
    if play.lens.name == "clip_state":
        settings, (_, state) = play.session.settings_of(play.session.shown), play.panels.tokens.largest()
        what = _clipping(play) if found is None else f"{what} {clipping.explain_clipped(settings, int(state))}"
    play.panels.narrator.remark(what, play.spot())  # a toast would cover the token


def _clipping(play: Playground) -> str:
    session = play.session
    way = "`x`" if play.lens.name == "clip_state" else "`/` clipped"
    return clipping.summary(session.shown, session.settings_of(session.shown), session.source.live, way)


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


async def _curve(play: Playground, argument: Any) -> None:
    play.panels.show_curves()
    if argument is None:
        play.panels.curves.seen[0].focus()
    else:
        play.panels.curves.put_up(play.session.run.history.named(str(argument)))


def _named_view(name: str) -> Action:
    async def action(play: Playground, _argument: Any) -> None:
        play.panels.show_curves()
        play.panels.curves.put_up(name)

    return action


async def _signs(play: Playground, _argument: Any) -> None:
    play.signs = not play.signs
    play.session.touch("update")  # lines move, also in the list of answers


async def _panel(play: Playground, argument: Any) -> None:
    panels = play.panels
    if argument is None:
        panels.turn()
    else:
        panels.focus(argument)


async def _paste(play: Playground, _argument: Any) -> None:
    dialogues.paste(play)


async def _timeline(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.timeline import TimelineScreen

    play.app.push_screen(TimelineScreen(play.session, [view.metrics for view in play.panels.curves.panels[0].overview]))


async def _branch(play: Playground, argument: Any) -> None:
    dialogues.branch(play, argument)


async def _compare(play: Playground, _argument: Any) -> None:
    if play.other_runs.sessions:
        dialogues.compare(play)
    else:
        dialogues.branch(play, None)


async def _probe(play: Playground, argument: Any) -> None:
    dialogues.probe(play, argument if isinstance(argument, dict) else {})


async def _health(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.health import HealthScreen

    play.app.push_screen(HealthScreen(play.session))


async def _held_out(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.held_out import HeldOutScreen

    play.app.push_screen(HeldOutScreen(play.session))


async def _morph(play: Playground, argument: Any) -> None:
    from rlplay.ui.screens.learning import LearningScreen

    play.app.push_screen(LearningScreen(play.session, None if argument is None else int(argument)))


async def _moments(play: Playground, argument: Any) -> None:
    dialogues.moments(play, argument if isinstance(argument, list) else None)


async def _log(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.log import LogScreen

    play.app.push_screen(LogScreen(play.session))


async def _help(play: Playground, _argument: Any) -> None:
    dialogues.explain(play, play.app.focused, play.session.settings_of(play.session.shown))


async def _glossary(play: Playground, argument: Any) -> None:
    dialogues.glossary(play, argument)


async def _orientation(play: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.orientation import OrientationScreen

    play.app.push_screen(OrientationScreen(play.panels.main, play.session.step_word))


async def _quit(play: Playground, _argument: Any) -> None:
    session = play.session
    play.app.exit(2 if session.failed is not None and session.run.started is None else 0)


ACTIONS: dict[str, Action] = {
    "run": _run,
    "token": _advance("token"),
    "phase": _advance("phase"),
    "step": _advance("step"),
    "update": _advance("update"),
    "undo": _undo,
    "rewind": _rewind,
    "resume": _resume,
    "lens": _lens_step(1),
    "lens_back": _lens_step(-1),
    "colours": _colours,
    "focus": _focus,
    "older": _look(-1),
    "newer": _look(1),
    "live": _live,
    "largest": _largest,
    "copy": _copy,
    "shot": _shot,
    "curve": _curve,
    **{name: _named_view(name) for name in NAMED if name in VERBS},  # maps are asked for as curves
    "signs": _signs,
    "sort": sort,
    "unfold": unfold,
    "find": find,
    "match": match(1),
    "match_back": match(-1),
    "panel": _panel,
    "paste": _paste,
    "timeline": _timeline,
    "branch": _branch,
    "compare": _compare,
    "probe": _probe,
    "health": _health,
    "held_out": _held_out,
    "morph": _morph,
    "moments": _moments,
    "log": _log,
    "help": _help,
    "glossary": _glossary,
    "orientation": _orientation,
    "quit": _quit,
}
"""Of the verbs that belong to no other feature."""
