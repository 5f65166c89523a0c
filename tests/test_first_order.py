"""Which width a derivative is taken at: one at which something moves, and by more than rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from rlplay.first_order import NEAR, WIDTHS, best_difference


@dataclass
class Seen:
    width: float
    off: float
    moved: float


def by_slope(slope: float, off: float = 0.0, floor: float = 0.0) -> Callable[[float], Seen]:
    """Numbers that move by `slope` in a width of 1, and by `floor` where that is less than rounding."""
    return lambda width: Seen(width, off, max(slope * width, floor))


def test_a_width_at_which_rounding_is_all_that_moves_is_not_taken() -> None:
    """Rounding makes many large numbers that cancel: beside them the sum seems to be right."""
    found = best_difference(by_slope(1e3, 1e-4, 4e-6), torch.float32, 1e7, lambda: Seen(0.0, 0.0, 0.0))
    assert found.width == 0.0
    found = best_difference(by_slope(1e3, 1e-4, 4e-6), torch.float32, 1e7)
    assert 1e3 * found.width > 1e-4, "a wider one is tried where no exact one is known"


@pytest.mark.parametrize("guess", [1e3, 1e4])
def test_one_width_is_enough_where_the_guess_is_near(guess: float) -> None:
    tried = list[float]()

    def measure(width: float) -> Seen:
        tried.append(width)
        return by_slope(1e3, NEAR[torch.float32])(width)

    assert best_difference(measure, torch.float32, guess).width == tried[0]
    assert len(tried) == 1


def test_where_nothing_moves_and_nothing_should_that_is_the_answer() -> None:
    assert best_difference(by_slope(0.0), torch.float32, 1.0, lambda: pytest.fail("it is exact")).moved == 0


@pytest.mark.parametrize("moved", [0.0, float("inf"), float("nan")])
def test_a_width_that_is_far_off_is_changed(moved: float) -> None:
    tried = list[float]()

    def measure(width: float) -> Seen:
        tried.append(width)
        return Seen(width, 1.0 if len(tried) < WIDTHS else 0.0, moved if len(tried) < WIDTHS else 0.01)

    assert best_difference(measure, torch.float32, 1.0).width == tried[-1]
    assert (tried[1] > 100 * tried[0]) == (moved == 0)
    assert (tried[1] < tried[0] / 100) == (moved != 0)
