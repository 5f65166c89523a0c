"""Curves beside a recording of the same run: which file belongs to it, which update a step is, what stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rlplay.foreign.copy import Copy, copy_again, run_file
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.record import Recorder
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.grown import lines, tinker_rows
from tests.foreign.test_curve_runs import events


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def recorded(output_dir: Path, updates: int = 3, steps: int = 2) -> Recorder:
    """A recording whose updates are `steps` steps of the trainer each."""
    recorder = Recorder(output_dir / "rlplay")
    recorder.begin("a trainer", {"learning_rate": 1e-4})
    for update in range(1, updates + 1):
        ended(recorder, update, steps)
    return recorder


def ended(recorder: Recorder, update: int, steps: int = 2) -> None:
    recorder.rollouts(
        update, prompts=["2+2="], group=[0], lengths=[1], texts=["4"], rewards={"correct": [1.0]}, advantages=[0.5]
    )
    last = steps * update
    recorder.end(update, {"reward": update / 8}, trainer_steps=(last - steps + 1, last))


def logged(updates: int = 3, steps: int = 2, reward: float = 0.125) -> dict[int, dict[str, float]]:
    """What the trainer logs of each step."""
    return {
        step: {
            "train/reward": reward * ((step + steps - 1) // steps),
            "train/mine": float(step),
            "train/max": 9.0 - step,
        }
        for step in range(1, updates * steps + 1)
    }


def series(path: Path, name: str) -> list[tuple[int, float]]:
    with RunReader(path) as run:
        return list(zip(*run.history().series(name), strict=True))


def test_steps_become_the_numbers_of_their_update(tmp_path: Path) -> None:
    recorded(tmp_path)
    events(tmp_path / "runs" / "host", logged())
    path = Copy(tmp_path).path
    assert series(path, "tensorboard/mine") == [(1, 1.5), (2, 3.5), (3, 5.5)]
    assert series(path, "tensorboard/max") == [(1, 8.0), (2, 6.0), (3, 4.0)]


def test_what_is_recorded_stays_as_it_was_recorded(tmp_path: Path) -> None:
    recorded(tmp_path)
    events(tmp_path / "runs" / "host", logged())
    path = Copy(tmp_path).path
    with RunReader(path) as run:
        assert [name for name in run.history().names() if "reward" in name] == ["reward"]
        finished = run.load(1).finished
        assert finished is not None
        assert finished.metrics == {"reward": 0.125}
        assert run.updates() == run.detailed() == [1, 2, 3]


def test_a_number_that_rlplay_knows_keeps_its_name(tmp_path: Path) -> None:
    recorded(tmp_path)
    events(tmp_path / "runs" / "host", {step: row | {"train/kl": step / 4} for step, row in logged().items()})
    path = Copy(tmp_path).path
    assert series(path, "kl") == [(1, 0.375), (2, 0.875), (3, 1.375)]
    with RunReader(path) as run:
        last = run.last_id()
        Copy(tmp_path)
        assert run.last_id() == last, "nothing comes twice"


def test_answers_that_a_trainer_keeps_have_its_curves_beside_them(tmp_path: Path) -> None:
    rows = tinker_rows(0)
    lines(tmp_path / "iteration_000000" / "train_rollout_summaries.jsonl", rows)
    lines(tmp_path / "metrics.jsonl", [{"step": 0, "optim/entropy": 0.5, "env/all/reward/total": 9.0, "time/x": 1.0}])
    path = Copy(tmp_path).path
    assert series(path, "entropy") == [(1, 0.5)]
    assert series(path, "tinker-cookbook/time/x") == [(1, 1.0)]
    assert series(path, "reward") != [(1, 9.0)], "as its answers have it"


def test_the_files_of_another_run_in_the_same_folder_are_left_alone(tmp_path: Path) -> None:
    recorded(tmp_path)
    for began, name, reward in ((100, "own", 0.125), (200, "other", 0.7)):
        events(tmp_path / "made" / name, logged(reward=reward))
        (file,) = (tmp_path / "made" / name).iterdir()
        (tmp_path / "runs" / name).mkdir(parents=True)
        shutil.copy(file, tmp_path / "runs" / name / f"events.out.tfevents.{began}.host")
    path = Copy(tmp_path).path
    assert series(path, "tensorboard/mine")
    shutil.rmtree(tmp_path / "runs" / "own")
    with RunReader(path) as run:
        last = run.last_id()
    Copy(tmp_path)
    with RunReader(path) as run:
        assert run.last_id() == last


def test_the_files_of_an_earlier_run_stay_out_before_the_first_update(tmp_path: Path) -> None:
    events(tmp_path / "runs" / "earlier", logged(reward=0.7))
    recorder = recorded(tmp_path, updates=0)
    copy = Copy(tmp_path)
    for update in (1, 2, 3):
        ended(recorder, update)
        while copy.pull():
            pass
    assert not series(copy.path, "tensorboard/mine")


def test_its_own_curves_are_found_once_there_is_something_to_compare(tmp_path: Path) -> None:
    recorder = recorded(tmp_path, updates=0)
    copy = Copy(tmp_path)
    (tmp_path / "runs").mkdir()
    ended(recorder, 1)
    copy.pull()
    events(tmp_path / "runs" / "host", logged(2))
    ended(recorder, 2)
    while copy.pull():
        pass
    assert series(copy.path, "tensorboard/mine") == [(1, 1.5), (2, 3.5)]


def test_the_state_of_the_trainer_does_where_there_are_no_event_files(tmp_path: Path) -> None:
    recorded(tmp_path)
    history = [
        {"step": step, **{k.removeprefix("train/"): v for k, v in row.items()}} for step, row in logged().items()
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")
    assert series(Copy(tmp_path).path, "trainer_state/mine") == [(1, 1.5), (2, 3.5), (3, 5.5)]


def test_both_grow(tmp_path: Path) -> None:
    recorder = recorded(tmp_path, updates=1)
    rows = [{"step": step, **row} for step, row in logged().items()]
    lines(tmp_path / "metrics.jsonl", rows[:1])
    copy = Copy(tmp_path, curves=tmp_path / "metrics.jsonl")
    assert series(copy.path, "jsonl/mine") == [(1, 1.0)]
    lines(tmp_path / "metrics.jsonl", rows[:5])
    copy.pull()
    assert series(copy.path, "jsonl/mine") == [(1, 1.5)], "update 2 has not ended"
    ended(recorder, 2)
    copy.pull()
    assert series(copy.path, "jsonl/mine") == [(1, 1.5), (2, 3.5)]
    ended(recorder, 3)
    lines(tmp_path / "metrics.jsonl", rows)
    Copy(tmp_path)  # in another process, which knows the file by now
    assert series(copy.path, "jsonl/mine") == [(1, 1.5), (2, 3.5), (3, 5.5)]
    assert copy.pull() == 0


def test_any_number_of_steps_costs_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "rlplay")
    recorder.begin("a trainer", {})
    recorder.end(1, {"reward": 0.125}, trainer_steps=(0, 2**52))
    events(tmp_path / "runs" / "host", logged(updates=1))
    assert series(Copy(tmp_path).path, "tensorboard/mine") == [(1, 1.5)]


def test_curves_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "out")
    events(tmp_path / "elsewhere", logged())
    status, _, _ = called(capsys, "health", str(tmp_path / "out"), "--curves", str(tmp_path / "elsewhere"))
    assert status in (0, 1)
    path = run_file(tmp_path / "out")
    assert series(path, "tensorboard/mine")
    shutil.rmtree(tmp_path / "elsewhere")
    with RunReader(path) as run:
        assert copy_again(run) is not None, "a recording opens without the curves that it had"
    status, _, err = called(capsys, "import", str(tmp_path / "out"), "--curves", str(tmp_path / "absent"))
    assert status == 2
    assert "absent holds no curves" in err


def test_a_run_of_rlplay_has_no_curves_beside_it(tmp_path: Path) -> None:
    from rlplay.foreign.copy import join
    from tests.recorded import synthetic_run

    with pytest.raises(ForeignRunError, match="no copy of another trainer's run"):
        join(synthetic_run(tmp_path / "own.rlplay", updates=1), tmp_path)


def test_damaged_event_files_do_not_hide_the_recording(tmp_path: Path) -> None:
    recorded(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "events.out.tfevents.1.host").write_bytes(b"x" * 100)
    with RunReader(Copy(tmp_path).path) as run:
        assert run.updates() == [1, 2, 3]
