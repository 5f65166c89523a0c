"""What each verb does on the screen. Keys, the palette, footer clicks and scenario scripts all call these actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, get_args

from rlplay.link.messages import Advance, Pause, Prefer, Rewind, Set
from rlplay.scenario.script import Until
from rlplay.trace.lenses import CYCLE, LENSES
from rlplay.trace.records import Choice
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import quote, visible, visible_lines
from rlplay.ui import dialogues
from rlplay.ui.answer_actions import find, match, sort, unfold
from rlplay.ui.commands import send
from rlplay.ui.format.legend import coming
from rlplay.ui.playground import VIEWS, Playground
from rlplay.ui.plot.first_views import NAMED
from rlplay.ui.session.facts import facts_of
from rlplay.ui.words import clipping
from rlplay.verbs import PANELS, VERBS

Action = Callable[[Playground, Any], Awaitable[None]]
PREVIEW = 60
"""Characters of the copied text that the notification shows."""


def _advance(until: Until) -> Action:
    async def action(app: Playground, argument: Any) -> None:
        await send(app, Advance(until, int(argument or 1)), "stepping")

    return action


async def _run(app: Playground, argument: Any) -> None:
    status = app.session.status
    if argument is not None:
        await send(app, Advance("update", int(argument)), "running")
    elif not app.unasked and (app.session.asked == "running" or (status is not None and status.running)):
        await send(app, Pause(), "pausing")
    else:
        await send(app, Advance("forever"), "running")


async def _undo(app: Playground, _argument: Any) -> None:
    status = app.session.status
    newest = app.session.run.newest
    if status is None or newest is None:
        app.notify("There is nothing to undo yet.")
        return
    # Undo first discards an update in progress, then finished ones; while going back, it counts from the target.
    target = status.update if newest.number > status.update else status.update - 1
    if app.session.going_back_to is not None:
        target = app.session.going_back_to - 1
    if target < 0:
        app.notify("This is the start of the run.")
        return
    await _rewind(app, target)


async def _rewind(app: Playground, argument: Any) -> None:
    target = int(argument or 0)
    await send(app, Rewind(target), f"going back to update {target}")
    app.session.going_back_to = target


async def _prefer(app: Playground, argument: Any) -> None:
    waiting = app.session.asks
    choices = argument if isinstance(argument, list) else [argument]
    if not waiting:
        app.notify("No pair needs a label now. With labeller=user (k), each update asks after sampling its pairs.")
    elif argument is None:
        dialogues.label(app)
    elif any(choice not in get_args(Choice) for choice in choices):
        app.notify("Choose a, b or skip.")
    elif app.labels is not None:
        await app.labels.action_choose(choices[0])
    else:
        for pair, choice in zip(waiting, choices, strict=False):
            await send(app, Prefer(pair, choice))


async def _set(app: Playground, argument: Any) -> None:
    if isinstance(argument, dict):
        await send(app, Set(argument))
    else:
        await _knobs(app, None)


async def _resume(app: Playground, _argument: Any) -> None:
    if app.session.failed is None:
        app.notify("The engine is running: nothing to resume.")
        return
    app.session.recover()
    app.listen()


def _lens_step(step: int) -> Action:
    async def action(app: Playground, argument: Any) -> None:
        if argument == "auto":
            app.lens_choice = None
        elif argument is not None:
            if argument not in LENSES:
                app.notify(
                    f"There is no statistic {quote(argument)}; known: {', '.join(LENSES)}.",
                    severity="warning",
                    markup=False,
                )
                return
            app.lens_choice = str(argument)
        else:
            app.lens_choice = _next_lens(app, step)
        app.session.changed.add("look")
        if app.lens_choice in ("importance_ratio", "clip_state"):
            app.narrator.remark(_clipping(app), app.spot())

    return action


def _next_lens(app: Playground, step: int) -> str | None:
    """The next statistic that has values; None (automatic) past either end, or if the current one has none."""
    shown, here = app.session.shown, app.lens.name
    there = [name for name in CYCLE if shown is not None and facts_of(shown).lens(name) is not None]
    names = there if len(there) > 1 else list(CYCLE)
    if app.lens_choice is None:
        return [name for name in names if name != here][0 if step > 0 else -1]
    at = names.index(here) + step if here in names else -1
    return names[at] if 0 <= at < len(names) else None


async def _colours(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.colours import ColoursScreen

    app.push_screen(ColoursScreen(app.session, app.lens_choice, app.tokens.palette))


async def _focus(app: Playground, argument: Any) -> None:
    app.tokens.focus()
    if isinstance(argument, dict):
        app.point(int(argument.get("completion", 0)), int(argument.get("token", 0)))


def _look(direction: int) -> Action:
    async def action(app: Playground, _argument: Any) -> None:
        try:
            found = app.session.look(direction)
        except RunFileError as error:
            app.notify(visible_lines(str(error)), severity="error", markup=False)
            return
        if not found:
            app.notify("The recording has no older update." if direction < 0 else "This is the newest update.")

    return action


async def _live(app: Playground, _argument: Any) -> None:
    app.session.back_to_live()


async def _largest(app: Playground, _argument: Any) -> None:
    found, what = app.tokens.next_largest()
    if found is not None:
        app.point(*found)
    elif not what:
        shown = app.session.shown
        what = f"{app.lens.title} {coming(app.lens, 'sample' if shown is None else shown.phase)}."
    if app.lens.name == "clip_state":
        settings, (_, state) = app.session.settings_of(app.session.shown), app.tokens.largest()
        what = _clipping(app) if found is None else f"{what} {clipping.explain_clipped(settings, int(state))}"
    app.narrator.remark(what, app.spot())  # a toast would cover the token


def _clipping(app: Playground) -> str:
    session = app.session
    way = "`x`" if app.lens.name == "clip_state" else "`/` clipped"
    return clipping.summary(session.shown, session.settings_of(session.shown), session.source.live, way)


async def _copy(app: Playground, _argument: Any) -> None:
    clip = getattr(app.focused, "clipping", app.tokens.clipping)
    what, text = clip()
    if not text:
        app.notify("Nothing to copy here yet.")
        return
    app.copy_to_clipboard(text)
    line = visible(text)
    app.notify(f"Copied {what}: “{line[:PREVIEW]}{'…' * (len(line) > PREVIEW)}”", markup=False)


async def _shot(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screenshot.cells import capture
    from rlplay.ui.screenshot.save import keep

    try:
        files, missing = keep(capture(app), app.session.source.path)
    except OSError as error:
        app.notify(f"Cannot save the view: {error}", severity="error", markup=False)
        return
    kinds = ", ".join(path.suffix[1:] for path in files)
    app.notify(f"Saved as {kinds}: {files[0].with_suffix('')}{'. ' * bool(missing)}{missing}", markup=False)


async def _curve(app: Playground, argument: Any) -> None:
    if app.main.has_class("-narrow"):
        app.show_view("curves")
    if argument is None:
        app.curves.seen[0].focus()
    else:
        app.curves.put_up(app.session.run.history.named(str(argument)))


def _named_view(name: str) -> Action:
    async def action(app: Playground, _argument: Any) -> None:
        if app.main.has_class("-narrow"):
            app.show_view("curves")
        app.curves.put_up(name)

    return action


async def _signs(app: Playground, _argument: Any) -> None:
    app.signs = not app.signs
    app.session.changed.add("update")  # lines move, also in the list of answers


async def _panel(app: Playground, argument: Any) -> None:
    narrow = app.main.has_class("-narrow")
    if argument is not None:
        if narrow:
            app.show_view("answers" if argument == "tokens" else argument)
        panels = app.rollouts, app.tokens, app.inspector, app.curves.seen[0]
        panels[PANELS.index(argument)].focus()
        return
    views = VIEWS if narrow else ("answers", "curves")
    app.show_view(views[(views.index(app.view) + 1) % len(views)] if app.view in views else views[0])
    # Keys should act on the visible panel.
    (app.curves.seen[0] if app.view == "curves" else app.tokens).focus()


async def _knobs(app: Playground, argument: Any) -> None:
    app.open_knobs(argument)


async def _paste(app: Playground, _argument: Any) -> None:
    dialogues.paste(app)


async def _timeline(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.timeline import TimelineScreen

    app.push_screen(TimelineScreen(app.session, [view.metrics for view in app.curves.panels[0].overview]))


async def _branch(app: Playground, argument: Any) -> None:
    dialogues.branch(app, argument)


async def _compare(app: Playground, _argument: Any) -> None:
    if app.other_runs.sessions:
        dialogues.compare(app)
    else:
        dialogues.branch(app, None)


async def _probe(app: Playground, argument: Any) -> None:
    dialogues.probe(app, argument if isinstance(argument, dict) else {})


async def _health(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.health import HealthScreen

    app.push_screen(HealthScreen(app.session))


async def _held_out(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.held_out import HeldOutScreen

    app.push_screen(HeldOutScreen(app.session))


async def _morph(app: Playground, argument: Any) -> None:
    from rlplay.ui.screens.learning import LearningScreen

    app.push_screen(LearningScreen(app.session, None if argument is None else int(argument)))


async def _moments(app: Playground, argument: Any) -> None:
    dialogues.moments(app, argument if isinstance(argument, list) else None)


async def _log(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.log import LogScreen

    app.push_screen(LogScreen(app.session))


async def _help(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.help import HelpScreen

    app.push_screen(HelpScreen(app.focused, app.session.settings_of(app.session.shown)))


async def _glossary(app: Playground, argument: Any) -> None:
    dialogues.glossary(app, argument)


async def _lessons(app: Playground, _argument: Any) -> None:
    dialogues.lessons(app)


async def _orientation(app: Playground, _argument: Any) -> None:
    from rlplay.ui.screens.orientation import OrientationScreen

    app.push_screen(OrientationScreen(app.main, app.session.step_word))


async def _tour(app: Playground, _argument: Any) -> None:
    app.tour()


async def _quit(app: Playground, _argument: Any) -> None:
    session = app.session
    app.exit(2 if session.failed is not None and session.run.started is None else 0)


ACTIONS: dict[str, Action] = {
    "run": _run,
    "token": _advance("token"),
    "phase": _advance("phase"),
    "step": _advance("step"),
    "update": _advance("update"),
    "undo": _undo,
    "rewind": _rewind,
    "set": _set,
    "prefer": _prefer,
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
    "knobs": _knobs,
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
    "lessons": _lessons,
    "orientation": _orientation,
    "tour": _tour,
    "quit": _quit,
}
"""Every verb except those that only a script can use."""
