"""Expectations against recorded numbers and recorded probabilities."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.scenario.claim import Bounds, parse_expect
from rlplay.scenario.expect import check, not_reached
from rlplay.trace.records import Finished, Sampled, Survey
from rlplay.trace.update import Update
from tests.recorded import synthetic_update


class Numbers:
    """A history of one metric."""

    def __init__(self, points: dict[int, float]) -> None:
        self.points = points

    def series(self, name: str) -> tuple[list[int], list[float]]:
        return (list(self.points), list(self.points.values())) if name == "reward" else ([], [])

    def abandoned(self, name: str) -> list[tuple[list[int], list[float]]]:
        return [([5, 10], [0.3, 0.25])] if name == "reward" else []


HISTORY = Numbers({0: 0.25, 5: 0.5, 10: 0.75})


def outcome(update: Update | None = None, history: Numbers = HISTORY, **claim: Any) -> Any:
    return check(parse_expect({"text": "It works", **claim}), history, update)


@pytest.mark.parametrize(
    ("claim", "value", "passed"),
    [
        ({"above": 0.7}, 0.75, True),
        ({"above": 0.75}, 0.75, False),
        ({"at": 5, "below": 0.6}, 0.5, True),
        ({"at": "first", "equals": 0.25}, 0.25, True),
        ({"minus": "first", "above": 0.4}, 0.5, True),
        ({"at": 5, "minus": 10, "below": 0}, -0.25, True),
        ({"ratio_to": 0, "above": 3}, 3.0, False),
        ({"ratio_to": "first", "above": 2, "below": 4}, 3.0, True),
    ],
)
def test_metrics(claim: dict[str, Any], value: float, passed: bool) -> None:
    found = outcome(metric="reward", **claim)
    assert (found.value, found.passed) == (pytest.approx(value), passed)


def test_a_metric_is_compared_with_another_of_the_same_update() -> None:
    class Two(Numbers):
        def series(self, name: str) -> tuple[list[int], list[float]]:
            return ([0, 5], [0.25, 0.125]) if name == "gold/correct/mean" else super().series(name)

    claim = {"metric": "reward", "minus_metric": "gold/correct/mean", "above": 0.3}
    found = outcome(history=Two(HISTORY.points), at=5, **claim)
    assert (found.value, found.passed) == (pytest.approx(0.375), True)
    assert "not been recorded at update 10" in outcome(history=Two(HISTORY.points), **claim).finding


@pytest.mark.parametrize(
    ("claim", "value"),
    [({"at": "highest"}, 0.9), ({"at": "lowest"}, 0.1), ({"at": "last", "minus": "highest"}, -0.4)],
)
def test_the_highest_and_the_lowest_update_are_found(claim: dict[str, Any], value: float) -> None:
    curve = Numbers({0: 0.25, 5: 0.9, 10: 0.1, 15: 0.5})
    assert outcome(history=curve, metric="reward", above=-9, **claim).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("claim", "finding"),
    [
        ({"text": "Reward at the end", "above": 0.7}, "Reward at the end: 0.75 (expected > 0.7)"),
        ({"text": "Reward ends above 0.7", "above": 0.7}, "Reward ends above 0.7: 0.75"),
        ({"text": "Reward ends above 0.8", "above": 0.8}, "Reward ends above 0.8: 0.75 (expected > 0.8)"),
        ({"text": "Not 10.7", "above": 0.7}, "Not 10.7: 0.75 (expected > 0.7)"),
        ({"text": "It rises", "minus": 0, "above": 0}, "It rises: 0.25 → 0.75 (+0.5)"),
        ({"text": "It falls", "minus": 0, "below": 0}, "It falls: 0.25 → 0.75 (+0.5, expected < 0)"),
        ({"text": "It stays", "minus": "last", "equals": 0}, "It stays: 0.75 → 0.75 (no change)"),
        (
            {"text": "It falls", "at": 0, "minus": 10, "below": -0.4, "above": -0.6},
            "It falls: 0.75 → 0.25 (−0.5, expected > −0.6 and < −0.4)",
        ),
        ({"text": "It is ≥ 2× as high", "ratio_to": 0, "above": 2}, "It is ≥ 2× as high: 0.25 → 0.75 (3×)"),
        ({"text": "It multiplies", "ratio_to": 0, "above": 2}, "It multiplies: 0.25 → 0.75 (3×, expected > 2×)"),
    ],
)
def test_an_outcome_reads_as_a_finding(claim: dict[str, Any], finding: str) -> None:
    assert check(parse_expect({"metric": "reward", **claim}), HISTORY, None).finding == finding


def test_a_finding_has_the_registrys_unit_and_few_digits() -> None:
    class Lengths(Numbers):
        def series(self, name: str) -> tuple[list[int], list[float]]:
            return [1, 25], [1234.567, 23.456789]

    found = outcome(metric="completions/mean_length", minus="first", below=0, history=Lengths({}))
    assert found.finding == "It works: 1,235 → 23.5 tokens (−1,211)"


def test_what_is_missing_has_the_registrys_words() -> None:
    assert "Length has not" in outcome(metric="completions/mean_length", above=0).found
    assert "Held-out gold score helpful has not" in outcome(metric="eval_gold/helpful/mean", above=0).found
    assert "Reward part a/b, std has not" in outcome(metric="rewards/a/b/std", above=0).found


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"metric": "loss", "above": 0}, "Loss has not been recorded"),
        ({"metric": "reward", "at": 7, "above": 0}, "at update 7"),
        ({"probability": "4", "above": 0}, "no update has finished"),
    ],
)
def test_what_cannot_be_measured_does_not_hold(claim: dict[str, Any], words: str) -> None:
    found = outcome(**claim)
    assert (found.passed, found.value) == (False, None)
    assert words in found.found


def test_a_multiple_of_zero_does_not_hold() -> None:
    found = outcome(metric="reward", ratio_to="first", above=1, history=Numbers({1: 0.0, 2: 3.0}))
    assert found.passed is False
    assert "cannot be a divisor" in found.found


def test_not_reached_is_neither() -> None:
    assert not_reached(parse_expect({"text": "T", "metric": "reward", "above": 0})).passed is None


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (3, "takes a mapping"),
        ({"text": "T"}, "exactly one of metric, probability, lens, square"),
        ({"text": "T", "metric": "a", "probability": "b", "above": 1}, "exactly one of metric, probability"),
        ({"text": "T", "metric": "a"}, "above, below or equals"),
        ({"text": "T", "metric": "a", "abvoe": 1}, "does not know 'abvoe'"),
        ({"text": "T", "metric": "a", "minus": 1, "ratio_to": 2, "above": 1}, "not both"),
        ({"text": "T", "metric": "a", "minus": 1, "minus_metric": "b", "above": 1}, "not both"),
        ({"text": "T", "metric": "a", "at": "end", "above": 1}, "at of expect takes"),
        ({"text": "T", "probability": "4", "of": "some", "above": 1}, "of of expect takes"),
    ],
)
def test_mistakes(claim: Any, words: str) -> None:
    with pytest.raises(ValueError, match="expect") as caught:
        parse_expect(claim)
    assert words in str(caught.value)


@given(st.floats(-1000, 1000), st.floats(0.001, 10))
def test_bounds(value: float, margin: float) -> None:
    assert Bounds(above=value - margin, below=value + margin, equals=value).hold(value)
    assert not Bounds(above=value).hold(value)
    assert not Bounds(below=value + margin).hold(math.nan)


def whole_vocabulary(after: list[float]) -> Update:
    """One prompt, two completions of one token; three tokens in all, of which two say "4"."""
    records = synthetic_update(1, prompts=1, generations=2, length=2)
    sampled = next(r for r in records if isinstance(r, Sampled))
    finished = next(r for r in records if isinstance(r, Finished))
    before = np.log(np.array([[0.3, 0.2, 0.5]] * 2, dtype=np.float32))
    update = Update(1)
    update.add(
        msgspec.structs.replace(
            sampled,
            group=np.array([0, 0], dtype=np.int32),
            offsets=np.array([0, 1, 2]),
            token_ids=np.array([0, 2], dtype=np.int32),
            old_logprobs=before[:, 0],
            top_ids=np.array([[0, 1, 2]] * 2, dtype=np.int32),
            top_logprobs=before,
            pieces={0: "4", 1: "4", 2: "5"},
        )
    )
    new = np.log(np.array([after], dtype=np.float32))
    update.add(
        msgspec.structs.replace(
            finished, rows=np.array([1], dtype=np.int32), logprobs=new[:, 2], top_logprobs=new, metrics={}
        )
    )
    return update


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ({"at": "before"}, 0.5),
        ({}, 0.7),
        ({"minus": "before"}, 0.2),
        ({"of": "others", "minus": "before"}, -0.2),
        ({"of": "all", "minus": "before"}, 0.0),
        ({"of": "all"}, 1.0),
    ],
)
def test_probabilities(claim: dict[str, Any], value: float) -> None:
    found = outcome(whole_vocabulary([0.4, 0.3, 0.3]), probability="4", equals=value, **claim)
    assert found.passed, found.found
    assert found.value == pytest.approx(value, abs=1e-6)


def test_a_token_that_was_not_kept_cannot_be_summed() -> None:
    found = outcome(whole_vocabulary([0.4, 0.3, 0.3]), probability="9", above=0)
    assert "not among the 3 candidates" in found.found
    assert "token 5" in outcome(whole_vocabulary([0.4, 0.3, 0.3]), probability="4", position=5, above=0).found


def test_any_recorded_update_can_be_asked() -> None:
    update = Update(3)
    for record in synthetic_update(3):
        update.add(record)
    assert update.sampled is not None
    piece = update.sampled.pieces[int(update.sampled.top_ids[0, 0])]
    found = outcome(update, probability=piece, at="before", above=-1)
    assert found.passed
    assert isinstance(found.value, float)


def test_a_metric_is_compared_with_the_run_that_was_undone() -> None:
    found = outcome(metric="reward", minus="undone", above=0.4)
    assert found.passed
    assert found.value == pytest.approx(0.5), "0.75 at update 10, where the undone run had 0.25"
    missing = outcome(metric="reward", at=0, minus="undone", above=0.4)
    assert not missing.passed
    assert "no run that was undone has Reward at update 0" in missing.finding


def _recorded(number: int) -> Update:
    update = Update(number)
    for record in synthetic_update(number):
        update.add(record)
    return update


def test_tokens_that_the_policy_did_not_sample() -> None:
    update = _recorded(3)
    assert not outcome(update, lens="advantages", of="others", above=-9).passed, "there is none"
    assert update.sampled is not None
    mask = update.sampled.mask.copy()
    mask[:3] = 0
    update.sampled = msgspec.structs.replace(update.sampled, mask=mask)
    assert update.credited is not None
    assert outcome(update, lens="advantages", of="others", above=-9).value == pytest.approx(
        np.abs(update.credited.advantages[:3]).max()
    )


def test_a_token_has_the_value_of_its_lens() -> None:
    update = _recorded(3)
    assert update.credited is not None
    advantages = update.credited.advantages
    offsets = update.sampled.offsets if update.sampled is not None else []
    place = int(offsets[1]) + 2
    assert outcome(update, lens="advantages", completion=1, token=2, above=-9).value == pytest.approx(advantages[place])
    assert outcome(update, lens="advantages", of="range", equals=0).passed, "broadcast"
    assert update.sampled is not None
    answers = np.split(np.exp(update.sampled.old_logprobs), update.sampled.offsets[1:-1])
    spread = outcome(update, lens="probability", of="range", above=0)
    assert spread.value == pytest.approx(max(np.max(each) - np.min(each) for each in answers))
    own = advantages[update.sampled.mask == 1] if update.sampled is not None else []
    assert outcome(update, lens="advantages", of="max", above=-9).value == pytest.approx(np.max(own))
    assert outcome(update, lens="advantages", of="mean", above=-9).value == pytest.approx(np.mean(own))
    found = outcome(update, lens="returns", above=-9).finding
    assert "reward" not in found, "the claim's text names the quantity"
    for wrong in ({"completion": 999}, {"token": 999}):
        assert "no" in outcome(update, lens="advantages", above=-9, **wrong).finding
    assert not outcome(None, lens="advantages", above=-9).passed


def test_a_square_has_the_policy_and_the_value_of_the_newest_survey() -> None:
    survey = Survey(
        states=["a1", "b1"],
        actions=["↑", "→"],
        logprobs=np.log(np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)),
        values=np.array([0.5, 1.0], dtype=np.float32),
        best_values=np.array([0.75, 1.0]),
    )
    update = _recorded(1)
    assert update.finished is not None
    update.finished = msgspec.structs.replace(update.finished, survey=survey)
    assert outcome(update, square="a1", move="→", above=0.7).value == pytest.approx(0.75)
    assert outcome(update, square="b1", of="value", above=0.7).value == pytest.approx(1.0)
    assert outcome(update, square="a1", of="best", equals=0.75).passed
    endless = msgspec.structs.replace(survey, best_values=None)
    recorded, update.finished = update.finished, msgspec.structs.replace(update.finished, survey=endless)
    assert "finite" in outcome(update, square="a1", of="best", equals=0.75).finding
    update.finished = recorded
    assert "there is no move ↓" in outcome(update, square="a1", move="↓", above=0).finding
    assert "c1" in outcome(update, square="c1", move="→", above=0).finding


def test_the_length_of_a_walk_is_in_moves() -> None:
    class Lengths(Numbers):
        def series(self, name: str) -> tuple[list[int], list[float]]:
            return list(self.points), list(self.points.values())

    update, lengths = _recorded(1), Lengths({1: 9.0})
    assert update.sampled is not None
    claim = {"metric": "completions/mean_length", "below": 10.0}
    assert outcome(update, lengths, **claim).finding == "It works: 9 tokens (expected < 10)"
    update.step_word = "move"
    assert outcome(update, lengths, **claim).finding == "It works: 9 moves (expected < 10)"
