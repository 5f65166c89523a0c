"""Weights that stay: without a gradient, lost in rounding, with steps that lead nowhere; each told from the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlplay.health import weight_checks as weight
from rlplay.health.examine import findings
from rlplay.health.finding import Evidence
from tests.health.evidence import curves, evidence

BF16 = 2.0**-7
MOVED = {"weights/changed": 0.9, "weights/step": 1e-4, "weights/rounding": 1e-7, "weights/trained": 1.0}
SIGNAL = {"grad_norm": 1.0, "frac_reward_zero_std": 0.5, "learning_rate": 1e-6}


def run(updates: int = 6, answers_known: bool = True, **numbers: Any) -> Evidence:
    """Metrics by name; one that is a number is the same in all updates."""
    found = {name.replace("__", "/"): x if isinstance(x, list) else [x] * updates for name, x in numbers.items()}
    return evidence(updates, found, answers_known=answers_known)


def test_a_gradient_of_0_is_named_after_three_updates() -> None:
    frozen = MOVED | SIGNAL | {"grad_norm": 0.0, "weights/changed": 0.0, "weights/step": 0.0, "weights/trained": 0.02}
    assert weight.no_gradient(run(2, **frozen)) is None
    found = weight.no_gradient(run(3, **frozen))
    assert found is not None
    assert "exactly 0 in the last 3 updates" in found.evidence
    assert "2.0 % of the model's weights" in found.evidence
    assert findings(run(8, **frozen))[0].name == "no gradient"
    assert "step too small" not in [each.name for each in findings(run(8, **frozen))]


@pytest.mark.parametrize("kind", ["DPOTrainer", "SFTTrainer", "KTOTrainer", "RewardTrainer"])
def test_metrics_alone_show_a_gradient_of_0(kind: str) -> None:
    found = findings(curves(3, {"grad_norm": [0.0] * 3, "loss": [0.7] * 3}, f"TRL 1.16.0 {kind}"))
    assert [each.name for each in found] == ["no gradient"]
    fine = curves(3, {"grad_norm": [0.0, 0.0, 0.1], "loss": [0.7] * 3}, f"TRL 1.16.0 {kind}")
    assert findings(fine) == []


def test_updates_without_a_signal_have_no_gradient_by_right() -> None:
    still = SIGNAL | {"grad_norm": 0.0}
    assert weight.no_gradient(run(**still)) is not None
    assert weight.no_gradient(run(**still | {"frac_reward_zero_std": 1.0})) is None
    assert weight.no_gradient(evidence(6, {"grad_norm": [0.0] * 6}, silent=True)) is None
    assert weight.no_gradient(evidence(6, {"grad_norm": [0.0] * 6}, reward=0.5)) is None
    unknown = curves(6, {"grad_norm": [0.0] * 6, "reward": [0.5] * 6})
    assert weight.no_gradient(unknown) is None, "nothing says whether there was anything to learn"


def test_an_optimizer_of_other_weights_is_told_from_a_gradient_of_0() -> None:
    other = MOVED | SIGNAL | {"weights/changed": 0.0, "weights/step": 0.0}
    found = weight.no_gradient(run(**other))
    assert found is not None
    assert found.title == "The optimizer moves no weight of the model"
    assert weight.no_gradient(run(**other | {"learning_rate": 0.0})) is None
    assert weight.no_gradient(run(**other | {"weights/rounding": BF16})) is None
    assert weight.no_gradient(run(**other | {"weights/changed": [0.0, 0.0, 0.0, 0.0, 0.0, 0.1]})) is None


def test_steps_below_the_precision_are_told_from_both() -> None:
    lost = MOVED | SIGNAL | {"weights/changed": 0.001, "weights/step": 0.0, "weights/rounding": BF16}
    found = weight.rounded(run(3, **lost))
    assert found is not None
    assert "at most 0.1 % of the trained weights" in found.evidence
    assert "bfloat16" in found.evidence
    assert found.settings == ("learning_rate",)
    assert weight.no_gradient(run(**lost)) is None
    assert findings(run(8, **lost))[0].name == "rounding"
    half = weight.rounded(run(3, **lost | {"weights/rounding": 2.0**-10}))
    assert half is not None
    assert "float16" in half.evidence


@pytest.mark.parametrize(
    "change",
    [
        {"weights/changed": [0.001, 0.001, 0.001, 0.001, 0.001, 0.02]},
        {"weights/changed": 0.5, "weights/step": 0.0},
        {"weights/rounding": 1e-7},
        {"learning_rate": [0.0, 1e-7, 2e-7, 3e-7, 4e-7, 5e-7]},
        {"grad_norm": 0.0},
        {"reward": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]},
    ],
    ids=["enough move", "an adapter's B moves", "float32", "warming up", "no gradient", "it learns"],
)
def test_no_alarm_about_rounding(change: dict[str, Any]) -> None:
    lost = MOVED | SIGNAL | {"weights/changed": 0.001, "weights/rounding": BF16}
    assert weight.rounded(run(**lost | change)) is None


def test_numbers_near_0_move_also_where_steps_are_lost() -> None:
    lost = MOVED | SIGNAL | {"weights/changed": 0.34, "weights/step": 0.0, "weights/rounding": BF16}
    found = findings(run(8, **lost))[0]
    assert found.name == "rounding"
    assert "at most 34.0 % of the trained weights that were looked at, in more than half of the tensors not one" in (
        found.evidence
    )


def test_the_end_of_a_schedule_says_nothing_of_its_steps() -> None:
    falling = {"learning_rate": [6e-5 - 9e-6 * n for n in range(6)], "weights/changed": [0.3] * 3 + [0.001] * 3}
    lost = MOVED | SIGNAL | {"weights/rounding": BF16}
    assert weight.rounded(run(**lost | falling)) is None
    found = weight.rounded(run(**lost | falling | {"weights/changed": [0.3] + [0.001] * 5}))
    assert found is not None
    assert found.evidence.startswith("Each of the last 3 updates at half of the highest learning rate or more changed")


def test_a_loss_of_pairs_that_falls_by_next_to_nothing_is_no_sign_of_steps_that_count() -> None:
    lost = MOVED | {"weights/changed": 0.005, "weights/rounding": BF16, "grad_norm": 0.7}
    noise_free = [0.6931 - 1e-5 * n for n in range(8)]
    numbers = {name: x if isinstance(x, list) else [x] * 8 for name, x in (lost | {"loss": noise_free}).items()}
    assert weight.rounded(curves(8, numbers, "TRL 1.16.0 DPOTrainer")) is not None
    learned = numbers | {"loss": [0.6931 - 0.01 * n for n in range(8)]}
    assert weight.rounded(curves(8, learned, "TRL 1.16.0 DPOTrainer")) is None


def test_vectors_alone_hardly_learn() -> None:
    few = MOVED | SIGNAL | {"weights/matrices": 0.0, "weights/trained": 2e-6}
    found = weight.few(run(5, **few))
    assert found is not None
    assert "0.0002 % of its weights" in found.evidence
    assert weight.few(run(4, **few)) is None
    assert weight.few(run(5, **few | {"weights/matrices": 1.0})) is None
    assert weight.few(run(6, **few | {"reward": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})) is None


def test_small_steps_of_the_weights_themselves() -> None:
    small = MOVED | SIGNAL | {"weights/step": 4e-6}
    found = weight.small_steps(run(5, **small))
    assert found is not None
    assert "at most 4e-6 of their norm" in found.evidence
    for change in ({"weights/step": [4e-6] * 4 + [6e-6]}, {"learning_rate": [1e-7, 2e-7, 3e-7, 4e-7, 5e-7]}):
        assert weight.small_steps(run(5, **small | change)) is None
    assert weight.small_steps(run(4, **small)) is None


def _norm_alone(trainer: Any) -> None:
    for name, parameter in trainer.model.named_parameters():
        parameter.requires_grad_(name == "model.norm.weight")


def _half(trainer: Any) -> None:
    import torch

    trainer.model.to(torch.bfloat16)
    trainer.args.learning_rate = 1e-6


def _a_alone(trainer: Any) -> None:
    from peft import LoraConfig, get_peft_model

    trainer.model = get_peft_model(trainer.model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    trainer.model_wrapped = trainer.model
    for name, parameter in trainer.model.named_parameters():
        parameter.requires_grad_("lora_A" in name)


def _slow(trainer: Any) -> None:
    trainer.args.learning_rate = 1e-7


def _next_to_nothing(trainer: Any) -> None:
    trainer.args.learning_rate = 1e-8


def _nothing(_: Any) -> None:
    pass


CASES = {"few weights": _norm_alone, "rounding": _half, "no gradient": _a_alone, "step too small": _slow,
         "step too small ": _next_to_nothing, "": _nothing}  # fmt: skip


@pytest.mark.parametrize("cause", CASES)
def test_a_recording_names_the_cause_within_six_updates(cause: str, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')
    from tests.health.recorded_trl import examined
    from tests.record.watched import Run

    made = Run("SFTTrainer", tmp_path)
    made.trainer.args.max_steps = 6
    CASES[cause](made.trainer)
    made.train()
    named = [each.name for each in findings(examined(tmp_path / "rec"))]
    assert named[:1] == ([cause.strip()] if cause else [])
