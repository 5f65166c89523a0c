"""The examination of runs that others trained, whose answers may hold what rlplay's engine never samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.foreign.copy import Copy
from rlplay.health.digest import digest
from rlplay.record import Recorder
from rlplay.trace.runfile import RunReader


def test_an_answer_without_tokens_may_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    with Recorder(tmp_path / "run") as recorder:
        recorder.begin("Test 1.0", {})
        recorder.rollouts(
            1, prompts=["a"], group=[0, 0], lengths=[0, 2], texts=["x", "y"], token_ids=[5, 6], truncated=[1, 1],
            rewards={"r": [0.0, 1.0]},
        )  # fmt: skip
        recorder.end(1, {"reward": 0.5})
    copy = Copy(tmp_path / "run")
    with RunReader(copy.path) as run:
        found = digest(run.load(1))
    assert found is not None
    assert found.tails == {"y": 1}
    assert (found.places["cut"].answer, found.places["cut"].token) == (1, 1)
