"""Resuming a run from the command line, and what needs its snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from rlplay.cli import main as cli
from rlplay.cli import play as cli_play
from rlplay.engine import headless
from rlplay.engine.state import Halt
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.trace.branch import branch
from rlplay.trace.runfile import RunWriter
from rlplay.ui import start
from tests.cli.command_line import called
from tests.recorded import synthetic_started, synthetic_update


@pytest.mark.parametrize(
    ("args", "instead"),
    [
        ([], "rlplay run learn-to-think"),
        (["two-plus-two"], "rlplay run two-plus-two"),
        (["demo"], "rlplay run two-plus-two"),
        (["resume", "stopped.rlplay"], "rlplay run --resume stopped.rlplay"),
        (["replay", "stopped.rlplay"], "rlplay export stopped.rlplay"),
        (["compare", "stopped.rlplay", "stopped.rlplay"], "rlplay export stopped.rlplay"),
    ],
)
def test_the_screen_needs_a_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    recorded_run: Path,
    args: list[str],
    instead: str,
) -> None:
    monkeypatch.chdir(recorded_run.parent)
    status, out, err = called(capsys, *args)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "needs a terminal" in err
    assert instead in err


@pytest.fixture
def recorded_run(tmp_path: Path) -> Path:
    """A run of two-plus-two that stopped after update 2, with a snapshot."""
    path, snapshot = tmp_path / "stopped.rlplay", tmp_path / "stopped.snapshots" / "2.safetensors"
    text = msgspec.yaml.encode(load("two-plus-two")).decode()
    writer = RunWriter.create(path, msgspec.structs.replace(synthetic_started(), scenario_text=text))
    snapshot.parent.mkdir()
    snapshot.write_bytes(b"state")
    for number in (1, 2):
        for record in synthetic_update(number):
            writer.append(record)
    writer.add_snapshot(2, snapshot, 5)
    writer.close()
    return path


def test_a_run_is_resumed_with_its_own_scenario(monkeypatch: pytest.MonkeyPatch, recorded_run: Path) -> None:
    jobs: list[tuple[Job, Any]] = []
    monkeypatch.setattr(headless, "run", lambda job, steps, updates, *_: jobs.append((job, updates)) or 0)
    monkeypatch.setattr(cli_play, "needs_a_terminal", lambda instead: None)
    monkeypatch.setattr(start, "play", lambda job, prestarted: jobs.append((job, None)) or 0)
    for args in (["run", "--resume", str(recorded_run), "--updates", "3"], ["resume", str(recorded_run)]):
        assert CliRunner().invoke(cli.cli, args).exit_code == 0
    scenario = msgspec.structs.replace(load("two-plus-two"), script=[], quiz=[], card={})
    job = Job(scenario, str(recorded_run), resume=True)
    assert jobs == [(job, 3), (job, None)]


@pytest.mark.parametrize(
    "change", [["flattery"], ["--seed", "0"], ["--set", "beta=1"], ["--model", "x/y"], ["--out", "x.rlplay"]]
)
def test_resuming_changes_nothing(capsys: pytest.CaptureFixture[str], recorded_run: Path, change: list[str]) -> None:
    status, _, err = called(capsys, "run", *change, "--resume", str(recorded_run))
    assert status == 2
    assert f"omit {change[0] if change[0].startswith('-') else 'the scenario'}" in err


def test_a_run_that_stopped_in_its_first_update_can_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    begun: list[Job] = []

    def halted(job: Job, *_: Any) -> int:
        begun.append(job)
        raise Halt("reward function 'f' failed; fix it, then go on")

    monkeypatch.setattr(headless, "run", halted)
    path = tmp_path / "a b.rlplay"
    status, _, err = called(capsys, "run", "two-plus-two", "--out", str(path))
    assert status == 2
    assert err.endswith(f"rlplay run --resume '{path}'\n")
    text = msgspec.yaml.encode(begun[0].scenario).decode()
    RunWriter.create(path, msgspec.structs.replace(synthetic_started(), scenario_text=text)).close()
    called(capsys, "run", "--resume", str(path))
    assert begun[1].resume
    assert begun[1].run == str(path)


def test_a_run_that_was_killed_before_its_first_snapshot_begins_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(headless, "run", lambda job, *_: jobs.append(job) or 0)
    text = msgspec.yaml.encode(load("two-plus-two")).decode()
    writer = RunWriter.create(tmp_path / "a.rlplay", msgspec.structs.replace(synthetic_started(), scenario_text=text))
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    assert called(capsys, "run", "--resume", str(tmp_path / "a.rlplay"))[0] == 0
    assert jobs[0].resume


def test_a_run_without_a_snapshot_cannot_be_resumed(capsys: pytest.CaptureFixture[str], recorded_run: Path) -> None:
    (recorded_run.parent / "stopped.snapshots" / "2.safetensors").unlink()
    for args in (["resume"], ["run", "--resume"]):
        status, _, err = called(capsys, *args, str(recorded_run))
        assert status == 2
        assert "has no snapshot to continue from" in err


def test_a_branch_without_a_snapshot_computes_again_what_it_copied(
    monkeypatch: pytest.MonkeyPatch, recorded_run: Path
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(headless, "run", lambda job, *_: jobs.append(job) or 0)
    (recorded_run.parent / "stopped.snapshots" / "2.safetensors").unlink()
    branch(recorded_run, 2, recorded_run.parent / "b.rlplay")
    assert CliRunner().invoke(cli.cli, ["run", "--resume", str(recorded_run.parent / "b.rlplay")]).exit_code == 0
    assert [job.resume for job in jobs] == [True]
