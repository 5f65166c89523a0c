"""The rows of the timeline as data: which numbers stand in them, and what happened at each update."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rlplay.trace.history import History
from rlplay.trace.records import AnyRecord, Changed, Rewound
from rlplay.ui.timeline.update_table import USUAL, UpdateRow, UpdateTable, heading, short_heading


def history(marks: Sequence[AnyRecord] = (), **series: Sequence[float]) -> History:
    """These metrics, from update 1 on; a double underscore stands for a slash."""
    points = [
        (0, name.replace("__", "/"), update, value)
        for name, values in series.items()
        for update, value in enumerate(values, start=1)
    ]
    return History.of(sorted(points, key=lambda point: point[2]), marks)


@pytest.mark.parametrize(
    ("series", "score"),
    [
        ({"loss": [1.0], "reward": [0.5]}, "reward"),
        ({"loss": [1.0], "rewards__accuracies": [0.5]}, "rewards/accuracies"),
        ({"loss": [1.0]}, "loss"),
        ({"entropy": [1.0]}, "reward"),
    ],
)
def test_the_score_is_the_first_that_the_run_records(series: dict[str, list[float]], score: str) -> None:
    assert UpdateTable(history(**series), 1).score == score


def test_held_out_scores_are_expected_until_an_update_shows_that_there_are_none() -> None:
    assert UpdateTable(history(), 0).evaluated
    assert UpdateTable(history(eval_reward=[0.1]), 1).evaluated
    assert not UpdateTable(history(reward=[0.1]), 1).evaluated


@pytest.mark.parametrize(
    ("series", "views", "columns"),
    [
        ({"kl": [1], "kl_old": [1], "loss": [1], "reward": [1], "eval_reward": [1]}, USUAL, ["kl", "kl_old", "loss"]),
        ({"kl": [0, 0], "kl_old": [0, 1], "loss": [0, 0], "grad_norm": [1, 0], "reward": [1, 1]}, USUAL,
         ["kl_old", "grad_norm", "kl", "loss"]),
        ({"a": [1], "b": [1], "c": [1], "reward": [1]}, (("reward", "a"), ("b", "c")), ["b", "a", "c"]),
        ({"a": [1], "loss": [1]}, (("loss",), ("a",)), ["a"]),
    ],
)  # fmt: skip
def test_further_columns_are_the_first_metrics_of_each_curve(
    series: dict[str, list[float]], views: Sequence[Sequence[str]], columns: list[str]
) -> None:
    assert UpdateTable(history(**series), 2, views=views).columns == columns


def test_the_scale_of_the_score_has_its_zero() -> None:
    nan = float("nan")
    for values, limits in (([0.5, nan, 0.2], (0, 0.5)), ([-0.5, -0.2], (-0.5, 0)), ([nan], (0, 0)), ([-1, 2], (-1, 2))):
        assert UpdateTable(history(reward=values), 3).limits == limits


def test_each_update_has_a_row_with_what_happened_at_it() -> None:
    marks = [
        Changed(update=2, phase="sample", name="beta", value=0.1, previous=0.0),
        Rewound(update=2, abandoned=4),
        Changed(update=4, phase="sample", name="epsilon", value=0.1, previous=0.2),
    ]
    found = history(marks, reward=[0.1, 0.2], kl=[0.5], eval_reward=[9, 8, 7])
    timeline = UpdateTable(found, 3, frozenset({1, 3}), frozenset({3}))
    rows = timeline.rows
    assert [row.number for row in rows] == [0, 1, 2, 3]
    assert rows[0] == UpdateRow(0, further=(None,), snapshot=True)
    assert rows[1] == UpdateRow(1, 0.1, 9, (0.5,), (), tokens=True)
    assert (rows[2].score, rows[2].further, rows[2].tokens) == (0.2, (None,), False)
    assert [mark.kind for mark in rows[2].events] == ["changed", "back"]
    assert rows[3] == UpdateRow(3, None, 7, (None,), (), tokens=True, snapshot=True)
    assert [mark.update for mark in timeline.coming] == [4]
    assert UpdateTable(found, 4).coming == ()


@pytest.mark.parametrize(
    ("name", "long", "short"),
    [
        ("kl", "KL to reference", "KL to ref"),
        ("rewards/correct/mean", "rewards/correct/mean", "correct"),
        ("gold/true/mean", "Gold score", "gold score"),
        ("rewards/margins", "rewards/margins", "margin"),
        ("calls", "calls", "calls"),
        ("entropy", "Entropy", "entropy"),
    ],
)
def test_headings(name: str, long: str, short: str) -> None:
    assert short_heading(name) == short
    assert heading(name) == long or name.startswith("rewards/")


def test_a_largest_ratio_that_is_always_1_has_no_column() -> None:
    views = (("reward",), ("ratio_max",))
    assert UpdateTable(history(reward=[0.1, 0.2], ratio_max=[1.0, 1.0]), 2, views=views).columns == []
    assert UpdateTable(history(reward=[0.1, 0.2], ratio_max=[1.0, 1.3]), 2, views=views).columns == ["ratio_max"]
