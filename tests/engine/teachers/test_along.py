"""Both ways to a directional derivative find the same, and the second takes over where the first is rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rlplay import first_order
from rlplay.engine.teachers import along, shares
from rlplay.trace.teachers import Target
from tests.engine.teachers.asking import Start, in_float64, never, targets_of, taught
from tests.engine.teachers.test_sum import CASES
from tests.numbers import update_of

OTHERS = [
    given for given, rest in CASES if rest & {"value loss", "entropy bonus"} or given.get("kl_estimator") == "full"
]
"""Losses that read more of the policy than the log-probabilities of the tokens."""


@pytest.mark.parametrize("given", OTHERS, ids=[given["algorithm"] for given in OTHERS])
def test_a_pass_in_forward_mode_finds_what_differences_do(
    start: Start, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start(architecture="gpt2", **{"num_minibatches": 1} | given)
    in_float64(driver)
    driver.advance("update", 2, never)
    target = targets_of(update_of(records, 2))[1]
    by_difference = taught(driver, target, 2)
    monkeypatch.setattr(first_order, "NEAR", dict.fromkeys(first_order.NEAR, -1.0))
    exact = taught(driver, target, 2)
    assert not np.array_equal(exact.shares, by_difference.shares)
    np.testing.assert_allclose(exact.shares, by_difference.shares, atol=1e-5 * np.abs(exact.shares).max())
    assert exact.rest == pytest.approx(by_difference.rest, rel=1e-4, abs=1e-8)
    assert exact.predicted == pytest.approx(exact.first_order, rel=1e-6)


@pytest.mark.parametrize("algorithm", ["grpo", "gspo"])
def test_all_tokens_together_did_what_the_moments_say(
    start: Start, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first width, also where the target reads what no answer does: places of its text that have no gradient."""
    driver, records = start(architecture="gpt2", algorithm=algorithm, num_iterations=2, max_grad_norm=0.05)
    in_float64(driver)
    driver.advance("update", 2, never)
    offs, found = list[float](), along.along

    def seen(*question: Any) -> Any:
        part = found(*question)
        offs.append(part.off)
        return part

    monkeypatch.setattr(shares, "along", seen)
    monkeypatch.setattr(first_order, "WIDTHS", 1)
    monkeypatch.setattr(along, "_exactly", lambda *_: None)
    first, *_, whole, text = targets_of(update_of(records, 2))
    longer = Target(text.prompt_ids * 2, text.answer_ids, text.places)
    for target in (first, whole, text, longer):
        taught(driver, target, 2)
    assert len(offs) == 8
    assert max(offs) <= first_order.NEAR[torch.float64]


@pytest.mark.parametrize("error", [NotImplementedError("no forward mode"), None])
def test_a_model_without_forward_mode_gets_other_widths(
    start: Start, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """The first width is too wide on purpose."""
    monkeypatch.setattr(first_order, "_WIDE", 100.0)
    driver, records = start(algorithm="grpo")
    driver.advance("update", 2, never)
    widths, shifted = list[float](), along._shifted

    def counted(question: Any, by: float, *others: Any) -> Any:
        widths.append(abs(by))
        return shifted(question, by, *others)

    def fail(*_: Any) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(along, "_shifted", counted)
    monkeypatch.setattr(along, "_dual", fail) if error is not None else None
    found = taught(driver, targets_of(update_of(records, 2))[1], 2)
    assert found.predicted == pytest.approx(found.first_order, rel=0.02)
    assert (len(set(widths)) == 1) == (error is None)
    assert len(set(widths)) <= first_order.WIDTHS


@pytest.mark.parametrize("forward_mode", [True, False])
def test_a_width_at_which_nothing_moves_is_no_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch, forward_mode: bool
) -> None:
    """So narrow that the weights stay as they are: where a gradient nearly cancels, Adam divides by almost nothing."""
    monkeypatch.setattr(first_order, "_WIDE", 1e-9)
    if not forward_mode:
        monkeypatch.setattr(along, "_exactly", lambda *_: None)
    driver, records = start(algorithm="grpo")
    driver.advance("update", 2, never)
    found = taught(driver, targets_of(update_of(records, 2))[1], 2)
    assert found.shares.any()
    if forward_mode:
        assert found.predicted == pytest.approx(found.first_order, rel=0.02)


def test_memory_that_is_short_in_forward_mode_is_no_missing_operation(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start(algorithm="grpo")
    driver.advance("update", 2, never)

    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(first_order, "NEAR", dict.fromkeys(first_order.NEAR, -1.0))
    monkeypatch.setattr(along, "_dual", full)
    with pytest.raises(ValueError, match="memory is short"):
        taught(driver, targets_of(update_of(records, 2))[0], 2)
