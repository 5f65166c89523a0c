"""Exercises of a lesson: what solves one, what only passes through, and what a try that misses is told."""

import asyncio

import pytest

from rlplay.algorithms.setting_values import written
from rlplay.link.messages import Advance, Set
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.loader import bundled, load
from rlplay.scenario.script import Change, Exercise, parse
from rlplay.ui.lesson.verdicts import solved_by
from tests.ui.fake_view import playing, settled, turns

EXERCISE = {
    "exercise": {
        "say": "Make it longer.",
        "expect": [{"text": "Longer", "metric": "completions/mean_length", "above": 4}],
        "hint": "Raise beta.",
        "solution": [{"set": {"beta": 0.5}}, {"run": 2}],
    }
}


async def _solving():
    """A run whose claims hold from update 5 on, which has been asked to end after the one under way."""
    player, stage = playing([EXERCISE, {"say": "Next."}])
    stage.stuck = True
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 5, 1.0, "")
    task = await settled(player)
    stage.tell(running=True, update=4)
    stage.tell(update=5)
    await turns()
    assert stage.sent == [Advance("update", 1)]
    return player, stage, task


async def test_an_exercise_is_solved_when_its_claims_hold():
    player, stage = playing([EXERCISE, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.settings["beta"] > 0, 1.0, "")
    task = await settled(player)
    assert stage.captions[-1][0] == "Make it longer."
    stage.tell(settings={"beta": 0.0})
    assert not task.done()
    stage.tell(settings={"beta": 0.7}, running=True)
    assert not task.done(), "the run goes on"
    stage.tell(running=False)
    await task
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])
    assert not any(isinstance(command, Set) for command in stage.sent)


async def test_a_run_that_solves_an_exercise_ends_after_the_update_under_way():
    player, stage = playing([EXERCISE, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 5, 1.0, "")
    task = await settled(player)
    stage.tell(running=True, update=4)
    assert stage.sent == []
    stage.tell(update=5)
    stage.tell()
    await task
    assert stage.sent == [Advance("update", 1)], "once"
    assert (stage.status.update, player.playing) == (6, False), "nothing runs when the lesson goes on"
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])


LASTING = {"exercise": {**EXERCISE["exercise"], "updates": 10}}


async def test_claims_that_must_last_solve_nothing_on_the_way_through():
    player, stage = playing([LASTING, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, 5 <= stage.status.update < 12, 1.0, "")
    task = await settled(player)
    stage.tell(settings={"beta": 0.9})
    stage.tell(running=True, update=6)
    assert stage.sent == [], "they hold, but not for long"
    stage.tell(update=12)
    await turns()
    assert stage.sent == [Advance("update", 1)], "the run ends to show what it has come to"
    stage.tell(running=False, update=13)
    await turns()
    assert stage.captions[-1] == ("Make it longer.", [False], "Your turn · `t` hint")
    assert not task.done()
    player.learner.gives_up()
    await turns()
    player.learner.gives_up()
    await task


async def test_a_change_of_settings_or_a_way_back_begins_the_wait_again():
    player, stage = playing([LASTING, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, True, 1.0, "")
    task = await settled(player)
    stage.tell(update=9)
    stage.tell(settings={"beta": 0.9})
    stage.tell(update=18)
    stage.tell(update=2)
    stage.tell(update=11)
    assert not task.done()
    stage.tell(update=12)
    await asyncio.wait_for(task, 2)
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])


@pytest.mark.parametrize("helped", [False, True], ids=["alone", "with a hint meanwhile"])
async def test_a_run_that_solves_an_exercise_may_be_paused_before_it_ends(helped):
    player, stage, task = await _solving()
    if helped:
        player.learner.gives_up()
        await turns()
        assert stage.captions[-1][0] == "Make it longer. Hint: Raise beta."
    stage.tell(running=False, phase="score")
    await asyncio.wait_for(task, 2)
    assert stage.sent == [Advance("update", 1)]
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])


@pytest.mark.parametrize(("rests", "ends"), [(4, 7), (6, 6)], ids=["undone", "lost in the last update"])
async def test_what_a_run_had_reached_may_be_lost_before_it_ends(rests, ends):
    player, stage, task = await _solving()
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update > ends, 1.0, "")
    stage.tell(running=False, update=rests)
    await turns()
    assert stage.captions[-1] == ("Make it longer.", [False], "Your turn · `t` hint")
    assert player.learner.at_work
    stage.tell(running=True, update=ends + 1)
    await turns()
    assert stage.sent == [Advance("update", 1)] * 2, "the next run that solves it ends, too"
    player.learner.gives_up()
    await turns()
    assert stage.captions[-1][0] == "Make it longer. Hint: Raise beta."
    stage.tell(running=False, update=ends + 2)
    await asyncio.wait_for(task, 2)
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])


