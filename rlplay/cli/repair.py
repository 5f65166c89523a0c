"""The command that tries what a finding of the health check advises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlplay.cli.health import UNJUDGED
from rlplay.cli.options import AS_JSON, DEVICE_OPTION
from rlplay.cli.rebuilding import check_checkpoint_given, rebuilt_run, with_checkpoint
from rlplay.cli.recorded_job import question_job, say_progress
from rlplay.cli.trusting import TRUST
from rlplay.cli.types import RUN, WholeNumber
from rlplay.trace.text import quote, visible

if TYPE_CHECKING:
    from rlplay.health.finding import Evidence, Finding
    from rlplay.health.remedies.outcome import Rehearsal
    from rlplay.health.remedies.remedy import Remedy, Trial
    from rlplay.printed import Tried
    from rlplay.scenario.schema import Job, Scenario

HELPED, HELPED_NOT = 0, 1


@click.command("try", epilog="Example: rlplay try last")
@click.argument("recorded", metavar="RUN", type=RUN)
@click.option("--finding", metavar="NAME", help="The problem to mend, by its name in 'rlplay health RUN --json'.")
@click.option("--updates", type=WholeNumber(1), default=5, show_default=True, metavar="N", help="Updates of each.")
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Try this setting instead; repeatable.")
@with_checkpoint
@DEVICE_OPTION
@TRUST
@AS_JSON
def repair(
    recorded: Path, finding: str | None, updates: int, sets: tuple[str, ...], checkpoint: Path | None,
    reward: tuple[str, ...], reference: Path | None, device: str, trust: bool, as_json: bool,
) -> int:  # fmt: skip
    """Try what would mend a recorded run, before you believe it.

    The first finding of 'rlplay health' whose advice is a setting is rehearsed: the run as it is and each change, from
    the same weights, with the same prompts and random numbers. The table says what became of the finding's own number,
    of the reward and of the KL. The run stays as it is. A run of TRL goes on from a --checkpoint of its trainer.
    Exit status: 0 a change helped, 1 none did, 4 nothing to try.
    """
    from rlplay.algorithms.setting_values import check
    from rlplay.cli import tried_report as report
    from rlplay.health.health_of_run import examine_run
    from rlplay.health.remedies.remedy import Remedy, Untried
    from rlplay.health.remedies.trial import first_to_try, trial
    from rlplay.scenario.command_line import named_setting

    check_checkpoint_given(checkpoint, reward, reference)
    run, found = examine_run(recorded)
    chosen = [each for each in found if finding in (None, each.name)]
    if run is None or not chosen:
        return _nothing(recorded, found, finding, as_json)
    own = [Remedy(name, {name: check(name, value)}) for name, value in map(named_setting, sets)]
    planned = trial(run, chosen[0], updates, own) if own else first_to_try(run, chosen, updates)
    assert planned is not None
    if isinstance(planned, Untried):
        printed = report.untried(recorded, planned.finding, planned.reason)
        _show(printed, [report.untried_line(planned)], as_json)
        return UNJUDGED
    if checkpoint is None:
        job = question_job(recorded, device, trust, "of TRL's run, give the trainer's --checkpoint")
    else:
        job = rebuilt_run(recorded, checkpoint, reward, reference, device, as_json)
        run, planned = _from_checkpoint(run, planned, own, job.scenario)
    rehearsal = rehearsed(job, run, planned)
    _show(report.tried(recorded, rehearsal), report.lines(rehearsal), as_json)
    return HELPED if rehearsal.best() else HELPED_NOT


def _from_checkpoint(
    run: Evidence, planned: Trial, own: Sequence[Remedy], scenario: Scenario
) -> tuple[Evidence, Trial]:
    """What the recording shows, and what is tried from the checkpoint on: of the settings that hold there."""
    from rlplay.algorithms.setting_values import decoded
    from rlplay.health.remedies.remedy import Trial
    from rlplay.health.remedies.trial import trial

    run, since = replace(run, settings=decoded(scenario.settings)), scenario.made_before
    again = trial(run, planned.finding, planned.updates, own)
    why = f"from update {since}, where the checkpoint is"
    if planned.since < since:
        why += "; the problem began earlier, so an earlier checkpoint may show more"
    remedies = again.remedies if isinstance(again, Trial) else planned.remedies
    return run, replace(planned, since=since, why=why, remedies=remedies)


def rehearsed(job: Job, run: Evidence, planned: Trial) -> Rehearsal:
    """The answers of the engine of a recorded run, which stays as it is. Raises ValueError, one line, if refused."""
    from rlplay.engine.collector import without_collector

    with without_collector():
        from rlplay.engine.asked_run import asked_run
    from rlplay.health.remedies.outcome import Rehearsal
    from rlplay.trace.rehearsals import Rehearsed

    rehearsal, branches = Rehearsal(planned, run), planned.branches
    with asked_run(job, say_progress) as engine:
        for answer in engine.answers(planned.question(), lambda: False):
            assert isinstance(answer, Rehearsed)
            rehearsal.take(answer)
            if not answer.done:
                done = (answer.index * planned.updates + answer.update - planned.since) / (
                    len(branches) * planned.updates
                )
                say_progress(f"{branches[answer.index].label}, update {answer.update}", done)
    return rehearsal


def _nothing(recorded: Path, found: Sequence[Finding], name: str | None, as_json: bool) -> int:
    """There is no such finding, or none at all."""
    from rlplay.cli import tried_report as report

    if found:
        others = ", ".join(each.name for each in found)
        raise click.UsageError(f"this run has no finding {quote(name or '')}; it has: {others}")
    reason = "the health check has found no problem, so there is nothing to mend"
    _show(report.untried(recorded, None, reason), [f"{visible(recorded.stem)}: {reason}."], as_json)
    return UNJUDGED


def _show(printed: Tried, lines: Iterable[str], as_json: bool) -> None:
    from rlplay.printed import json_line

    for line in [json_line(printed)] if as_json else lines:
        click.echo(line)
