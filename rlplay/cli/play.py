"""Commands that start something: the playground, a run without a screen, a replay."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlplay.cli.options import DEVICE_OPTION, option_words, with_options
from rlplay.cli.recorded_job import resume_job
from rlplay.cli.several import as_one_of_several, in_processes
from rlplay.cli.splash import on_a_terminal, splash
from rlplay.cli.trusting import TRUST, ask_trust, follow_named
from rlplay.cli.types import CURVES, GROWING, RUN, SCENARIO, WholeNumber
from rlplay.printing import raw_stream
from rlplay.processes import in_several, is_first
from rlplay.supervisor import watched

if TYPE_CHECKING:
    from rlplay.link.prestarted import Prestarted
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.scenario.script import Step
    from rlplay.scenario.share import Moment

FLAGSHIP = "learn-to-think"

_COMPARED = 8  # runs at once: as many as the screen has line styles


def _scenario(name: str | None, changes: dict[str, Any]) -> Scenario:
    from rlplay.scenario.command_line import with_changes
    from rlplay.scenario.loader import load
    from rlplay.scenario.names import looks_like_code
    from rlplay.scenario.share import shared_in

    if name is not None and looks_like_code(name):
        return shared_in(name).scenario_with(changes)
    return with_changes(load(name or FLAGSHIP), **changes)


def _trusted_scenario(name: str | None, changes: dict[str, Any], trusted: bool) -> Scenario:
    from rlplay.scenario.trust import code_of

    chosen = _scenario(name, changes)
    follow_named(changes)
    ask_trust(code_of(chosen), trusted)
    return chosen


def _moment(name: str | None) -> Moment:
    """Where in a lesson a share code leads; the start for any other name."""
    from rlplay.scenario.names import looks_like_code
    from rlplay.scenario.share import START, shared_in

    return shared_in(name).moment if name is not None and looks_like_code(name) else START


def _new_job(scenario: str | None, device: str, out: Path | None, changes: dict[str, Any], trusted: bool) -> Job:
    from rlplay.scenario.job import new_job

    chosen = _trusted_scenario(scenario, changes, trusted)
    return new_job(chosen, out, device)


def needs_a_terminal(instead: str) -> None:
    """Refuse to go on without a terminal; `instead` is what works without one."""
    # TEXTUAL_DRIVER names another driver for Textual: that of textual-serve draws in a browser.
    if not (sys.stdin.isatty() and sys.stdout.isatty()) and not os.environ.get("TEXTUAL_DRIVER"):
        raise click.UsageError(f"the screen needs a terminal; without one: {instead}")


def _engine_ahead() -> AbstractContextManager[Prestarted | None]:
    """An engine that imports its libraries while the screen is imported, too."""
    from rlplay.link.prestarted import prestart  # after the first frame: it imports asyncio

    return prestart(on_a_terminal())


def _open(
    scenario: str | None,
    device: str,
    changes: dict[str, Any],
    trusted: bool = False,
    demo: bool = False,
    then: Sequence[str] = (),
) -> int:
    opens = scenario is None and not option_words(changes)
    with splash(scenario or FLAGSHIP, opens), _engine_ahead() as engine:
        job = _new_job(scenario, device, None, changes, trusted)
        needs_a_terminal(f"rlplay run {scenario or FLAGSHIP}")
        from rlplay.ui.start import check_choices
        from rlplay.ui.start import play as open_playground

        check_choices()  # whose error belongs on the normal screen
    return open_playground(job, demo, then, _moment(scenario), opens, prestarted=engine)


@click.command(hidden=True)
@click.argument("scenario", type=SCENARIO, required=False)
@with_options
@TRUST
def play(scenario: str | None, device: str, trust: bool, **changes: Any) -> int:
    """Open the playground."""
    return _open(scenario, device, changes, trust)


@click.command()
@click.argument("scenario", type=SCENARIO, required=False)
@with_options
@TRUST
def demo(scenario: str | None, device: str, trust: bool, **changes: Any) -> int:
    """Play a lesson hands-free; any key takes over.

    Without SCENARIO, it plays the lessons that show the most, one after another.
    """
    if scenario is not None:
        return _open(scenario, device, changes, trust, demo=True)
    from rlplay.scenario.course import tour

    first, *others = tour()
    return _open(first, device, changes, demo=True, then=others)


def _refuse_changes(scenario: str | None, out: Path | None, changes: dict[str, Any]) -> None:
    given = option_words(changes)[:1]
    given += ["the scenario"] * (scenario is not None) + ["--out"] * (out is not None)
    if given:
        raise click.UsageError(f"--resume uses the run's own scenario and settings; omit {given[0]}")


@click.command(epilog="Example: rlplay resume last")
@click.argument("recorded", metavar="RUN", type=RUN)
@DEVICE_OPTION
@TRUST
def resume(recorded: Path, device: str, trust: bool) -> int:
    """Continue a recorded run in the playground.

    The run continues from its last snapshot.
    """
    with splash(recorded.stem), _engine_ahead() as engine:
        job = resume_job(recorded, device, trust)
        needs_a_terminal(f"rlplay run --resume {shlex.quote(str(recorded))}")
        from rlplay.ui.start import check_choices
        from rlplay.ui.start import play as open_playground

        check_choices()  # whose error belongs on the normal screen
    return open_playground(job, prestarted=engine)


@click.command()
@click.argument("scenario", type=SCENARIO, required=False)
@with_options
@TRUST
@click.option("--resume", type=RUN, metavar="RUN", help="Continue a recorded run instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per update on standard output, then the result.")
@click.option("--out", type=click.Path(path_type=Path), metavar="RUN", help="Where the run file goes.")
@click.option(
    "--processes",
    type=WholeNumber(1),
    metavar="N",
    default=1,
    help="Train in N processes: each samples and learns from a share of the answers, on a GPU if there are any.",
)
def run(
    scenario: str | None,
    device: str,
    updates: int | None,
    as_json: bool,
    out: Path | None,
    resume: Path | None,
    trust: bool,
    processes: int,
    **changes: Any,
) -> int:
    """Play a scenario without a screen and check what it expects.

    Exit status: 0 all expectations hold, 1 one does not, 2 bad input, 130 interrupted (the run is saved).
    With --updates, expectations after the last update are not reached and do not fail. Held-out numbers join the
    update they follow; those from before training are update 0. With --resume, the run continues to its last update,
    or by --updates, without its lesson.
    """
    from rlplay.scenario.lesson import whole_script
    from rlplay.scenario.script import parse

    if resume is not None:
        _refuse_changes(scenario, out, changes)
        job = resume_job(resume, device, trust)
    else:
        job = _new_job(scenario, device, out, changes, trust)
        if step := _moment(scenario).step:
            raise click.UsageError(f"the share code leads to step {step} of a lesson on the screen: rlplay {scenario}")
    steps = parse(whole_script(job.scenario))
    if processes > 1 and not in_several():
        words = ["run", *([scenario] if scenario else []), "--device", device, *option_words(changes)]
        words += ["--updates", str(updates)] * (updates is not None) + ["--json"] * as_json + ["--trust"] * trust
        return in_processes([*words, *(["--resume", job.run] if resume else ["--out", job.run])], processes, job.run)
    if in_several():
        return as_one_of_several(job, lambda known: _play(known, steps, updates, as_json))
    return _play(job, steps, updates, as_json)


def _play(job: Job, steps: Sequence[Step], updates: int | None, as_json: bool) -> int:
    from rlplay.engine.collector import without_collector

    with without_collector():
        from rlplay.containment import OwnError
        from rlplay.engine.driver import Driver
        from rlplay.engine.headless import resume_command
        from rlplay.engine.headless import run as play_headless
        from rlplay.engine.run_report import JsonLines, TextReport
        from rlplay.engine.state import Halt
        from rlplay.trusted import is_distrust

    silent = None if is_first() else open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    report = (JsonLines if as_json else TextReport)(silent or raw_stream(sys.stdout), silent or raw_stream(sys.stderr))
    again = resume_command(job.run)
    try:
        # What a reward function prints is no part of the report.
        looked_after = nullcontext() if in_several() else watched(again)  # else what started them watches
        with looked_after, redirect_stdout(sys.stderr):
            return play_headless(job, steps, updates, report, Driver)
    except Halt as error:
        again = resume_command(job.run, mended=isinstance(error.__cause__, OwnError) and not is_distrust(error))
        raise click.UsageError(f"training stopped: {error}. To continue: {again}") from error


@click.command(epilog="Example: rlplay replay last")
@click.argument("recorded", metavar="RUN", type=GROWING)
@CURVES
def replay(recorded: Path, curves: Path | None) -> int:
    """Open a recorded run, finished or still growing."""
    needs_a_terminal(f"rlplay export {shlex.quote(str(recorded))} --format jsonl --out PATH")
    from rlplay.foreign.copy import join
    from rlplay.ui.start import replay as open_replay

    if curves is not None:
        join(recorded, curves)
    return open_replay(recorded)


@click.command(epilog="Example: rlplay compare RUN RUN, each a name that 'rlplay runs' lists")
@click.argument("recorded", metavar="RUN RUN…", type=GROWING, nargs=-1, required=True)
def compare(recorded: tuple[Path, ...]) -> int:
    """Open two to eight recorded runs beside each other.

    Their curves share one plot. Answers to the same prompts are shown next to each other, for two runs at a time.
    """
    if not 2 <= len(recorded) <= _COMPARED:
        raise click.UsageError(f"compare takes 2 to {_COMPARED} runs; got {len(recorded)}")
    needs_a_terminal(f"rlplay export {shlex.quote(str(recorded[0]))} --format jsonl --out PATH, for each of them")
    from rlplay.ui.start import compare as open_comparison

    return open_comparison(recorded)


@click.command()
@click.argument("scenario", type=SCENARIO, required=False)
@click.option(
    "--port", type=WholeNumber(0, 65535), default=8000, metavar="N", show_default=True, help="0: any that is free."
)
@with_options
@TRUST
def serve(scenario: str | None, port: int, device: str, trust: bool, **changes: Any) -> None:
    """Open the playground in this machine's browsers.

    Each tab is a separate run with the same options, at http://127.0.0.1:N, for this machine only.
    """
    from importlib.util import find_spec

    # A bad scenario is reported here, and a stranger's code asked for, not in the browser.
    _trusted_scenario(scenario, changes, trust)
    if find_spec("textual_serve") is None:
        raise click.UsageError("the browser needs textual-serve, which is not installed: pip install textual-serve")
    from rlplay.cli.serve import serve as serve_playground

    serve_playground([scenario or FLAGSHIP, "--device", device, *option_words(changes)], port)


COMMANDS = (play, demo, run, resume, replay, compare, serve)