async def test_a_try_that_misses_is_answered_with_its_numbers():
    player, stage = playing([EXERCISE, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 3, stage.status.update or None, "")
    task = await settled(player)
    stage.tell(settings={"beta": 0.5})
    assert len(stage.captions) == 1, "a setting alone is no try"
    stage.tell(update=1, running=True)
    assert len(stage.captions) == 1, "the engine runs"
    stage.tell(running=False)
    stage.tell()
    assert stage.captions[1:] == [("Make it longer.", [False], "Your turn · `t` hint")], "once"
    stage.tell(update=0)
    assert stage.captions[-1][1] == [], "at the start there is no number"
    stage.tell(update=3)
    await task
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])


async def test_what_a_try_has_not_measured_yet_is_not_called_missed():
    two = [
        {"text": "Longer", "metric": "completions/mean_length", "above": 4},
        {"text": "V", "metric": "kl", "above": 0},
    ]
    player, stage = playing([{"exercise": {**EXERCISE["exercise"], "expect": two}}, {"say": "Next."}])
    known = {
        "Longer": ClaimResult("Longer", True, 5.0, "5"),
        "V": ClaimResult("V", False, None, "no update, so nothing"),
    }
    stage.check = lambda claim: known[claim.text]
    await settled(player)
    stage.tell(phase="update")
    assert stage.captions[-1][1] == [True, None], "the update is half done"


async def test_claims_that_hold_from_the_beginning_do_not_solve_an_exercise():
    player, stage = playing([{"run": 6}, EXERCISE, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 6, 1.0, "")
    task = await settled(player)
    for changes in ({"settings": {"beta": 0.5}}, {"update": 0}):
        stage.tell(**changes)
        for _ in range(3):
            await settled(player)
        assert not task.done(), "they held before the learner did anything"
    stage.tell(update=6)
    await task
    assert stage.captions[-1][:2] == ("✓ Solved.", [True])


async def test_help_with_an_exercise_is_a_hint_and_then_the_solution():
    player, stage = playing([EXERCISE, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 2, 1.0, "")
    task = await settled(player)
    player.learner.gives_up()
    for _ in range(3):
        await settled(player)
    assert stage.captions[-1][0] == "Make it longer. Hint: Raise beta."
    assert stage.sent == []
    player.learner.gives_up()
    await task
    assert stage.sent == [Set({"beta": 0.5}), Advance("update", 2)]
    assert stage.captions[-1][:2] == ("Raise beta. The solution: set beta to 0.5, then run 2 updates.", [True])


async def test_a_solution_stopped_by_hand_is_not_shown_as_played_and_goes_on_later():
    player, stage = playing([EXERCISE, {"say": "Next."}])
    stage.check = lambda claim: ClaimResult(claim.text, stage.status.update >= 2, 1.0, "")
    player.hands_free = True
    stage.stuck = True
    task = await settled(player)
    stage.tell(settings={"beta": 0.5})
    while Advance("update", 2) not in stage.sent:
        await asyncio.sleep(0)
    stage.tell(running=True)
    stage.tell(running=False, update=1)
    await task
    assert (stage.captions[-1][0], stage.freed) == ("Make it longer.", 1)
    stage.stuck = False
    await player.play()
    assert stage.sent[1:] == [Advance("update", 2), Advance("update", 1)]
    assert stage.captions[-1][:2] == ("Raise beta. The solution: set beta to 0.5, then run 2 updates.", [True])


def test_the_solution_of_every_exercise_says_what_it_changes():
    for name in bundled():
        for step in parse(load(name).script):
            if isinstance(step, Exercise):
                said = solved_by(step.solution)
                changes = [each.settings for each in step.solution if isinstance(each, Change)]
                missing = [f"{k} to {written(v)}" for every in changes for k, v in every.items()]
                assert [each for each in missing if each not in said] == [], name
                assert said.endswith(".")


def test_a_solution_is_one_sentence():
    back = [{"rewind": 0}, {"undo": None}, {"rewind": 3}]
    steps = [*back, {"set": {"gamma": 0.5, "beta": 0}}, {"step": 2}, {"signs": None}]
    assert solved_by(parse(steps)) == (
        "go back to the start, then go back by one update, then go back to update 3, then set gamma to 0.5 and beta to "
        "0, then run 2 optimizer steps."
    )
    assert solved_by(parse([{"signs": None}])) == ""
