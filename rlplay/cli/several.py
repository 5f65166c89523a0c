"""`rlplay run` in several processes: what starts them, and what each of them does."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from rlplay.processes import GRACE, LOST, STORE, is_first, launch
from rlplay.supervisor import end_with_parent

if TYPE_CHECKING:
    from rlplay.scenario.schema import Job


_BAD_INPUT, _BROKEN = 2, 3


def in_processes(words: list[str], count: int, recorded: str) -> int:
    """Run `rlplay` with these words in `count` processes. Raises UsageError if one of them ends before the others."""
    status, problem = launch([sys.executable, "-P", "-m", "rlplay", *words], count)
    if problem:
        again = shlex.join(["rlplay", "run", "--resume", recorded, "--processes", str(count)])
        raise click.UsageError(f"{problem}; all finished updates are saved. To continue: {again}")
    return status


def as_one_of_several(job: Job, play: Callable[[Job], int]) -> int:
    """The same run in a process that `--processes` or a launcher has started; only the first one talks."""
    from rlplay.engine import ranks

    if STORE in os.environ:
        end_with_parent(GRACE, signal.SIGINT)  # as by ctrl+c, so that all is saved
    try:
        ranks.join(os.environ, job.device)
        # A new run's name has its time in it, so the first one's holds.
        return play(ranks.first(lambda: job))
    except ranks.LostProcess as error:
        if STORE in os.environ:
            return LOST  # what started it says which process that was
        raise click.UsageError(f"{error}; the others stop. 'rlplay run --resume RUN' continues the run") from error
    except Exception as error:
        if is_first() or os.environ.get("RLPLAY_DEBUG"):
            raise
        return _BAD_INPUT if isinstance(error, (ValueError, click.ClickException)) else _BROKEN  # the first says why
