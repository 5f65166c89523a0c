"""The plane of ratio and advantage: what is counted in it, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rlplay.trace.pulls import PlaneBox, Pulls

RATIO = np.array([1.5, 0.5, 1.0, 2.0, 0.8, 1.3, 0.7], dtype=np.float32)
ADVANTAGE = np.array([1.0, -1.0, 2.0, 0.0, 1.0, -1.0, -0.5], dtype=np.float32)


def pulls(ratio: np.ndarray, advantage: np.ndarray, silent: np.ndarray | None = None) -> Pulls:
    none = np.zeros(len(ratio), dtype=bool)
    return Pulls(ratio, advantage, none if silent is None else silent, np.arange(len(ratio)), None, 1)


def test_the_share_that_went_along_is_of_those_that_moved_and_have_an_advantage() -> None:
    assert pulls(RATIO, ADVANTAGE).along == 3 / 5
    assert pulls(RATIO[2:4], ADVANTAGE[2:4]).along is None


def test_the_ends_are_the_lowest_and_the_highest_advantage_and_the_distance_of_nearly_all_ratios() -> None:
    assert pulls(RATIO, ADVANTAGE).advantages.tolist() == [-1.0, 2.0]
    spread = pulls(1 + np.linspace(-1, 1, 201), np.zeros(201))
    assert spread.reach == pytest.approx(0.98, abs=0.01)


def test_the_silent_are_a_share_of_all_tokens() -> None:
    assert pulls(RATIO[:4], ADVANTAGE[:4], np.array([True, False, False, False])).silent_share == 0.25
    assert pulls(RATIO[:0], ADVANTAGE[:0]).silent_share is None


def test_a_box_excludes_its_ends() -> None:
    found = pulls(np.array([0.5, 1.0, 1.5, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, -1.0, 2.0]))
    assert PlaneBox(0.5, 1.5, -1, 2).holds(found).tolist() == [False, True, False, False, False]
