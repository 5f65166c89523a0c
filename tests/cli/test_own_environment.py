"""The user's own environment: replies to the model's turns, from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import load
from rlplay.scenario.scenario_task import tasks_for
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called

pytestmark = pytest.mark.usefixtures("trusts_all")

SOURCE = """
def answer(example, turns):
    return "Again." if len(turns) == 1 else None

def broken(turns):
    return turns[7]

def turns_taken(completions, **columns):
    return [float(sum(m["role"] == "assistant" for m in c)) for c in completions]
"""


def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, *others: str, out: str = "a.rlplay"
) -> tuple[int, str]:
    (tmp_path / "own.py").write_text(SOURCE)
    status, _, err = called(
        capsys, "run", "two-plus-two", "--environment", f"{tmp_path / 'own.py'}:{name}", "--reward",
        f"{tmp_path / 'own.py'}:turns_taken", "--updates", "1", "--out", str(tmp_path / out), *others,
    )  # fmt: skip
    return status, err


def test_an_environment_of_ones_own_replies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, capsys, "answer")
    with RunReader(tmp_path / "a.rlplay") as reader:
        update = reader.load(1)
    assert update.scored is not None
    assert update.sampled is not None
    assert update.scored.rewards.max() == 2
    assert "Again." in "".join(update.sampled.texts)
    assert (update.sampled.mask == 0).any()


def test_mistakes_name_their_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, err = run(tmp_path, capsys, "broken")
    assert status == 2
    assert f"the environment failed: {tmp_path / 'own.py'}:6: IndexError" in err
    status, err = run(tmp_path, capsys, "missing", out="b.rlplay")
    assert status == 2
    assert "no function 'missing'; it has answer, broken, turns_taken" in err
    status, _, err = called(capsys, "run", "grid", "--environment", f"{tmp_path / 'own.py'}:answer")
    assert (status, err) == (2, "rlplay: a world is an environment itself: it takes no other\n")


def test_a_scenario_names_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE)
    path = tmp_path / "mine.yaml"
    path.write_text("title: T\nquestion: Q\ntask: arithmetic\nenvironment: own.py:answer\n")
    environment = tasks_for(with_changes(load(path)))[0].environment
    assert environment is not None
    assert environment(example=None, turns=["a"], chances=[0.5]) == "Again."
