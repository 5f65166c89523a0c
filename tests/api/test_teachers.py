"""Who taught a token, from Python and from the shell, by an engine: the same numbers, and the run as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import rlplay
from rlplay import Live
from rlplay.printed import Teachers
from tests.cli.command_line import called

SMALL: dict[str, Any] = {"num_prompts": 2, "num_generations": 4, "max_completion_length": 4, "device": "cpu", "seed": 3}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A run after two updates, which stays open; it is only asked."""
    with rlplay.play("two-plus-two", out=tmp_path_factory.mktemp("runs") / "run.rlplay", **SMALL) as live:
        live.update(2)
        yield live


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder and in those below it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_shares_are_aligned_with_the_tables(live: Live) -> None:
    found, tokens = live.teachers(1, 0), live.run.tokens(2)
    assert found.shares.shape == tokens["token_id"].shape
    row = tokens["group_id"] * SMALL["num_generations"] + tokens["sample_idx"]
    np.testing.assert_allclose(found.by_answer, np.bincount(row, weights=found.shares))
    place = np.flatnonzero((row == 1) & (tokens["position"] == 0))[0]
    assert found.before == pytest.approx(tokens["inference_logprobs"][place], abs=1e-4)
    assert found.after == pytest.approx(tokens["new_logprobs"][place], abs=1e-4)
    assert found.predicted == pytest.approx(found.batch + found.earlier + sum(found.rest.values()))
    assert found.batch == pytest.approx(found.shares.sum(), abs=1e-5)
    assert found.groups[0].teachers[0].completion == 1


def test_an_earlier_update_and_another_candidate(live: Live) -> None:
    earlier = live.teachers(1, 0, by=1)
    assert earlier.shares.shape == live.run.tokens(1)["token_id"].shape
    assert earlier.shares.sum() == pytest.approx(earlier.earlier, rel=0.05), "there is no other earlier update"
    with pytest.raises(ValueError, match="leave out by=1"):
        earlier.without([0])
    assert live.teachers(1, 0, update=1).earlier == 0
    ids = live.run.tokens(2)["token_id"]
    assert live.teachers(1, 0, candidate=int(ids[0])).taught.target.answer_ids == [ids[0]]


def test_without_an_answer_the_update_is_another(live: Live) -> None:
    found = live.teachers(1)
    strongest = int(abs(found.by_answer).argmax())
    assert found.without([strongest]) != found.measured
    silent = [row for row, total in enumerate(found.by_answer) if total == 0]
    assert all(found.without([row]) == pytest.approx(found.measured, abs=1e-5) for row in silent[:1])


def test_training_goes_on_as_if_nothing_was_asked(live: Live, tmp_path: Path) -> None:
    with rlplay.play("two-plus-two", out=tmp_path / "asked.rlplay", **SMALL) as asked:
        asked.update()
        asked.teachers(0, 0).without([1])
        asked.phase()
        found = asked.teachers(0, 0)
        with pytest.raises(ValueError, match="update"):
            found.without([1])
        asked.update()
        for name, column in live.run.tokens(2).items():
            np.testing.assert_array_equal(column, asked.run.tokens(2)[name], err_msg=name)


def test_the_shell_gives_the_same_numbers_and_leaves_the_run_alone(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    found = live.teachers(1, 0)
    moved, before = found.without([0]), contents(live.run.path.parent)
    given = "teachers", str(live.run.path), "--update", "2"
    status, out, err = called(capsys, *given, "--answer", "2", "--token", "1", "--without", "1", "--json")
    assert (status, err) == (0, "")
    printed = msgspec.json.decode(out, type=Teachers)
    assert (printed.before, printed.after, printed.predicted) == pytest.approx(
        (found.before, found.after, found.predicted), abs=1e-5
    )
    sums = {each.answer: each.sum for each in printed.answers}
    assert sums == pytest.approx({row: found.by_answer[row] for row in sums}, abs=1e-5)
    assert printed.without is not None
    assert printed.without.moved == pytest.approx(moved, abs=1e-5)
    assert contents(live.run.path.parent) == before


def test_a_held_out_answer_is_asked_about_as_a_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.rlplay"
    with rlplay.play("learn-to-think", out=path, **SMALL) as live:
        live.update()
        found = live.teachers(held_out=1)
        with pytest.raises(ValueError, match="there is no 999"):
            live.teachers(held_out=999)
        words = live.run._reader.held_out(1).completions[1]
        assert live._driver._state.lm.decode(found.taught.target.answer_ids) == words
    assert len(found.taught.target.places) == len(found.taught.target.answer_ids) > 1
    assert {group.nearness for group in found.groups} <= {"same prompt", "other prompts"}
    _, out, _ = called(capsys, "teachers", str(path), "--update", "1", "--held-out", "2", "--json")
    assert msgspec.json.decode(out, type=Teachers).measured == pytest.approx(found.measured, abs=1e-5)


def test_bad_input_is_one_line(live: Live) -> None:
    for given, words in (
        ({}, "which answer"),
        ({"answer": 99}, "there is no answer 99"),
        ({"answer": 0, "token": 99}, "there is no token 99"),
        ({"answer": 0, "candidate": "3"}, "say which token"),
        ({"answer": 0, "held_out": 0}, "leave out answer"),
        ({"held_out": 0}, "there are no held-out answers"),
        ({"answer": 0, "update": 9}, "no update 9"),
    ):
        with pytest.raises(ValueError, match=words) as refused:
            live.teachers(**given)
        assert "\n" not in str(refused.value)
