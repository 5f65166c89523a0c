"""The command that writes a scenario file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from rlplay.cli.types import RUN
from rlplay.trace.text import visible_lines


@click.command(epilog="Example: rlplay new my-first")
@click.argument("name")
@click.option("--world", is_flag=True, help="Draw a map to walk through.")
@click.option("--from", "recorded", type=RUN, metavar="RUN", help="Repeat what you did in this run.")
def new(name: str, world: bool, recorded: Path | None) -> None:
    """Write a scenario file to start from.

    The file is NAME.yaml, in the current directory unless NAME is a path.

    With --from RUN, its script repeats what you did in a recorded run: the same task, seed and settings, the same
    changes of settings, labels and rewinds. On the same device it gives the same numbers.
    """
    from rlplay.scenario.new_file import example, from_run, write

    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    if world and recorded is not None:
        raise click.UsageError("--world and --from exclude one another: a recorded run has its own task")
    write(path, example(path, world) if recorded is None else from_run(recorded, path))
    click.echo(visible_lines(f"wrote {path}; play it: {shlex.join(['rlplay', str(path)])}"))


COMMANDS = (new,)
