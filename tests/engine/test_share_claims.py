"""Claims about shares on a real engine, without a screen: they add up, and the run stays as it is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.headless import HeadlessRun
from rlplay.engine.run_report import TextReport
from rlplay.scenario.job import new_job
from rlplay.scenario.loader import load
from rlplay.scenario.script import parse
from rlplay.trace.run import Run

OF_4 = {"text": "It moved", "share": "4", "prompt": "What is 2+3?", "above": -99}


def steps(*claims: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"update": 1}, *({"expect": {**OF_4, **claim}} for claim in claims), {"update": 1}]


def played(tmp_path: Path, *claims: dict[str, Any]) -> HeadlessRun:
    lesson = load("who-taught-it")
    scenario = msgspec.structs.replace(lesson, settings=lesson.settings | {"num_generations": 16}, seed=3)
    run = HeadlessRun(TextReport(io.StringIO(), io.StringIO()), None, Run())
    driver = Driver(new_job(scenario, tmp_path / f"{len(claims)}.rlplay", "cpu"), run.take)
    try:
        driver.load(lambda _what, _share: None)
        run.play(parse(steps(*claims)), driver)
    finally:
        driver.close()
    return run


def test_the_engine_answers_the_claims_and_trains_on_as_before(tmp_path: Path) -> None:
    parts = ("same prompt", "other prompts", "batch", "predicted", "measured")
    run = played(tmp_path, *({"of": part} for part in parts), {"without": "other prompts"}, {"prompt": "What is 9+9?"})
    own, others, batch, predicted, measured, without, unknown = (each.value for each in run.outcomes)
    assert own is not None
    assert others is not None
    assert own + others == pytest.approx(batch, abs=1e-5)
    assert predicted == pytest.approx(batch, abs=1e-5), "the first update: nothing came before"
    assert predicted == pytest.approx(measured, rel=0.3)
    assert without
    assert unknown is None
    assert "did not ask" in run.outcomes[-1].finding
    plain = played(tmp_path)
    assert run.run.history.series("grad_norm") == plain.run.history.series("grad_norm")
