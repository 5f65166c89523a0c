"""The bundled lessons as they are written: what they claim is plotted, what they ask is answered."""

from __future__ import annotations

from itertools import chain
from unittest.mock import AsyncMock, Mock

import pytest

from rlplay.scenario.claim import Expect, MetricValue
from rlplay.scenario.expect import not_reached
from rlplay.scenario.loader import bundled, load
from rlplay.scenario.player import ScriptPlayer
from rlplay.scenario.script import Ask, Change, Exercise, Say, ScreenVerb, Step, Train, You, parse
from rlplay.scenario.subject import subject
from rlplay.trace.metrics import pair_of

ALWAYS = {"reward", "kl", "accuracy", "margin", "rewards/chosen", "greedy_reward", "behaviour_reward"}
"""Metrics of the panels that a screen of 120 columns shows in the lessons' stages, or where Q is learned."""


@pytest.mark.parametrize("name", bundled())
def test_what_a_lesson_claims_is_plotted(name: str) -> None:
    lesson = load(name)
    shown = [metrics for panel in lesson.panels if (metrics := pair_of(panel))][:1]
    for step in parse(lesson.script):
        if isinstance(step, ScreenVerb) and step.verb == "curve":
            shown = [*shown, (step.argument,)][-2:]  # the smallest screen has two panels
        if isinstance(step, Expect) and isinstance(step.quantity, MetricValue):
            for given in filter(None, (step.quantity.metric, step.quantity.minus_metric)):
                metric = given.removeprefix("eval_")
                assert metric in {*ALWAYS, *chain(*shown)}, f"{step.text}: no panel shows {metric}"


@pytest.mark.parametrize("name", bundled())
def test_an_exercise_that_takes_the_knobs_names_their_key(name: str) -> None:
    said = ""
    for step in parse(load(name).script):
        if isinstance(step, Exercise) and any(isinstance(each, Change) for each in step.solution):
            assert "`k`" in said + step.text + step.hint
        said += step.text if isinstance(step, Say | You) else ""


@pytest.mark.parametrize("name", bundled())
def test_what_a_question_predicts_is_checked_before_the_lesson_speaks_again(name: str) -> None:
    steps = parse(load(name).script)
    for at, step in enumerate(steps):
        if isinstance(step, Ask):
            after = [
                Expect if _is_probe(later) else type(later)  # which shows the answer; test_clear_question measures it
                for later in steps[at + 1 :]
                if isinstance(later, Say | Ask | Expect | Train) or _is_probe(later)
            ]
            assert after[: after.index(Expect) + 1] == [*[Train] * after.index(Expect), Expect]


def _is_probe(step: Step) -> bool:
    return isinstance(step, You) and isinstance(step.step, ScreenVerb) and step.step.verb == "probe"


NO_REVEAL = {
    "grid": {"V at the start. It should be within 0.05 of 0.902"},
    "long-and-short": {"Lowest advantage of a token"},
    "baseline": {"The smallest pull"},
    "who-gets-credit": {"Smallest advantage with λ = 1"},
    "step-by-step": {"The largest return, before both steps"},
    "stale": {"The smallest ratio of a token at that step"},
    "trust-region": {"KL of the first step, limit 0.01"},
    "estimators": {"From k1 to the exact KL of the same answers"},
    "you-choose": {
        "Share of pairs that tied and taught nothing",
    },
    "cut-short": {"Share of answers that were cut"},
    "calculator": {"Right answers"},
    "trouble-credit": {"Mean reward after 5 updates"},
    "trouble-samples": {"Mean reward after 6 updates, 96 walks"},
    "trouble-moving": {"Mean reward at update 6", "Mean reward 15 updates after the move"},
    "trouble-size": {"Mean reward after 5 updates, 9 squares"},
    "trouble-simulator": {"Mean reward in the simulator"},
    "every-token": {"Held-out reward, the teacher to be", "Held-out reward after 80 answers, from rewards alone"},
    "both-fall": {"Held-out gold score, against DPO"},
    "not-the-policy": {"Mismatch KL", "Held-out reward"},
    "race": {"REINFORCE, mean reward at update 6"},
    "race-sums": {"GRPO, mean reward at update 4"},
}
"""Claims without a prediction: they check what the screen shows already, what a text has just said, the first half of a
comparison, or the rest of an answer that was predicted."""


@pytest.mark.parametrize("name", bundled())
async def test_there_is_a_prediction_before_each_reveal(name: str) -> None:
    learner = Mock(
        check=not_reached, ask=AsyncMock(), turn=AsyncMock(), write=AsyncMock(), inquire=AsyncMock()
    )  # does all that is asked for
    script = ScriptPlayer(parse(load(name).script), learner, AsyncMock(update=9, asks=[]))
    while script.action is not None:
        assert await script.play()
    shown = [call.args for call in learner.reveal.call_args_list]
    unpredicted = {outcomes[0].text for outcomes, about in shown if about is None}
    assert unpredicted == NO_REVEAL.get(name, set())


@pytest.mark.parametrize("name", bundled())
def test_a_lesson_says_what_it_is_about(name: str) -> None:
    assert subject(load(name)) != "all", "the screen gives its room to the subject"


@pytest.mark.parametrize("name", bundled())
def test_a_lesson_asks_for_a_prediction_an_act_and_has_an_exercise(name: str) -> None:
    kinds = [type(step) for step in parse(load(name).script)]
    assert kinds.count(Ask) >= 1
    assert kinds.count(Exercise) >= 1
    assert kinds.count(You) >= 1


@pytest.mark.parametrize("name", [name for name in bundled() if load(name).world is not None])
def test_a_lesson_in_a_world_calls_the_panels_by_the_names_that_they_have_there(name: str) -> None:
    steps = parse(load(name).script)
    said = " ".join(step.text for step in steps if isinstance(step, Say | You | Exercise))
    assert "panel Token" not in said
