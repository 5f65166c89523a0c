"""A reference that is another model than the first policy, that moves along, or that holds the policy too hard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlplay.health import reference_checks as reference
from rlplay.health.examine import findings, verdicts
from rlplay.health.finding import Evidence
from rlplay.health.reference_numbers import ReferenceGap
from rlplay.trace.clock import FIRST, LAST
from tests.health.evidence import curves, evidence, seen_at

APART, NEAR, EQUAL = ReferenceGap(0.3, False, 0), ReferenceGap(2e-4, False, 0), ReferenceGap(0.0, True, 0)
DPO = "TRL 1.16.0 DPOTrainer"


def test_a_kl_before_the_first_step_is_named_at_once() -> None:
    found = reference.another_start(evidence(1, reference=APART))
    assert found is not None
    assert "Before the first step of update 1" in found.evidence
    assert "0.3 nats per token" in found.evidence
    assert seen_at(found) == (1, "reference")
    assert findings(evidence(3, {"kl": [0.3, 2.0, 9.0]}, reference=APART))[0].name == "reference"
    assert "kl" not in [each.name for each in findings(evidence(3, {"kl": [0.3, 2.0, 9.0]}, reference=APART))]
    assert reference.another_start(evidence(1, reference=NEAR)) is None


def test_a_run_that_goes_on_may_be_anywhere() -> None:
    steps = {FIRST: [101.0, 102.0], LAST: [101.0, 102.0]}
    assert reference.another_start(evidence(2, steps, reference=APART)) is None
    assert reference.another_start(evidence(2, {FIRST: [1.0, 2.0], LAST: [1.0, 2.0]}, reference=APART)) is not None
    assert reference.another_start(evidence(2, reference=[EQUAL, APART])) is None, "that is what it has learned"
    assert reference.another_start(evidence(2, first=7, reference=APART)) is not None, "a stage has its own reference"


@pytest.mark.parametrize(
    ("numbers", "settings", "sick"),
    [
        ({"kl": [0.2, 0.25, 0.3]}, {}, True),
        ({"kl": [0.05, 0.1, 0.3]}, {}, False),
        ({"kl": [0.2, 0.5, 0.9]}, {}, False),
        ({"kl": [0.02, 0.03, 0.03]}, {"num_iterations": 1, "num_minibatches": 1}, True),
        ({"kl": [0.0, 0.2, 0.3]}, {"num_iterations": 1, "num_minibatches": 1}, False),
    ],
    ids=["from the start", "it grows", "it grows from a large step", "one step", "one step, equal"],
)
def test_metrics_alone(numbers: dict[str, list[float]], settings: dict[str, Any], sick: bool) -> None:
    run = curves(3, numbers | {"reward": [0.1] * 3}, "TRL 1.16.0 GRPOTrainer", **settings)
    assert (reference.another_start(run) is not None) is sick


def test_implicit_rewards_of_pairs_begin_at_0() -> None:
    found = reference.another_start(curves(2, {"rewards/chosen": [0.02, 0.3], "rewards/rejected": [-0.15, 0.0]}, DPO))
    assert found is not None
    assert "1.5 nats per answer (an implicit reward of 0.15)" in found.evidence
    near = {"rewards/chosen": [0.02, 0.3], "rewards/rejected": [-0.05, 0.0]}
    assert reference.another_start(curves(2, near, DPO)) is None
    none = {"rewards/chosen": [-20.0, -19.0], "rewards/rejected": [-25.0, -26.0]}
    assert reference.another_start(curves(2, none, "TRL 1.16.0 CPOTrainer")) is None


def test_a_reference_that_moves_along() -> None:
    moved = {"weights/changed": [0.9] * 6}
    found = reference.another_start(evidence(6, moved, reference=EQUAL))
    assert found is not None
    assert found.title == "The reference moves along with the policy"
    assert reference.another_start(evidence(5, moved, reference=EQUAL)) is None
    assert reference.another_start(evidence(6, reference=EQUAL)) is None, "nothing says that the weights move"
    assert reference.another_start(evidence(6, moved, reference=[*[EQUAL] * 5, NEAR])) is None
    pairs = {"rewards/chosen": [0.0] * 6, "rewards/rejected": [0.0] * 6, "grad_norm": [1.0] * 6}
    found = reference.another_start(curves(6, pairs, DPO))
    assert found is not None
    assert "exactly 0 in each of 5 updates" in found.evidence
    assert reference.another_start(curves(6, pairs | {"rewards/chosen": [0.0] * 5 + [1e-4]}, DPO)) is None


def test_a_kl_below_0() -> None:
    found = reference.negative(evidence(series={"kl": [-0.02, -0.03, -0.02, -0.04, -0.03, -0.02]}))
    assert found is not None
    assert found.evidence.startswith("It was −0.0267 ± 0.00667 nats per token on average over the last 6 updates")
    for kl in ([-0.005] * 6, [-0.2, 0.1, -0.1, 0.2, -0.1, -0.05], [-0.02] * 4):
        assert reference.negative(evidence(series={"kl": kl})) is None


def _held(reward: list[float], **settings: Any) -> Evidence:
    return evidence(len(reward), {"reward": reward, "kl": [1e-4] * len(reward)}, settings={"beta": 5.0} | settings)


def test_a_beta_that_holds_the_policy() -> None:
    still = [0.5, 0.52, 0.48, 0.5, 0.51, 0.49]
    found = reference.held(_held(still))
    assert found is not None
    assert "moved by 0.2 nats, so its probability changes by no more than about 22.1 %" in found.cause
    assert found.settings == ("beta",)
    assert reference.held(_held(still, beta=1.5)) is None
    assert reference.held(_held(still[:4])) is None
    assert reference.held(_held([0.1, 0.11, 0.3, 0.4, 0.5, 0.51])) is None
    assert reference.held(_held(still, loss_type="sigmoid")) is None


def _noise(trainer: Any) -> None:
    import torch

    torch.manual_seed(5)
    for weight in trainer.ref_model.parameters():
        weight.data += 0.05 * torch.randn_like(weight)


def _itself(trainer: Any) -> None:
    trainer.ref_model = trainer.model


def _nothing(_: Any) -> None:
    pass


@pytest.mark.parametrize("trainer", ["DPOTrainer", "GRPOTrainer"])
@pytest.mark.parametrize("change", [_noise, _itself, _nothing])
def test_a_recording(trainer: str, change: Any, tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')
    from rlplay.record.trl import RlplayCallback
    from tests.health.recorded_trl import examined
    from tests.record import tiny, trainers

    options = {"max_steps": 8, "beta": 0.1}
    if trainer == "GRPOTrainer":
        make = trainers.maker(trl.GRPOTrainer, trl.GRPOConfig, tiny.PROMPTS, trainers.GROUPED | options, rewards=True)
    else:
        make = trainers.maker(trl.DPOTrainer, trl.DPOConfig, trainers.PAIRS, options)
    made = make(tmp_path, [RlplayCallback(tmp_path / "rec")])
    change(made)
    made.train()
    run = examined(tmp_path / "rec")
    assert ("reference" in [each.name for each in findings(run)]) is (change is not _nothing)
    ticked = [each.title for each in verdicts(run, findings(run)) if each.ticked]
    assert ("Reference" in ticked) is (change is _nothing)
