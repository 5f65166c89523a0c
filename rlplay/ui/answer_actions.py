"""What the verbs about the list of answers do: sort, unfold and find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rlplay.trace.text import quote, visible
from rlplay.ui.layout.answer_order import Sort, sortable
from rlplay.ui.playground import Playground


async def sort(app: Playground, argument: Any) -> None:
    """Sort by the column that the argument names, and go to the first answer; or ask which column."""
    names = sortable(app.session.shown)
    if argument is None:
        from rlplay.ui.screens.sort import SortScreen

        app.push_screen(SortScreen(names, app.sort))
        return
    chosen = Sort.of(str(argument))
    if chosen.name and chosen.name not in names:
        app.notify(f"There is no column {quote(chosen.name)}; known: {', '.join(map(visible, names))}.", markup=False)
        return
    app.sort = chosen
    app.session.changed.add("update")
    app.call_after_refresh(app.rollouts.action_jump, 0)


async def unfold(app: Playground, _argument: Any) -> None:
    """Unfold the answer under the cursor, or fold it again."""
    shown, answer = app.session.shown, app.tokens.cursor[0]
    if shown is None or shown.sampled is None or not app.folding.folds(shown, answer):
        app.notify("This answer is not folded: it is not long, and no other equals it.")
        return
    app.folding.toggle(answer)
    app.session.changed.add("update")
    app.call_after_refresh(app.tokens.reveal_cursor)


async def find(app: Playground, argument: Any) -> None:
    """Show only what matches the argument, or ask what to find."""
    if argument is None:
        from rlplay.ui.screens.find import FindScreen

        app.push_screen(FindScreen(app.seek, app.finder, app.session))
    elif problem := app.seek(str(argument)):
        app.notify(problem, severity="warning", markup=False)


def match(step: int) -> Callable[[Playground, Any], Awaitable[None]]:
    """The action that goes to the next match, or with step −1 to the previous one."""

    async def action(app: Playground, _argument: Any) -> None:
        place = app.finder.next(app.tokens.cursor, step)
        if place is not None:
            app.point(*place)
        else:
            app.notify("No match here." if app.finder.query else "Press / and type what to find.")

    return action
