"""One case for each name of TRL and transformers that is not documented and that the recorder uses."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import trl

from rlplay.foreign.recording import Recording
from rlplay.record.trl import compat
from rlplay.record.trl.trainer_kind import recognise
from rlplay.trace.records import Credited, Finished, Notice, Sampled, Scored, Stepped
from tests.record.trainers import TRAINERS
from tests.record.watched import Run, hanging

ARGUMENTS = {
    compat.GENERATE: ["inputs"],
    compat.SCORE: ["model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy"],
    compat.EPOCH: [],
    compat.FINALIZE: [],
}
CASES = [(name, kind) for name in compat.NAMES for kind in name.trainers]


@pytest.fixture(scope="module")
def trainers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {kind: TRAINERS[kind](tmp_path_factory.mktemp(kind), []) for kind in compat.ALL}


@pytest.mark.parametrize(("name", "kind"), CASES, ids=lambda case: getattr(case, "name", case))
def test_the_name_is_there(name: compat.Name, kind: str, trainers: dict[str, Any]) -> None:
    where = f"TRL {version('trl')}, transformers {version('transformers')}: {kind}.{name.name}"
    found = getattr(trainers[kind], name.name, compat)
    assert found is not compat, f"{where} is gone; without it the recording lacks {name.missing}"
    if name in ARGUMENTS:
        given = inspect.signature(found).parameters
        lost = [each for each in ARGUMENTS[name] if each not in given]
        assert not lost, f"{where} no longer takes {', '.join(lost)}"
    if name in (compat.LOGS, compat.METRICS):
        part = {"_logs": "rewards", "_metrics": "train"}[name.name]
        assert part in found, f"{where} no longer has {part}"


def test_metrics_that_are_no_numbers_are_left_to_the_log() -> None:
    """AsyncGRPOTrainer keeps rates as pairs of numerator and denominator until it logs them."""
    trainer = SimpleNamespace(_metrics={"train": {"kl": [0.5], "rate": [(1, 2)], "none": []}})
    assert compat.metrics(trainer) == {"kl": [0.5], "none": []}
    assert compat.metrics(SimpleNamespace()) == {}


@pytest.mark.parametrize("name", compat.CALCULATE)
def test_a_method_that_scores_answers_is_there(name: str) -> None:
    from trl.experimental.online_dpo import OnlineDPOTrainer
    from trl.experimental.sdpo import SDPOTrainer

    owner = OnlineDPOTrainer if "functions" in name else SDPOTrainer
    found = getattr(owner, name, None)
    assert found is not None, f"TRL {version('trl')}: {owner.__name__}.{name} is gone; its rewards are not recorded"
    assert {"prompts", "completions", "completion_ids_list"} <= inspect.signature(found).parameters.keys()


@pytest.mark.parametrize("name", sorted(set().union(*compat.METHODS.values())))
def test_a_method_that_makes_a_loss_is_there(name: str) -> None:
    kinds = [kind for kind, names in compat.METHODS.items() if name in names]
    found = any(hasattr(getattr(trl, kind), name) for kind in kinds)
    assert found, f"TRL {version('trl')}: no trainer has {name}; what has replaced it may make another loss"


def test_torch_has_the_names() -> None:
    where = f"torch {version('torch')}"
    model = torch.nn.Linear(1, 1)
    assert not compat.compiled(model)
    assert hasattr(model, "_compiled_call_impl"), f"{where}: Module._compiled_call_impl is gone"
    model.compile(backend="eager")
    assert compat.compiled(model)
    schedule = torch.optim.lr_scheduler.LambdaLR(torch.optim.SGD(model.parameters(), lr=1.0), lambda _step: 1.0)
    compat.log_rates(schedule, [0.5])
    assert schedule.get_last_lr() == [0.5], f"{where}: LRScheduler._last_lr is gone; TRL logs the old learning rate"


def test_trainers_lack_none_of_them(trainers: dict[str, Any]) -> None:
    assert {kind: compat.gone(trainer, kind) for kind, trainer in trainers.items()} == {kind: [] for kind in trainers}
    assert all(recognise(trainer).same_loss for trainer in trainers.values())


@pytest.mark.parametrize("name", ["GENERATE", "SCORE", "LOGS", "METRICS", "BUFFER", "EPOCH", "FINALIZE"])
def test_a_release_without_the_name_is_recorded_without_its_numbers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    was = getattr(compat, name)
    renamed = replace(was, name=f"{was.name}_renamed")
    monkeypatch.setattr(compat, name, renamed)
    monkeypatch.setattr(compat, "NAMES", tuple(renamed if each is was else each for each in compat.NAMES))
    without = Run("GRPOTrainer", tmp_path / "without", callback=False)
    without.train()
    run = Run("GRPOTrainer", tmp_path / "with")
    run.train()
    assert run.losses == without.losses
    assert hanging(run.trainer) == hanging(without.trainer)
    records = Recording(tmp_path / "with" / "rec").fresh()
    text = f"TRL {version('trl')} has no GRPOTrainer.{renamed.name}; the recording lacks {was.missing}"
    assert [record.text for record in records if isinstance(record, Notice)] == [text]
    assert f"rlplay: {text}" in capfd.readouterr().err.splitlines()
    kinds = (Sampled, Scored, Credited, Stepped, Finished)
    counts = [sum(isinstance(record, kind) for record in records) for kind in kinds]
    assert counts == ([0, 0, 0, 0, 3] if name == "GENERATE" else [3, 3, 3, 3, 3])
    scored = [record for record in records if isinstance(record, Scored)]
    assert all(np.isnan(record.rewards).all() == (not record.parts) == (name == "LOGS") for record in scored)
    steps = [record for record in records if isinstance(record, Stepped)]
    assert all(np.isnan(step.logprobs).all() == (name == "SCORE") for step in steps)
    logs = [log for log in run.trainer.state.log_history if "train_loss" not in log]
    for record, log in zip((r for r in records if isinstance(r, Finished)), logs, strict=True):
        assert record.metrics["entropy"] == pytest.approx(log["entropy"])
