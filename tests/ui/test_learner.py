"""Lessons in which the learner acts: the player waits for what is asked, gives help, and speaks up during a run."""

import asyncio

import pytest

from rlplay.link.messages import Advance, Rewind, Set
from rlplay.scenario.claim import parse_expect
from rlplay.scenario.expect import ClaimResult
from rlplay.ui.lesson.lesson_on_screen import TAKE_OVER
from rlplay.ui.lesson.script_view import ScriptView
from tests.recorded import synthetic_update
from tests.ui.fake_view import playing, settled, turns
from tests.ui.stage import on_screen, playground
from tests.ui.stage import settled as drawn

UPDATE = {"you": {"say": "Take one update: press `u`.", "update": 1}}
EXERCISE = {
    "exercise": {
        "say": "Make it longer.",
        "expect": [{"text": "Longer", "metric": "completions/mean_length", "above": 4}],
        "hint": "Raise beta.",
        "solution": [{"set": {"beta": 0.5}}, {"run": 2}],
    }
}


async def test_a_lesson_waits_until_the_learner_has_taken_the_update():
    player, stage = playing([UPDATE, {"say": "Done."}])
    task = await settled(player)
    assert stage.captions[-1][0] == "Take one update: press `u`."
    assert player.learner.at_work
    player.take_over()  # which every key of the engine does
    stage.tell(running=True)
    assert not task.done()
    stage.tell(running=False, update=1)
    await task
    assert stage.captions[-1][0] == "Done."
    assert stage.sent == [], "the learner did it, not the script"


async def test_the_lesson_does_it_on_request():
    player, stage = playing([UPDATE, {"say": "Done."}])
    task = await settled(player)
    player.learner.gives_up()
    await task
    assert stage.sent == [Advance("update", 1)]
    assert stage.captions[-1][0] == "Done."


async def test_updates_that_went_too_far_are_taken_back_before_the_lesson_does_the_step():
    player, stage = playing([{"run": 2}, {"say": "Two."}, {"set": {"beta": 0.1}}, UPDATE, {"say": "Done."}])
    await player.play()
    task = await settled(player)
    sent = len(stage.sent)
    stage.tell(running=True, update=2)
    stage.tell(running=False, update=19, settings={"beta": 0.5})
    await turns()
    assert not task.done(), "19 updates are not the one that was asked for"
    player.learner.gives_up()
    await task
    # A rewind also takes back what was set since; the pretended one takes back everything.
    assert stage.sent[sent:] == [Rewind(2), Set({"beta": 0.1}), Advance("update", 1)]
    assert stage.captions[-1][0] == "Done."


@pytest.mark.parametrize(
    ("asked", "verb", "told"),
    [
        ({"set": {"beta": 0.1}}, "knobs", {"settings": {"beta": 0.1, "epsilon": 0.2}}),
        ({"rewind": 0}, "rewind", {"update": 0}),
        ({"undo": None}, "undo", {"update": 1}),
        ({"phase": 1}, "phase", {"phase": "score"}),
        ({"token": 3}, "token", {}),
        ({"lens": "credit"}, "lens", {}),
        ({"largest": None}, "largest", {}),
        ({"prefer": ["a"]}, "prefer", {"asks": [1]}),
    ],
)
async def test_whatever_is_asked_is_recognized(asked, verb, told):
    player, stage = playing([{"run": 2}, {"say": "Two."}, {"you": {"say": "Now you.", **asked}}, {"say": "Done."}])
    await player.play()
    stage.tell(asks=[0, 1])
    task = await settled(player)
    assert stage.captions[-1][0] == "Now you."
    stage.tell()
    assert not task.done()
    player.learner.performed(verb)
    stage.tell(**told)
    await task
    assert stage.captions[-1][0] == "Done."
    assert not any(isinstance(command, Set | Rewind) for command in stage.sent)


