"""The title of the token map: the statistic of its colours, its optimizer steps, and how it was chosen."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content

from rlplay.trace.lenses import Lens
from rlplay.trace.update import Update
from rlplay.ui.format.shown_text import within
from rlplay.ui.format.step_word import worded


def title(lens: Lens, automatic: bool, update: Update | None, room: int, alike: bool, word: str) -> Content:
    """The panel's title: the lens and, if there is room, its optimizer steps and how it was chosen.

    If all tokens are `alike`, so near each other that they share a shade, it says so. `word` names what the policy
    samples.
    """
    head, name = worded("Tokens", word), worded(within(lens.title), word)
    same = ": one shade" * alike
    colour = f" · colour: {name}{_steps(lens, update)}{same}"
    lines = (colour + " (auto)" * automatic, colour, f" · colour: {name}{same}", f" · {name}{same}", f" · {name}")
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
