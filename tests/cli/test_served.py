"""A judge as the reward of a run: named, asked, stopped by failures, gone on with, and never asked untrusted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.tasks.remote.server import said, serving


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def length(body: dict[str, Any]) -> tuple[int, Any]:
    """A judge that likes long answers."""
    return said(str(min(10, len(re.findall(r"<(.*)>", body["messages"][0]["content"], re.DOTALL)[0]))))


def written(folder: Path, address: str) -> str:
    path = folder / "taste.yaml"
    path.write_text(f"judge: {address}\nmodel: m\nprompt: '{{prompt}} <{{answer}}>'\nretries: 0\n")
    return str(path)


def test_a_judge_rewards_and_what_it_said_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(length) as server:
        out = tmp_path / "a.rlplay"
        words = ["run", "two-plus-two", "--reward", written(tmp_path, server.address), "--updates", "1", "--out"]
        status, _, err = called(capsys, *words, str(out))
        asked = len(server.bodies)
        assert status in (0, 1), err
        with RunReader(out) as reader:
            update = reader.load(1)
        assert update.scored is not None
        assert update.sampled is not None
        assert list(update.scored.parts) == ["taste"]
        assert update.scored.extra["taste said"] == [f"{score:g}" for score in update.scored.rewards]
        logged = update.scored.logged
        assert logged["taste/calls"] + logged["taste/cached"] == len(update.scored.rewards)
        other = tmp_path / "b.rlplay"
        called(capsys, *words, str(other))
        assert len(server.bodies) == asked, "the same run asks nothing again"
        with RunReader(other) as reader:
            again = reader.load(1)
        assert again.scored is not None
        assert again.scored.logged["taste/calls"] == 0


def test_a_failing_judge_stops_the_run_which_then_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = True
    with serving(lambda body: (500, b"busy") if failing else length(body)) as server:
        out, entry = str(tmp_path / "a.rlplay"), written(tmp_path, server.address)
        status, _, err = called(capsys, "run", "two-plus-two", "--reward", entry, "--updates", "1", "--out", out)
        assert status == 2
        assert "training stopped: reward function 'taste' failed: " in err
        assert "HTTP 500: busy" in err
        failing = False
        status, _, err = called(capsys, "run", "--resume", out, "--updates", "1")
        assert status == 0, err


def test_a_scenario_asks_nobody_whom_the_user_has_not_agreed_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(length) as server:
        entry = written(tmp_path, server.address)
        scenario = tmp_path / "s.yaml"
        scenario.write_text("title: T\nquestion: Q\ntask: arithmetic\nreward: [taste.yaml]\nmax_updates: 1\n")
        status, _, err = called(capsys, "run", str(scenario))
        assert (status, server.bodies) == (2, [])
        assert f"would send prompts and answers to {server.address} (named in {entry}); read that first" in err
        status, _, err = called(capsys, "run", str(scenario), "--trust", "--out", str(tmp_path / "a.rlplay"))
        assert status == 0, err
        assert server.bodies
