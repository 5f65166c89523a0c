"""Curves as runs: updates, held-out numbers, restarts, names, and which run a path means."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tensorboardX import SummaryWriter

from rlplay.foreign.copy import Copy, run_file
from rlplay.foreign.curve_files.curve_run import CurveRun
from rlplay.foreign.curve_files.formats import curve_log
from rlplay.foreign.curve_files.names import NAMES, known_as
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.metrics import describe
from rlplay.trace.records import Evaluated, Finished, Rewound
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.grown import Row, lines
from tests.foreign.test_curve_files import CURVES, STEPS, trackio


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def metrics(path: Path) -> dict[int, dict[str, float]]:
    with RunReader(Copy(path).path) as run:
        return dict(run.metrics())


def events(folder: Path, points: dict[int, dict[str, float]]) -> None:
    with SummaryWriter(str(folder)) as writer:
        for step, scalars in points.items():
            for name, value in scalars.items():
                writer.add_scalar(name, value, step)


def test_updates_are_the_steps_that_have_numbers(tmp_path: Path) -> None:
    events(tmp_path, {10: {"train/reward": 0.25}, 20: {"train/reward": 0.5, "eval/reward": 1.0}})
    copy = Copy(tmp_path)
    with RunReader(copy.path) as run:
        assert run.updates() == [1, 2]
        assert run.detailed() == []
        assert dict(run.metrics())[2] == {"reward": 0.5, "eval_reward": 1.0}
        finished = run.load(2).finished
        assert finished is not None
        assert finished.trainer_steps == (20, 20)


def test_a_trainer_that_counts_from_0_has_its_step_beside_the_update(tmp_path: Path) -> None:
    lines(tmp_path / "metrics.jsonl", [{"step": step, "time": 1.0, "loss/mean": 0.5} for step in range(3)])
    copy = Copy(tmp_path)
    with RunReader(copy.path) as run:
        assert run.updates() == [1, 2, 3]
        assert run.history().clock.steps(1) == (0, 0)


def test_held_out_numbers_before_training_are_no_step(tmp_path: Path) -> None:
    found = metrics(CURVES / "verl.jsonl")
    assert sorted(found) == list(range(STEPS + 1))
    assert found[0] == {"eval_gsm8k/acc/mean@1": 0.25}
    assert {"reward", "entropy", "clip_ratio/region_mean", "completions/mean_length"} < set(found[1])
    rows = [{"step": 0, "validation/accuracy": 0.5, "timing/setup/total": 9.0}, {"step": 1, "train/reward": 1.0}]
    lines(tmp_path / "metrics.jsonl", rows)
    assert metrics(tmp_path) == {0: {"eval_accuracy": 0.5}, 1: {"reward": 1.0}}


def test_a_resumed_run_goes_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    events(first, {step: {"train/reward": step / 10} for step in range(1, 9)})
    events(second, {step: {"train/reward": 1.0} for step in range(6, 8)})
    for folder, began in ((first, 100), (second, 200)):
        (file,) = folder.iterdir()
        (tmp_path / "run").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "run" / f"events.out.tfevents.{began}.host")
    with RunReader(Copy(tmp_path / "run").path) as run:
        history = run.history()
        assert history.series("reward") == (
            [1, 2, 3, 4, 5, 6, 7],
            [pytest.approx(n / 10) for n in range(1, 6)] + [1, 1],
        )
        assert [mark.text for mark in history.marks] == ["rewound from 8"]
        assert history.abandoned("reward")[0][0] == [6, 7, 8]


def test_numbers_that_come_late_join_their_step(tmp_path: Path) -> None:
    rows: list[Row] = [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]
    lines(tmp_path / "metrics.jsonl", rows)
    copy = Copy(tmp_path)
    lines(tmp_path / "metrics.jsonl", [*rows, {"step": 1, "reward": 0.5}])
    assert copy.pull() == 1
    with RunReader(copy.path) as run:
        assert dict(run.metrics()) == {1: {"loss": 1.0, "reward": 0.5}, 2: {"loss": 2.0}}
        finished = run.load(1).finished
        assert finished is not None
        assert finished.metrics == {"loss": 1.0, "reward": 0.5}
        assert run.history().series("loss") == ([1, 2], [1.0, 2.0])


def test_reading_on_in_another_process_repeats_nothing(tmp_path: Path) -> None:
    rows: list[Row] = [{"step": step, "loss": float(step)} for step in range(1, 4)]
    lines(tmp_path / "metrics.jsonl", rows)
    before = Copy(tmp_path)
    with RunReader(before.path) as run:
        last = run.last_id()
        lines(tmp_path / "metrics.jsonl", [*rows, {"step": 4, "loss": 4.0}])
        Copy(tmp_path)
        assert [record.update for _, record in run.follow(last)] == [4]


def test_a_file_that_is_cut_is_read_again(tmp_path: Path) -> None:
    rows: list[Row] = [{"step": step, "loss": float(step)} for step in range(1, 6)]
    lines(tmp_path / "metrics.jsonl", rows)
    copy = Copy(tmp_path)
    lines(tmp_path / "metrics.jsonl", [*rows[:2], {"step": 3, "loss": 9.0}])
    for _ in ("while it is followed", "in a later process"):
        copy.pull()
        with RunReader(copy.path) as run:
            assert run.history().series("loss") == ([1, 2, 3], [1.0, 2.0, 9.0])
            assert run.history().abandoned("loss")
        lines(tmp_path / "metrics.jsonl", rows)
        copy = Copy(tmp_path)
        lines(tmp_path / "metrics.jsonl", [*rows[:2], {"step": 3, "loss": 9.0}])
        copy = Copy(tmp_path)


def test_what_a_run_file_holds_is_not_repeated(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": float(step), "eval_reward": 0.5} for step in (5, 10, 15)]
    lines(tmp_path / "metrics.jsonl", rows)
    with RunReader(Copy(tmp_path).path) as run:
        history = run.history()
    rows[1]["loss"], rows[2]["step"] = 7.0, 20
    lines(tmp_path / "metrics.jsonl", rows)
    log = curve_log(tmp_path)
    assert log is not None
    again = CurveRun(log)
    again.recall(history)
    kinds = [(type(record), record.update) for record in again.fresh()]
    assert kinds == [(Rewound, 2), (Finished, 2), (Finished, 3), (Evaluated, 3)]


def test_a_number_between_two_steps_belongs_to_the_later_one(tmp_path: Path) -> None:
    rows: list[Row] = [{"step": 10, "loss": 1.0}, {"step": 20, "loss": 2.0}, {"step": 15, "loss": 9.0, "extra": 3.0}]
    lines(tmp_path / "metrics.jsonl", rows)
    assert metrics(tmp_path) == {1: {"loss": 1.0}, 2: {"loss": 2.0, "extra": 3.0}}


def test_names_lead_to_names_of_rlplay_or_stay() -> None:
    own = {"mismatch_kl/mean", "sampling/sampling_logp_difference/mean", "step_time"}
    assert not [name for name in NAMES.values() if describe(name) is None and name not in own]
    for name, called_here in (
        ("train/reward", "reward"), ("train/rewards/correct/mean", "rewards/correct/mean"), ("mine", "mine"),
        ("train/mean_gen_tokens_per_sample", "completions/mean_length"), ("actor/ppo_kl", "actor/ppo_kl"),
        ("critic/rewards/mean", "critic/rewards/mean"), ("env/all/ac_tokens_per_turn", "env/all/ac_tokens_per_turn"),
        ("train_runtime", ""), ("train/train_loss", ""),
        ("eval/reward", "eval_reward"),
        ("eval/response_length", "eval_completions/mean_length"), ("policy/policy_entropy", "entropy"),
    ):  # fmt: skip
        assert known_as(name) == called_here


def test_event_files_at_any_depth_are_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "tensorboard" / "ppo_1"
    events(folder, {1: {"train/reward": 0.5}})
    log = curve_log(tmp_path / "run")
    assert log is not None
    assert log.path == folder


def test_several_runs_are_listed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        events(tmp_path / "runs" / name, {1: {"train/reward": 0.5}})
    with pytest.raises(ForeignRunError, match=r"holds 2 runs of TensorBoard, newest first: 'b', 'a'; name one, as in "):
        curve_log(tmp_path / "runs")
    trackio(tmp_path)
    for path in (tmp_path / "project.db", tmp_path):
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        with pytest.raises(ForeignRunError, match=r"'(project\.db/)?second', '(project\.db/)?first'; name one"):
            curve_log(path)
    with pytest.raises(ForeignRunError, match="has no run 'third'; it has 'first', 'second'"):
        curve_log(tmp_path / "project.db" / "third")
    assert run_file(tmp_path / "project.db" / "second").name.startswith("project-second_")


def test_commands_take_files_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (CURVES / "wandb", CURVES / "wandb/run-abcd1234.wandb", CURVES / "verl.jsonl", CURVES / "tensorboardX"):
        status, out, _ = called(capsys, "import", str(path))
        assert (status, out.split()[:2]) == (0, ["6", "updates"])
        status, out, _ = called(capsys, "health", str(path), "--json")
        assert json.loads(out)["update"] == STEPS
    status, _, err = called(capsys, "import", str(tmp_path / "absent"))
    assert status == 2
    assert "absent" in err


def test_held_out_numbers_are_a_record_of_their_own(tmp_path: Path) -> None:
    lines(tmp_path / "metrics.jsonl", [{"step": 1, "loss": 1.0, "eval_reward": 0.5}])
    log = curve_log(tmp_path)
    assert log is not None
    one, other = CurveRun(log).fresh()
    assert isinstance(one, Finished)
    assert isinstance(other, Evaluated)
    assert (one.metrics, other.metrics) == ({"loss": 1.0}, {"eval_reward": 0.5})


def test_a_large_tree_is_not_searched_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events(tmp_path / "a" / "b", {1: {"loss": 1.0}})
    for number in range(20):
        (tmp_path / f"z{number}").mkdir()
    log = curve_log(tmp_path)
    assert log is not None
    assert log.path == tmp_path / "a" / "b"
    monkeypatch.setattr("rlplay.foreign.curve_files.formats._MOST_FOLDERS", 10)
    (tmp_path / "a" / ".hidden").mkdir()
    assert curve_log(tmp_path) is None
