"""A recorded run as arrays: the numbers of the records, under the names of the exports."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import rlplay
from rlplay.record.recorder import Recorder
from rlplay.trace.runfile import RunReader
from tests.recorded import synthetic_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "run.rlplay", updates=3)


def test_tokens_are_those_of_the_records(run: Path) -> None:
    with rlplay.open_run(run) as opened, RunReader(run) as reader:
        assert opened.updates == opened.detailed == [1, 2, 3]
        tokens, update = opened.tokens(2), reader.load(2)
        sampled, scored, credited = update.sampled, update.scored, update.credited
        assert sampled is not None
        assert scored is not None
        assert credited is not None
        assert {len(column) for column in tokens.values()} == {len(sampled.token_ids)}
        np.testing.assert_array_equal(tokens["inference_logprobs"], sampled.old_logprobs)
        np.testing.assert_array_equal(tokens["advantages"], credited.advantages)
        np.testing.assert_array_equal(tokens["new_logprobs"], update.new_logprobs())
        for row, (begin, end) in enumerate(zip(sampled.offsets, sampled.offsets[1:], strict=False)):
            mine = slice(int(begin), int(end))
            assert tokens["position"][mine].tolist() == list(range(end - begin))
            assert set(tokens["group_id"][mine].tolist()) == {int(sampled.group[row])}
            assert set(tokens["reward"][mine].tolist()) == {float(scored.rewards[row])}
            assert tokens["token_text"][mine].tolist() == sampled.texts[mine]
        places = set(zip(tokens["group_id"].tolist(), tokens["sample_idx"].tolist(), strict=True))
        assert len(places) == len(sampled.group), "prompt and sample name one completion"


def test_the_dataframe_has_the_same_columns(run: Path) -> None:
    with rlplay.open_run(run) as opened:
        tokens, table = opened.tokens(1), opened.dataframe(1)
        assert list(table.columns) == list(tokens)
        for name, column in tokens.items():
            np.testing.assert_array_equal(table[name].to_numpy(), column)


def test_without_pandas_a_dataframe_is_refused_in_one_line(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with rlplay.open_run(run) as opened, pytest.raises(ImportError) as refused:
        opened.dataframe(1)
    assert str(refused.value) == "a dataframe needs pandas: pip install pandas; tokens() gives the same arrays"


def test_metrics_settings_and_completions(run: Path) -> None:
    with rlplay.open_run(run) as opened, RunReader(run) as reader:
        assert opened.metrics == dict(reader.metrics())
        assert opened.settings == opened.settings_at(3) == reader.settings(3)
        assert len(opened.completions(1)) == len(opened.tokens(1)["position"][opened.tokens(1)["position"] == 0])


def test_what_is_missing_is_said_in_one_line(run: Path) -> None:
    with rlplay.open_run(run) as opened, pytest.raises(ValueError, match="has no update 9; it has updates 1 to 3"):
        opened.tokens(9)
    with pytest.raises(ValueError, match="no run 'nothing'"):
        rlplay.open_run("nothing")
    with pytest.raises(AttributeError, match="module 'rlplay' has no attribute 'opne_run'"):
        rlplay.opne_run  # noqa: B018


def test_another_trainers_folder_opens_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    with Recorder(tmp_path / "theirs") as recorder:
        recorder.begin("their trainer 1.0", {})
        recorder.rollouts(
            1, prompts=["2+2="], group=[0, 0], lengths=[2, 1], texts=["4", ".", "5"],
            rewards={"correct": [1.0, 0.0]}, advantages=[0.7, -0.7],
        )  # fmt: skip
        recorder.end(1, {"reward": 0.5})
    with rlplay.open_run(tmp_path / "theirs") as opened:
        assert opened.tokens(1)["reward"].tolist() == [1, 1, 0]
        assert "values" not in opened.tokens(1)
