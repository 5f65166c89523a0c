"""The engine step by step from Python, and the examples of the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlplay
from tests.cli.command_line import called

DOCS = Path(__file__).parents[2] / "docs" / "python.md"
SMALL: dict[str, Any] = {"num_prompts": 1, "num_generations": 4, "max_completion_length": 4, "device": "cpu", "seed": 3}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def test_phases_updates_and_settings(tmp_path: Path) -> None:
    with rlplay.play("two-plus-two", out=tmp_path / "run.rlplay", **SMALL) as live:
        assert live.run.updates == []
        assert [live.phase() for _ in range(2)] == ["sample", "score"]
        assert "reward" in live.run.tokens(1)
        assert "advantages" not in live.run.tokens(1)
        live.set(learning_rate=1e-4)
        assert live.settings["learning_rate"] == 1e-4
        first = live.update()
        assert live.run.updates == [1]
        assert first == live.run.metrics[1]
        live.update(2)
        assert live.run.updates == [1, 2, 3]
        with pytest.raises(ValueError, match="learning_rat"):
            live.set(learning_rat=1)
    with pytest.raises(ValueError, match="this run is closed"):
        live.update()
    live.close()
    with rlplay.open_run(tmp_path / "run.rlplay") as run:
        assert run.settings_at(1)["learning_rate"] == 1e-4
        assert run.settings["num_generations"] == 4


def test_a_rehearsal_is_what_training_then_does(tmp_path: Path) -> None:
    with rlplay.play("two-plus-two", out=tmp_path / "run.rlplay", **SMALL) as live:
        live.update()
        with pytest.warns(UserWarning, match="'beta': -1.*beta"):
            same, other, none = live.rehearse({}, {"learning_rate": 0.05}, {"beta": -1}, updates=2)
        assert live.run.updates == [1]
        assert [len(same), len(other), len(none)] == [2, 2, 0]
        assert same[0] == live.update()
        assert same[1] == live.update() != other[1]


def test_the_numbers_are_those_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("num_prompts", "num_generations", "max_completion_length")
    sets = [word for name in names for word in ("--set", f"{name}={SMALL[name]}")]
    args = ["two-plus-two", "--seed", "3", "--device", "cpu", "--updates", "1", *sets]
    called(capsys, "run", *args, "--out", str(tmp_path / "b.rlplay"))
    with rlplay.play("two-plus-two", out=tmp_path / "a.rlplay", **SMALL) as live:
        live.update()
        ours = live.run.tokens(1)
    with rlplay.open_run(tmp_path / "b.rlplay") as run:
        theirs = run.tokens(1)
    assert list(ours) == list(theirs)
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name], err_msg=name)


def test_settings_of_every_kind_are_taken(tmp_path: Path) -> None:
    given: dict[str, Any] = {"algorithm": "rloo", "aggregation": "token_mean", "reward_weights": {"correct": 2.0}}
    with rlplay.play(
        "two-plus-two", out=tmp_path / "run.rlplay", beta=0.1, mask_truncated_completions=True, **given
    ) as live:
        assert repr(live.run) == "<Run run: The 2+2 nudge, 0 updates>"
        for name, value in (given | {"beta": 0.1, "mask_truncated_completions": True}).items():
            assert live.settings[name] == value


@pytest.mark.parametrize(
    ("scenario", "given", "words"),
    [
        ("two-plus-tow", {}, "did you mean 'two-plus-two'"),
        ("two-plus-two", {"learning_rat": 1}, "learning_rate"),
        ("two-plus-two", {"device": "tpu"}, "tpu"),
    ],
)
def test_bad_input_is_one_line(scenario: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        rlplay.play(scenario, **given)
    assert "\n" not in str(refused.value)


def test_code_that_a_scenario_names_runs_only_if_trusted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\ndef good(completions, **_): return [1.0 for _ in completions]\n"
    )
    scenario = tmp_path / "asks.yaml"
    scenario.write_text(
        "name: asks\ntitle: Asks\nquestion: Why?\ntask: arithmetic\nreward: [mine.py:good]\n"
        "settings: {num_prompts: 1, num_generations: 2, max_completion_length: 2}\n"
    )
    with pytest.raises(ValueError, match=r"would run the code of .*mine\.py; read that first, then add trust=True$"):
        rlplay.play(scenario, out=tmp_path / "a.rlplay")
    assert not (tmp_path / "ran").exists()
    with rlplay.play(scenario, out=tmp_path / "a.rlplay", trust=True) as live:
        assert live.update()["reward"] == 1.0
    with rlplay.play(scenario, out=tmp_path / "b.rlplay"):  # remembered
        pass


def test_the_examples_of_the_docs_run_one_after_the_other() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["run"].updates == [1, 2, 3]
    assert set(names["rewards"]) >= {1, 2, 3}


def test_a_file_that_exists_is_refused_in_words_of_python(tmp_path: Path) -> None:
    (tmp_path / "there.rlplay").touch()
    with pytest.raises(ValueError, match=r"there\.rlplay exists already; name a new file$"):
        rlplay.play("two-plus-two", out=tmp_path / "there.rlplay")
