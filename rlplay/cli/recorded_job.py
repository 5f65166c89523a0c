"""The job that a recorded run is, to continue it or to ask it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlplay.cli.trusting import ask_trust
from rlplay.trace.text import visible

if TYPE_CHECKING:
    from rlplay.scenario.schema import Job


def resume_job(recorded: Path, device: str, trusted: bool) -> Job:
    """The job that continues a recorded run, without its lesson: the run does not record where in it it stopped."""
    import msgspec

    from rlplay.plain_yaml import PlainYamlError, plain_yaml
    from rlplay.scenario.dtypes import as_recorded
    from rlplay.scenario.lesson import without_lesson
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.scenario.trust import code_of_run
    from rlplay.trace.runfile import RunReader

    with RunReader(recorded) as reader:
        timeline = reader.timeline()
        # Before the first snapshot, which follows the first update, resuming starts again; what a branch has copied is
        # computed again.
        if reader.last_snapshot() is None and len(reader.updates()) > max(1, reader.branched):
            raise click.UsageError(f"{recorded} has no snapshot to continue from; 'rlplay replay' still shows it")
        try:
            scenario = msgspec.convert(plain_yaml(reader.started.scenario_text), Scenario)
        except (PlainYamlError, msgspec.MsgspecError) as error:
            raise click.UsageError(f"{recorded}: its scenario cannot be read: {error}") from error
    scenario = without_lesson(as_recorded(scenario, reader.started.dtype))
    ask_trust(code_of_run(scenario, timeline), trusted, "run")
    return Job(scenario, str(recorded), device, resume=True)


def question_job(recorded: Path, device: str, trusted: bool, instead: str = "") -> Job:
    """The job whose engine answers questions about a recorded run: on the device and with the threads that it had.

    Raises ValueError, one line, if another trainer made the run, or as `resume_job`; `instead` says what can then be
    done, if the question is not about teachers.
    """
    import msgspec

    from rlplay.trace.runfile import RunReader
    from rlplay.trace.unasked import lacks_weights

    with RunReader(recorded) as reader:
        started = reader.started
    if started.source:
        lacking = f"records a run of {started.source}, but not its weights; {instead}" if instead else ""
        raise click.UsageError(f"{recorded} {lacking or f'cannot be asked: {lacks_weights(started.source)}'}")
    job = resume_job(recorded, started.device if device == "auto" else device, trusted)
    return msgspec.structs.replace(job, threads=started.threads or None)


def say_progress(what: str, share: float) -> None:
    """What the engine of a question is at, for somebody who waits; a log does not."""
    if sys.stderr.isatty():
        click.echo(f"rlplay: {visible(what)} ({share:.0%})", err=True)
