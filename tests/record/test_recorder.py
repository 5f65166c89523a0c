"""What the recorder keeps, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.record import Recorder
from rlplay.record.format import Ended, Rollouts, Step, part, read
from tests.record.batches import answers, begun, write

GOOD: dict[str, Any] = {
    "prompts": ["p", "q"],
    "group": [0, 0, 1],
    "lengths": [2, 0, 1],
    "texts": ["a", "b", "c"],
    "rewards": {"r": [1.0, 0.0, 0.5]},
}


def frames(folder: Path, rank: int = 0) -> list[Any]:
    """What a process wrote, after the beginning."""
    return [frame for _, frame in read(part(folder, rank))[1:]]


@pytest.mark.parametrize(("limit", "groups"), [(1, 1), (3, 1), (4, 1), (5, 1), (6, 2), (8, 2), (9, 3), (99, 3)])
def test_whole_groups_are_kept_until_the_limit(tmp_path: Path, limit: int, groups: int) -> None:
    every = answers(5, 3, 3, 2)
    with begun(tmp_path / "run", completions=limit) as recorder:
        write(recorder, 1, every, range(9))
    rollouts, first, _, _ = frames(tmp_path / "run")
    kept = every[: 3 * groups]
    assert rollouts.group.tolist() == [answer.group for answer in kept]
    assert rollouts.texts == [text for answer in kept for text in answer.texts]
    np.testing.assert_array_equal(rollouts.rewards["correct"], [answer.rewards["correct"] for answer in kept])
    assert first.rows.tolist() == list(range(3 * groups))
    np.testing.assert_array_equal(
        first.logprobs, np.concatenate([answer.steps[0]["logprobs"] for answer in kept]).astype(np.float32)
    )


def test_an_array_that_it_does_not_know_is_refused(tmp_path: Path) -> None:
    with (
        begun(tmp_path / "run") as recorder,
        pytest.raises(TypeError, match="takes no logprob; its arrays are group_ids"),
    ):
        recorder.rollouts(1, **GOOD, logprob=[0.0, 0.0, 0.0])


def test_a_step_in_another_order_keeps_its_order(tmp_path: Path) -> None:
    with begun(tmp_path / "run", completions=2) as recorder:
        recorder.rollouts(1, **GOOD)
        recorder.step(1, 0, 1, rows=[2, 1, 0], logprobs=[-3.0, -1.0, -2.0])
    step = frames(tmp_path / "run")[1]
    assert step.rows.tolist() == [1, 0]
    assert step.logprobs.tolist() == [-1.0, -2.0]


def test_tokens_of_every_third_update_and_the_end_of_each(tmp_path: Path) -> None:
    with begun(tmp_path / "run", every=3) as recorder:
        for number in range(1, 6):
            write(recorder, number, answers(number, 1, 2, 1), range(2))
    found = frames(tmp_path / "run")
    assert [f.update for f in found if isinstance(f, Rollouts | Step)] == [1, 1, 4, 4]
    assert [f.update for f in found if isinstance(f, Ended)] == [1, 2, 3, 4, 5]


def test_one_advantage_for_each_answer_is_given_to_its_tokens(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as recorder:
        recorder.rollouts(1, **(GOOD | {"lengths": [2, 0, 2], "texts": list("abcd")}), advantages=[1.0, 2.0, 3.0])
    assert frames(tmp_path / "run")[0].advantages.tolist() == [1.0, 1.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"group": [0, 0]}, "group has 2 entries, expected 3"),
        ({"group": [0, 0, 2]}, "group names a prompt from 0 to 2, but there are 2 prompts"),
        ({"group": [0, 0, -1]}, "group names a prompt from -1"),
        ({"group": [[0], [0], [1]]}, "group is a list of whole numbers"),
        ({"lengths": [2, -1, 1]}, "lengths is a list of whole numbers, 0 or more"),
        ({"texts": ["a"]}, "texts has 1 entries, expected 3"),
        ({"texts": ["a", 7, "c"]}, "texts is a list of texts; it has 7"),
        ({"columns": [{}]}, "columns has 1 entries, expected 2"),
        ({"roles": ["chosen"]}, "roles has 1 entries, expected 3"),
        ({"rewards": {"r": [1.0]}}, "r has 1 entries, expected 3"),
        ({"advantages": [1.0, 2.0]}, "advantages has 2 entries, expected 3"),
        ({"old_logprobs": np.zeros((3, 4))}, "old_logprobs has 2 axes, expected 1"),
        ({"old_logprobs": ["x", "y", "z"]}, "could not convert"),
        ({"truncated": [1]}, "truncated has 1 entries, expected 3"),
        ({"group_mean": [1.0]}, "group_mean has 1 entries, expected 2"),
        ({"prompt_ids": [1]}, "prompt_lengths is missing"),
        ({"prompt_lengths": [1], "prompt_ids": [1]}, "prompt_lengths has 1 entries, expected 2"),
        ({"prompt_lengths": [1, 1], "prompt_ids": [1]}, "prompt_ids has 1 entries, expected 2"),
        ({"prompt_lengths": [1, 1], "prompt_texts": ["x"]}, "prompt_texts has 1 entries, expected 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_and_nothing_is_written(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    with begun(tmp_path / "run") as recorder:
        with pytest.raises(ValueError) as caught:
            recorder.rollouts(1, **(GOOD | wrong))
        recorder.rollouts(1, **GOOD)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(frames(tmp_path / "run")) == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rows": [0, 3], "logprobs": [0.0, 0.0]}, "rows name answers from 0 to 3, but there are 3 answers"),
        ({"rows": [-1], "logprobs": [0.0]}, "rows name answers from -1"),
        ({"rows": [0], "logprobs": [0.0]}, "logprobs has 1 entries, expected 2"),
        ({"rows": [0], "logprobs": [0.0, 0.0], "dloss_dlogp": [0.0]}, "dloss_dlogp has 1 entries, expected 2"),
    ],
)
def test_a_step_that_does_not_fit_is_refused(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with begun(tmp_path / "run") as recorder:
        recorder.rollouts(1, **GOOD)
        with pytest.raises(ValueError, match=said):
            recorder.step(1, 0, 1, **wrong)


def test_a_step_before_its_answers_is_refused(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as recorder, pytest.raises(ValueError, match="of update 2, but the last rollouts"):
        recorder.step(2, 0, 1, rows=[0], logprobs=[0.0])


def test_a_recording_that_exists_is_refused_and_left_alone(tmp_path: Path) -> None:
    begun(tmp_path / "run").close()
    before = part(tmp_path / "run", 0).read_bytes()
    with pytest.raises(FileExistsError, match="holds a recording already; choose another path"):
        Recorder(tmp_path / "run")
    assert part(tmp_path / "run", 0).read_bytes() == before
    Recorder(tmp_path / "run", rank=1, ranks=2).close()  # another process of the same run
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "wrong", [{"completions": 0}, {"every": 0}, {"rank": 1}, {"rank": -1}, {"ranks": 0}, {"rank": 2, "ranks": 2}]
)
def test_wrong_options_are_refused_before_anything_is_made(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="are 1 or more, and rank is less than ranks"):
        Recorder(tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_columns_of_any_kind_become_plain_data(tmp_path: Path) -> None:
    row = {
        "n": np.int64(3), "x": np.float32(0.5), "list": (1, "a"), "huge": 10**30, "deep": {1: {"k": object}},
        "half": "\ud800", "none": None,
    }  # fmt: skip
    with begun(tmp_path / "run") as recorder:
        recorder.rollouts(1, **GOOD, columns=[row, {}])
        recorder.changed(2, "beta", np.float64(0.5), None)
    rollouts, changed = frames(tmp_path / "run")
    assert rollouts.columns[0] == {
        "n": 3, "x": 0.5, "list": [1, "a"], "huge": str(10**30), "deep": {"1": {"k": "<class 'object'>"}}, "half": "?",
        "none": None,
    }  # fmt: skip
    assert (changed.value, changed.previous) == (0.5, None)


def test_settings_of_any_kind_can_be_recorded(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run") as recorder:
        recorder.begin("T", {"device": Path("x"), "beta": np.float64(0.1)})
    begin = read(part(tmp_path / "run", 0))[0][1]
    assert begin.settings == {"device": "x", "beta": 0.1}  # type: ignore[union-attr]
