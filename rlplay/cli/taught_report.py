"""What `rlplay teachers` prints: an object for programs, and lines of it for people."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rlplay.api.teachers import Teachers
from rlplay.cli.table import table
from rlplay.printed import Asked, EarlierUpdates, TaughtBy, TaughtInUpdates, TeachersCourse, Without, number_or_null
from rlplay.printed import Teachers as Printed
from rlplay.trace.answers import advantages
from rlplay.trace.teachers import Target, TaughtCourse
from rlplay.trace.text import visible
from rlplay.trace.update import Update

_SHOWN = 6
"""Answers of a group, or earlier updates, at most."""
_WIDTH, _NARROWEST = 110, 24
"""Columns of a line where nothing says how many there are; of an excerpt at least."""


def printed(run: Path, found: Teachers, asked: Asked, without: Sequence[int]) -> Printed:
    """What was found, and what taking the answers `without` away gives. Raises ValueError, one line, if refused."""
    groups = [group for group in found.groups if group.nearness != "earlier updates"]
    return Printed(
        run=str(run), update=found.update, by=found.by, target=asked, before=found.before, after=found.after,
        measured=found.measured, predicted=found.predicted, batch=found.batch, earlier=found.earlier, rest=found.rest,
        answers=[
            _taught_by(found, group.nearness, teacher.completion, teacher.token)
            for group in groups
            for teacher in group.teachers
            if teacher.completion is not None and teacher.token is not None
        ],
        earlier_updates=[EarlierUpdates(since=a, update=b, sum=total) for a, b, total in found.taught.earlier_by],
        without=_without(found, sorted(set(without))),
    )  # fmt: skip


def _without(found: Teachers, answers: list[int]) -> Without | None:
    if not answers:
        return None
    moved = found.without(answers)
    return Without(answers=answers, after=found.before + moved, moved=moved)


def _taught_by(found: Teachers, nearness: str, completion: int, token: int) -> TaughtBy:
    sampled = found.of.sampled
    assert sampled is not None
    own = slice(*sampled.offsets[completion : completion + 2].tolist())
    texts, shares, mean = sampled.texts[own], found.shares[own].tolist(), advantages(found.of)
    return TaughtBy(
        answer=completion,
        nearness=nearness,
        advantage=None if mean is None else number_or_null(mean[completion]),
        sum=float(found.by_answer[completion]),
        token=token - own.start,
        text="".join(texts),
        tokens=texts,
        shares=shares,
    )


def printed_course(run: Path, course: TaughtCourse, asked: Asked) -> TeachersCourse:
    """How far each update moved the target."""
    moves = [
        TaughtInUpdates(
            since=move.since, update=move.update, after=move.after, measured=move.measured,
            predicted=move.batch + move.earlier + move.rest, batch=move.batch, earlier=move.earlier, rest=move.rest,
        )
        for move in course.moves
    ]  # fmt: skip
    return TeachersCourse(run=str(run), target=asked, moves=moves)


def asked_about(update: Update, answer: int, token: int | None, target: Target, candidate: bool) -> Asked:
    """What the target is, in words of the record."""
    sampled = update.sampled
    assert sampled is not None
    start, end = sampled.offsets[answer : answer + 2].tolist()
    chosen = target.answer_ids[-1] if candidate else None
    if token is None:
        text = "".join(sampled.texts[start:end])
    elif chosen is None:
        text = sampled.texts[start + token] or sampled.pieces.get(int(sampled.token_ids[start + token]), "")
    else:
        text = sampled.pieces.get(chosen, f"#{chosen}")
    prompt = sampled.prompts[int(sampled.group[answer])]
    return Asked(answer=answer, token=token, candidate=chosen, text=text, prompt=prompt)


def lines(found: Printed) -> Iterator[str]:
    """The report for people; texts of the model are visible, and cut to the width of the terminal."""
    yield f"{visible(Path(found.run).stem)}, update {found.update}: {_moved(found.target, found.before, found.after)}"
    yield f"Prompt: {_cut(visible(found.target.prompt), _room() - 8)}\n"
    rest = "".join(f", {name} {_signed(value, 4)}" for name, value in found.rest.items() if value)
    batch, earlier = _signed(found.batch, 4), _signed(found.earlier, 4)
    yield f"predicted {_signed(found.predicted, 4)} (update {found.update} {batch}, earlier {earlier}{rest})"
    yield f"measured  {_signed(found.measured, 4)}"
    if found.without is not None:
        which = ", ".join(str(answer + 1) for answer in found.without.answers)
        plural = "s" if len(found.without.answers) > 1 else ""
        yield f"without   {_signed(found.without.moved, 4)}, if answer{plural} {which} had no credit"
    yield ""
    yield from _taught_by_lines(found)


def _taught_by_lines(found: Printed) -> Iterator[str]:
    sums = [each.sum for each in found.answers] + [each.sum for each in found.earlier_updates]
    digits = _digits(sums)
    rows: list[tuple[str, ...]] = [("answer", "sum", "advantage", "strongest", "token", "", "text")]
    for nearness, group in groupby(found.answers, key=lambda each: each.nearness):
        answers = list(group)
        rows.append((nearness, _signed(sum(each.sum for each in answers), digits), *[""] * 5))
        rows += [_row(each, digits) for each in answers[:_SHOWN]]
        rows += _others([each.sum for each in answers[_SHOWN:]], digits)
    if found.earlier or found.earlier_updates:
        rows.append(("earlier updates", _signed(found.earlier, digits), *[""] * 5))
        for each in found.earlier_updates[:_SHOWN]:
            rows.append((f"  {_updates(each.since, each.update)}", _signed(each.sum, digits), *[""] * 5))
        rows += _others([each.sum for each in found.earlier_updates[_SHOWN:]], digits)
    bare = max(map(len, table([(*row[:-1], "") for row in rows])))
    room = max(_room() - bare - 2, _NARROWEST)
    yield from table([(*row[:-1], _cut(row[-1], room)) for row in rows], ("sum", "advantage", "strongest", "token"))


def _row(each: TaughtBy, digits: int) -> tuple[str, ...]:
    strongest = str(each.token + 1), _cut(visible(each.tokens[each.token], spaces=True), 14)
    advantage = "" if each.advantage is None else _signed(each.advantage, 2)
    numbers = _signed(each.sum, digits), advantage, _signed(each.shares[each.token], digits)
    return f"  {each.answer + 1}", *numbers, *strongest, visible(each.text)


def _others(sums: Sequence[float], digits: int) -> list[tuple[str, ...]]:
    return [(f"  {len(sums)} more", _signed(sum(sums), digits), *[""] * 5)] if sums else []


def course_lines(found: TeachersCourse) -> Iterator[str]:
    """The report of a course for people."""
    name = visible(Path(found.run).stem)
    if not found.moves:
        yield f"{name}: no update has ended"
        return
    first, last = found.moves[0], found.moves[-1]
    yield f"{name}: {_moved(found.target, first.after - first.measured, last.after)}"
    yield f"Prompt: {_cut(visible(found.target.prompt), _room() - 8)}\n"
    numbers = ("after", "measured", "predicted", "own batch", "earlier", "rest")
    rows: list[tuple[str, ...]] = [("", *numbers)]
    digits = _digits([each.measured for each in found.moves])
    for each in found.moves:
        parts = each.measured, each.predicted, each.batch, each.earlier, each.rest
        rows.append(
            (_updates(each.since, each.update), _likely(each.after), *(_signed(part, digits) for part in parts))
        )
    yield from table(rows, numbers)


def _moved(target: Asked, before: float, after: float) -> str:
    where = f"answer {target.answer + 1}"
    if target.token is None:
        return f"all of {where}: log-probability {_signed(before, 3)} → {_signed(after, 3)}"
    instead = "" if target.candidate is None else "instead of "
    place = f"{instead}token {target.token + 1} of {where}"
    return f"“{visible(target.text, spaces=True)}”, {place}: probability {_likely(before)} → {_likely(after)}"


def _likely(logprob: float) -> str:
    probability = math.exp(logprob)
    return f"{probability:.3f}" if probability >= 0.01 else f"{probability:.2g}"


def _updates(since: int, update: int) -> str:
    return f"update {update}" if update == since + 1 else f"updates {since + 1}–{update}"


def _digits(values: Sequence[float]) -> int:
    """Decimals for a column, so that its largest number has three significant digits."""
    largest = max(map(abs, values), default=0.0)
    return 3 if largest == 0 else min(max(2 - math.floor(math.log10(largest)), 3), 9)


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def _room() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH


def _cut(text: str, room: int) -> str:
    """At most `room` columns of a terminal."""
    from rich.text import Text

    cut = Text(text)
    cut.truncate(room, overflow="ellipsis")
    return cut.plain
