"""What the verbs about the list of answers do: sort, unfold and find."""

from __future__ import annotations

from typing import Any

from rlplay.trace.text import quote, visible
from rlplay.ui.answers.answer_order import Sort, sortable
from rlplay.ui.main.playground import Action, Playground


async def _sort(play: Playground, argument: Any) -> None:
    """Sort by the column that the argument names, and go to the first answer; or ask which column."""
    names = sortable(play.session.shown)
    if argument is None:
        from rlplay.ui.answers.sort_screen import SortScreen

        play.app.push_screen(SortScreen(names, play.sort))
        return
    chosen = Sort.of(str(argument))
    if chosen.name and chosen.name not in names:
        play.app.notify(
            f"There is no column {quote(chosen.name)}; known: {', '.join(map(visible, names))}.", markup=False
        )
        return
    play.sort = chosen
    play.session.touch("update")
    play.app.call_after_refresh(play.panels.rollouts.action_jump, 0)


async def _unfold(play: Playground, _argument: Any) -> None:
    """Unfold the answer under the cursor, or fold it again; of one that is not folded, show the token's formulas."""
    shown, answer = play.session.shown, play.panels.tokens.cursor[0]
    if shown is None or shown.sampled is None or not play.folding.folds(shown, answer):
        await play.perform("maths")
        return
    play.folding.toggle(answer)
    play.session.touch("update")
    play.app.call_after_refresh(play.panels.tokens.reveal_cursor)


async def _find(play: Playground, argument: Any) -> None:
    """Show only what matches the argument, or ask what to find."""
    if argument is None:
        from rlplay.ui.answers.find_line import FindScreen

        play.app.push_screen(FindScreen(play.seek, play.finder, play.session))
    elif problem := play.seek(str(argument)):
        play.app.notify(problem, severity="warning", markup=False)


def _match(step: int) -> Action:
    """The action that goes to the next match, or with step −1 to the previous one."""

    async def action(play: Playground, _argument: Any) -> None:
        place = play.finder.next(play.panels.tokens.cursor, step)
        if place is not None:
            play.point(*place)
        else:
            play.app.notify("No match here." if play.finder.query else "Press / and type what to find.")

    return action


ACTIONS: dict[str, Action] = {
    "sort": _sort,
    "unfold": _unfold,
    "find": _find,
    "match": _match(1),
    "match_back": _match(-1),
}
