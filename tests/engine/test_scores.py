"""What reward functions may answer: numbers in any container, of any size that training can compute with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.reward_calls import LARGEST
from rlplay.engine.state import Halt
from rlplay.trace.numbers import compact
from rlplay.trace.records import Credited, Finished, Scored
from tests.engine.test_more_axes import records_of

Start = Callable[..., Any]


def played(start: Start, answer: Callable[[int], Any], **settings: Any) -> list[Any]:
    """The records of an update in which the reward function gives `answer` of the number of completions."""
    driver, records = start(**settings)
    driver._state.task.rewards["uneven"] = lambda completions: answer(len(completions))
    try:
        driver.advance("update", 1, lambda: False)
    finally:
        driver.close()
    return list(records)


@pytest.mark.parametrize(
    "container",
    [list, tuple, np.array, torch.tensor, lambda x: torch.tensor(x, dtype=torch.bfloat16, requires_grad=True),
     lambda x: [torch.tensor(each) for each in x], lambda x: np.array(x, dtype=object)],
)  # fmt: skip
def test_rewards_may_come_in_any_container(start: Start, container: Callable[[list[float]], Any]) -> None:
    wanted = [0.0, 0.5, 1.0] * 4
    records = played(start, lambda _: container(wanted))
    assert records_of(Scored, records)[0].rewards.tolist() == wanted


@pytest.mark.parametrize("answer", [torch.tensor(1.0), torch.zeros(12, 1), torch.zeros(11), np.zeros((12, 3))])
def test_a_tensor_of_another_shape_is_refused(start: Start, answer: Any) -> None:
    with pytest.raises(Halt, match=r"must give a list of 12 numbers|something that is not a number"):
        played(start, lambda _: answer)


@pytest.mark.parametrize("score", [3e38, 1e39, -1e20, 2 * LARGEST, [(3, 1e39), (5, -1e39)]])
def test_a_score_too_large_for_float32_is_named(start: Start, score: Any) -> None:
    with pytest.raises(Halt) as halted:
        played(start, lambda n: [0.0] * (n - 1) + [score])
    text = str(halted.value)
    size = 1e39 if isinstance(score, list) else abs(score)
    assert f"reward function 'uneven' gave {compact(size)} for completion 11" in text
    assert "more than the 1e15" in text
    assert text.endswith("scale it down, then go on")
    assert "\n" not in text
    assert "nan" not in text


def test_weights_that_make_a_reward_too_large_are_named(start: Start) -> None:
    with pytest.raises(Halt, match="lower reward_weights"):
        played(start, lambda n: [1e12] * n, reward_weights={"uneven": 1e5})


@pytest.mark.parametrize("algorithm", ["grpo", "dr-grpo", "reinforce", "ppo", "trpo", "rloo", "vespo", "gdpo"])
def test_the_largest_rewards_can_be_learned_from(start: Start, algorithm: str) -> None:
    records = played(start, lambda n: [LARGEST * (i % 3 - 1) for i in range(n)], algorithm=algorithm)
    assert np.isfinite(list(records_of(Finished, records)[0].metrics.values())).all()
    assert np.isfinite(records_of(Credited, records)[0].advantages).all()
    assert records_of(Credited, records)[0].advantages.any()


def test_rewards_are_recorded_as_they_were_given(start: Start) -> None:
    records = played(start, lambda n: [1e6 + 0.01 * i for i in range(n)])
    scored, credited = records_of(Scored, records)[0], records_of(Credited, records)[0]
    assert scored.rewards.tolist() == [1e6 + 0.01 * i for i in range(12)]
    assert len(np.unique(credited.advantages)) == 4
    np.testing.assert_allclose(credited.group_std, np.arange(4).std(ddof=1) / 100, rtol=1e-6)


def test_a_gold_score_counts_only_where_it_is_named(start: Start) -> None:
    driver, records = start()
    gold = driver._state.task.gold
    driver.advance("update", 1, lambda: False)
    driver.set({"reward_weights": {"uneven": 0, "correct": 1}})
    driver.advance("update", 1, lambda: False)
    driver.close()
    first, second = records_of(Scored, records)
    assert "correct" in gold
    assert list(first.parts) == ["uneven"]
    assert list(second.parts) == ["correct"]
    assert second.rewards.tolist() == second.gold["correct"].tolist()
    assert set(second.gold) == {"uneven", "correct"}
