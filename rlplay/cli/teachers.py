"""The command that says who taught a token of a recorded run what it does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from rlplay.cli.options import AS_JSON, DEVICE_OPTION
from rlplay.cli.recorded_job import question_job
from rlplay.cli.trusting import TRUST
from rlplay.cli.types import RUN, WholeNumber
from rlplay.trace.text import visible

if TYPE_CHECKING:
    from rlplay.printed import Printed
    from rlplay.trace.update import Update

_COUNT = WholeNumber(1)


@click.command(epilog="Example: rlplay teachers last --update 3 --answer 5 --token 1")
@click.argument("recorded", metavar="RUN", type=RUN)
@click.option("--update", type=_COUNT, required=True, metavar="N", help="The update that moved it.")
@click.option("--answer", type=_COUNT, required=True, metavar="I", help="An answer of that update, counted from 1.")
@click.option("--token", type=_COUNT, metavar="T", help="A token of the answer, from 1; without it, the whole answer.")
@click.option("--candidate", metavar="TEXT", help="Another token in that place: the text of a candidate, or #ID.")
@click.option("--by", type=_COUNT, metavar="N", help="Answers of this earlier update, by the optimizer's momentum.")
@click.option("--without", type=_COUNT, metavar="I", multiple=True, help="Test: no credit for this answer; repeatable.")
@click.option("--course", is_flag=True, help="What every update of the run did to it, instead.")
@DEVICE_OPTION
@TRUST
@AS_JSON
def teachers(
    recorded: Path,
    update: int,
    answer: int,
    token: int | None,
    candidate: str | None,
    by: int | None,
    without: tuple[int, ...],
    course: bool,
    device: str,
    trust: bool,
    as_json: bool,
) -> None:
    """Say which answers taught a token what it does.

    An update moved the log-probability of a token. Each token that the update learned from has a share in that, and
    the shares add up to a prediction of what was measured. The engine computes them from the run's snapshots. The run
    stays as it is, and may be open elsewhere.
    """
    if course and (by is not None or without):
        raise click.UsageError("--course is about all updates; omit --by and --without")
    if by is not None and without:
        raise click.UsageError(f"--without takes answers of update {update} away; omit --by")
    own, records = _own_update(recorded, update, answer, token, without)
    job = question_job(recorded, device, trust)
    from rlplay.engine.collector import without_collector

    with without_collector():
        from rlplay.api.teachers import Asker, find_teachers, target_of
        from rlplay.cli import taught_report as report
        from rlplay.engine.asked_run import asked_run
    from rlplay.trace.runfile import RunReader

    row, place, chosen = answer - 1, None if token is None else token - 1, _candidate(candidate)
    target = target_of(own, row, place, chosen)
    asked = report.asked_about(own, row, place, target, chosen is not None)
    with asked_run(job, _progress) as engine, RunReader(recorded) as reader:
        asker = Asker(engine)
        if course:
            _show(report.printed_course(recorded, asker.course(target), asked), report.course_lines, as_json)
            return
        found = find_teachers(asker, reader, update, row, place, chosen, by)
        shown = report.printed(recorded, found, asked, [each - 1 for each in without])
        if reader.record_ids(update) != records:
            raise click.UsageError(f"{recorded} went back to before update {update} meanwhile; ask again")
    _show(shown, report.lines, as_json)


P = TypeVar("P", bound="Printed")


def _show(found: P, lines: Callable[[P], Iterator[str]], as_json: bool) -> None:
    from rlplay.printed import json_line

    for line in [json_line(found)] if as_json else lines(found):
        click.echo(line)


def _own_update(
    recorded: Path, update: int, answer: int, token: int | None, without: tuple[int, ...]
) -> tuple[Update, list[int]]:
    """The update, if it has these answers and this token, all counted from 1; and the ids of its records."""
    from rlplay.api.recorded import with_tokens
    from rlplay.trace.runfile import RunReader

    with RunReader(recorded) as reader:
        records, found = reader.record_ids(update), with_tokens(reader, update)
    assert found.sampled is not None
    for each in (answer, *without):
        if each > found.completions:
            raise click.UsageError(f"update {update} has answers 1 to {found.completions}; there is no answer {each}")
    length = int(found.sampled.offsets[answer] - found.sampled.offsets[answer - 1])
    if token is not None and token > length:
        raise click.UsageError(f"answer {answer} of update {update} has {length} tokens; there is no token {token}")
    return found, records


def _candidate(text: str | None) -> int | str | None:
    """An id for #ID, else the text."""
    if text is None or not (text.startswith("#") and text[1:].isascii() and text[1:].isdecimal()):
        return text
    return int(text[1:])


def _progress(what: str, share: float) -> None:
    """For somebody who waits; a log does not."""
    if sys.stderr.isatty():
        click.echo(f"rlplay: {visible(what)} ({share:.0%})", err=True)
