"""kill -9 of the real engine at random moments: every run file stays valid, every run resumes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import closing
from pathlib import Path

import pytest

from rlplay.link.client import EngineProcess
from rlplay.link.messages import Advance, Failed, Recorded
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import Finished
from rlplay.trace.runfile import RunReader
from tests.terminal import child_of

SCENARIO = Scenario(
    name="kills", title="", question="", task="arithmetic", eval_every=0, max_updates=1000,
    settings={"num_prompts": 2, "num_generations": 4, "max_completion_length": 8, "num_iterations": 2},
)  # fmt: skip


async def _run_and_kill(run: Path, delay: float) -> int:
    """Run freely, kill the engine `delay` seconds after its first update; the number of updates that it reported."""
    engine, reported = EngineProcess(), 0
    await engine.start(Job(SCENARIO, str(run)))
    await engine.send(Advance("forever"))
    async for event in engine.events():
        if isinstance(event, Recorded) and isinstance(event.record, Finished):
            reported = event.record.update
            if reported == 1:
                pid = child_of(os.getpid(), "rlplay.engine.main")
                assert pid is not None
                asyncio.get_running_loop().call_later(delay, os.kill, pid, signal.SIGKILL)
        if isinstance(event, Failed):
            assert "SIGKILL" in event.text
    await engine.close()
    return reported


async def _resume(run: Path) -> int:
    """Go on for one update; its number."""
    engine, reached = EngineProcess(), 0
    await engine.start(Job(SCENARIO, str(run), resume=True))
    await engine.send(Advance("update"))
    async for event in engine.events():
        assert not isinstance(event, Failed), event.text
        if isinstance(event, Recorded) and isinstance(event.record, Finished):
            reached = event.record.update
            break
    await engine.close()
    return reached


@pytest.mark.slow
async def test_twenty_kills_leave_twenty_valid_runs_that_resume(tmp_path: Path) -> None:
    moments = random.Random(0)
    for number in range(20):
        run = tmp_path / f"{number}.rlplay"
        reported = await _run_and_kill(run, moments.uniform(0, 1.5))
        with closing(RunReader(run)) as reader:
            finished = reader.updates()
            assert finished == list(range(1, len(finished) + 1))
            assert len(finished) >= reported, "it reported an update that the file does not have"
            for update in finished:
                assert reader.load(update).finished is not None
        assert await _resume(run) in (len(finished), len(finished) + 1)
