"""What answers earn does not reach the loss: two rewards for one answer, weights of 0, a mask over nearly all."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.health import paid_checks as paid
from rlplay.health.digest import Digest, TokenPlace, digest
from rlplay.health.examine import findings, verdicts
from rlplay.health.paid_numbers import TwiceNumbers
from rlplay.trace.records import Finished, Sampled, Scored, Stepped
from rlplay.trace.update import Update
from tests.health.evidence import curves, evidence
from tests.recorded import synthetic_update


def alike(rewards: list[float]) -> Digest:
    """The digest of one prompt's four answers, all the same, with these rewards."""
    update = Update(1)
    for record in synthetic_update(1, prompts=1, generations=4, length=1):
        if isinstance(record, Sampled):
            same = np.full_like(record.token_ids, record.token_ids[0])
            update.add(msgspec.structs.replace(record, token_ids=same))
        elif isinstance(record, Scored):
            update.add(msgspec.structs.replace(record, rewards=np.array(rewards)))
        else:
            update.add(record)
    found = digest(update)
    assert found is not None
    return found


def test_equal_answers_to_a_prompt_that_earn_differently_are_counted() -> None:
    found, noisy, same = alike([0, 1, 0, 0]).twice, alike([0.5, 0.5, 0.5, 0.5]).twice, alike([0, 0, 0, 0]).twice
    assert found is not None
    assert (found.repeated, found.apart, found.lower, found.low, found.high) == (1, 1, 0, 0, 1)
    assert noisy is not None
    assert same is not None
    assert noisy.repeated == same.repeated == 0, "where all earn the same nothing could be seen"
    tiny = alike([0.7, 0.7003, 0.7, 0.7]).twice
    assert tiny is not None
    assert tiny.repeated == 0, "a range below a hundredth of the reward is noise, of which another check speaks"


def twice(repeated: int, apart: int) -> TwiceNumbers:
    return TwiceNumbers(repeated, apart, 2 if apart else -1, 0.0, 1.0, 20, 18)


def test_a_reward_that_looks_at_something_else_is_named() -> None:
    found = paid.two_prices(evidence(6, twice=[twice(6, n % 2) for n in range(6)]))
    assert found is not None
    assert found.evidence.startswith("3 of 36 answers that stand more than once")
    assert "in update 6 one earned both 0 and 1. 108 of 120 answers that contain the right one earned" in found.evidence
    assert found.place == TokenPlace(6, 2)
    assert paid.two_prices(evidence(6, twice=[twice(6, n == 0) for n in range(6)])) is None, "once is a slip"
    assert paid.two_prices(evidence(6, twice=twice(100, 1))) is None, "a judge that changes its mind now and then"
    ticks = {each.title: each for each in verdicts(evidence(6, twice=twice(6, 0)), []) if each.ticked}
    assert ticks["Equal answers"].text.startswith("36 of 36 answers")
    assert not paid.one_price(evidence(4, twice=twice(6, 0))), "24 are too few"


def test_weights_of_0_are_the_cause_and_not_the_types() -> None:
    run = evidence(series={"rewards/correct/mean": [0.25] * 6}, reward=0.0, weightless=("correct",))
    found = findings(run)[0]
    assert (found.name, found.title) == ("same reward", "Every part of the reward has the weight 0")
    assert "“correct” 0.25" in found.evidence
    alone = {"reward": [0.0] * 40, "reward_std": [0.0] * 40}
    assert "weight 0" in findings(curves(40, alone | {"rewards/correct/mean": [0.25] * 40}))[0].title
    assert "exactly 0" in findings(curves(40, alone | {"rewards/correct/mean": [0.0] * 40}))[0].title


@pytest.mark.parametrize("masks", [True, False])
def test_cut_answers_without_a_log_probability_are_masked(masks: bool) -> None:
    update = Update(1)
    for record in synthetic_update(1, prompts=2, generations=2, length=3, steps=1):
        if isinstance(record, Sampled):
            update.add(msgspec.structs.replace(record, truncated=np.ones(4, dtype=np.uint8)))
        elif isinstance(record, Stepped) and masks:
            update.add(msgspec.structs.replace(record, logprobs=np.full_like(record.logprobs, np.nan)))
        elif isinstance(record, Finished) and masks:
            pass
        else:
            update.add(record)
    found = digest(update)
    assert found is not None
    assert found.cut_masked == (4 if masks else 0)


def test_a_mask_that_leaves_hardly_an_answer_comes_before_what_it_does_to_the_entropy() -> None:
    entropy = {"entropy": [0.9, 0.8, 0.0, 0.7, 0.6, 0.0], "reward": [0.2] * 6}
    run = evidence(series=entropy, cut=12, cut_masked=[10, 10, 16, 10, 10, 16], limit=2)
    found = findings(run)
    assert found[0].name == "masked"
    assert not {"entropy", "truncated", "no end"} & {each.name for each in found}
    assert "In 2 of the last 6 updates no answer was left" in found[0].evidence
    assert paid.masked(evidence(cut=4, cut_masked=4)) is None, "a quarter is what such a mask is for"
