"""open-instruct's rollouts as runs, in the layout of its `RolloutRecord`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rlplay.foreign.copy import Copy
from rlplay.health.digest import digest
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.grown import Row, lines
from tests.foreign.test_files import updates_of


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def rows(step: int) -> list[Row]:
    """Four answers to two prompts."""
    return [
        {
            "step": step, "sample_idx": i, "prompt_idx": i // 2, "prompt_tokens": [1, 2 + i // 2],
            "response_tokens": [10 + step, *range(i)], "reward": i / 4, "advantage": i - 1.5,
            "finish_reason": "length" if i == 1 else "stop", "dataset": "sums", "ground_truth": [5],
            "request_info": {"num_calls": 0}, "logprobs": [-0.25 * (k + 1) for k in range(i + 1)],
        }
        for i in range(4)
    ]  # fmt: skip


def test_every_number_comes_out_equal(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    lines(folder / "exp_rollouts_000000.jsonl", [*rows(1), *rows(2)[:2]], 100)
    lines(folder / "exp_rollouts_000001.jsonl", rows(2)[2:], 100)
    lines(folder / "exp_filtered_rollouts_000000.jsonl", rows(7), 100)
    (folder / "exp_metadata.jsonl").write_text(json.dumps({"run_name": "exp", "model_name": "allenai/OLMo-2"}) + "\n")
    found = updates_of(folder)
    assert sorted(found) == [1, 2]
    for step, update in found.items():
        sampled = update.sampled
        assert sampled.group.tolist() == [0, 0, 1, 1]
        assert sampled.prompt_ids.tolist() == [1, 2, 1, 3]
        assert sampled.token_ids.tolist() == [i for row in rows(step) for i in row["response_tokens"]]
        assert sampled.old_logprobs.tolist() == [x for row in rows(step) for x in row["logprobs"]]
        assert sampled.truncated.tolist() == [0, 1, 0, 0]
        assert sampled.columns[0] == {"dataset": "sums"}
        assert update.scored.rewards.tolist() == [0, 0.25, 0.5, 0.75]
        expected = [row["advantage"] for row in rows(step) for _ in row["logprobs"]]
        np.testing.assert_allclose(update.credited.advantages, expected)
        assert sampled.sampling_logprobs is None
        assert digest(update).mismatch is None
    with RunReader(Copy(folder).path) as run:
        assert (run.started.source, run.started.model) == ("open-instruct", "allenai/OLMo-2")


def test_a_step_is_shown_when_the_next_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "rollouts" / "exp_rollouts_000000.jsonl"
    lines(path, rows(1), 0)
    copy = Copy(path.parent)
    with RunReader(copy.path) as run:
        assert run.updates() == []
        with path.open("a") as file:
            file.write(json.dumps(rows(2)[0])[:50])
        copy.pull()
        assert run.updates() == []
        lines(path, [*rows(1), rows(2)[0]], 0)
        copy.pull()
        assert run.updates() == [1]
        lines(path, [*rows(1), *rows(2)], 100)
        Copy(path.parent)
        assert run.updates() == [1, 2]
        assert len(run.load(2).sampled.group) == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([{"step": 1}], "it has no 'prompt_tokens'"),
        ([{"step": "x"}], "is not of open-instruct"),
        ([rows(1)[0] | {"logprobs": [1.0, 2.0]}], "old_logprobs has 2 values for 1 tokens"),
        ([rows(1)[0] | {"response_tokens": ["a"]}], "is not of open-instruct"),
    ],
)
def test_a_damaged_file_is_one_line(
    content: list[Row], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(tmp_path / "rollouts" / "exp_rollouts_000000.jsonl", content, 100)
    status, _, error = called(capsys, "import", str(tmp_path / "rollouts"))
    assert status == 2
    assert said in " ".join(error.split())


def test_two_runs_in_a_folder_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        lines(tmp_path / "rollouts" / f"{name}_rollouts_000000.jsonl", rows(1), 100)
    status, _, error = called(capsys, "import", str(tmp_path / "rollouts"))
    assert status == 2
    assert "holds several runs (a, b)" in " ".join(error.split())
