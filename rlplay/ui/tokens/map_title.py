"""The title of the token map: the statistic of its colours, its optimizer steps, and how it was chosen."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content

from rlplay.trace.lenses import Lens
from rlplay.trace.update import Update
from rlplay.ui.format.shown_text import within
from rlplay.ui.format.step_word import worded
from rlplay.ui.tokens.colouring import Colouring


def title(colours: Colouring, update: Update | None, room: int, word: str) -> Content:
    """The panel's title: the statistic and, if there is room, its optimizer steps and how it was chosen.

    Where it steps in for another, or distinguishes no token, the title says why. `word` names what the policy samples.
    """
    head, lens = worded("Tokens", word), colours.lens
    name, steps = worded(within(lens.title), word), _steps(lens, update)
    of = f" · update {colours.held}" * bool(colours.held)
    if colours.wanted is not None:
        wanted = worded(within(colours.wanted.title), word)
        lines = [f" · colour: {name} ({wanted}: {colours.why})", f" · {name} ({wanted}: {colours.why})"]
    elif colours.why:
        lines = [f" · colour: {name}, {colours.why}", f" · {name}, {colours.why}"]
    else:
        colour = f" · colour: {name}{steps}"
        lines = [colour + " (auto)" * colours.automatic, colour, f" · colour: {name}"]
    lines = [of + line for line in lines] + [f"{of} · {name}", f" · {name}"]
    words = next((line for line in lines if cell_len(f"{head}{line}") <= room), lines[-1])
    return Content.assemble(head, (words, "$text-muted"))


def _steps(lens: Lens, update: Update | None) -> str:
    if update is None or not update.steps or lens.phase != "update":
        return ""
    newest = update.steps[-1]
    taken, planned = newest.step + 1, newest.epochs * newest.minibatches
    if planned == 1:
        return ""
    if lens.name == "credit":
        return f", sum of {planned} steps" if taken == planned else f", sum of {taken} of {planned} steps"
    last = worded(", each token's last step", update.step_word)
    return f", step {taken} of {planned}" if newest.minibatches == 1 else last
