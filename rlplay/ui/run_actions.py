"""What the verbs that show a whole run do, or several runs. Each imports its dialogue when it opens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rlplay.link.messages import Advance
from rlplay.trace.kinds import SomeSettings
from rlplay.ui.labels.labels import label
from rlplay.ui.main.playground import Action, Playground


async def _timeline(play: Playground, _argument: Any) -> None:
    from rlplay.ui.timeline.timeline_screen import TimelineScreen

    play.app.push_screen(TimelineScreen(play.session, [view.metrics for view in play.panels.curves.panels[0].overview]))


async def _surrogate(play: Playground, _argument: Any) -> None:
    from rlplay.ui.surrogate.surrogate_screen import SurrogateScreen

    async def chosen(changes: SomeSettings | None) -> None:
        if changes:
            await play.perform("set", changes)

    play.app.push_screen(SurrogateScreen(play.session), chosen)


async def _reach(play: Playground, _argument: Any) -> None:
    """Ask what reward would have moved the token under the cursor where the user wants it."""
    from rlplay.ui.reach.reach_screen import ReachScreen
    from rlplay.ui.reach.why_not import why_not
    from rlplay.ui.session.reaching import Reaching

    session, (completion, token) = play.session, play.panels.tokens.cursor
    if problem := why_not(session, completion, token):
        play.app.notify(problem, severity="warning", markup=False)
        return
    update = session.run.newest
    assert update is not None
    assert update.sampled is not None
    assert update.scored is not None
    session.reaching = Reaching(completion, token, float(update.scored.rewards[completion]))
    written = update.sampled.texts[int(update.sampled.offsets[completion]) + token]
    play.app.push_screen(ReachScreen(session.reaching, written, session.source.send))


async def _health(play: Playground, _argument: Any) -> None:
    from rlplay.ui.health.health_screen import HealthScreen

    play.app.push_screen(HealthScreen(play.session))


async def _try(play: Playground, argument: Any) -> None:
    """Try settings against a problem of the run, whose name the argument may be."""
    from rlplay.ui.compare.branch_screen import BranchScreen
    from rlplay.ui.health.health_screen import HealthScreen
    from rlplay.ui.health.repair_screen import RepairScreen
    from rlplay.ui.health.to_try import to_try

    session, tried = play.session, to_try(play.session, argument)
    if isinstance(tried, str):
        play.app.notify(tried, severity="warning", markup=False)
        return
    started, since = session.run.started, tried.trial.since
    assert started is not None

    def draft(take: Callable[[SomeSettings | None], None]) -> None:
        play.app.push_screen(BranchScreen(session, started, since, "What else should be tried?"), take)

    def go_on(changes: SomeSettings | None) -> None:
        if changes is not None:
            if isinstance(play.app.screen, HealthScreen):
                play.app.screen.dismiss()
            play.app.run_worker(play.other_runs.branch_off(since, changes), group="branch", exclusive=True)

    if session.status is not None and session.status.running:
        await play.send(Advance("update"), "stepping")  # a rehearsal begins between two updates
    session.rehearsing = tried
    play.app.push_screen(RepairScreen(session, tried, session.source.send, draft), go_on)


async def _held_out(play: Playground, _argument: Any) -> None:
    from rlplay.ui.held_out.held_out_screen import HeldOutScreen

    play.app.push_screen(HeldOutScreen(play.session))


async def _morph(play: Playground, argument: Any) -> None:
    from rlplay.ui.held_out.answers_over_time import LearningScreen

    play.app.push_screen(LearningScreen(play.session, None if argument is None else int(argument)))


async def _log(play: Playground, _argument: Any) -> None:
    from rlplay.ui.log.log_screen import LogScreen

    play.app.push_screen(LogScreen(play.session))


async def _moments(play: Playground, argument: Any) -> None:
    """Compare the answers at two moments; without them, at the first one and at the update on the screen."""
    from rlplay.ui.compare.compare_moments import CompareMomentsScreen
    from rlplay.ui.moments.answer_pairs import first_moment
    from rlplay.ui.moments.moments_screen import MomentsScreen

    session = play.session
    after = session.run.finished if session.older_update is None else min(session.older_update, session.run.finished)
    before, after = argument if isinstance(argument, list) else (first_moment(session, after), after)

    def compare(before: int, after: int, group: int) -> None:
        play.app.push_screen(CompareMomentsScreen(play, session, before, after, group))

    play.app.push_screen(MomentsScreen(session, before, after, compare))


async def _branch(play: Playground, number: Any) -> None:
    """Ask what should differ in a branch from the end of update `number`; None means the update on the screen."""
    started = play.session.run.started
    if started is None:
        play.app.notify("Nothing to branch from yet: the engine is still starting.")
        return
    from rlplay.ui.compare.branch_screen import BranchScreen

    at = play.session.branches_at if number is None else number

    def begin(changes: SomeSettings | None) -> None:
        if changes is not None:
            play.app.run_worker(play.other_runs.branch_off(at, changes), group="branch", exclusive=True)

    play.app.push_screen(BranchScreen(play.session, started, at), begin)


async def _compare(play: Playground, _argument: Any) -> None:
    if play.other_runs.sessions:
        show_comparison(play)
    else:
        await _branch(play, None)


def show_comparison(play: Playground) -> None:
    """Compare this run with the others."""
    from rlplay.ui.compare.compare_screen import CompareScreen

    if play.other_runs.sessions:
        play.app.push_screen(CompareScreen(play, [play.session, *play.other_runs.sessions], partial(label, play)))


ACTIONS: dict[str, Action] = {
    "timeline": _timeline,
    "surrogate": _surrogate,
    "reach": _reach,
    "health": _health,
    "try": _try,
    "held_out": _held_out,
    "morph": _morph,
    "log": _log,
    "moments": _moments,
    "branch": _branch,
    "compare": _compare,
}
