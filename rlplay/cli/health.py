"""The command that examines a recorded run."""

from __future__ import annotations

from pathlib import Path

import click

from rlplay.cli.options import AS_JSON
from rlplay.cli.types import RUN
from rlplay.trace.text import visible, visible_lines


@click.command(epilog="Example: rlplay health last")
@click.argument("recorded", metavar="RUN", type=RUN)
@AS_JSON
def health(recorded: Path, as_json: bool) -> int:
    """Say why a recorded run does not learn.

    Each finding has its evidence, its cause, what to change and where to look. The gravest comes first. Exit status: 0
    no problem found, 1 at least one.
    """
    from rlplay.health.examine import verdicts
    from rlplay.health.findings_report import called, heading, said, written
    from rlplay.health.health_of_run import examine_run, undone

    run, found = examine_run(recorded)
    if as_json:
        from rlplay.printed import health_report, json_line

        click.echo(json_line(health_report(recorded, run, found)))
        return int(bool(found))
    if run is None:
        click.echo(f"{visible(recorded.stem)} {_nothing(undone(recorded))}")
        return 0
    click.echo(f"{visible(recorded.stem)}, {called(run.last, run)}: {heading(found)}\n")
    for line in written(found, run):
        click.echo(visible_lines(line))
    for each in verdicts(run, found):
        click.echo(visible_lines(said(each)))
    return int(bool(found))


def _nothing(undone: int) -> str:
    """Why a run has no update to examine, if it has `undone` that many."""
    if not undone:
        return "has no finished update yet."
    which, them = ("update 1 is", "it") if undone == 1 else (f"updates 1 to {undone} are", "them")
    return f"is back at the start: {which} undone. The file keeps {them}; rlplay replay draws {them} grey."
