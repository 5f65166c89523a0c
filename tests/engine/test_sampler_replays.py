"""A run with a sampler of its own repeats itself wherever it is played again, and whoever asks changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.scenario.schema import Stage
from rlplay.trace.branch import branch
from rlplay.trace.records import AnyRecord, Finished, Sampled, Stepped
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.teachers import TakeAway
from tests.engine.teachers.asking import targets_of, taught
from tests.engine.test_sampler import Start, never, same_records, sampled_of
from tests.numbers import update_of

ASYNC: dict[str, Any] = {
    "sampler_lag": 2, "old_logprobs_of": "sampler", "sampler_dtype": "int8", "learning_rate": 3e-3,
}  # fmt: skip
CORRECTED: dict[str, Any] = {
    "weight_sync_steps": 3, "importance_sampling_mode": "token_truncate", "top_p": 0.9, "learning_rate": 3e-3,
    "logprobs_mode": "processed_logprobs",
}  # fmt: skip


def of(records: list[AnyRecord], update: int) -> list[AnyRecord]:
    found = [each for each in records if each.update == update and isinstance(each, (Sampled, Stepped, Finished))]
    return [each for each in found if not isinstance(each, Sampled) or each.done]


def weights(driver: Driver) -> list[torch.Tensor]:
    return [p.detach().clone() for p in driver._state.parameters.values()]


@pytest.mark.parametrize("settings", [ASYNC, CORRECTED])
def test_a_branch_repeats_the_run(start: Start, tmp_path: Path, settings: dict[str, Any]) -> None:
    driver, records = start(**settings)
    driver.advance("update", 5, never)
    branch(tmp_path / "run.rlplay", 3, tmp_path / "other.rlplay")
    other, again = start("other.rlplay", resume=True, **settings)
    other.advance("update", 2, never)
    for update in (4, 5):
        same_records(of(again, update), of(records, update))
    assert all(torch.equal(a, b) for a, b in zip(weights(driver), weights(other), strict=True))


@pytest.mark.parametrize(
    ("settings", "until"),
    [
        (ASYNC, "phase"),
        (CORRECTED, "update"),
        pytest.param(ASYNC, "update", marks=pytest.mark.slow),
        pytest.param(CORRECTED, "phase", marks=pytest.mark.slow),
    ],
)
def test_whoever_asks_changes_nothing(start: Start, settings: dict[str, Any], until: Any) -> None:
    asked, told = start(run="asked.rlplay", **settings)
    other, untold = start(run="other.rlplay", **settings)
    for driver in (asked, other):
        driver.advance("update", 4, never)
    target = targets_of(update_of(told, 4))[1]
    shares = taught(asked, target, 4)
    assert shares.after == pytest.approx(shares.measured + shares.before, abs=1e-5)
    (away,) = asked.answers(TakeAway(target, 3, [0, 1, 2]), never)
    assert away.before != away.without  # type: ignore[union-attr]
    rehearsed = [each for each in asked.answers(Rehearse(2, 2, [{}], number=1), never) if isinstance(each, Rehearsed)]
    for each in rehearsed[:2]:
        same_records(of(each.records, each.update), of(told, each.update))
    if until == "phase":
        asked.advance("phase", 3, never)
        if "old_logprobs_of" in settings:
            with pytest.raises(ValueError, match="the policy has not read the sampler's answers yet"):
                asked.what_if({"epsilon": 0.1})
        else:
            credited = asked.what_if({"epsilon": 0.1}).credited
            assert credited is not None
            assert credited.correction is not None
        asked.advance("step", 1, never)
        imagined = asked.what_if({})
        assert imagined.losses is not None
        assert imagined.losses[0] == pytest.approx(imagined.losses[1])
        asked.rewind(4)
    for driver in (asked, other):
        driver.advance("update", 2, never)
    for update in (5, 6):
        same_records(of(told, update)[-len(of(untold, update)) :], of(untold, update))


@pytest.mark.parametrize("settings", [ASYNC, CORRECTED])
def test_taking_credit_away_is_taking_the_update_again_without_it(start: Start, settings: dict[str, Any]) -> None:
    driver, records = start(**settings)
    driver.advance("update", 3, never)
    target = targets_of(update_of(records, 3))[0]
    tokens = [3, 4, 5]
    (away,) = driver.answers(TakeAway(target, 3, tokens), never)
    driver.rewind(2)
    driver.withhold(3, tokens)
    driver.advance("update", 1, never)
    assert away.without == driver._value(target, 3)  # type: ignore[union-attr]


def test_a_stage_begins_with_a_sampler_that_has_its_policy(start: Start) -> None:
    stages = [
        Stage("one", 3, {"sampler_lag": 2, "learning_rate": 3e-3}),
        Stage("two", 3, {"weight_sync_steps": 0, "learning_rate": 3e-3}),
    ]
    driver, records = start(scenario={"stages": stages, "max_updates": 6})
    driver.advance("update", 6, never)
    versions = [int(each.versions[0]) for each in sampled_of(records) if each.versions is not None]
    assert versions == [0, 0, 0, 3, 3, 3]
    wanted = of(records, 5)
    driver.rewind(4)
    driver.advance("update", 1, never)
    driver.close()
    same_records(of(records, 5)[-len(wanted) :], wanted)


def test_what_the_reference_says_is_its_own_where_the_sampler_begins_the_ratio(start: Start) -> None:
    """In the first update policy and reference are one, and the sampler is another."""
    driver, records = start(sampler_dtype="bfloat16", old_logprobs_of="sampler", beta=0.1)
    driver.advance("update", 1, never)
    driver.close()
    update = update_of(records, 1)
    assert update.credited is not None
    assert update.credited.ref_logprobs is not None
    np.testing.assert_allclose(update.credited.ref_logprobs, update.steps[0].logprobs, atol=1e-4)
    assert np.abs(update.credited.ref_logprobs - update.sampled.old_logprobs).max() > 1e-3  # type: ignore[union-attr]
    assert update.finished is not None
    assert update.steps[0].metrics["kl"] == pytest.approx(0, abs=1e-6)
