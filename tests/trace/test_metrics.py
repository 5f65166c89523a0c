"""The titles of logged numbers: of a family's row with the part that a name is about."""

from __future__ import annotations

import pytest

from rlplay.trace.metrics import METRICS, titled


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("rewards/correct/mean", "Reward part correct, mean"),
        ("rewards/mine/short/mean", "Reward part mine/short, mean"),
        ("gold/helpful/mean", "Gold score helpful"),
        ("eval_rewards/a/b/c/std", "Held-out reward part a/b/c, std"),
        ("my/own/number", "my/own/number"),
    ],
)
def test_a_title_names_the_part(name: str, title: str) -> None:
    assert titled(name) == title


def test_a_row_of_its_own_has_its_title() -> None:
    assert all(titled(name) == row.title for name, row in METRICS.items())
