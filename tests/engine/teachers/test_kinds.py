"""Every kind of run has teachers: given answers, pairs, worlds, adapters, bfloat16, stages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord
from rlplay.trace.teachers import TaughtCourse, TeachCourse
from tests.engine.conftest import FROM_ANSWERS, one_of_each_kind
from tests.engine.teachers.asking import Start, in_float64, never, targets_of, taught
from tests.engine.teachers.test_undisturbed import everything, same
from tests.engine.test_stages import begun
from tests.numbers import update_of
from tests.worlds.value_run import SMALL, Run


def check(driver: Driver, records: list[AnyRecord], update: int, rel: float, by: int | None = None) -> None:
    """Three targets of an update, and that nothing changes."""
    before = everything(driver)
    for target in targets_of(update_of(records, update))[1:4]:
        found = taught(driver, target, update, by)
        scale = max(abs(found.first_order), 0.1 * float(np.abs(found.shares).sum()), 1e-6)
        assert abs(found.predicted - found.first_order) <= rel * scale
        assert sum(part for *_, part in found.earlier_by) == pytest.approx(found.earlier, rel=1e-4, abs=1e-6)
        assert np.abs(found.shares).max() > 0
    assert same(everything(driver), before)


@pytest.mark.parametrize("algorithm", one_of_each_kind([name for name in FROM_ANSWERS if name != "reward-model"]))
@pytest.mark.usefixtures("opinionated")
def test_given_answers_and_pairs(start: Start, algorithm: str) -> None:
    driver, records = start(architecture="gpt2", algorithm=algorithm, num_prompts=4, num_minibatches=2)
    in_float64(driver)
    driver.advance("update", 2, never)
    check(driver, records, 2, 1e-4)


@pytest.mark.parametrize("model", ["table", "network"])
@pytest.mark.parametrize("algorithm", ["reinforce", "a2c"])
def test_worlds(tmp_path: Path, model: str, algorithm: str) -> None:
    settings = {"algorithm": algorithm, "learning_rate": 0.05, "num_generations": 6}
    run = Run(tmp_path, SMALL, settings=settings, model=model).go(2)
    sampled = run.updates[2].sampled
    assert sampled is not None
    target = targets_of(run.updates[2])[0]
    found = taught(run.driver, target, 2)
    assert found.predicted == pytest.approx(found.first_order, rel=0.02, abs=1e-5)
    assert found.measured == pytest.approx(found.first_order, rel=0.5, abs=0.02)
    assert not found.shares[sampled.mask == 0].any()


def test_q_learning_has_no_gradients(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL).go(1)
    with pytest.raises(ValueError, match="no gradients"):
        taught(run.driver, targets_of(run.updates[1])[0], 1)


def test_adapters(start: Start) -> None:
    pytest.importorskip("peft")
    lora = {"use_peft": True, "lora_r": 4, "lora_target_modules": ["q_proj", "v_proj"]}
    driver, records = start(scenario=lora, algorithm="grpo", beta=0.1, learning_rate=3e-2, num_iterations=2)
    driver.advance("update", 2, never)
    check(driver, records, 2, 0.02)


@pytest.mark.parametrize("steps", [1, 2])
def test_bfloat16(start: Start, steps: int) -> None:
    driver, records = start(scenario={"dtype": "bfloat16"}, algorithm="grpo", num_iterations=steps)
    driver.advance("update", 2, never)
    check(driver, records, 2, 0.1)


@pytest.mark.usefixtures("opinionated", "trusts_all")
def test_stages(micro_model: Path, tmp_path: Path) -> None:
    driver, records = begun(micro_model, tmp_path / "stages.rlplay")
    driver.advance("update", 6, never)
    for update in (1, 2, 6):
        check(driver, records, update, 0.02)
    target = targets_of(update_of(records, 6))[0]
    first = taught(driver, target, 5)
    assert (first.earlier, first.earlier_by) == (0, [])
    with pytest.raises(ValueError, match="began anew after update 4"):
        taught(driver, target, 5, by=2)
    with pytest.raises(ValueError, match="reward model"):
        taught(driver, target, 3)
    (*_, answer) = driver.answers(TeachCourse(target), never)
    assert isinstance(answer, TaughtCourse)
    assert [(move.since, move.update) for move in answer.moves] == [(n, n + 1) for n in range(6)]
    assert [move.measured for move in answer.moves[2:4]] == [0, 0]
