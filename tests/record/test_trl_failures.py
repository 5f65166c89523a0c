"""Whatever fails in the callback, training goes on as without it, one line says what is lost, and the rest is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.recording import Recording
from rlplay.record.recorder import Recorder
from rlplay.record.trl import callback, seen
from rlplay.record.trl.callback import RlplayCallback
from rlplay.record.trl.generations import Generation, TrainerSampling
from rlplay.record.trl.given import Given
from rlplay.record.trl.observer import Observer
from rlplay.record.trl.offline import Offline
from rlplay.record.trl.online import Online
from rlplay.record.trl.step_metrics import StepMetrics
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Stepped
from tests.record.watched import Run, hanging, remarks

Place = tuple[Any, str]


def _methods(*owners: Any) -> list[Place]:
    return [(owner, name) for owner in owners for name, of in vars(owner).items() if inspect.isfunction(of)]


_BEGIN = [(RlplayCallback, name) for name in ("_begin", "_open", "_describe", "_note", "_close_door")]
_OF_MODULES = [
    (module, name)
    for module, names in (
        (callback, ("known", "settings_of", "_free", "_unknown")),
        (seen, ("in_loss", "rewarded", "write")),
    )
    for name in names
]
WATCHING = {
    "GRPOTrainer": _methods(Observer, Online, Generation, TrainerSampling, StepMetrics, Texts, Recorder)
    + _BEGIN
    + _OF_MODULES,
    "DPOTrainer": _methods(Offline, Given),
    "experimental.SDPOTrainer": [(Observer, "_losing"), *_OF_MODULES],
}
KEEP = ("detach", "_name")
"""What fails here leaves hooks; training goes on."""
EVERY = [(name, owner, method) for name, places in WATCHING.items() for owner, method in places]
QUICK = [
    ("GRPOTrainer", Online, "_generated"), ("GRPOTrainer", Online, "_scored"),
    ("GRPOTrainer", StepMetrics, "close_update"), ("GRPOTrainer", Recorder, "step"),
    ("GRPOTrainer", callback, "settings_of"),
    ("DPOTrainer", Given, "differentiated"),
]  # fmt: skip


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[float]]:
    """The losses of a trainer without the callback."""
    known: dict[str, list[float]] = {}

    def of(name: str) -> list[float]:
        if name not in known:
            run = Run(name, tmp_path_factory.mktemp("without"), callback=False)
            run.train()
            known[name] = run.losses
        return known[name]

    return of


def _broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("broken")


def _records(folder: Path) -> list[AnyRecord]:
    try:
        return Recording(folder / "rec").fresh()
    except ForeignRunError:  # it has not begun
        return []


def goes_on(
    case: tuple[str, Any, str], losses: Callable[[str], list[float]], folder: Path, patch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    name, owner, method = case
    expected = losses(name)
    run = Run(name, folder)
    patch.setattr(owner, method, _broken)
    capfd.readouterr()
    run.train()
    patch.undo()
    assert run.losses == expected
    said = remarks(capfd.readouterr().err)
    assert len(said) == len(set(said)) <= 2
    assert all("broken" in line and "training goes on" in line for line in said if "is none of" not in line)
    if method not in KEEP:
        assert not [key for key, value in hanging(run.trainer).items() if "Hooks." in str(value)]
    _records(folder)


@pytest.mark.parametrize("case", QUICK, ids=lambda case: f"{case[1].__name__}.{case[2]}")
def test_training_goes_on(
    case: tuple[str, Any, str], losses: Callable[[str], list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    goes_on(case, losses, tmp_path, monkeypatch, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("case", EVERY, ids=lambda case: f"{case[0]}-{case[1].__name__}.{case[2]}")
def test_training_goes_on_whatever_fails(
    case: tuple[str, Any, str], losses: Callable[[str], list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    goes_on(case, losses, tmp_path, monkeypatch, capfd)


def _of(records: list[AnyRecord], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def test_without_derivatives_the_rest_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Online, "_scored", _broken)
    Run("GRPOTrainer", tmp_path).train()
    records = _records(tmp_path)
    assert [len(_of(records, kind)) for kind in (Sampled, Stepped, Finished)] == [3, 3, 3]
    assert all(np.isnan(step.logprobs).all() and np.isnan(step.dloss_dlogp).all() for step in _of(records, Stepped))
    (notice,) = _of(records, Notice)
    assert "log-probabilities and derivatives are no longer recorded (broken)" in notice.text
    assert f"rlplay: {notice.text}" in capfd.readouterr().err


def test_without_answers_metrics_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Online, "_generated", _broken)
    run = Run("GRPOTrainer", tmp_path)
    run.train()
    records = _records(tmp_path)
    assert not _of(records, Sampled)
    logs = [log for log in run.trainer.state.log_history if "train_loss" not in log]
    for record, log in zip(_of(records, Finished), logs, strict=True):
        known = {name: value for name, value in record.metrics.items() if not name.startswith("weights/")}
        assert {name: log[name] for name in known} == pytest.approx(known)


def test_where_the_tokenizer_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Texts, "decode_each", _broken)
    Run("GRPOTrainer", tmp_path).train()
    records = _records(tmp_path)
    assert (len(_of(records, Sampled)), len(_of(records, Finished))) == (0, 3)
    assert capfd.readouterr().err.count("answers and rewards are no longer recorded (broken); the rest is") == 1


def test_a_full_disk_ends_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    run = Run("GRPOTrainer", tmp_path)
    monkeypatch.setattr(Recorder, "_write", full)
    run.train()
    assert run.trainer.state.global_step == 3
    said = remarks(capfd.readouterr().err)
    assert said == ["rlplay: nothing is recorded ([Errno 28] No space left on device); training goes on"]


def test_a_disk_that_fills_up_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run, end = Run("GRPOTrainer", tmp_path), Recorder.end

    def fills(recorder: Recorder, update: int, *values: Any) -> None:
        if update == 2:
            recorder._file.write(b"half a frame" * 10_000)  # more than all that follows
            raise OSError(28, "No space left on device")
        end(recorder, update, *values)

    monkeypatch.setattr(Recorder, "end", fills)
    run.train()
    said = remarks(capfd.readouterr().err)
    assert said == [
        f"rlplay: the recording at {tmp_path / 'rec'} ends here ([Errno 28] No space left on device); training goes on"
    ]
    monkeypatch.undo()
    run.train()
    records = _records(tmp_path)
    assert [record.update for record in _of(records, Finished)] == [1, 3, 4, 5]
