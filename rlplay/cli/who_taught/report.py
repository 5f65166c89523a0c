"""What `rlplay teachers` prints for people: the words and numbers of the screen, and a table of the teachers."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from rlplay.cli.table import table
from rlplay.printed import Asked, TaughtBy
from rlplay.printed import Teachers as Printed
from rlplay.trace.teachers import Move, TakenAway, Target, Taught
from rlplay.trace.text import NOTHING, visible
from rlplay.ui.format.shown_text import END, is_special, quoted
from rlplay.ui.session.subjects import Subject
from rlplay.ui.teachers.words import (
    disagreement,
    moved,
    nats,
    not_the_share,
    probability,
    rest_line,
    sum_line,
    without_line,
)

_SHOWN = 6
"""Rows of a group, at most."""
_NUMBERED = 4
"""Equal answers that a row names."""
_WIDTH, _NARROWEST = 110, 12
"""Columns of a line where nothing says how many there are; of an excerpt at least."""


def subject_of(asked: Asked, target: Target, update: int) -> Subject:
    """The target in words, of an answer of `update` or a held-out one."""
    answer = f"answer {asked.answer + 1}"
    if asked.held_out is not None:
        answer = f"held-out {answer} after update {asked.held_out}"
    if asked.token is None:
        return Subject(target, answer, "all its tokens", update)
    place = f"{'' if asked.candidate is None else 'instead of '}token {asked.token + 1} of {answer}"
    return Subject(target, quoted(asked.text), place, update)


def head(name: str, subject: Subject, asked: Asked) -> Iterator[str]:
    """The run, and what is asked about."""
    yield f"{visible(name)} · {subject.name}, {subject.where}"
    yield f"Prompt: {_cut(visible(asked.prompt), room() - 8)}"


def lines(found: Printed, taught: Taught, taken: TakenAway | None) -> Iterator[str]:
    """What moved the target, after its `head`; texts of the model are visible, and cut to the width of the terminal."""
    yield f"Update {taught.update}: {moved(taught)}\n"
    if found.sentence:
        yield from _wrapped(found.sentence)
    yield sum_line(taught)
    yield from (words for words in (rest_line(taught), disagreement(taught)) if words)
    if taken is not None and found.without is not None:
        yield from _wrapped(without_line(taken, taught, len(found.without.answers)))
        yield from _wrapped(not_the_share(taken, taught))
    yield f"\nAnswers of update {found.by}{'' if found.by == found.update else ', through the optimizer’s momentum'}"
    yield from _teachers(found)


def _teachers(found: Printed) -> list[str]:
    earlier = found.earlier_updates if found.by == found.update else []
    scale = max(map(abs, [*(each.sum for each in found.answers), *(each.sum for each in earlier)]), default=0.0)
    rows: list[tuple[str, ...]] = [("answer", "sum", "advantage", "strongest", "token", "", "text")]
    for nearness, group in groupby(found.answers, key=lambda each: each.nearness):
        answers = list(group)
        rows.append((nearness, nats(sum(each.sum for each in answers), scale), *[""] * 5))
        equal = _equal(answers)
        rows += [_row(each, scale) for each in equal[:_SHOWN]]
        rows += _others([each.sum for alike in equal[_SHOWN:] for each in alike], scale)
    if found.by == found.update and (found.earlier or earlier):
        rows.append(("earlier updates", nats(found.earlier, scale), *[""] * 5))
        for each in earlier[:_SHOWN]:
            rows.append((f"  {_updates(each.since, each.update)}", nats(each.sum, scale), *[""] * 5))
        rows += _others([each.sum for each in earlier[_SHOWN:]], scale)
    bare = max(map(len, table([(*row[:-1], "") for row in rows])))
    left = max(room() - bare - 2, _NARROWEST)
    return table([(*row[:-1], _cut(row[-1], left)) for row in rows], ("sum", "advantage", "strongest", "token"))


def _equal(answers: Sequence[TaughtBy]) -> list[list[TaughtBy]]:
    """Answers of the same tokens to one prompt together, by what they did together."""
    alike: dict[tuple[str, ...], list[TaughtBy]] = {}
    for each in answers:
        alike.setdefault((each.prompt, *each.tokens), []).append(each)
    return sorted(alike.values(), key=lambda those: -abs(sum(each.sum for each in those)))


def _row(equal: Sequence[TaughtBy], scale: float) -> tuple[str, ...]:
    first = equal[0]
    which = ", ".join(str(each.answer + 1) for each in equal[:_NUMBERED]) + " …" * (len(equal) > _NUMBERED)
    strongest = str(first.token + 1), _cut(_token(first.tokens[first.token], spaces=True), 14)
    advantage = "" if first.advantage is None else nats(first.advantage)
    total = sum(each.sum for each in equal)
    return (
        f"  {which}", nats(total, scale), advantage, nats(first.shares[first.token], scale), *strongest,
        "".join(map(_token, first.tokens)),
    )  # fmt: skip


def _token(text: str, spaces: bool = False) -> str:
    return END if is_special(text) else visible(text, spaces) if text else NOTHING * spaces


def _others(sums: Sequence[float], scale: float) -> list[tuple[str, ...]]:
    return [(f"  {len(sums)} more", nats(sum(sums), scale), *[""] * 5)] if sums else []


def course_lines(moves: Sequence[Move]) -> Iterator[str]:
    """What each update did to the target, after its `head`."""
    if not moves:
        yield "No update has moved it: no weights of two updates are kept."
        return
    numbers = ("before", "after", "moved", "predicted", "batch", "earlier", "rest")
    rows: list[tuple[str, ...]] = [("", *numbers)]
    scale = max(abs(each.measured) for each in moves)
    for each in moves:
        parts = each.measured, each.batch + each.earlier + each.rest, each.batch, each.earlier, each.rest
        ends = probability(each.after - each.measured), probability(each.after)
        rows.append((_updates(each.since, each.update), *ends, *(nats(part, scale) for part in parts)))
    yield ""
    yield from table(rows, numbers)


def _updates(since: int, update: int) -> str:
    return f"update {update}" if update == since + 1 else f"updates {since + 1}–{update}"


def room() -> int:
    """Columns of a line."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(visible(text), room(), break_long_words=False, break_on_hyphens=False)


def _cut(text: str, room: int) -> str:
    """At most `room` columns of a terminal."""
    from rich.text import Text

    cut = Text(text)
    cut.truncate(room, overflow="ellipsis")
    return cut.plain
