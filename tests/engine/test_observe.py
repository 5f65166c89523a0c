"""`observe: light` leaves out what is only looked at, and nothing of what is learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord, Credited, Finished, Stepped
from tests.engine.test_update import only

Start = Callable[..., tuple[Driver, list[AnyRecord]]]

REFERENCE, AFTER = "reference", "after"


def played(start: Start, observe: str, **given: Any) -> tuple[set[str], Driver, list[AnyRecord]]:
    """Which passes the first update made for the reference and after the last step, the driver, and its records."""
    driver, records = start(run=f"{observe}.rlplay", observe=observe, **given)
    made: set[str] = set()
    lm = driver._state.lm
    lm.reference.register_forward_hook(lambda *_rest: made.add(REFERENCE))
    driver.advance("phase", 4, lambda: False)
    hook = lm.policy.register_forward_hook(lambda *_rest: made.add(AFTER))
    driver.advance("phase", 1, lambda: False)
    hook.remove()
    driver.advance("update", 1, lambda: False)
    return made, driver, records


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ({"algorithm": "grpo"}, set()),
        ({"algorithm": "grpo", "beta": 0.1}, {REFERENCE}),
        ({"algorithm": "rlhf-ppo"}, {REFERENCE}),
        ({"algorithm": "ppo-penalty"}, {REFERENCE, AFTER}),
        ({"algorithm": "grpo", "kl_estimator": "full", "beta": 0.0}, set()),
    ],
    ids=["grpo", "grpo-beta", "rlhf-ppo", "ppo-penalty", "full"],
)
def test_only_what_training_reads_is_computed(start: Start, given: dict[str, Any], passes: set[str]) -> None:
    made, full, all_records = played(start, "full", **given)
    assert made == {REFERENCE, AFTER}
    made, light, records = played(start, "light", **given)
    assert made == passes
    for driver in (full, light):
        driver.close()
    for one, other in zip(only(Stepped, all_records), only(Stepped, records), strict=True):
        np.testing.assert_array_equal(one.dloss_dlogp, other.dloss_dlogp)
        assert one.metrics == other.metrics
    credited, finished = only(Credited, records)[0], only(Finished, records)[0]
    assert (credited.ref_logprobs is not None) == (REFERENCE in passes)
    assert (credited.ref_top_logprobs is not None) == (REFERENCE in passes)
    assert (
        bool(len(finished.rows)) == bool(len(finished.logprobs)) == ("kl_old" in finished.metrics) == (AFTER in passes)
    )
    assert len(finished.favourite_ids) == len(finished.favourite_logprobs) == len(finished.logprobs)
    assert ("kl" in finished.metrics) == (REFERENCE in passes)


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("algorithm", ["dpo", "sft"])
def test_losses_on_answers_need_no_pass_after(start: Start, algorithm: str) -> None:
    driver, records = start(algorithm=algorithm, observe="light")
    driver.advance("update", 2, lambda: False)
    driver.close()
    assert not len(only(Finished, records)[-1].rows)


def test_a_preview_says_what_was_left_out(start: Start) -> None:
    driver, _ = start(observe="light")
    driver.advance("phase", 3, lambda: False)
    assert driver.what_if({"epsilon": 0.1}).losses
    with pytest.raises(ValueError, match="which observe=light leaves out"):
        driver.what_if({"beta": 0.1})
    driver.close()
