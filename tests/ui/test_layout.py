"""What stands beside and above what: the strongest tokens from top to bottom, and two runs' answers side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Sampled
from rlplay.ui.compare.side_by_side import align_rows, counterpart, first_difference
from rlplay.ui.tokens.ranking import MOST, ranking
from rlplay.ui.tokens.token_layout import TokenLayout
from tests.written import sampled_of

SAMPLED = sampled_of(["a", "b"], ["c"], [], ["d", "e", "f"])
ALL = [0, 1, 2, 3]


def ranked(values: list[float], lens: str, order: list[int] = ALL, lowest: bool = False, **fields: Any) -> list[str]:
    """The places in order, "answer.token value ×tokens that share it"."""
    sampled = sampled_of(["a", "b"], ["c"], [], ["d", "e", "f"], **fields)
    found = ranking(sampled, np.array(values), LENSES[lens], order, None, lowest)
    return [f"{each.completion}.{each.token} {each.value:g} ×{each.sharing}" for each in found]


@pytest.mark.parametrize(
    ("values", "lens", "order", "lowest", "first"),
    [
        ([0.1, 0.7, 0.2, 0.7, 0.1, 0.7], "entropy", ALL, False, ["0.1 0.7 ×1", "3.0 0.7 ×2", "1.0 0.2 ×1"]),
        ([0.1, 0.7, 0.2, 0.7, 0.1, 0.7], "entropy", [3, 1, 0], False, ["3.0 0.7 ×2", "0.1 0.7 ×1"]),
        ([0.1, 0.7, 0.2, 0.7, 0.1, 0.7], "entropy", ALL, True, ["0.0 0.1 ×1", "3.1 0.1 ×1", "1.0 0.2 ×1"]),
        ([0.1, 0.7, 0.2, 0.7, 0.1, 0.7], "entropy", [1], False, ["1.0 0.2 ×1"]),
        ([0.7, 0.700001, 0.69, 0, 0, 0], "entropy", ALL, False, ["0.0 0.7 ×2", "1.0 0.69 ×1", "3.0 0 ×3"]),
        ([0.0, 0.0, -1.0, 0.0, -2.0, 0.0], "credit", ALL, False, ["3.1 -2 ×1", "1.0 -1 ×1", "0.0 0 ×2"]),
        ([0.0, 0.0, -1.0, 0.0, -2.0, 0.1], "credit", ALL, False, ["3.2 0.1 ×1", "0.0 0 ×2"]),
        ([2.0, 2.0, -1.0, -2.0, -2.0, -2.0], "advantages", ALL, True, ["3.0 -2 ×3", "1.0 -1 ×1", "0.0 2 ×2"]),
        ([0.9, 0.5, 1.0, 1.0, 0.8, 1.0], "importance_ratio", ALL, False, ["0.1 0.5 ×1"]),
        ([-0.1, np.nan, -0.2, -0.3, -0.4, -0.5], "entropy", ALL, False, ["0.0 -0.1 ×1", "1.0 -0.2 ×1"]),
        ([1.0, 1.0, -1.0, 0.0, 2.0, 0.0], "clip_state", ALL, False, ["3.1 2 ×1", "0.0 1 ×1", "0.1 1 ×1", "1.0 -1 ×1"]),
        ([1.0, 0.0, -1.0, 0.0, 2.0, 0.0], "clip_state", ALL, True, ["1.0 -1 ×1", "0.0 1 ×1", "3.1 2 ×1"]),
        ([np.nan] * 6, "entropy", ALL, False, []),
    ],
)
def test_tokens_are_ranked_by_value_then_top_to_bottom_and_equal_ones_of_an_answer_count_once(
    values: list[float], lens: str, order: list[int], lowest: bool, first: list[str]
) -> None:
    assert ranked(values, lens, order, lowest)[: len(first)] == first
    assert bool(first) == bool(ranked(values, lens, order, lowest))


def test_only_sampled_and_found_tokens_are_ranked() -> None:
    values = [0.1, 0.7, 0.2, 0.6, 0.1, 0.5]
    mask = np.array([1, 0, 1, 1, 1, 1], dtype=np.uint8)
    assert ranked(values, "entropy", mask=mask)[0] == "3.0 0.6 ×1"
    only = np.array([False, False, True, False, True, False])
    found = ranking(SAMPLED, np.array(values), LENSES["entropy"], ALL, only)
    assert [each[:2] for each in found] == [(1, 0), (3, 1)]
    found = ranking(SAMPLED, np.array(values), LENSES["entropy"], ALL, np.zeros(6, dtype=bool))
    assert found[0][:2] == (0, 1), "nothing was looked for"


def test_of_very_many_tokens_the_first_in_order_are_ranked() -> None:
    values = np.random.default_rng(0).permutation(5 * MOST).astype(np.float32)
    sampled = sampled_of(["a"] * (5 * MOST))
    found = ranking(sampled, values, LENSES["entropy"], [0])
    assert [each.value for each in found] == list(range(5 * MOST - 1, 4 * MOST - 1, -1))


def layout_of(sampled: Sampled, order: list[int] | None = None) -> TokenLayout:
    layout = TokenLayout()
    layout.arrange(sampled, None, list(range(len(sampled.group))) if order is None else order, 8, False)
    return layout


def lines(layout: TokenLayout) -> list[str]:
    """Each line with the completion that it belongs to."""
    return [f"{row.completion} {''.join(cell.text for cell in row.cells)}".strip() for row in layout.rows]


def test_answers_to_the_same_prompt_begin_on_the_same_line() -> None:
    one = layout_of(sampled_of(["a"], ["b", " b", " b b b"], ["c"], ["d"], prompts=["P", "Q"]))
    other = layout_of(sampled_of(["e", " e", " e e e"], ["f"], prompts=["P", "Q"]))
    align_rows(one, other)
    assert lines(one) == ["-1 P", "0 a", "0", "1 b b", "1  b b b", "-1", "-1 Q", "2 c", "3 d"]
    assert lines(other) == ["-1 P", "0 e e", "0  e e e", "-1", "-1", "-1", "-1 Q", "1 f", "-1"]
    assert [row.values for row in one.rows] == [False, False, True, *[False] * 6]
    assert one.rows_of(1) == range(3, 5)
    assert other.rows_of(1) == range(7, 8)


def test_prompts_of_other_numbers_are_brought_together() -> None:
    one = layout_of(sampled_of(["a"], ["b"], ["c"], prompts=["P", "Q", "R"]))
    other = layout_of(sampled_of(["e"], ["f"], prompts=["R", "P"]), [1, 0])
    align_rows(one, other, {0: 2, 1: 0})
    assert lines(one) == ["-1 P", "0 a", "-1", "-1 Q", "1 b", "-1", "-1 R", "2 c"]
    assert lines(other) == ["-1 P", "1 f", "-1", "-1", "-1", "-1", "-1 R", "0 e"]


def test_the_counterpart_has_the_same_prompt_and_rank() -> None:
    here = sampled_of(["a"], ["b"], ["c"], ["d"], prompts=["P", "Q"])
    there = sampled_of(["a"], ["b"], ["c"], prompts=["Q", "R", "P"])
    assert [counterpart(completion, here, here) for completion in range(4)] == [0, 1, 2, 3]
    assert [counterpart(completion, here, there, {0: 2, 1: 0}) for completion in range(4)] == [2, None, 0, None]
    assert [counterpart(completion, here, there, {1: 0}) for completion in range(4)] == [None, None, 0, None]


@pytest.mark.parametrize(
    ("one", "other", "token"),
    [
        (["a", "b", "c"], ["a", "b", "c"], None),
        (["a", "b", "c"], ["a", "c", "c"], 1),
        (["a", "b"], ["a", "b", "c"], 2),
        ([], [], None),
    ],
)
def test_the_first_token_in_which_two_answers_differ(one: list[str], other: list[str], token: int | None) -> None:
    both = sampled_of(["a", "b", "c"], one, other)
    assert first_difference((both, 1), (both, 2)) == token
    elsewhere = sampled_of(["a", "b", "c"], other, one, prompts=["P", "Q", "R"])
    assert first_difference((elsewhere, 1), (elsewhere, 1)) is None
    assert first_difference((elsewhere, 0), (elsewhere, 1)) == -1, "other prompts"