async def test_another_colour_than_the_one_asked_for_does_not_count():
    player, stage = playing([{"you": {"say": "Colour by credit.", "lens": "credit"}}, {"say": "Done."}])
    stage.colour = "entropy"
    task = await settled(player)
    player.learner.performed("lens")
    await settled(player)
    assert not task.done()
    stage.colour = "credit"
    player.learner.performed("lens_back")
    await task
    assert stage.captions[-1][0] == "Done."


async def test_hands_free_the_lesson_does_it_after_the_time_to_read():
    player, stage = playing([UPDATE, EXERCISE, {"say": "Done."}])
    await player.demo()
    assert [hint for *_, hint in stage.captions[:2]] == [TAKE_OVER] * 2, "nobody's turn"
    assert stage.sent == [Advance("update", 1), Set({"beta": 0.5}), Advance("update", 2)]
    assert stage.captions[-1][0] == "Done."


@pytest.mark.parametrize(
    ("step", "text", "helped"),
    [(UPDATE, UPDATE["you"]["say"], "`t` do it for me"), (EXERCISE, "Make it longer.", "Your turn · `t` hint")],
    ids=["you", "exercise"],
)
async def test_whoever_takes_over_at_a_task_has_as_long_as_they_need(monkeypatch, step, text, helped):
    player, stage = playing([step, {"say": "Done."}], pace=lambda _text: 60.0)
    player.hands_free = True
    await settled(player)
    player.take_over()
    assert stage.captions[-1] == (text, [], helped)
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda now=loop.time: now() + 100)
    await turns()
    assert (stage.captions[-1][0], stage.sent) == (text, [])


async def test_words_are_spoken_during_a_run_as_soon_as_their_claim_holds():
    script = [{"watch": {"say": "Longer", "metric": "reward", "above": 0.5}}, {"run": 9}, {"say": "Over."}]
    player, stage = playing(script)
    stage.stuck = True
    task = await settled(player)
    player.check = stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 5, 1.0, "")
    stage.tell(running=True, update=4)
    assert stage.captions == []
    stage.tell(update=5)
    assert [text for text, *_ in stage.captions] == ["Longer"]
    stage.tell(update=6)
    assert len(stage.captions) == 1, "once"
    stage.tell(running=False, update=9)
    await task
    assert stage.captions[-1][0] == "Over."


async def test_a_lesson_left_for_a_walk_says_where_it_was_and_its_colour_ends_with_it():
    script = [{"lens": "credit"}, {"say": "One."}, {"say": "Two."}]
    app, source = playground(script)
    async with app.run_test(size=(120, 35)) as pilot:

        async def pressed(key: str) -> str:
            await pilot.press(key)
            await drawn(pilot)
            return str(app.panels.narrator.render())

        await drawn(pilot)
        assert "One." in await pressed("t")
        source.update(1)
        assert "One." not in await pressed("u")
        assert "The lesson stopped at the start. This is after update 1." in await pressed("t")
        assert Rewind(0) not in source.commands
        await pressed("c")
        await pressed("t")
        assert Rewind(0) in source.commands
        source.status(0)
        await drawn(pilot)
        assert "One." in str(app.panels.narrator.render())
        assert app.play.lens_choice == "credit"
        assert "Two." in await pressed("t")
        assert app.play.lens_choice == "credit", "the last words may speak of it"
        await pressed("t")
        assert app.play.lens_choice is None
        await pressed("c")
        chosen = app.play.lens_choice
        await pressed("t")
        assert app.play.lens_choice == chosen, "somebody's own choice stays"


async def test_claims_are_about_the_last_update_that_has_ended_while_the_next_is_sampled():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        source.update(1)
        source.records(synthetic_update(2)[:1])
        await drawn(pilot)
        assert (app.play.session.run.newest.number, app.play.session.run.ended.number) == (2, 1)
        claim = parse_expect({"text": "Pull", "lens": "credit", "of": "max", "above": -100})
        assert ScriptView(app.play).check(claim).passed
