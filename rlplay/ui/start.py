"""Opens the screen on a job, on a recorded run, or on several recorded runs side by side."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rlplay import user_preferences
from rlplay.foreign.copy import Copy
from rlplay.link.prestarted import Prestarted, prestart
from rlplay.link.trainer_address import find
from rlplay.paths import new_run, own_keys, shortest_name
from rlplay.scenario.schema import Job
from rlplay.scenario.share import START, Moment
from rlplay.trace.text import visible
from rlplay.ui.app import RlplayApp
from rlplay.ui.lesson.teaching import Plan
from rlplay.ui.session.attached import AttachedSource
from rlplay.ui.session.sources import LiveSource, ReplaySource
from rlplay.ui.terminal.chosen_driver import chosen_driver

_WITHOUT_LESSON = Plan(keeps_theme=True)
"""How a run opens that has no lesson."""


def play(
    job: Job,
    demo: bool = False,
    then: Sequence[str] = (),
    moment: Moment = START,
    opens: bool = False,
    plays: bool = False,
    prestarted: Prestarted | None = None,
) -> int:
    """Open the playground on a job; returns the exit status.

    It `opens` with the story and its three ways on. The lesson goes to `moment` first; with `demo` it plays hands-free,
    with `plays` it begins without a key. A demo that nobody takes over goes on with the scenarios `then`. An engine may
    have been `prestarted`.
    """
    begins = not (demo or moment.step or job.resume)
    following = next(iter(then), None)
    plan = Plan(demo, following, moment, samples_first=begins, opens=opens, plays=plays, keeps_theme=True)
    app = RlplayApp(LiveSource(job, prestarted), plan=plan)
    playground = app.play
    status = run(app)
    if playground.session.run.finished and not app.is_web:
        print(kept(Path(job.run)), file=sys.stderr)
    if playground.next_scenario is None:
        return status
    from rlplay.scenario.loader import load

    with prestart() as engine:
        scenario = load(playground.next_scenario)
    goes_on = demo and app.teaching.lesson.hands_free
    after = Job(scenario, str(new_run(scenario.name)), job.device, job.threads)
    begin = Moment(playground.next_step, {})
    return play(after, goes_on, then[1:] if goes_on else (), begin, plays=not goes_on, prestarted=engine)


def kept(path: Path) -> str:
    """One line for the shell after the screen has closed: where the run is, and how to resume it."""
    return f"run kept: {visible(str(path))} · rlplay resume {visible(shortest_name(path))}"


def replay(path: str | Path) -> int:
    """Open a recorded run; returns the exit status. RunFileError if it cannot be read."""
    return run(RlplayApp(ReplaySource(Path(path)), plan=_WITHOUT_LESSON))


def attach(origin: Path, port: int | None = None) -> int:
    """Enter the training that is recorded in the folder `origin`; returns the exit status.

    Raises ValueError, one line, if it cannot be read or nobody listens.
    """
    copy = Copy(origin)
    return run(RlplayApp(AttachedSource(copy, find(copy.origin, port)), plan=_WITHOUT_LESSON))


def compare(runs: Sequence[Path]) -> int:
    """Open recorded runs side by side; returns the exit status. RunFileError if one cannot be read."""
    one, *others = map(ReplaySource, runs)
    return run(RlplayApp(one, others, _WITHOUT_LESSON))


def check_choices() -> None:
    """Raises ValueError, one line, if the user's own keys or the driver that TEXTUAL_DRIVER names are wrong."""
    chosen_keys()
    chosen_driver()


def chosen_keys() -> dict[str, str]:
    """The user's own keys, by action. Raises ValueError, one line, if their file is wrong."""
    if not own_keys().exists():
        return {}
    from rlplay.ui.own_keys import read  # imports every screen

    return read(RlplayApp)


def run(app: RlplayApp) -> int:
    """Run with the user's own keys and the theme that was chosen last, unless TEXTUAL_THEME names one.

    Raises ValueError, one line, if the file of the keys is wrong.
    """
    app.take_keys(chosen_keys())
    last = user_preferences.theme()
    if last in app.available_themes and "TEXTUAL_THEME" not in os.environ:
        app.theme = last
    return app.run() or app.return_code or 0
