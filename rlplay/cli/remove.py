"""The command that deletes recorded runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rlplay.cli.types import RUN_FILE
from rlplay.trace.numbers import byte_size
from rlplay.trace.text import visible


@click.command("rm", epilog="Example: rlplay rm last --snapshots")
@click.argument("recorded", metavar="RUN…", type=RUN_FILE, nargs=-1, required=True)
@click.option("--snapshots", "only_snapshots", is_flag=True, help="Delete only the snapshots; replay still works.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(recorded: tuple[Path, ...], only_snapshots: bool, yes: bool) -> None:
    """Delete recorded runs with their snapshots.

    It asks first. Only the run file and its snapshots are deleted, nothing else that lies beside them. Without its
    snapshots, a run cannot be resumed or rewound any more. A run that is open in another program is refused.
    """
    from rlplay.trace.files_on_disk import check_unused, delete, files_on_disk

    runs = list(dict.fromkeys(path.absolute() for path in recorded))
    for run in runs:
        check_unused(run)
        files = files_on_disk(run)
        parts = [] if only_snapshots else [f"run file {byte_size(files.run_bytes)}"]
        count = len(files.snapshots)
        parts.append(f"{count} snapshot{'s' * (count != 1)} {byte_size(files.snapshot_bytes)}")
        click.echo(f"{visible(str(run))}: {', '.join(parts)}")
    what = "the snapshots of" if only_snapshots else ""
    which = "this run" if len(runs) == 1 else f"these {len(runs)} runs"
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("rm asks before it deletes, and there is no terminal to ask in; add --yes")
    if not yes and not click.confirm(" ".join(f"Delete {what} {which}?".split())):
        click.echo("nothing deleted")
        return
    for run in runs:
        delete(run, only_snapshots)
        click.echo(f"deleted {what} {visible(run.stem)}".replace("  ", " "))
