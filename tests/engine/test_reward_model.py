"""The reward model: its scores, its loss, what it leaves alone, and its life in snapshots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
import torch

from rlplay.engine.batch import Prompts, TokenBatch
from rlplay.engine.model import Kind
from rlplay.engine.reward_model import RewardModel, prefix_scores, reward_model_of
from rlplay.trace.codec import RECORDS
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Scored, Stepped
from tests.engine import pair_reference, reference

Start = Callable[..., Any]
GIVEN = {"algorithm": "reward-model", "num_prompts": 4, "learning_rate": 3e-3}
pytestmark = pytest.mark.usefixtures("opinionated")


def never() -> bool:
    return False


def _of(records: list[AnyRecord], kind: type[Any], update: int) -> Any:
    return [r for r in records if isinstance(r, kind) and r.update == update][-1]


def test_the_loss_is_that_of_the_scores_at_the_last_tokens(start: Start) -> None:
    driver, records = start(**GIVEN, center_rewards_coefficient=0.3)
    driver.advance("update", 3, never)
    driver.close()
    step, scored, sampled = (_of(records, kind, 3) for kind in (Stepped, Scored, Sampled))
    lengths = np.diff(sampled.offsets)[step.rows]
    last = [row[-1] for row in reference.split(step.values, np.concatenate([[0], np.cumsum(lengths)]))]
    assert [scored.roles[i] for i in step.rows] == ["chosen"] * 4 + ["rejected"] * 4
    losses = [pair_reference.bradley_terry(c, r, 0.0, 0.3) for c, r in zip(last[:4], last[4:], strict=True)]
    assert step.metrics["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    np.testing.assert_allclose(step.margins, np.subtract(last[:4], last[4:]), atol=1e-6)
    assert step.metrics["margin"] == pytest.approx(np.mean(step.margins), abs=1e-6)
    assert step.metrics["accuracy"] == np.mean(np.array(step.margins) > 0)
    assert (step.metrics["min_reward"], step.metrics["max_reward"]) == pytest.approx((min(last), max(last)))


def test_the_policy_stays_and_the_model_learns_to_tell_the_same_pairs_apart(start: Start) -> None:
    driver, records = start(**GIVEN, num_iterations=8)
    before = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
    driver.advance("update", 1, never)
    driver.close()
    steps = [r for r in records if isinstance(r, Stepped)]
    assert steps[0].metrics["loss"] == pytest.approx(np.log(2), abs=1e-6)
    assert steps[0].metrics["accuracy"] == 0.5, "every score is 0: as good as guessing"
    assert all(later.metrics["loss"] < sooner.metrics["loss"] for sooner, later in pairwise(steps))
    assert steps[-1].metrics["accuracy"] == 1.0
    for old, new in zip(before, driver._state.lm.policy.parameters(), strict=True):
        assert torch.equal(old, new)
    credited = _of(records, Credited, 1)
    assert not any(step.dloss_dlogp.any() or (step.importance_ratio != 1).any() for step in steps)
    assert not credited.advantages.any()
    assert not credited.values.any()  # the head begins with zeros


def test_scores_of_beginnings_are_those_of_one_sequence_at_a_time(start: Start) -> None:
    driver, _ = start(**GIVEN)
    driver.advance("update", 2, never)
    batch = driver._state.task.train[:3]
    lm, model = driver._state.lm, reward_model_of(driver._state)
    prompts = Prompts.of(lm, batch)
    ids = torch.randint(5, 200, (6, 5), generator=torch.Generator().manual_seed(1))
    tokens = TokenBatch(prompts, torch.tensor([0, 0, 1, 1, 2, 2]), ids, torch.tensor([5, 3, 1, 4, 2, 5]))
    with torch.no_grad():
        for kind in get_args(Kind):
            lm.passes = kind
            found = prefix_scores(lm, model, tokens)
            for i, n in enumerate(tokens.lengths.tolist()):
                g = int(tokens.group[i])
                asked = prompts.ids[g][prompts.mask[g].bool()]
                whole = torch.cat([asked, ids[i, :n]])[None]
                hidden = model.backbone(input_ids=whole, output_hidden_states=True).hidden_states[-1][0, len(asked) :]
                torch.testing.assert_close(found[i, :n], model.head(hidden)[:, 0], atol=1e-5, rtol=1e-4)


def test_a_trained_model_is_a_reward_and_is_forgotten_before_its_training(start: Start) -> None:
    driver, records = start(**GIVEN)
    with pytest.raises(ValueError, match="the rewards here are uneven"):
        driver.set({"reward_weights": {"reward_model": 1}})
    driver.advance("update", 2, never)
    driver.set({"algorithm": "rlhf-ppo"})
    driver.set({"reward_weights": {"reward_model": 1}})
    driver.advance("update", 2, never)
    scored, step = _of(records, Scored, 3), _of(records, Finished, 4)
    assert list(scored.parts) == ["reward_model"]
    assert np.ptp(scored.rewards) > 0
    assert "gold/correct/mean" in step.metrics
    fourth = RECORDS.encode(_of(records, Stepped, 4))
    driver.rewind(3)
    driver.advance("update", 1, never)
    assert RECORDS.encode(_of(records, Stepped, 4)) == fourth
    driver.rewind(0)
    assert driver._state.reward_model is None
    driver.advance("update", 1, never)
    assert isinstance(driver._state.reward_model, RewardModel)
    driver.close()
