"""The runs that are compared with the one on the screen: a branch with a second engine, or other recordings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from rlplay import paths
from rlplay.link.messages import Advance, AnyCommand, Set, Status, Withhold
from rlplay.scenario.lesson import without_lesson
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Job
from rlplay.scenario.trust import code_of_run
from rlplay.trace.branch import Stopped, branch
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import Imagined
from rlplay.trace.records import Started
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.trusted import consequences, strange
from rlplay.ui.session.follow import follow
from rlplay.ui.session.session import Session
from rlplay.ui.session.source import Source
from rlplay.ui.session.sources import LiveSource


class OtherRuns:
    """The sessions of the other runs."""

    def __init__(
        self, app: App[Any], first: Session, sources: Sequence[Source], show: Callable[[], Awaitable[None]]
    ) -> None:
        """The runs of `sources`, compared with the run of `first`; `show` brings them to the screen."""
        self._app, self._first, self._show = app, first, show
        self.sessions = [Session(source) for source in sources]

    def listen(self) -> None:
        """Start the sources and follow their events."""
        for session in self.sessions:
            self._follow(session)

    def _follow(self, session: Session, first: Sequence[AnyCommand] = ()) -> None:
        """Take its events. Its engine gets the `first` commands as soon as it is ready."""
        waiting = list(first)

        async def receive(_event: Status | Imagined) -> None:
            while waiting:
                await session.source.send(waiting.pop(0))

        self._app.run_worker(follow(session, receive), group="other runs", exit_on_error=False)

    async def branch_off(self, number: int, changes: SomeSettings, withheld: Sequence[int] = ()) -> None:
        """Copy the run up to update `number`, start an engine on the copy and compare the two; keys wait meanwhile.

        The branch plays one update with the `changes`, and without the credit of its tokens `withheld`, if any.
        The branch replaces the other runs: the engine of an earlier branch ends, and its run file stays.
        """
        one = self._first
        assert one.run.started is not None
        path = paths.new_run(f"{one.run.started.scenario}-from-{number}")
        from rlplay.ui.main.copying import CopyingScreen

        if asked := strange(code_of_run(scenario_of(one.run.started), one.run.timeline)):
            words = f"No branch: the run would {consequences(asked)}. 'rlplay resume' asks whether to trust it."
            self._app.notify(visible(words), severity="error", markup=False)
            return
        made, copying = False, CopyingScreen(number)
        self._app.push_screen(copying, self._copied)
        try:
            await asyncio.to_thread(branch, one.source.path, number, path, copying.going)
            await self.close()
            self.sessions = [Session(LiveSource(_job(one.run.started, path)))]
            self._follow(self.sessions[0], _begins_with(number, changes, withheld))
            made = True
        except RunFileError as error:
            self._app.notify(visible(str(error)), severity="error", markup=False)
        except Stopped:
            self._app.notify("No branch was started.")
        except asyncio.CancelledError:
            copying.action_cancel()  # otherwise the thread would outlive the app
            raise
        copying.over(made)

    async def _copied(self, made: bool | None) -> None:
        if made:
            await self._show()

    async def close(self) -> None:
        """Stop following the runs and close their sources."""
        self._app.workers.cancel_group(self._app, "other runs")
        await asyncio.gather(*(session.source.close() for session in self.sessions))


def _begins_with(number: int, changes: SomeSettings, withheld: Sequence[int]) -> list[AnyCommand]:
    """The commands that a branch from the end of update `number` begins with."""
    different: list[AnyCommand] = [Set(changes)] if changes else []
    if withheld:
        different.append(Withhold(number + 1, list(withheld)))
    return [*different, Advance("update")]


def _job(started: Started, path: Path) -> Job:
    """A job that continues a copy of the run: same device, same number of threads."""
    scenario = without_lesson(scenario_of(started))
    return Job(scenario, str(path), started.device, started.threads, resume=True)
