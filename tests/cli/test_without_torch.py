"""What watches a run works where torch is not installed, and imports nothing that takes long."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlplay.record.recorder import Recorder
from tests.recorded import synthetic_run
from tests.terminal import Terminal

HEAVY = ("torch", "transformers", "accelerate", "tokenizers", "datasets", "pandas", "pyarrow", "huggingface_hub")


def light(*arguments: str) -> list[str]:
    """The command line of a program for which HEAVY is not installed."""
    code = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r})); from rlplay.cli.main import main; main()"
    return [sys.executable, "-c", code, *arguments]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A recorded run of three updates."""
    return synthetic_run(tmp_path / "first.rlplay", updates=3)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """What another trainer recorded."""
    with Recorder(tmp_path / "out" / "rlplay") as recorder:
        recorder.begin("my trainer", {})
        recorder.rollouts(1, prompts=["2+2="], group=[0, 0], lengths=[1, 1], texts=["4", "5"], rewards={"r": [1, 0]})
        recorder.end(1, {"reward": 0.5})
    return tmp_path / "out"


def said(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command without a screen prints."""
    environment = os.environ | {"RLPLAY_HOME": str(home), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(light(*arguments), capture_output=True, text=True, env=environment, check=False, timeout=60)


@pytest.mark.parametrize("format", ["html", "npz", "jsonl"])
def test_a_run_is_exported(run: Path, tmp_path: Path, format: str) -> None:
    found = said(tmp_path, "export", str(run), "--format", format, "--out", str(tmp_path / "out"))
    assert (found.returncode, found.stderr) == (0, "")


def test_a_run_is_examined_and_listed(run: Path, tmp_path: Path) -> None:
    found = said(tmp_path, "health", str(run), "--json")
    assert found.stderr == ""
    assert '"findings"' in found.stdout
    assert said(tmp_path, "runs").returncode == 0


def test_a_recording_is_imported(recording: Path, tmp_path: Path) -> None:
    found = said(tmp_path, "import", str(recording))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("1 update ")


@pytest.fixture
def screens(tmp_path: Path) -> Iterator[list[Terminal]]:
    """Screens that are closed after the test."""
    opened: list[Terminal] = []
    yield opened
    for each in opened:
        each.close()


@pytest.mark.parametrize("command", ["replay", "compare"])
def test_a_run_is_watched(command: str, run: Path, tmp_path: Path, screens: list[Terminal]) -> None:
    others = [str(synthetic_run(tmp_path / "second.rlplay", updates=2, seed=1))] * (command == "compare")
    screens.append(Terminal(light(command, str(run), *others), env={"RLPLAY_HOME": str(tmp_path)}))
    screens[0].wait_for("update 3" if command == "replay" else "B  seed 1")


def test_a_trainer_is_steered(recording: Path, tmp_path: Path, screens: list[Terminal]) -> None:
    pytest.importorskip("transformers")
    from tests.record.fake_trainer import Trainer

    trainer = Trainer(recording / "rlplay")
    try:
        screens.append(Terminal(light("attach", str(recording)), env={"RLPLAY_HOME": str(tmp_path / "home")}))
        screens[0].wait_for("running")
        screens[0].press("space")
        screens[0].wait_for("paused")
        screens[0].press("space")
        screens[0].wait_for("running")
    finally:
        trainer.end()
