"""The files of tinker-cookbook as runs, and folders that hold no answers, each with what would keep them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.foreign.copy import Copy
from rlplay.health.health_of_run import examine_run
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.grown import Row, lines, tinker_rows, token_rows, write_segment
from tests.foreign.test_files import updates_of


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def test_rollout_summaries(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for iteration in (0, 1):
        rows = tinker_rows(iteration)
        lines(run / f"iteration_{iteration:06}" / "train_rollout_summaries.jsonl", rows)
    (run / "config.json").write_text(
        json.dumps({"learning_rate": 3e-5, "max_tokens": 64, "model_name": "Qwen/Qwen3-8B"})
    )
    found = updates_of(run)
    assert sorted(found) == [1, 2]
    sampled, scored = found[1].sampled, found[1].scored
    assert sampled is not None
    assert scored is not None
    assert sampled.prompts == ["What is 0+0?", "What is 1+0?"]
    assert sampled.columns == [{"reference_answer": "0"}, {"reference_answer": "1"}]
    assert sampled.group.tolist() == [0, 0, 1, 1]
    assert "".join(sampled.texts[: sampled.offsets[1]]) == "Hm. It is 0."
    assert sampled.truncated.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(scored.rewards, [1.0, 0.0, 1.0, 0.0])
    assert list(scored.parts) == ["total_reward"]
    np.testing.assert_allclose(scored.gold["correct"], [1, 0, 1, 0])
    assert found[1].credited is None
    assert np.isnan(sampled.old_logprobs).all()
    with RunReader(Copy(run).path) as reader:
        assert reader.started.source == "tinker-cookbook"
        assert reader.started.model == "Qwen/Qwen3-8B"
        assert reader.started.settings["learning_rate"] == 3e-5
        assert reader.started.settings["max_completion_length"] == 64


def without_trace(row: Row) -> Row:
    return row | {"steps": [{k: v for k, v in step.items() if k != "trace"} for step in row["steps"]]}


def test_summaries_without_texts_say_how_to_keep_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [without_trace(row) for row in tinker_rows(3)]
    lines(tmp_path / "run" / "iteration_000003" / "train_rollout_summaries.jsonl", rows)
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert (status, error.count("\n")) == (2, 1)
    assert "the rollouts of iteration 3 hold rewards and no texts" in error
    assert "token_db=TokenDbConfig()" in error


def test_the_token_database(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first, second = token_rows(0), token_rows(1)
    again = [row | {"run_attempt": 2, "ac_text": "again"} for row in second]
    aside = [row | {"source": "filtered"} for row in first] + [row | {"split": "eval/test"} for row in first]
    write_segment(run, "a", [*first, *second[:1], *aside])
    write_segment(run, "b", [*again, *second[1:]])
    found = updates_of(run)
    assert sorted(found) == [1, 2]
    sampled, scored = found[1].sampled, found[1].scored
    assert sampled is not None
    assert scored is not None
    assert sampled.group.tolist() == [0, 0, 1, 1]
    texts = sampled.texts[sampled.offsets[0] : sampled.offsets[1]]
    assert texts == ["I", " call", " it.", "<tool>", " 4", "So", " 4."]
    assert sampled.mask[: sampled.offsets[1]].tolist() == [1, 1, 1, 0, 0, 1, 1]
    assert sampled.truncated.tolist() == [0, 1, 0, 1]
    assert sampled.columns[0] == {"topic": "sums", "row": "r0"}
    np.testing.assert_allclose(scored.rewards, [1.5, 0.5, 1.5, 0.5])
    np.testing.assert_allclose(scored.gold["correct"], [1, 0, 1, 0])
    assert found[2].sampled is not None
    assert set(found[2].sampled.texts) == {"again", "<tool>", " 4"}, "an iteration's last attempt"


def test_health_counts_no_tokens_where_words_stand_for_them(tmp_path: Path) -> None:
    rows = [row | {"group_idx": row["group_idx"] + 2 * more} for more in range(16) for row in token_rows(0)]
    write_segment(tmp_path / "run", "a", rows)
    found = {finding.name: finding.evidence for finding in examine_run(Copy(tmp_path / "run").path)[1]}
    assert found["truncated"] == ("32 of 64 answers were cut. They earned 0.5 on average, those that ended 1.5.")


def test_tokens_without_texts_say_how_to_keep_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_segment(tmp_path / "run", "a", [row | {"ac_text": None} for row in token_rows(0)])
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert status == 2
    assert "TokenDbConfig(store_text=True)" in error


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("global_step_5/actor/model.pt", "trainer.rollout_data_dir=FOLDER"),
        ("iteration_000001/train_logtree.json", "rollout_json_export=True"),
        ("eval_12.jsonl", "no run that rlplay can read"),
    ],
)
def test_a_folder_without_answers_says_what_would_keep_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert (status, error.count("\n")) == (2, 1)
    assert f"{tmp_path / 'run'} holds " in error
    assert words in error


@pytest.mark.parametrize(
    "change", [{"steps": []}, {"steps": None}, {"steps": [{"trace": {"policy_response": 3}}]}, {"total_reward": "x"}]
)
def test_a_broken_summary_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any]
) -> None:
    path = tmp_path / "run" / "iteration_000000" / "train_rollout_summaries.jsonl"
    lines(path, [tinker_rows(0)[0] | change])
    os.utime(path, (1, 1))
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert (status, error.count("\n")) == (2, 1)
    assert "train_rollout_summaries.jsonl" in error
    assert "Traceback" not in error
