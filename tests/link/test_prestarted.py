"""An engine that is started before its job and before an event loop: it works like any other, or is ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from rlplay.link.client import EngineProcess
from rlplay.link.messages import Advance, Failed, LogLine, Recorded, Status
from rlplay.link.prestarted import Prestarted, prestart
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import Finished
from rlplay.ui.session.sources import LiveSource
from tests.link.test_client import FAKE, ROOT, Screen, job
from tests.terminal import running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="asyncio adopts no process there")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Prestarted:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Prestarted(FAKE)


async def test_it_takes_a_job_and_commands_like_any_engine(engine: Prestarted) -> None:
    process = EngineProcess(prestarted=engine)
    await process.start(job())
    screen = Screen(process)
    await screen.until(lambda event: isinstance(event, Status))
    await process.send(Advance("update", 1))
    await screen.until(lambda event: isinstance(event, Recorded) and isinstance(event.record, Finished))
    await process.close(grace=3.0)
    assert process.exit_status == 0


async def test_its_output_and_its_end_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    process = EngineProcess(prestarted=Prestarted([sys.executable, "-c", "import sys; sys.exit('no such thing')"]))
    await process.start(job())
    seen = await Screen(process).to_the_end()
    assert LogLine("warning", "no such thing") in seen
    assert "exit status 1" in next(event.text for event in seen if isinstance(event, Failed))
    await process.close()


async def test_closing_ends_it_while_it_still_imports() -> None:
    process = EngineProcess(prestarted=Prestarted([sys.executable, "-c", "import time; time.sleep(60)"]))
    await process.start(job())
    began = time.monotonic()
    await process.close(grace=30.0)
    assert time.monotonic() - began < 5.0
    assert process.exit_status == -signal.SIGTERM


def test_a_job_that_is_refused_ends_it() -> None:
    started: list[Prestarted | None] = []

    def refuse() -> None:
        with prestart() as engine:
            started.append(engine)
            raise ValueError("no such scenario")

    with pytest.raises(ValueError, match="no such scenario"):
        refuse()
    (engine,) = started
    assert engine is not None
    assert not running(engine._popen.pid)


def test_without_a_terminal_there_is_none() -> None:
    with prestart(False) as engine:
        assert engine is None


async def test_a_source_that_never_started_ends_it(engine: Prestarted, tmp_path: Path) -> None:
    source = LiveSource(Job(Scenario(name="n", title="t", question="q"), str(tmp_path / "run.rlplay")), engine)
    assert running(engine._popen.pid)
    await source.close()
    assert not running(engine._popen.pid)
