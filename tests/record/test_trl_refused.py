"""Which trainers of TRL cannot say who taught a token, and why; what fails keeps nothing, and pictures are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from transformers import TrainerCallback

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from rlplay.record.trl.teachers import watch
from rlplay.record.trl.teachers.kept import PICTURES
from rlplay.record.trl.teachers.refused import kept_bytes, why_not
from tests.record import tiny
from tests.record.asked import Asking
from tests.record.watched import Run


@pytest.fixture
def trainer(tmp_path: Path) -> Any:
    """What is asked of a trainer before it keeps anything; nothing is in the way of this one."""
    model = tiny.model(tmp_path / "model")
    return SimpleNamespace(
        accelerator=SimpleNamespace(
            distributed_type=SimpleNamespace(name="NO"), num_processes=1, scaler=None, unwrap_model=lambda model: model
        ),
        args=SimpleNamespace(n_gpu=1), model=model, optimizer=torch.optim.AdamW(model.parameters()),
    )  # fmt: skip


def split(name: str) -> Callable[[Any], None]:
    return lambda trainer: setattr(trainer.accelerator.distributed_type, "name", name)


def optimized(**options: Any) -> Callable[[Any], None]:
    return lambda trainer: setattr(trainer, "optimizer", torch.optim.AdamW(trainer.model.parameters(), **options))


def plain(trainer: Any) -> None:
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters())


def coarse(trainer: Any) -> None:
    trainer.model.to(torch.bfloat16)


def scoring(trainer: Any) -> None:
    trainer.model = tiny.scorer()


def dropping(trainer: Any) -> None:
    trainer.model.model.layers[0].mlp.drop = torch.nn.Dropout(0.1)


def inattentive(trainer: Any) -> None:
    trainer.model.model.layers[0].self_attn.attention_dropout = 0.2


def scaled(trainer: Any) -> None:
    trainer.accelerator.scaler = object()


def many(trainer: Any) -> None:
    trainer.accelerator.num_processes = 2


def parallel(trainer: Any) -> None:
    trainer.args.n_gpu = 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (split("FSDP"), "FSDP splits the weights"), (split("DEEPSPEED"), "DEEPSPEED splits the weights"),
        (many, "several devices"), (parallel, "several devices"), (scaled, "fp16"), (plain, "torch's SGD"),
        (optimized(amsgrad=True), "amsgrad"), (optimized(maximize=True), "maximize"), (coarse, "bfloat16"),
        (dropping, "dropout of 0.1"), (inattentive, "dropout of 0.2"), (scoring, "no token a probability"),
    ],
)  # fmt: skip
def test_what_is_in_the_way_is_named(trainer: Any, changed: Callable[[Any], None], reason: str) -> None:
    assert not why_not(trainer, True, 1)
    assert "guesses" in why_not(trainer, False, 1)
    changed(trainer)
    assert reason in why_not(trainer, True, 1)


def test_a_question_leaves_half_of_the_free_memory(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = sum(each.numel() for each in trainer.model.parameters())
    assert kept_bytes(trainer, 1) == 8 * numbers
    for free, refused in ((56 * numbers, False), (55 * numbers, True)):
        monkeypatch.setattr(psutil, "virtual_memory", lambda free=free: SimpleNamespace(available=free))
        assert bool(why_not(trainer, True, 1)) is refused


def test_memory_that_is_gone_by_then_refuses_the_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run("SFTTrainer", tmp_path, options={"max_steps": 4})
    asking = Asking(run, tmp_path / "rec", (1, 2, 3))
    free = iter([10**12, 10, 10**12])
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=next(free)))
    run.train()
    assert ["memory" in each.refused for each in asking.answers] == [False, True, False]
    assert not asking.last.refused


class Keeping(TrainerCallback):  # type: ignore[misc]
    """Whether an update is kept after each step."""

    def __init__(self, run: Run) -> None:
        self._run, self.keeps = run, list[bool]()
        run.trainer.add_callback(self)

    def on_log(self, *_: Any, **__: Any) -> None:
        if (observed := self._run.callback._observed) is not None:
            self.keeps.append(observed.teachers.keeps)


def test_what_can_no_longer_be_kept_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise MemoryError

    run = Run("SFTTrainer", tmp_path, options={"max_steps": 4})
    Asking(run, tmp_path / "rec", (1,))
    keeping = Keeping(run)
    monkeypatch.setattr(watch, "kept_step", broken)
    run.train()
    assert keeping.keeps[:3] == [True, False, False]


def test_answers_about_pictures_are_refused(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path, options={"max_steps": 3, "remove_unused_columns": False})
    collate = run.trainer.data_collator
    run.trainer.data_collator = lambda rows: collate(rows) | {"pixel_values": torch.zeros(len(rows), 1)}
    asking = Asking(run, tmp_path / "rec", (1, 2))
    run.train()
    assert asking.last.refused == PICTURES


def test_weights_that_have_diverged_have_no_teachers(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path, options={"max_steps": 3, "learning_rate": 1e38})
    asking = Asking(run, tmp_path / "rec", (1, 2))
    run.train()
    assert "diverged" in asking.last.refused
