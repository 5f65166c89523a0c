"""Training again continues the recording; after training nothing is left on the trainer, also if it raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from transformers import TrainerCallback

from rlplay.foreign.copy import Copy
from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from rlplay.trace.records import AnyRecord, Changed, Finished, Sampled, Stepped
from rlplay.trace.runfile import RunReader
from tests.record.watched import Run, hanging, remarks


def _of(records: list[AnyRecord], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


class Stops(TrainerCallback):  # type: ignore[misc]
    """Raises at an event, in the training's step `at`."""

    def __init__(self, event: str, at: int, error: type[BaseException] = ValueError) -> None:
        self.left = at
        setattr(self, event, self._raise)
        self._error = error

    def _raise(self, *_: Any, **__: Any) -> None:
        self.left -= 1
        if not self.left:
            raise self._error("stop")


@pytest.mark.parametrize("name", ["GRPOTrainer", "DPOTrainer", "experimental.CPOTrainer"])
def test_a_second_training_continues_the_recording(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    run, without = Run(name, tmp_path / "with"), Run(name, tmp_path / "without", callback=False)
    for each in (run, without):
        each.train()
    copy = Copy(tmp_path / "with" / "rec")
    run.trainer.args.learning_rate = without.trainer.args.learning_rate = 0.002
    run.trainer.optimizer = without.trainer.optimizer = None
    for each in (run, without):
        each.train()
    assert run.losses == without.losses
    assert hanging(run.trainer) == hanging(without.trainer)
    records = Recording(tmp_path / "with" / "rec").fresh()
    assert [record.update for record in _of(records, Finished)] == [1, 2, 3, 4, 5, 6]
    assert [record.update for record in _of(records, Sampled)] == [1, 2, 3, 4, 5, 6]
    (changed,) = _of(records, Changed)
    assert (changed.update, changed.name, changed.value, changed.previous) == (4, "learning_rate", 0.002, 0.01)
    losses = [record.metrics["loss"] for record in _of(records, Finished)]
    assert losses == pytest.approx(without.losses, rel=1e-5)
    copy.pull()
    with RunReader(copy.path) as found:
        assert found.updates() == [1, 2, 3, 4, 5, 6]


def test_a_second_training_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """TRL goes on with the answers that it has; the first step on them has no answers on record, and the rest has."""
    run, without = Run("GRPOTrainer", tmp_path / "with"), Run("GRPOTrainer", tmp_path / "without", callback=False)
    for each in (run, without):
        each.trainer.num_iterations = each.trainer.args.num_iterations = 2
        each.train()
        each.train()
    assert run.losses == without.losses
    assert [batch.keys() for batch in run.trainer._buffered_inputs] == [
        batch.keys() for batch in without.trainer._buffered_inputs
    ]
    records = Recording(tmp_path / "with" / "rec").fresh()
    assert [len([s for s in _of(records, Stepped) if s.update == u]) for u in (1, 2, 3, 4)] == [2, 1, 0, 2]
    assert [record.update for record in _of(records, Finished)] == [1, 2, 3, 4]


def test_another_run_in_the_same_place_gets_a_number(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Run("experimental.CPOTrainer", tmp_path).train()
    capfd.readouterr()
    again = Run("experimental.CPOTrainer", tmp_path)
    again.train()
    said = remarks(capfd.readouterr().err)
    assert said[0] == f"rlplay: {tmp_path / 'rec'} holds a recording already, so this one is at {tmp_path / 'rec-2'}"
    assert [len(_of(Recording(tmp_path / name).fresh(), Finished)) for name in ("rec", "rec-2")] == [3, 3]


def test_one_callback_for_two_trainers_makes_two_recordings(tmp_path: Path) -> None:
    first = Run("experimental.CPOTrainer", tmp_path)
    second = Run("DPOTrainer", tmp_path / "b", callback=False)
    first.train()
    second.trainer.add_callback(first.callback)
    second.train()
    assert Recording(tmp_path / "rec").started().source.endswith("CPOTrainer")
    assert Recording(tmp_path / "rec-2").started().source.endswith("DPOTrainer")


@pytest.mark.parametrize("name", ["GRPOTrainer", "DPOTrainer", "experimental.CPOTrainer"])
@pytest.mark.parametrize(
    "stops", [("on_step_begin", 2), ("on_optimizer_step", 2), ("on_step_end", 1), ("on_log", 4)], ids=lambda of: of[0]
)
def test_nothing_is_left_after_a_training_that_raised(name: str, stops: tuple[str, int], tmp_path: Path) -> None:
    run, without = Run(name, tmp_path / "with"), Run(name, tmp_path / "without", callback=False)
    for each in (run, without):
        each.trainer.add_callback(Stops(*stops))
        with pytest.raises(ValueError, match="stop"):
            each.train()
    assert hanging(run.trainer) == hanging(without.trainer)
    assert run.losses == without.losses
    for each in (run, without):
        each.train()
    assert run.losses == without.losses
    updates = [record.update for record in _of(Recording(tmp_path / "with" / "rec").fresh(), Finished)]
    assert updates == list(range(1, len(run.losses) + 1))


def test_a_loss_that_raises_leaves_nothing(tmp_path: Path) -> None:
    run, without = Run("SFTTrainer", tmp_path / "with"), Run("SFTTrainer", tmp_path / "without", callback=False)
    for each in (run, without):
        inner, count = each.trainer.model.forward, [0]

        def fails(*values: Any, inner: Any = inner, count: list[int] = count, **options: Any) -> Any:
            count[0] += 1
            if count[0] == 2:
                raise KeyboardInterrupt
            return inner(*values, **options)

        each.trainer.model.forward = fails
        with pytest.raises(KeyboardInterrupt):
            each.train()
    assert hanging(run.trainer) == hanging(without.trainer)
    assert [record.update for record in _of(Recording(tmp_path / "with" / "rec").fresh(), Finished)] == [1]


def test_bad_arguments_are_refused_before_training() -> None:
    for options in ({"completions": 0}, {"every": 0}):
        with pytest.raises(ValueError, match="completions and every are 1 or more"):
            RlplayCallback(**options)


@pytest.mark.parametrize(
    ("name", "expected"), [("experimental.GKDTrainer", ["learning_rate"]), ("DPOTrainer", ["learning_rate", "beta"])]
)
def test_only_a_known_loss_has_a_beta_to_change(name: str, expected: list[str], tmp_path: Path) -> None:
    run = Run(name, tmp_path, listen=True)
    offered: list[list[str]] = []

    class Asks(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            offered.append(run.callback._remote._abilities.changeable)  # type: ignore[union-attr]

    run.trainer.add_callback(Asks())
    run.train()
    assert offered == [expected] * 3
    assert run.callback._remote is None
    assert not (tmp_path / "rec" / "remote.json").exists()
