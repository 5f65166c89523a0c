"""Every trainer of TRL trains with the callback exactly as it does without, and leaves nothing on it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch
import trl
import trl.experimental

from rlplay.foreign.recording import Recording
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Scored, Started, Stepped
from tests.record.trainers import NEEDS_A_GPU, TRAINERS
from tests.record.watched import Run, hanging, remarks

WITH_FORMULA = {
    "GRPOTrainer": "grpo", "RLOOTrainer": "rloo", "DPOTrainer": "dpo", "KTOTrainer": "kto", "SFTTrainer": "sft",
    "RewardTrainer": "reward-model", "experimental.bema_for_ref_model.DPOTrainer": "dpo",
    "experimental.kto.KTOTrainer": "kto",
}  # fmt: skip
WITH_STEPS = {*WITH_FORMULA, "experimental.GMPOTrainer"}
WITH_REWARDS = {
    "GRPOTrainer", "RLOOTrainer", "experimental.A2POTrainer", "experimental.GMPOTrainer",
    "experimental.OnlineDPOTrainer", "experimental.SDPOTrainer",
}  # fmt: skip
WITH_ROLES = {
    "DPOTrainer", "KTOTrainer", "RewardTrainer", "SFTTrainer", "experimental.bema_for_ref_model.DPOTrainer",
    "experimental.kto.KTOTrainer", "experimental.CPOTrainer", "experimental.ORPOTrainer",
}  # fmt: skip
QUICK = ("experimental.GMPOTrainer", "experimental.CPOTrainer", "experimental.GOLDTrainer", "DPOTrainer")


def _of(records: list[AnyRecord], kind: type) -> list[AnyRecord]:
    return [record for record in records if isinstance(record, kind)]


def trains_as_without(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    without = Run(name, folder / "without", callback=False)
    without.train()
    capfd.readouterr()
    run = Run(name, folder / "with")
    run.train()
    said = remarks(capfd.readouterr().err)
    assert run.losses == without.losses
    assert len(run.losses) >= 3
    assert torch.equal(run.weights, without.weights)
    assert hanging(run.trainer) == hanging(without.trainer)
    reading = Recording(folder / "with" / "rec")
    started, records = reading.started(), reading.fresh()
    _compare(name, started, records, said)
    logs = [log for log in run.trainer.state.log_history if "train_loss" not in log]
    assert [record.metrics["loss"] for record in _of(records, Finished)] == pytest.approx([x["loss"] for x in logs])


def _compare(name: str, started: Started, records: list[AnyRecord], said: list[str]) -> None:
    assert started.source == f"TRL {trl.__version__} {name.rpartition('.')[2]}"
    assert started.settings["algorithm"] == WITH_FORMULA.get(name, "")
    notices = [f"rlplay: {record.text}" for record in _of(records, Notice)]
    assert said == notices
    assert len(said) == (name not in WITH_FORMULA)
    assert [record.update for record in _of(records, Finished)] == [1, 2, 3]
    assert len(_of(records, Stepped)) == 3 * (name in WITH_STEPS)
    sampled, scored = _of(records, Sampled), {record.update: record for record in _of(records, Scored)}
    assert [record.update for record in sampled] == [1, 2, 3]
    for record in sampled:
        assert all(prompt.strip() for prompt in record.prompts)
        assert "".join(record.texts).strip()
    rewards = [np.isfinite(record.rewards).all() for record in scored.values()]
    assert rewards == [name in WITH_REWARDS] * len(scored)
    assert len(scored) == 3 * (name in WITH_REWARDS | WITH_ROLES)
    assert all(bool(record.roles) == (name in WITH_ROLES) for record in scored.values())


@pytest.mark.parametrize("name", QUICK)
def test_training_is_as_without_the_callback(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trains_as_without(name, tmp_path, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TRAINERS if name not in QUICK])
def test_training_of_all_trainers(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trains_as_without(name, tmp_path, capfd)


def test_every_trainer_of_trl_is_tried() -> None:
    found = {name for name in dir(trl) if name.endswith("Trainer")}
    for module in pkgutil.iter_modules(trl.experimental.__path__):
        if module.ispkg:
            exported = dir(importlib.import_module(f"trl.experimental.{module.name}"))
            found |= {name for name in exported if name.endswith("Trainer") and not name.startswith("_")}
    tried = {name.rpartition(".")[2] for name in (*TRAINERS, *NEEDS_A_GPU)}
    assert found - tried == set()
