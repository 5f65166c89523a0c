"""What each problem would try: a list that is whole, and settings that a run may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from rlplay.algorithms.apply import apply_all
from rlplay.health.finding import Finding, Problem
from rlplay.health.remedies.measures import MEASURES, REWARD, measure
from rlplay.health.remedies.remedy import Remedy, Trial, Untried
from rlplay.health.remedies.settings_tried import MOST, TRIED, UNTRIED, remedies
from rlplay.health.remedies.trial import trial
from tests.health.evidence import evidence

CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "not finite": ({}, ("learning_rate", "max_grad_norm")),
    "sampler": ({"temperature": 1.3}, ("temperature",)),
    "left out": ({"top_p": 0.9}, ("top_p", "top_k")),
    "mismatch": ({"sampler_lag": 4}, ("sampler_lag", "importance_sampling_mode")),
    "entropy": ({"entropy_coef": -1.0}, ("entropy_coef",)),
    "held": ({"beta": 5.0}, ("beta",)),
    "negative kl": ({"kl_estimator": "k1", "beta": 0.1}, ("temperature",)),
    "temperature": ({"temperature": 3.0}, ("temperature",)),
    "lopsided": ({"loss_type": "kto", "beta": 0.1}, ("desirable_weight",)),
    "no preference": ({"loss_type": "sigmoid", "beta": 0.1}, ("learning_rate", "beta")),
    "displaced": ({"loss_type": "sigmoid", "beta": 0.1}, ("beta", "learning_rate")),
    "critic": ({"vf_coef": 0.0, "baseline": "value", "returns": "gae"}, ("vf_coef",)),
    "flat": ({}, ("num_prompts",)),
    "tiny spread": ({}, ("scale_rewards",)),
    "turns": ({"retokenize_turns": True}, ("retokenize_turns",)),
}
"""Settings with which a problem occurs, and those that its finding names."""


def found(name: Problem, settings: tuple[str, ...] = ("learning_rate",)) -> Finding:
    return Finding(name, "the gold score “right”", "the gold score “right” fell", "", "", settings)


def test_every_problem_says_what_can_be_tried() -> None:
    assert set(get_args(Problem)) == TRIED.keys() | UNTRIED.keys()
    assert not TRIED.keys() & UNTRIED.keys()
    assert TRIED.keys() - MEASURES.keys() == {"gamed"}, "whose number is that of the score that fell"


@pytest.mark.parametrize("name", TRIED)
def test_what_is_tried_fits_the_run_and_changes_it(name: Problem) -> None:
    settings, named = CASES.get(name, ({}, ("learning_rate", "max_completion_length")))
    run = evidence(series={"rewards/a/mean": [0.1] * 6, "rewards/b/mean": [0.2] * 6, "gold/right/mean": [0.3] * 6},
                   settings=settings)  # fmt: skip
    tried = remedies(run, found(name, named))
    assert 1 <= len(tried) <= MOST
    assert len({each.label for each in tried}) == len(tried)
    for each in tried:
        assert apply_all(run.settings, each.changes) != run.settings
    assert measure(run, found(name, named)).name


@pytest.mark.parametrize("name", ["same reward", "no signal"])
def test_answers_that_are_drawn_cold_are_drawn_warmer_first(name: Problem) -> None:
    first = Remedy("the model's own temperature", {"temperature": 1.0})
    assert remedies(evidence(settings={"temperature": 0.05}), found(name))[0] == first
    assert first not in remedies(evidence(settings={"temperature": 1.0}), found(name))


@pytest.mark.parametrize("name", UNTRIED)
def test_what_no_setting_mends_is_not_tried(name: Problem) -> None:
    planned = trial(evidence(), found(name))
    assert isinstance(planned, Untried)
    assert planned.reason == UNTRIED[name]


def test_own_settings_are_tried_for_any_finding() -> None:
    own = [Remedy("temperature", {"temperature": 0.5})]
    planned = trial(evidence(), found("template"), own=own)
    assert isinstance(planned, Trial)
    assert planned.remedies == tuple(own)
    assert measure(evidence(), found("template")) is REWARD


def test_a_finding_that_names_no_setting_tries_none() -> None:
    assert isinstance(trial(evidence(), found("no end", ())), Untried)


def test_steps_that_were_too_large_are_tried_from_before_the_first() -> None:
    run = evidence(series={"kl_old": [1.0] * 6}, shift=[0.1, 0.1, 0.1, 0.5, 0.1, 0.5])
    planned = trial(run, found("step too large"))
    assert isinstance(planned, Trial)
    assert planned.since == 3
    question = planned.question(7)
    assert (question.since, question.updates, question.number) == (3, 5, 7)
    assert question.changes[0] == {}, "the run as it is comes first"
    assert question.changes[1:] == [each.changes for each in planned.remedies]


def test_nothing_is_tried_from_before_the_checkpoint_that_a_run_began_at() -> None:
    run = replace(evidence(series={"kl_old": [1.0] * 6}, shift=[0.1, 0.1, 0.1, 0.5, 0.1, 0.5]), made_before=5)
    planned = trial(run, found("step too large"))
    assert isinstance(planned, Trial)
    assert planned.since == 5
    assert "the checkpoint" in planned.why


def test_what_does_no_damage_is_tried_where_the_run_is() -> None:
    planned = trial(evidence(cut=8), found("truncated", ("max_completion_length",)))
    assert isinstance(planned, Trial)
    assert planned.since == 6
    assert [each.text for each in planned.remedies] == ["max_completion_length=24", "max_completion_length=48"]
