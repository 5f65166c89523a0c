"""Two processes record what they computed together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch

from rlplay.foreign.recording import Recording
from rlplay.record.format import Ended, Rollouts, read
from rlplay.trace.records import Credited, Finished, Stepped
from tests.record import test_trl_offline, test_trl_online, tiny

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both processes left, of every case."""
    folder = tmp_path_factory.mktemp("two")
    for name in (*test_trl_online.SPLIT, *test_trl_offline.SPLIT):
        tiny.model(folder / name / "model")
    assert "rlplay:" not in _run("tests.record.two_ranks", str(folder))
    return folder


def _run(module: str, *arguments: str) -> str:
    """Run a program in two processes; what it wrote on standard error."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", "-m", module]
    root = str(Path(__file__).parents[2])
    surroundings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": root, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, *arguments], env=surroundings, capture_output=True, text=True, check=False, cwd=root, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def _spies(folder: Path) -> list[Any]:
    return [torch.load(folder / f"spy-{rank}.pt", weights_only=False) for rank in (0, 1)]


@pytest.mark.parametrize("case", test_trl_online.SPLIT)
def test_sampled_answers(case: str, folder: Path) -> None:
    settings = {"gradient_accumulation_steps": 1, "logging_steps": 1, "importance_sampling_level": "token"}
    args = SimpleNamespace(**settings | test_trl_online.SPLIT[case][1])
    logs = json.loads((folder / case / "logs-0.json").read_text())
    test_trl_online.compare(Recording(folder / case / "rec").fresh(), _spies(folder / case), logs, args)


@pytest.mark.parametrize("case", test_trl_offline.SPLIT)
def test_given_answers(case: str, folder: Path) -> None:
    records, spies = Recording(folder / case / "rec").fresh(), _spies(folder / case)
    for update in (1, 2, 3):
        own = [spy[update - 1] for spy in spies]
        step, credited, finished = (test_trl_offline.of(records, update, k) for k in (Stepped, Credited, Finished))
        gradient = test_trl_offline.flat(own, "gradient") / 2
        np.testing.assert_allclose(step.logprobs, test_trl_offline.flat(own, "logprobs"), **test_trl_offline.CLOSE)
        np.testing.assert_allclose(step.dloss_dlogp, gradient, **test_trl_offline.CLOSE)
        assert step.tokens == len(gradient)
        np.testing.assert_allclose(credited.advantages, -gradient * len(gradient), rtol=1e-5, atol=1e-6)
        loss = np.mean([one["loss"] for one in own])
        assert step.metrics["loss"] == pytest.approx(loss, rel=1e-6, abs=1e-6)
        assert finished.metrics["loss"] == pytest.approx(loss, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("where", "words"), [("begin", "nothing is recorded"), ("reopen", "ends here")])
def test_a_process_that_cannot_begin_keeps_none_from_training(where: str, words: str, tmp_path: Path) -> None:
    tiny.model(tmp_path / "model")
    said = [line for line in _run("tests.record.failing_rank", str(tmp_path), where).splitlines() if "rlplay:" in line]
    assert len(said) == 2
    assert all(words in line and "training goes on" in line for line in said)


def test_a_process_that_stops_recording_keeps_none_from_training(tmp_path: Path) -> None:
    """The others do not wait for it, and leave out what needs its tokens."""
    tiny.model(tmp_path / "model")
    error = _run("tests.record.failing_rank", str(tmp_path), "_of_answers")
    (said,) = [line for line in error.splitlines() if "rlplay:" in line]
    assert "ends here ([Errno 28] No space left on device); training goes on" in said
    frames = [frame for _, frame in read(tmp_path / "rec" / "part-00000.rlpart")]
    assert [frame.update for frame in frames if isinstance(frame, Ended)] == [1, 2, 3]
    rollouts = [frame for frame in frames if isinstance(frame, Rollouts)]
    assert [frame.advantages is None for frame in rollouts] == [True] * 3
    assert all(frame.old_logprobs is not None for frame in rollouts)
