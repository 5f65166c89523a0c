"""What a reward is made of: parts that cancel or punish right answers, and noise that advantages blow up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlplay.health import reward_part_checks as part
from rlplay.health.counts import WinCount
from rlplay.health.examine import findings
from rlplay.health.finding import Evidence
from rlplay.health.part_numbers import PartNumbers, TinyGroups, part_numbers, tiny_groups
from rlplay.trace.records import Array, Credited, Scored
from rlplay.trace.update import Update
from tests.health.evidence import evidence
from tests.recorded import synthetic_update


def update(parts: dict[str, list[float]], weights: dict[str, float] | None = None, **credit: Any) -> Update:
    """Sixteen answers in four groups, each of one token."""
    made, each = Update(1), {name: np.array(values, np.float64) for name, values in parts.items()}
    share = weights or dict.fromkeys(parts, 1.0)
    made.add(next(each for each in synthetic_update(1, prompts=4, generations=4, length=1)))
    total = sum(share[name] * values for name, values in each.items())
    made.add(Scored(update=1, rewards=np.asarray(total), parts=each, weights=share, gold={}))
    if credit:
        made.add(Credited(update=1, group_mean=np.zeros(4), group_std=np.zeros(4), **credit))
    return made


def numbers(parts: dict[str, list[float]], right: list[bool] | None = None, **options: Any) -> PartNumbers:
    held = {} if right is None else {"answer": np.array(right)}
    found = part_numbers(update(parts, **options), held)
    assert found is not None
    return found


RIGHT = [True, False, False, True] * 4
SCORE = [float(each) for each in RIGHT]
FORMAT = [1.5 * float(n % 3 == 0) for n in range(16)]
LENGTH = [float(n % 5) for n in range(16)]


def test_the_sums_are_those_of_deviations_within_groups() -> None:
    found = numbers({"a": LENGTH, "b": SCORE}, RIGHT, weights={"a": 2.0, "b": 1.0})
    table = np.array(LENGTH).reshape(4, 4)
    off = 2 * (table - table.mean(axis=1, keepdims=True))
    assert found.products[0][0] == pytest.approx(float((off**2).sum()))
    assert found.products[1][1] == found.mixed == pytest.approx(4.0)
    assert found.right == pytest.approx((float((off * (np.array(SCORE).reshape(4, 4) - 0.5)).sum()), 4.0))
    assert (found.lowest, found.highest, found.kinds) == ((0.0, 0.0), (8.0, 1.0), (5, 2))
    assert found.won[1] == WinCount(16, 16)
    assert (found + found).products == tuple(tuple(2 * x for x in row) for row in found.products)
    assert (found + found).answers == 32


def run(found: PartNumbers, updates: int = 3, **fields: Any) -> Evidence:
    return evidence(updates, parts=found, answers=found.answers, **fields)


def test_parts_that_cancel_are_named() -> None:
    both = numbers({"long": LENGTH, "short": [-x for x in LENGTH], "right": [1.0] * 16})
    found = part.cancel(run(both))
    assert found is not None
    assert "In 48 answers of 3 updates “long” and “short” vary" in found.evidence
    assert "a correlation of −1" in found.evidence
    named = [each.name for each in findings(run(both, reward=1.0, silent=True))]
    assert "same reward" not in named
    assert named[0] == "cancelling"
    assert part.cancel(run(both, 1)) is None
    assert part.cancel(run(numbers({"a": [1.0] * 16, "b": [2.0] * 16}))) is None
    assert part.cancel(run(numbers({"long": LENGTH, "half": [-x / 2 for x in LENGTH]}))) is None


def test_a_part_with_the_wrong_sign_behind_a_bonus() -> None:
    sick = numbers({"right": [-x for x in SCORE], "format": [3 * x for x in FORMAT]}, RIGHT)
    found = part.against(run(sick))
    assert found is not None
    assert found.title == "“right” punishes right answers"
    assert "In 48 of 48 pairs" in found.evidence
    well = numbers({"right": SCORE, "format": FORMAT}, RIGHT)
    assert part.against(run(well)) is None
    weighted = numbers({"right": SCORE, "format": FORMAT}, RIGHT, weights={"right": -1.0, "format": 1.0})
    assert part.against(run(weighted)) is not None
    assert part.against(run(sick, 1)) is None, "16 pairs are few"
    brief = numbers({"right": SCORE, "brief": [-3 * x - n / 20 for n, x in enumerate(SCORE)]}, RIGHT)
    assert part.against(run(brief)) is None, "a length has many levels"


def test_the_best_paid_answers_are_never_right() -> None:
    whole = [1.5 * (n % 2) - x for n, x in enumerate(SCORE)]
    found = part.against(run(numbers({"reward": whole}, RIGHT), 4))
    assert found is not None
    assert found.evidence == (
        "32 of 64 answers contain the right one. Of the 16 answers with the highest reward, 1.5, none does."
    )
    assert part.against(run(numbers({"reward": whole}, RIGHT), 3)) is None, "12 answers are few"
    assert part.against(run(numbers({"reward": SCORE}, RIGHT), 4)) is None
    assert part.against(run(numbers({"reward": [x + n / 99 for n, x in enumerate(whole)]}, RIGHT), 4)) is None


def test_no_part_is_blamed_twice() -> None:
    sick = numbers({"right": [-x for x in SCORE], "format": FORMAT}, RIGHT)
    alone = run(sick, gold={"answer": WinCount(0, 40)})
    assert [each.title for each in findings(alone)][:1] == ["The reward punishes right answers"]
    assert part.against(alone) is None


def _tiny(rewards: list[float], advantages: list[float]) -> TinyGroups | None:
    return tiny_groups(update({"a": rewards}, advantages=np.array(advantages, np.float32)))


def test_groups_that_hardly_differ() -> None:
    each = [0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.001, *[0.5] * 8]
    large = [-1.0, 1.0, -1.0, 1.0, -0.5, -0.5, -0.5, 1.5, *[0.0] * 8]
    found = _tiny(each, large)
    assert found is not None
    assert (found.groups, found.tiny, found.answer) == (2, 1, 7)
    assert (found.spread, found.advantage) == (pytest.approx(0.001), 1.5)
    small = _tiny(each, [*large[:4], *[0.01] * 12])
    assert small is not None
    assert small.tiny == 0
    assert _tiny([0.5] * 16, [0.0] * 16) is None
    unit: Array = np.array(each) / 1e6
    scaled = _tiny(unit.tolist(), large)
    assert scaled is not None
    assert scaled.tiny == 1, "the unit of the reward does not matter"


def test_noise_that_becomes_an_advantage() -> None:
    noisy, calm = TinyGroups(4, 2, 1e-6, 1.7, 5), TinyGroups(4, 1, 1e-6, 1.7, 5)
    found = part.inflated(evidence(5, tiny=noisy))
    assert found is not None
    assert "In 10 of 20 groups" in found.evidence
    assert "a difference of 1e-6 became an advantage of 1.7" in found.evidence
    assert (found.place.update, found.place.answer) == (1, 5) if found.place else False
    assert part.inflated(evidence(5, tiny=calm)) is None
    assert part.inflated(evidence(3, tiny=noisy)) is None
    assert part.inflated(evidence(5, tiny=noisy, settings={"scale_rewards": "none"})) is None
    assert part.inflated(evidence(5, tiny=noisy, settings={"baseline": "none"})) is None
