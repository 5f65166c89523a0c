"""A run with a library's game: undone and played again, or played in another process, it is the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.state import Halt
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord, Sampled, Scored
from tests.tasks.library import stand_ins

pytestmark = pytest.mark.usefixtures("trusts_all")


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    for made in (stand_ins.textarena, stand_ins.openenv):
        for name, module in made().items():
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("rlplay.tasks.library.openenv.check_address", lambda name: None)


def started(task: str, run: Path) -> tuple[Driver, list[AnyRecord]]:
    settings = {"num_prompts": 2, "num_generations": 4, "max_completion_length": 80, "reward_stream": "process"}
    scenario = Scenario(name="t", title="", question="", task=task, max_updates=3, settings=settings)
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(run), device="cpu", threads=1), records.append)
    driver.load(lambda what, share: None)
    return driver, records


def learned(records: list[AnyRecord], update: int) -> tuple[Any, ...]:
    """The tokens, the mask and the rewards of the last time that this update was played."""
    sampled = [each for each in records if isinstance(each, Sampled) and each.done and each.update == update][-1]
    scored = [each for each in records if isinstance(each, Scored) and each.update == update][-1]
    return sampled.token_ids.tolist(), sampled.mask.tolist(), scored.rewards.tolist()


@pytest.mark.parametrize("task", ["textarena:Dice-v0?size=6&sides=2", "openenv:http://there:1?size=4&action=word"])
def test_an_episode_is_the_same_again(task: str, tmp_path: Path) -> None:
    driver, records = started(task, tmp_path / "a.rlplay")
    driver.advance("update", 2, lambda: False)
    first = learned(records, 2)
    driver.rewind(1)
    driver.advance("update", 1, lambda: False)
    assert learned(records, 2) == first
    driver.close()
    another, others = started(task, tmp_path / "b.rlplay")
    another.advance("update", 2, lambda: False)
    assert learned(others, 2) == first
    another.close()
    assert (np.array(first[1]) == 0).any(), "the game has said something"


def test_a_server_that_is_gone_stops_the_run_which_then_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = started("openenv:http://there:1?size=4&action=word", tmp_path / "a.rlplay")

    def gone(_client: Any, _action: Any) -> None:
        raise ConnectionError("the server is gone")

    with monkeypatch.context() as broken:
        broken.setattr(stand_ins.Client, "step", gone)
        with pytest.raises(Halt, match=r"environment failed: openenv:http://there:1.*the server is gone; fix it"):
            driver.advance("update", 1, lambda: False)
    driver.advance("update", 1, lambda: False)
    assert learned(records, 1)
    driver.close()
