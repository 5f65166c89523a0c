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
from rlplay.trace.records import Credited, Finished, Stepped
from tests.record import test_trl_offline, test_trl_online, tiny

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both processes left, of every case."""
    folder = tmp_path_factory.mktemp("two")
    for name in (*test_trl_online.SPLIT, *test_trl_offline.SPLIT):
        tiny.model(folder / name / "model")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    command += ["-m", "tests.record.two_ranks", str(folder)]
    root = str(Path(__file__).parents[2])
    surroundings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": root, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rlplay: the recording" not in done.stderr
    return folder


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
