"""What "Step by step" says of a clear and an ambiguous question: its probes show it, and no claim can measure it."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.headless import HeadlessRun
from rlplay.engine.run_report import TextReport
from rlplay.scenario.job import new_job
from rlplay.scenario.loader import load
from rlplay.scenario.script import ScreenVerb, You, parse
from rlplay.trace.questions import Estimate, Estimated, Prefix
from rlplay.trace.run import Run


@pytest.mark.slow
@pytest.mark.parametrize("seed", [40_417, 707_003, 52_361])
def test_a_clear_question_is_worth_much_and_an_ambiguous_one_little(seed: int, tmp_path: Path) -> None:
    scenario = msgspec.structs.replace(load("step-by-step"), seed=seed)
    steps = parse(scenario.script)
    asked = [
        step.step.argument for step in steps
        if isinstance(step, You) and isinstance(step.step, ScreenVerb) and step.step.verb == "probe"
    ]  # fmt: skip
    player = HeadlessRun(TextReport(io.StringIO(), io.StringIO()), None, Run())
    driver = Driver(new_job(scenario, tmp_path / "run.rlplay", "cpu"), player.take)
    try:
        driver.load(lambda _what, _share: None)
        player.play(steps, driver)
        clear, ambiguous = (_value(driver, Prefix(each["prompt"], columns=each.get("columns"))) for each in asked)
    finally:
        driver.close()
    assert clear > 0.9
    assert ambiguous < 0.2


def _value(driver: Driver, prefix: Prefix) -> float:
    *_, answer = driver.probe(Estimate(prefix), lambda: False)
    assert isinstance(answer, Estimated)
    assert answer.mean is not None
    return answer.mean
