"""How far a trainer's weights move: what the recording says of healthy and of stuck ones."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from peft import LoraConfig, get_peft_model

from rlplay.foreign.recording import Recording
from rlplay.record.trl import weight_sample
from rlplay.record.trl.weight_sample import EACH, TENSORS, WeightSample
from rlplay.trace.records import Finished, Notice
from tests.record.watched import Run


def _recorded(run: Run, folder: Path, **options: Any) -> list[dict[str, float]]:
    for name, value in options.items():
        setattr(run.trainer.args, name, value)
    run.train()
    records = Recording(folder / "rec").fresh()
    assert not [record for record in records if isinstance(record, Notice) and "no longer" in record.text]
    return [record.metrics for record in records if isinstance(record, Finished)]


@pytest.mark.parametrize("name", ["GRPOTrainer", "DPOTrainer", "experimental.GOLDTrainer"])
def test_every_update_says_how_far_the_weights_moved(name: str, tmp_path: Path) -> None:
    found = _recorded(Run(name, tmp_path), tmp_path)
    assert len(found) == 3
    for metrics in found:
        assert metrics["weights/trained"] == 1
        assert metrics["weights/rounding"] == torch.finfo(torch.float32).eps
        assert metrics["weights/changed"] > 0.5
        assert 1e-4 < metrics["weights/step"] < 0.1


def test_a_frozen_model_stays(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path)
    weights = dict(run.trainer.model.named_parameters())
    for weight in weights.values():
        weight.requires_grad_(False)
    weights["model.norm.weight"].requires_grad_(True)
    for metrics in _recorded(run, tmp_path):
        assert metrics["weights/matrices"] == 0
        assert metrics["weights/trained"] == 16 / sum(weight.numel() for weight in weights.values())
        assert metrics["weights/changed"] == 1  # this one vector


def test_steps_below_the_precision_of_bfloat16_are_rounded_away(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path)
    run.trainer.model.to(torch.bfloat16)
    for metrics in _recorded(run, tmp_path, learning_rate=1e-6):
        assert metrics["grad_norm"] > 0.1
        assert metrics["weights/changed"] < 0.01
        assert metrics["weights/rounding"] == 2**-7


def test_the_same_steps_reach_single_precision(tmp_path: Path) -> None:
    found = _recorded(Run("SFTTrainer", tmp_path), tmp_path, learning_rate=1e-6)
    assert all(metrics["weights/changed"] > 0.5 and metrics["weights/step"] < 1e-5 for metrics in found)


def test_an_adapter_that_gets_no_gradient_stays(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path)
    run.trainer.model = get_peft_model(run.trainer.model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    run.trainer.model_wrapped = run.trainer.model
    for name, weight in run.trainer.model.named_parameters():
        weight.requires_grad_("lora_A" in name)  # while B is 0
    for metrics in _recorded(run, tmp_path):
        assert metrics["grad_norm"] == metrics["weights/changed"] == metrics["weights/step"] == 0
        assert metrics["weights/matrices"] == 2


def _trainer(model: nn.Module, split: str = "NO") -> Any:
    process = SimpleNamespace(unwrap_model=lambda found: found, distributed_type=SimpleNamespace(name=split))
    return SimpleNamespace(model=model, accelerator=process)


def test_the_share_that_changed_and_the_size_of_the_step() -> None:
    model = nn.Linear(2, 2, bias=False)
    model.weight.data = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    sample = WeightSample(_trainer(model))
    model.weight.data[0, 0] += 0.5
    found = sample.close_update()
    assert (found["weights/changed"], found["weights/step"]) == (0.25, 0.1)
    assert sample.close_update()["weights/changed"] == 0


class OfApple(nn.Parameter):
    """A weight that says it is on a GPU of Apple's, which has no numbers of 64 bits."""

    device = property(lambda _: torch.device("mps"))  # type: ignore[assignment]


def test_an_apple_gpu_is_asked_for_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    def there(values: torch.Tensor) -> Any:
        def to(home: torch.device, dtype: torch.dtype) -> torch.Tensor:
            assert (home.type, dtype) == ("mps", torch.float32)
            return values.to(dtype)

        return SimpleNamespace(to=to)

    model = nn.Linear(2, 2, bias=False)
    model.weight = OfApple(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    some = weight_sample._some
    monkeypatch.setattr(weight_sample, "_some", lambda weight: there(some(weight)))
    sample = WeightSample(_trainer(model))
    monkeypatch.setattr(WeightSample, "_step", lambda *_: torch.tensor(0.1))
    with torch.no_grad():
        model.weight[0, 0] += 0.5
    assert sample.close_update()["weights/changed"] == 0.25
    assert sample._before.dtype == torch.float64


@pytest.mark.parametrize("split", ["FSDP", "DEEPSPEED"])
def test_weights_in_shares_are_left_out(split: str) -> None:
    assert WeightSample(_trainer(nn.Linear(2, 2), split)).close_update() == {}


def test_a_share_of_a_weight_is_left_out() -> None:
    model = nn.Linear(2, 2)
    model.weight.data = torch.zeros(0)  # as on a process that holds none of it
    assert WeightSample(_trainer(model)).close_update() == {}


def test_the_step_is_that_of_the_middle_tensor() -> None:
    """One whose numbers are large does not hide the others, and one that is still 0 does not count."""
    model = nn.ParameterList([torch.full((4,), size) for size in (100.0, 1.0, 2.0, 0.0)])
    sample = WeightSample(_trainer(model))
    with torch.no_grad():
        for weight in model:
            weight.add_(0.5)
    assert sample.close_update()["weights/step"] == 0.25


def test_weights_that_are_0_have_no_step_in_proportion() -> None:
    model = nn.Linear(2, 2, bias=False)
    model.weight.data.zero_()
    assert "weights/step" not in WeightSample(_trainer(model)).close_update()


def test_a_model_of_any_size_shows_as_many_numbers() -> None:
    model = nn.Sequential(*[nn.Linear(100, 100) for _ in range(150)])
    sample = WeightSample(_trainer(model))
    assert len(sample._numbers()) == TENSORS * EACH
    began = time.process_time()
    for _ in range(20):
        sample.close_update()
    assert (time.process_time() - began) / 20 < 0.02


def test_a_failure_ends_this_measurement_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(weight_sample, "_some", broken)
    run = Run("DPOTrainer", tmp_path)
    run.train()
    metrics = [record.metrics for record in Recording(tmp_path / "rec").fresh() if isinstance(record, Finished)]
    assert len(metrics) == 3
    assert not any(name.startswith("weights/") for each in metrics for name in each)
    assert "how far the weights move is no longer recorded (broken)" in capfd.readouterr().err
