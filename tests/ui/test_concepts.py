"""What the learner does for each concept, by the key that the table names: the lesson waits for it and goes on."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.link.messages import Advance, Set
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.script import Change, You, parse_step
from tests.scenario.test_concepts import TABLE, Concept, the_step, words
from tests.ui.fake_view import playing
from tests.ui.fake_view import settled as waiting
from tests.ui.stage import playground, pressed, settled, shown, until

NEXT = {"say": "The next step."}


def those(*verbs: str) -> Any:
    found = [each for each in TABLE if each.does in verbs]
    return pytest.mark.parametrize("concept", found, ids=[f"{each.concept}-{each.lesson}" for each in found])


def script(concept: Concept) -> list[dict[str, Any]]:
    """The step of the concept as it is written, and one more."""
    (step,) = (each for each in whole_script(load(concept.lesson)) if concept.step in words(parse_step(each)))
    return [step, NEXT]


@those("ask")
async def test_the_digit_answers_right(concept: Concept) -> None:
    player, stage = playing(script(concept))
    task = await waiting(player)
    player.answered(int(concept.key) - 1)
    await task
    assert stage.captions[-1][0].startswith("✓ Right")


@those("set")
async def test_a_setting_that_the_learner_changes_is_enough(concept: Concept) -> None:
    step = the_step(concept)
    assert isinstance(step, You)
    assert isinstance(step.step, Change)
    player, stage = playing(script(concept))
    task = await waiting(player)
    assert not task.done()
    stage.tell(settings={**stage.status.settings, **step.step.settings})
    await task
    assert stage.captions[-1][0] == NEXT["say"]
    assert not any(isinstance(command, Set) for command in stage.sent), "nobody else set it"


@those("token", "phase", "update")
async def test_the_key_moves_the_engine_as_the_lesson_asks(concept: Concept) -> None:
    app, source = playground(script(concept))
    async with app.run_test(size=(120, 35)) as pilot:
        await pressed(pilot, "t")
        assert app.teaching.lesson.learner.at_work
        await pressed(pilot, concept.key)
        assert source.commands[-1] == Advance(concept.does, 1)
        source.status(update=1)
        await until(pilot, lambda: NEXT["say"] in shown(app.panels.narrator))


@those("glossary", "weights")
async def test_the_key_opens_what_the_lesson_waits_for(concept: Concept) -> None:
    app, source = playground(script(concept))
    async with app.run_test(size=(120, 35)) as pilot:
        await pressed(pilot, "t")
        source.update(1)
        await settled(pilot)
        await pressed(pilot, concept.key)
        await until(pilot, lambda: app.screen is not app.panels.main)
        await settled(pilot)
        assert NEXT["say"] not in shown(app.panels.narrator)
        await pressed(pilot, "escape")
        await until(pilot, lambda: NEXT["say"] in shown(app.panels.narrator))
