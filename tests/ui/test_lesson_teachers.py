"""A lesson that asks who taught a token: it waits for that token, and asks the engine what its claims need."""

from __future__ import annotations

from typing import Any

from rlplay.trace.records import Sampled
from rlplay.trace.targets import token_target
from rlplay.trace.teachers import TakeAway, Teach
from rlplay.ui.teachers.teachers_screen import TeachersScreen
from tests.recorded import synthetic_update
from tests.ui.stage import Fed, playground, pressed, settled, shown, until
from tests.ui.taught import away, taught

SAMPLED = synthetic_update(1)[0]
assert isinstance(SAMPLED, Sampled)
PLACE = int(SAMPLED.offsets[5])
NAMED = {"prompt": SAMPLED.prompts[1], "candidate": SAMPLED.texts[PLACE]}
CLAIM = {"text": "It moved", "share": NAMED["candidate"], "prompt": NAMED["prompt"], "above": -99}


async def begun(pilot: Any, source: Fed) -> None:
    """The lesson waits for the learner, and there is an update."""
    await settled(pilot)
    await pilot.press("t")
    await until(pilot, lambda: pilot.app.teaching.lesson.learner.at_work)
    source.update(1)
    await settled(pilot)


def answer(app: Any, source: Fed) -> None:
    """The engine answers the newest question and says where it is."""
    question, session = source.commands[-1], app.play.session
    if isinstance(question, Teach):
        source.put(taught(question, session.run.find(1)))
    else:
        assert isinstance(question, TakeAway)
        source.put(away(question, session.teachers.taught))
    source.status(1)


async def test_a_lesson_waits_for_the_token_that_it_names_and_asks_what_its_claims_need() -> None:
    script = [
        {"you": {"say": "Ask who taught it.", "teachers": NAMED}},
        {"expect": {**CLAIM, "of": "same prompt"}},
        {"expect": {**CLAIM, "text": "It would have moved", "without": "other prompts"}},
        {"say": "Next."},
    ]
    app, source = playground(script)
    async with app.run_test(size=(120, 35)) as pilot:
        await begun(pilot, source)
        app.play.point(0, 1)
        await pressed(pilot, "Y")
        answer(app, source)
        await settled(pilot)
        await pressed(pilot, "escape")
        assert app.teaching.lesson.learner.at_work, "that was another token"
        await pressed(pilot, "t")
        await until(pilot, lambda: isinstance(app.screen, TeachersScreen))
        await settled(pilot)
        update = app.play.session.run.find(1)
        assert source.commands[-1].target.answer_ids == token_target(update, 5, 0).answer_ids
        answer(app, source)
        await settled(pilot)
        await pressed(pilot, "escape")
        await until(pilot, lambda: isinstance(source.commands[-1], TakeAway))
        assert "It moved" not in shown(app.panels.narrator), "the second claim has no number yet"
        answer(app, source)
        await until(pilot, lambda: "It would have moved" in shown(app.panels.narrator))
        assert "nats" in shown(app.panels.narrator)


async def test_a_lesson_takes_answers_away_for_the_learner() -> None:
    step = {"teachers": {**NAMED, "without": "other prompts"}}
    app, source = playground([{"you": {"say": "Take them away.", **step}}, {"say": "Next."}])
    async with app.run_test(size=(120, 35)) as pilot:
        await begun(pilot, source)
        await pressed(pilot, "t")
        await until(pilot, lambda: isinstance(app.screen, TeachersScreen))
        await settled(pilot)
        ask, test = source.commands[-2:]
        assert isinstance(ask, Teach)
        assert isinstance(test, TakeAway)
        update = app.play.session.run.find(1)
        bounds, groups = update.sampled.offsets, update.sampled.group
        first = [int(bounds[row]) for row in range(len(groups)) if groups[row] != 1]
        assert set(first) <= set(test.tokens)
        assert not set(range(int(bounds[4]), int(bounds[8]))) & set(test.tokens)
        source.put(known := taught(ask, update), away(test, known))
        source.status(1)
        await settled(pilot)
        assert "without them" in str(app.screen.query_one("#sums").content)
        await pressed(pilot, "escape")
        await until(pilot, lambda: "Next." in shown(app.panels.narrator))
