"""The lines above and below the teachers: what moved how far, why, and what the test of some answers found."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from rlplay.trace.teachers import TakeAway, TakenAway, Taught, Teach, TeachCourse
from rlplay.trace.text import visible
from rlplay.trace.unasked import lacks_weights
from rlplay.ui.format.keyed import QUIET, STRONG, keyed
from rlplay.ui.format.shown_text import literal
from rlplay.ui.session.session import Session
from rlplay.ui.session.teachers import Teachers
from rlplay.ui.teachers.words import disagreement, missed, moved, not_the_share, rest_line, sum_line, without_line

ASKING = (
    "Asking the engine: a backward pass for this token, then two passes over the batch. That takes half an update "
    "without its sampling, or more. `esc` stops it."
)
NOT_KEPT = "The tokens of update {} are not on record, so their shares have no words. `esc` goes back."
_PROMPT = 16
"""Cells of a prompt, at least."""
COURSE = "Asking the engine about each update whose weights are kept. `esc` stops it."


def head(teachers: Teachers, why: str, room: int) -> Content:
    """The target, how far it moved, and `why` in a sentence; the prompt only if it fits into the first line."""
    subject, taught, number = teachers.subject, teachers.taught, teachers.update
    if subject is None:
        return Content("")
    moves = [Content("")]
    if taught is not None:
        ink = "bold $scale-up" if taught.measured > 0 else "bold $scale-down"
        moves = [Content.assemble(" · ", (moved(taught), ink), f" in update {number}")]
    where, left = f" · {visible(subject.where)}", room - len(subject.name) - sum(each.cell_length for each in moves)
    left -= cell_len(where) + len(" to “”")
    if subject.prompt and left >= _PROMPT:
        prompt = visible(subject.prompt)
        where += f" to “{prompt if cell_len(prompt) <= left else set_cell_size(prompt, left - 1) + '…'}”"
    first = Content.assemble((subject.name, STRONG), (where, QUIET), *moves)
    if teachers.by != number:
        why = f"What the answers of update {teachers.by} still did to it in update {number}:"
    return Content.assemble(first, (f"\n{why}" if why else "", STRONG))


def why_not(session: Session) -> str:
    """Why nobody can be asked, in one line; empty if it can."""
    started = session.run.started
    if not session.source.live and started is not None and started.source:
        lacking = lacks_weights(visible(started.source))
        return f"{lacking[:1].upper()}{lacking[1:]}."
    if not session.source.live:
        return "This recording has no weights and gradients to ask. Resume the run (rlplay resume), then press Y."
    if session.failed is not None and not session.has_engine:
        return "The trainer has ended, and its weights and optimizer with it."
    if session.failed is not None:
        return "The engine has ended. Press r to resume, then Y."
    if not session.run.finished:
        return "No update yet: press u, then Y asks what moved this token."
    return ""


def empty(teachers: Teachers, asking: str, ended: str) -> str:
    """Why there is no list of what is `asking`, with the key that helps; `ended` says that nobody can answer."""
    if ended:
        return ended
    if refused := teachers.refused.get(TeachCourse if asking is COURSE else Teach):
        return literal(f"{refused[:1].upper()}{refused[1:]}.")
    if teachers.stopped:
        return "Stopped. `enter` asks again."
    if teachers.taught is not None and asking is not COURSE:
        shares = teachers.taught.shares
        return "No token of this update had a part in it." if not shares.any() else NOT_KEPT.format(teachers.by)
    return asking


def sums(taught: Taught | None, said: str, tested: list[Content]) -> Content:
    """What the parts add up to; then what was `said` of a token, or the lines about a test."""
    if taught is None:
        return Content("")
    more = "".join(f" · {words}" for words in (rest_line(taught), disagreement(taught), missed(taught)) if words)
    first = Content.assemble(sum_line(taught), (more, QUIET))
    return Content("\n").join([first, *(tested or [keyed(said)])])


def test_lines(teachers: Teachers, taught: Taught, away: TakenAway | None) -> list[Content]:
    """What the test of the marked answers found, or how to begin it; nothing if none is marked."""
    count = len(teachers.marked)
    if not count:
        return []
    if away is not None:
        return [
            Content.styled(without_line(away, taught, count), STRONG),
            Content.styled(not_the_share(away, taught), QUIET),
        ]
    answers = f"{count} answer{'s' * (count > 1)} marked"
    if teachers.asked is not None:
        return [keyed(f"{answers}: taking the update once more without their credit … `esc` stops it")]
    if refused := teachers.refused.get(TakeAway):
        return [Content.assemble((f"{answers}: ", QUIET), (visible(refused), "$warning"))]
    return [keyed(f"{answers} · `backspace` takes the update once more without their credit")]


def key_line(teachers: Teachers, run: bool, marked: bool, cannot: Callable[[str], str], room: int) -> str:
    """As many keys as fit into `room` cells; of the whole `run`, `marked` if answers are, `cannot` as of a session."""
    marks = teachers.by == teachers.update and not cannot("withhold")
    keys = [
        "`enter` open" if run else "`enter` mark" if marks else "",
        "`backspace` without them" if marked and not cannot("withhold") else "",
        "`b` branch without them" if marked and not cannot("branch") else "",
        "`tab` tokens, whole run",
        "`x` `X` strongest",
        "`← →` other token",
        "`[ ]` update",
        "`c` colours the main screen",
    ]
    keys, end = [key for key in keys if key], "`?` help · `esc` back"
    while sum(len(key.replace("`", "")) + 3 for key in keys) + len(end) > room:
        keys.pop()
    return " · ".join([*keys, end])
