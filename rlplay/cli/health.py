"""The command that examines a recorded run."""

from __future__ import annotations

from pathlib import Path

import click

from rlplay.cli.options import AS_JSON
from rlplay.cli.types import CURVES, RUN
from rlplay.trace.text import visible, visible_lines

UNJUDGED = 4
"""The exit status where nothing can be judged; 2 is bad input, and 3 a defect of rlplay."""


@click.command(epilog="Example: rlplay health last")
@click.argument("recorded", metavar="RUN", type=RUN)
@CURVES
@AS_JSON
def health(recorded: Path, curves: Path | None, as_json: bool) -> int:
    """Say why a recorded run does not learn.

    Each finding has its evidence, its cause, what to change and where to look. The gravest comes first. A ✓ would have
    seen the trouble; a – says why it cannot, and what to record. RUN may be a folder of another trainer. Exit status: 0
    no problem found, 1 at least one, 4 nothing can be judged.
    """
    from rlplay.foreign.copy import join
    from rlplay.health.examine import verdicts
    from rlplay.health.findings_report import WIDTH, called, laid, rows, summary, usual, written
    from rlplay.health.health_of_run import examine_run, undone
    from rlplay.health.normal import normal

    if curves is not None:
        join(recorded, curves)
    run, found = examine_run(recorded)
    said = [] if run is None else verdicts(run, found)
    status = 1 if found else 0 if any(each.ticked for each in said) else UNJUDGED
    if as_json:
        from rlplay.printed import health_report, json_line

        click.echo(json_line(health_report(recorded, run, found)))
        return status
    if run is None:
        click.echo(f"{visible(recorded.stem)} {_nothing(undone(recorded))}")
        return status
    click.echo(f"{visible(recorded.stem)}, {called(run.last, run)}: {summary(found, said)}\n")
    for line in written(found, run):
        click.echo(visible_lines(line))
    usually = usual(normal(run))
    for lines in [*laid(rows(said), WIDTH), *([[("", ""), ("Normal", "")]] if usually else []), *laid(usually, WIDTH)]:
        for title, text in lines:
            click.echo(visible_lines(title + text))
    return status


def _nothing(undone: int) -> str:
    """Why a run has no update to examine, if it has `undone` that many."""
    if not undone:
        return "has no finished update yet."
    which, them = ("update 1 is", "it") if undone == 1 else (f"updates 1 to {undone} are", "them")
    return f"is back at the start: {which} undone. The file keeps {them}; rlplay replay draws {them} grey."
