"""A reference that follows the policy is TRL's, and every way back to an update finds it as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.trace.branch import branch
from rlplay.trace.records import AnyRecord, Sampled, Stepped
from tests.engine.teachers.asking import targets_of, taught
from tests.engine.teachers.test_undisturbed import everything, same
from tests.engine.test_branch import _numbers
from tests.engine.test_more_axes import records_of
from tests.numbers import update_of

pytestmark = pytest.mark.usefixtures("opinionated")
Start = Callable[..., tuple[Driver, list[AnyRecord]]]
Arrays = dict[str, torch.Tensor]
MOVES: dict[str, Any] = {"beta": 0.3, "learning_rate": 1e-2, "sync_ref_model": True, "ref_model_sync_steps": 2,
                         "num_minibatches": 1, "num_iterations": 1}  # fmt: skip


def never() -> bool:
    return False


def weights_of(model: Any) -> Arrays:
    return {name: p.detach().double().clone() for name, p in model.named_parameters()}


def mixed(policy: Arrays, reference: Arrays, alpha: float) -> Arrays:
    return {name: alpha * policy[name] + (1 - alpha) * old for name, old in reference.items()}


def close(one: Arrays, other: Arrays) -> bool:
    return all(torch.allclose(value, other[name], atol=1e-7) for name, value in one.items())


def test_it_moves_every_so_many_steps_by_a_share_of_the_way(start: Start) -> None:
    driver, _ = start(**MOVES, ref_model_mixup_alpha=0.7)
    lm = driver._state.lm
    policies, references = [weights_of(lm.policy)], [weights_of(lm.reference)]
    for _ in range(5):
        driver.advance("update", 1, never)
        policies.append(weights_of(lm.policy))
        references.append(weights_of(lm.reference))
    driver.close()
    assert not close(policies[1], policies[0])
    assert close(references[1], references[0])
    assert close(references[2], mixed(policies[2], references[0], 0.7))
    assert close(references[3], references[2])
    assert close(references[4], mixed(policies[4], references[2], 0.7))
    assert close(weights_of(lm.start), references[0])


def test_it_is_the_callback_of_trl(start: Start) -> None:
    callbacks = pytest.importorskip("trl.trainer.callbacks", reason="TRL is not installed")
    driver, _ = start(**MOVES | {"ref_model_sync_steps": 1})
    lm = driver._state.lm
    before = {name: p.detach().clone() for name, p in lm.reference.named_parameters()}
    driver.advance("update", 1, never)
    driver.close()
    found = {name: p.detach().clone() for name, p in lm.reference.named_parameters()}
    with torch.no_grad():
        for name, parameter in lm.reference.named_parameters():
            parameter.copy_(before[name])
    callbacks.SyncRefModelCallback._sync_target_model(lm.policy, lm.reference, 0.6)
    assert all(torch.equal(found[name], parameter) for name, parameter in lm.reference.named_parameters())


OF_PAIRS = MOVES | {"algorithm": "dpo", "ref_model_sync_steps": 3, "num_minibatches": 2}


@pytest.mark.parametrize("given", [MOVES, OF_PAIRS], ids=["rewards", "pairs"])
def test_every_way_back_finds_it_as_it_was(start: Start, tmp_path: Path, given: dict[str, Any]) -> None:
    driver, _ = start(**given)
    states = [everything(driver)]
    for _ in range(5):
        driver.advance("update", 1, never)
        states.append(everything(driver))
    for update in (4, 3, 1, 0):
        driver.rewind(update)
        assert same(everything(driver), states[update]), update
        assert (driver._state.lm.began is None) == (update < 2)
        driver.advance("update", 5 - update, never)
        assert same(everything(driver), states[5]), update
    branch(tmp_path / "run.rlplay", 3, tmp_path / "other.rlplay")
    other, _ = start("other.rlplay", resume=True)
    assert same(everything(other), states[3])
    other.advance("update", 2, never)
    assert same(everything(other), states[5])
    other.rewind(0)
    assert same(everything(other), states[0])
    other.advance("update", 2, never)
    assert same(everything(other), states[2])
    for each in (driver, other):
        each.close()


def test_it_starts_from_where_the_file_of_the_run_leaves_it_after_a_knob_is_turned_off(start: Start) -> None:
    driver, _ = start(**MOVES)
    driver.advance("update", 2, never)
    driver.set({"sync_ref_model": False})
    driver.advance("update", 2, never)
    there = everything(driver)
    driver.close()
    again, _ = start(resume=True)
    assert same(everything(again), there)
    again.rewind(1)
    again.advance("update", 3, never)
    again.close()


@pytest.mark.parametrize("estimator", ["k3", "full"])
def test_who_asks_for_teachers_leaves_it_alone(start: Start, estimator: str) -> None:
    driver, records = start(**MOVES, kl_estimator=estimator)
    driver.advance("update", 4, never)
    there = everything(driver)
    for number in (2, 3):
        found = taught(driver, targets_of(update_of(records, number))[1], number)
        assert found.predicted == pytest.approx(found.first_order, rel=0.03, abs=2e-4)
    assert same(everything(driver), there)
    driver.close()


def test_where_it_becomes_the_policy_pairs_have_no_margin(start: Start) -> None:
    given = {"algorithm": "dpo", "num_minibatches": 2, "ref_model_sync_steps": 1, "ref_model_mixup_alpha": 1.0}
    driver, records = start(**MOVES | given)
    driver.advance("update", 2, never)
    driver.close()
    steps = records_of(Stepped, records)
    assert len(steps) == 4
    assert [step.metrics["loss"] for step in steps] == pytest.approx([math.log(2)] * 4, abs=1e-7)
    assert [step.metrics["rewards/margins"] for step in steps] == [0.0] * 4


def test_pairs_come_from_the_policy_at_the_start_whatever_the_reference_is_now(start: Start) -> None:
    found = []
    for name, moves in (("moves", True), ("stays", False)):
        driver, records = start(f"{name}.rlplay", **MOVES | {"algorithm": "dpo", "sync_ref_model": moves})
        driver.advance("update", 4, never)
        driver.close()
        found.append([r.token_ids for r in records_of(Sampled, records)])
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


def test_the_kl_of_a_batch_stays_that_to_the_reference_that_read_it(start: Start) -> None:
    """As in TRL, also where the reference becomes the policy within the update."""
    given = {"num_iterations": 3, "ref_model_sync_steps": 1, "ref_model_mixup_alpha": 1.0}
    driver, records = start(**MOVES | given)
    driver.advance("update", 1, never)
    driver.close()
    kls = [step.metrics["kl"] for step in records_of(Stepped, records)]
    assert kls[0] == 0
    assert all(kl > 1e-4 for kl in kls[1:])


def test_a_run_whose_reference_stays_has_nothing_more_in_its_snapshots(start: Start, tmp_path: Path) -> None:
    sizes = []
    for name, steps in (("stays", 100), ("moves", 1)):
        driver, _ = start(f"{name}.rlplay", **MOVES | {"ref_model_sync_steps": steps})
        driver.advance("update", 1, never)
        driver.close()
        sizes.append((tmp_path / f"{name}.snapshots" / "000001.safetensors").stat().st_size)
    assert sizes[1] > 1.2 * sizes[0]


def test_adapters_are_refused_in_a_line(start: Start) -> None:
    pytest.importorskip("peft")
    with pytest.raises(ValueError, match="sync_ref_model mixes whole weights, so it takes no LoRA"):
        start(scenario={"use_peft": True}, **MOVES)


def test_a_branch_repeats_the_records_bit_for_bit(start: Start, tmp_path: Path) -> None:
    driver, _ = start(**MOVES)
    driver.advance("update", 4, never)
    driver.close()
    branch(tmp_path / "run.rlplay", 2, tmp_path / "other.rlplay")
    other, _ = start("other.rlplay", resume=True)
    other.advance("update", 2, never)
    other.close()
    for update in (1, 2, 3, 4):
        assert _numbers(tmp_path / "run.rlplay", update) == _numbers(tmp_path / "other.rlplay", update)
