"""The command that says who taught a token of a recorded run what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rlplay.cli.options import AS_JSON, DEVICE_OPTION
from rlplay.cli.recorded_job import question_job, say_progress
from rlplay.cli.trusting import TRUST
from rlplay.cli.types import RUN, WholeNumber

_COUNT = WholeNumber(1)


@click.command(epilog="Example: rlplay teachers last --update 3 --answer 5 --token 1")
@click.argument("recorded", metavar="RUN", type=RUN)
@click.option("--update", type=_COUNT, required=True, metavar="N", help="The update that moved it.")
@click.option("--answer", type=_COUNT, metavar="I", help="An answer of that update, counted from 1.")
@click.option("--token", type=_COUNT, metavar="T", help="A token of the answer, from 1; without it, the whole answer.")
@click.option("--candidate", metavar="TEXT", help="Another token in that place: the text of a candidate, or #ID.")
@click.option("--held-out", type=_COUNT, metavar="I", help="A held-out answer instead, of the newest by then.")
@click.option("--by", type=_COUNT, metavar="N", help="Answers of this earlier update, by the optimizer's momentum.")
@click.option("--without", type=_COUNT, metavar="I", multiple=True, help="Test: no credit for this answer; repeatable.")
@click.option("--course", is_flag=True, help="What every update of the run did to it, instead.")
@DEVICE_OPTION
@TRUST
@AS_JSON
def teachers(recorded: Path, device: str, trust: bool, as_json: bool, **asked: Any) -> None:
    """Say which answers taught a token what it does.

    An update moved the log-probability of a token. Each token that the update learned from has a share in that, and
    the shares add up to a prediction of what was measured. The engine computes them from the run's snapshots. The run
    stays as it is, and may be open elsewhere.
    """
    from rlplay.cli.who_taught.asked import Asked
    from rlplay.printed import json_line
    from rlplay.trace.runfile import RunReader

    question = Asked(**asked)
    question.check()
    with RunReader(recorded) as reader:
        records, known = reader.record_ids(question.update), question.known(reader)
        job = question_job(recorded, device, trust)
        from rlplay.engine.collector import without_collector

        with without_collector():
            from rlplay.cli.who_taught.ask import ask
            from rlplay.engine.asked_run import asked_run
        with asked_run(job, say_progress) as engine:
            printed, text = ask(question, known, engine, reader)
        if reader.record_ids(question.update) != records:
            raise click.UsageError(f"{recorded} went back to before update {question.update} meanwhile; ask again")
    for line in [json_line(printed)] if as_json else text:
        click.echo(line)
