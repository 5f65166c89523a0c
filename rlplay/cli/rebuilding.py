"""Options of a command that takes a run of TRL at a checkpoint, and the run file that is made of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlplay.cli.trusting import follow_named
from rlplay.cli.types import PATH
from rlplay.trace.text import visible

if TYPE_CHECKING:
    from rlplay.scenario.schema import Job

_OPTIONS = (
    click.option(
        "--checkpoint", type=click.Path(path_type=Path), metavar="FOLDER",
        help="Of a run of TRL: the folder checkpoint-N where it goes on.",
    ),
    click.option(
        "--reward", type=PATH, metavar="FILE.py:FUNCTION", multiple=True,
        help="With --checkpoint: the file of each reward function of the trainer's script; repeatable.",
    ),
    click.option(
        "--reference", type=click.Path(path_type=Path), metavar="FOLDER",
        help="With --checkpoint: the model that the training began with, if it is no longer where it was.",
    ),
)  # fmt: skip


def with_checkpoint(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options `checkpoint`, `reward` and `reference`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def rebuilt_run(
    recorded: Path, checkpoint: Path, reward: tuple[str, ...], reference: Path | None, device: str, quiet: bool
) -> Job:
    """The job of a new run file that goes on where `recorded`, a run of TRL, was at a checkpoint.

    What can and what cannot be had is printed before anything is loaded, on standard error if `quiet`. Raises
    ValueError, one line, if it makes no run.
    """
    from rlplay import paths
    from rlplay.foreign.from_checkpoint.plan import plan
    from rlplay.foreign.from_checkpoint.script import check_loads_quietly

    for entry in reward:
        check_loads_quietly(entry)
    found = plan(recorded, checkpoint, reward, reference)
    _say("rebuilt", found.rebuilt, quiet)
    _say("not rebuilt", found.lacking, quiet)
    follow_named({"reward": reward})
    from rlplay.engine.from_checkpoint.rebuild import rebuild

    made = rebuild(found, paths.new_run(f"{recorded.stem}-{found.checkpoint.path.name}"), device)
    _say("rebuilt", made.rebuilt, quiet)
    _say("not rebuilt", made.lacking, quiet)
    _say("compared", made.compared, quiet)
    _say("kept", (f"rlplay resume {shlex.quote(Path(made.job.run).stem)} goes on from there",), quiet)
    return made.job


def check_checkpoint_given(checkpoint: Path | None, reward: tuple[str, ...], reference: Path | None) -> None:
    """Raises click.UsageError for options that mean nothing without a checkpoint."""
    if checkpoint is None and (reward or reference is not None):
        raise click.UsageError(f"--{'reward' if reward else 'reference'} belongs to --checkpoint, of a run of TRL")


def _say(what: str, lines: tuple[str, ...], quiet: bool) -> None:
    for line in lines:
        click.echo(f"{what}: {visible(line)}", err=quiet)
