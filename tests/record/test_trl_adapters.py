"""Who taught a token where a trainer of TRL trains adapters, on weights that may be coarse."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')
pytest.importorskip("peft", reason='peft is not installed: pip install -e ".[parity]"')

import peft

from rlplay.record.trl.teachers.in_float32 import in_float32
from tests.record import tiny
from tests.record.asked import Asking
from tests.record.watched import Run, hanging

MODEL = tiny.model


@pytest.mark.parametrize(("name", "bf16"), [("GRPOTrainer", True), ("SFTTrainer", False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_shares_of_adapters_add_up(
    name: str, bf16: bool, dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def adapted(folder: Path, seed: int = 0) -> Any:
        targets = ["q_proj", "v_proj", "up_proj"]
        return peft.get_peft_model(MODEL(folder, seed).to(dtype), peft.LoraConfig(r=4, target_modules=targets))

    monkeypatch.setattr(tiny, "model", adapted)
    options = {"max_steps": 4, "bf16": bf16, "learning_rate": 0.02}
    without = Run(name, tmp_path / "without", callback=False, options=options)
    without.train()
    run = Run(name, tmp_path / "with", options=options)
    asking = Asking(run, tmp_path / "with" / "rec", (1, 2, 4))
    run.train()
    assert run.losses == without.losses
    assert torch.equal(run.weights, without.weights)
    frozen = [each for each in run.trainer.model.parameters() if not each.requires_grad]
    assert {each.dtype for each in frozen} == {dtype}
    for answer in asking.answers[1:]:
        assert not answer.refused
        # Gradients in bfloat16 are coarse.
        size = abs(answer.first_order) + float(abs(answer.shares).sum())
        assert answer.predicted == pytest.approx(answer.first_order, abs=0.02 * size)


def test_a_pass_in_float32_leaves_the_weights_as_they_are(tmp_path: Path) -> None:
    model = tiny.model(tmp_path / "model").to(torch.bfloat16).eval()
    hooks = hanging(SimpleNamespace(model=model))
    before = [(each.data_ptr(), each.dtype) for each in model.parameters()]
    exact = tiny.model(tmp_path / "model").eval()
    exact.load_state_dict(model.state_dict())
    ids, inner = torch.tensor([[2, 3, 4]]), model.model.layers[0].mlp.down_proj
    with torch.no_grad(), in_float32(model):
        torch.testing.assert_close(model(ids).logits, exact(ids).logits, rtol=0, atol=5e-4)

    def broken(*_: Any) -> None:
        raise RuntimeError("broken")

    handle = inner.register_forward_pre_hook(broken)
    with pytest.raises(RuntimeError, match="broken"), torch.no_grad(), in_float32(model):
        model(ids)
    handle.remove()
    assert [(each.data_ptr(), each.dtype) for each in model.parameters()] == before
    assert hanging(SimpleNamespace(model=model)) == hooks
