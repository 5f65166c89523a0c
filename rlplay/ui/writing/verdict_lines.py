"""What the engine says of a learner's lines, as text for the screen."""

from __future__ import annotations

import numpy as np
from textual.content import Content

from rlplay.exercises.verdict import same
from rlplay.trace.numbers import compact, real_minus
from rlplay.trace.questions import BothNumbers, Tried
from rlplay.trace.text import visible, visible_lines
from rlplay.ui.format.keyed import BAD, GOOD, QUIET, STRONG, WARN
from rlplay.ui.session.writing import Writing

PATIENCE, TOO_LONG = 1.0, 10.0
"""Seconds after which waiting is worth a word, and after which it is no longer normal."""


def verdict_lines(writing: Writing, ended: str = "") -> Content:
    """The result of the last try, and what the lines have printed; `ended` says why there can be none."""
    tried = writing.tried
    if ended:
        return Content.styled(ended, WARN)
    if writing.waited > TOO_LONG:
        return Content.styled(
            "The engine does not answer: these lines keep Python busy. ctrl+q leaves; finished updates are saved.", WARN
        )
    if tried is None or writing.waited > PATIENCE:
        words = (
            "checking …"
            if writing.waited or writing.begun
            else "Write the missing lines in place of the dots. They run whenever you pause."
        )
        return Content.styled(words, QUIET)
    parts = [_verdict(tried)]
    if tried.printed:
        parts.append(Content.styled(f"printed: {visible_lines(tried.printed)}", QUIET))
    return Content("\n").join(parts)


def _verdict(tried: Tried) -> Content:
    if tried.refused:
        return Content.styled(f"{_sentence(visible(tried.refused))}", WARN)
    if tried.error:
        where = f"line {tried.line}: " if tried.line else ""
        return Content.assemble(("✗ ", BAD), (where, STRONG), visible(tried.error))
    if tried.first is None:
        return Content.assemble(("✓ ", GOOD), (f"All {tried.compared:,} {tried.unit} agree with the engine.", STRONG))
    remark = f"\n{visible(tried.remark)}" if tried.remark else ""
    return Content.assemble(("✗ ", BAD), _difference(tried, tried.first), remark)


def _difference(tried: Tried, first: BothNumbers) -> Content:
    label = f"square {first.label}" if tried.unit == "squares" else first.label
    about = "This batch agrees, a made-up case does not" if first.made_up else "First difference"
    return Content.assemble(
        f"{about}: {visible(label)}. Yours ", (_number(first.yours), STRONG), ", the engine's ",
        (_number(first.engine), STRONG), ".",
    )  # fmt: skip


def numbers_table(tried: Tried | None) -> Content:
    """Some of the learner's numbers beside the engine's, with a mark at those that differ."""
    if tried is None or not tried.rows:
        return Content("")
    width = max(len(row.label) for row in tried.rows)
    lines = [Content.styled(f"  {'':{width}}  {'yours':>10}  {'engine':>10}", QUIET)]
    for row in tried.rows:
        agree = same(np.array(row.yours), np.array(row.engine)).all()
        mark = ("  ", "") if agree else ("✗ ", BAD)
        label = (f"{visible(row.label):{width}}", STRONG if row == tried.first else QUIET)
        yours = (f"  {_number(row.yours):>10}", "" if agree else STRONG)
        lines.append(Content.assemble(mark, label, yours, f"  {_number(row.engine):>10}"))
    return Content("\n").join(lines)


def task_words(text: str) -> Content:
    """Words in which `code` between ticks stands out."""
    parts = text.split("`")
    return Content.assemble(*((part, STRONG if number % 2 else "") for number, part in enumerate(parts)))


def _number(value: float) -> str:
    return real_minus(compact(value, 4))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
