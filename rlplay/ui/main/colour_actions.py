"""What the verbs about the colours, marks and formulas of the tokens do."""

from __future__ import annotations

from typing import Any

from rlplay.trace.lenses import CYCLE, LENSES, SPECIAL
from rlplay.trace.text import quote
from rlplay.ui.format.legend import coming
from rlplay.ui.main.playground import Action, Playground
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.words import clipping


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
    there = [name for name in (*CYCLE, *SPECIAL) if shown is not None and facts_of(shown).lens(name) is not None]
    names = there if len(there) > 1 else list(CYCLE)
    if play.lens_choice is None:
        return [name for name in names if name != here][0 if step > 0 else -1]
    at = names.index(here) + step if here in names else -1
    return names[at] if 0 <= at < len(names) else None


async def _colours(play: Playground, _argument: Any) -> None:
    from rlplay.ui.tokens.lens_screen import ColoursScreen

    play.app.push_screen(ColoursScreen(play.session, play.lens_choice, play.panels.tokens.palette))


def _ranked(lowest: bool) -> Action:
    """The action that goes to the token with the largest value, or the `lowest`, and then to the next in order."""

    async def action(play: Playground, _argument: Any) -> None:
        shown = play.session.shown
        if play.lens.name == "clip_state" and not clipping.count_clipped(shown):
            play.panels.narrator.remark(_clipping(play), play.spot())  # not to a token of the colour that steps in
            return
        found, what = play.panels.tokens.next_ranked(lowest)
        if found is None:
            what = f"{play.lens.title} {coming(play.lens, 'sample' if shown is None else shown.phase)}."
        else:
            play.point(found.completion, found.token)
            if play.lens.name == "clip_state":
                what = f"{what} {clipping.explain_clipped(play.session.settings_of(shown), int(found.value))}"
        play.panels.narrator.remark(what, play.spot())  # a toast would cover the token

    return action


def _clipping(play: Playground) -> str:
    session = play.session
    way = "`x`" if play.lens.name == "clip_state" else "`/` clipped"
    return clipping.summary(session.shown, session.settings_of(session.shown), session.source.live, way)


async def _signs(play: Playground, _argument: Any) -> None:
    play.signs = not play.signs
    play.session.touch("update")  # lines move, also in the list of answers


async def _maths(play: Playground, argument: Any) -> None:
    play.maths = not play.maths if argument is None else bool(argument)
    play.panels.inspector.scroll_home(animate=False)
    play.session.touch("update")


ACTIONS: dict[str, Action] = {
    "lens": _lens_step(1),
    "lens_back": _lens_step(-1),
    "colours": _colours,
    "largest": _ranked(lowest=False),
    "smallest": _ranked(lowest=True),
    "signs": _signs,
    "maths": _maths,
}
