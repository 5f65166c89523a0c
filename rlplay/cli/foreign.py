"""Commands for the runs of other trainers: watch them, read them in, steer them."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from rlplay.cli.play import needs_a_terminal
from rlplay.cli.types import CURVES, WholeNumber
from rlplay.trace.text import visible

_FOLDER = click.Path(exists=True, path_type=Path)
_EVERY = 1.0
"""Seconds between two looks at a run that grows."""


@click.command(epilog="Example: rlplay attach outputs/my-run")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--port", type=WholeNumber(1, 65535), metavar="N", help="The port here that is forwarded to the trainer's."
)
def attach(folder: Path, port: int | None) -> int:
    """Steer a run of TRL while it trains.

    Pause it, go on by update, change its settings.
    FOLDER is the trainer's output_dir or the recording in it. Its script has RlplayCallback(listen=True). Leaving does
    not stop the training.
    """
    needs_a_terminal(f"rlplay import {shlex.quote(str(folder))} --follow")
    from rlplay.ui.start import attach as enter

    return enter(folder, port)


@click.command("import", epilog="Example: rlplay import outputs/my-run")
@click.argument("origin", metavar="FOLDER_OR_FILE", type=click.Path(path_type=Path))
@CURVES
@click.option("--follow", is_flag=True, help="Go on until ctrl+c: add every update that the trainer writes.")
def import_run(origin: Path, curves: Path | None, follow: bool) -> None:
    """Read the run of another trainer as rlplay's own.

    FOLDER_OR_FILE is what RlplayCallback or rlplay.record wrote, a trainer's own files, or its curves, such as those of
    TensorBoard, W&B (offline) and trackio; docs/other-trainers.md lists them.
    """
    from rlplay.foreign.copy import Copy
    from rlplay.trace.runfile import RunReader

    copy = Copy(origin, curves=curves)
    with RunReader(copy.path) as run:
        seen = len(run.updates())
        read = f"{seen} {'update' if seen == 1 else 'updates'} in {visible(str(copy.path))}"
        click.echo(f"{read}; to look at them: rlplay replay {shlex.quote(copy.path.stem)}")
        while follow:
            time.sleep(_EVERY)
            copy.pull()
            for number, metrics in run.metrics():
                if number > seen:
                    click.echo(_line(number, run.history().clock.aside(number), metrics.get("reward")))
                    seen = number


def _line(number: int, step: str, reward: float | None) -> str:
    return f"update {number}{step}" + ("" if reward is None else f"   reward {reward:.3f}".replace("-", "−"))


COMMANDS = (attach, import_run)
