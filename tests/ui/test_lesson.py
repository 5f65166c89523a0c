"""Playing a script: what is sent to the engine and when it stops, with a pretended screen and engine."""

import asyncio

import pytest

from rlplay.link.messages import Advance, Rewind, Set
from rlplay.ui.lesson.lesson_on_screen import LAST, NEXT, TAKE_OVER
from tests.ui.fake_view import playing, settled

LESSON = [
    {"say": "Watch."},
    {"lens": "probability"},
    {"phase": 2},
    {"say": "Scored."},
    {"ask": {"question": "Longer?", "choices": ["shorter", "longer"], "answer": "longer", "because": "It pays."}},
    {"run": 24},
    {"expect": {"text": "Longer", "metric": "completions/mean_length", "above": 4}},
    {"expect": {"text": "Better", "metric": "reward", "above": 0.5}},
    {"set": {"beta": 0.1, "epsilon": 0.3}},
    {"rewind": 0},
    {"say": "Again."},
]


async def test_a_setting_that_holds_already_is_set_again_with_a_new_algorithm():
    player, stage = playing([{"set": {"algorithm": "dpo", "beta": 0.0}}, {"say": "Pairs."}])
    await player.play()
    assert stage.sent == [Set({"algorithm": "dpo", "beta": 0.0})], "an algorithm brings a beta of its own"


async def test_each_press_plays_to_the_next_words():
    player, stage = playing(LESSON)
    await player.play()
    assert [text for text, _, _ in stage.captions] == ["Watch."]
    assert stage.sent == []
    await player.play()
    assert stage.looks == [("lens", "probability")]
    assert stage.sent == [Advance("phase", 2)]
    assert stage.captions[-1][0] == "Scored."


async def test_a_question_waits_for_its_answer_and_is_resolved_by_the_claims_that_follow():
    player, stage = playing(LESSON)
    await player.play()
    await player.play()
    task = await settled(player)
    assert (stage.asked, stage.wanted) == (["Longer?"], "prediction")
    assert len(stage.sent) == 1, "nothing runs before the prediction"
    player.answered(0)
    await task
    assert stage.sent[-1] == Advance("update", 24)
    text, passed, hint = stage.captions[-1]
    assert text == "✗ Not quite: longer. It pays."
    assert passed == [True, False]
    assert hint == "`t` next"


async def test_a_question_about_a_curve_lights_it_and_draws_the_guess_until_the_next_question():
    about = {"curve": "completions/mean_length", "ways": ["falls", "rises"]}
    first, other = {"ask": {**LESSON[4]["ask"], **about}}, {"ask": LESSON[4]["ask"]}
    player, stage = playing(
        [first, {"lens": "auto"}, {"run": 9}, {"you": {"say": "Go.", "update": 2}}, {"say": "So."}, other]
    )
    task = await settled(player)
    assert stage.guesses == [("completions/mean_length", 11, None)]
    player.answered(1)
    await settled(player)
    assert stage.guesses[1:] == [("completions/mean_length", 11, "rises")]
    task.cancel()


async def test_a_question_about_no_curve_takes_an_earlier_guess_away():
    player, stage = playing([LESSON[4], {"say": "Next."}])
    task = await settled(player)
    player.answered(1)
    await task
    assert stage.guesses == [("", 0, None)]


async def test_the_next_text_takes_the_guess_away():
    question = {"ask": {**LESSON[4]["ask"], "curve": "reward", "ways": ["falls", "rises"]}}
    player, stage = playing([question, {"run": 3}, LESSON[6], {"say": "Next."}])
    task = await settled(player)
    player.answered(1)
    await task
    assert stage.guesses[-1] == ("reward", 3, "rises"), "the truth is compared with it"
    await player.play()
    assert stage.guesses[-1] == ("", 0, None)


async def test_a_right_prediction_is_confirmed():
    player, stage = playing(LESSON[4:7])
    task = await settled(player)
    player.answered(1)
    await task
    assert stage.captions[-1][0] == "✓ Right: longer. It pays."
    assert player.finished
    assert stage.captions[-1][2] == LAST


async def test_a_question_without_claims_is_resolved_at_once():
    player, stage = playing([LESSON[4], {"say": "Next."}])
    task = await settled(player)
    assert stage.wanted == "answer"
    player.answered(1)
    await task
    assert [text[:1] for text, _, _ in stage.captions] == ["✓"]
    await player.play()
    assert stage.captions[-1][0] == "Next."


async def test_settings_and_rewinds_are_awaited_and_known_settings_are_not_sent():
    player, stage = playing([{"set": {"beta": 0.0, "epsilon": 0.3}}, {"run": 2}, {"undo": None}, {"say": "Done."}])
    await player.play()
    assert stage.sent == [Set({"epsilon": 0.3}), Advance("update", 2), Rewind(1)]
    assert stage.captions[-1][0] == "Done."


async def test_undo_gives_up_an_update_under_way_before_it_takes_back_a_finished_one():
    player, stage = playing([{"update": 2}, {"phase": 1}, {"undo": None}, {"undo": None}, {"say": "Done."}])
    await player.play()
    assert stage.sent == [Advance("update", 2), Advance("phase", 1), Rewind(2), Rewind(1)]


async def test_going_back_to_where_it_stands_waits_for_nothing():
    player, stage = playing([{"rewind": 0}, {"say": "Done."}])
    stage.stuck = True
    await asyncio.wait_for(player.play(), 2)
    assert stage.sent == [Rewind(0)]
    assert stage.captions[-1][0] == "Done."


async def test_a_run_stopped_by_hand_is_finished_by_the_next_press():
    player, stage = playing([{"run": 10}, {"say": "Done."}])
    stage.stuck = True
    task = await settled(player)
    assert player.playing
    stage.tell(running=True)
    stage.tell(update=4)
    stage.tell(running=False)
    await task
    assert stage.freed == 1
    assert stage.captions == []
    stage.stuck = False
    await player.play()
    assert stage.sent == [Advance("update", 10), Advance("update", 6)]
    assert stage.captions[-1][0] == "Done."


async def test_it_tells_how_far_the_engine_is_on_the_way_to_where_it_goes_on():
    player, stage = playing([{"run": 10}, {"say": "Done."}])
    stage.stuck = True
    task = await settled(player)
    stage.tell(running=True)
    stage.tell(update=4)
    assert stage.progress[0] == (0, 10)
    assert stage.progress[-1] == (4, 10)
    assert "after update 10; this is update 4" in player.waits_for
    stage.tell(running=False, update=10)
    await task
    assert stage.progress[-1] == (4, 10), "no progress is reported after it continues"


async def test_a_run_that_reached_its_last_update_goes_on():
    player, stage = playing([{"run": 10}, {"say": "Done."}])
    stage.stuck = True
    task = await settled(player)
    stage.tell(running=True)
    stage.tell(running=False, update=7, finished=True)
    await task
    assert stage.captions[-1][0] == "Done."


async def test_taking_over_withdraws_a_question_which_is_asked_again_later():
    player, stage = playing(LESSON[4:])
    task = await settled(player)
    player.take_over()
    await task
    assert stage.freed == 1
    assert stage.sent == []
    task = await settled(player)
    assert stage.asked == ["Longer?", "Longer?"]
    player.answered(1)
    await task


async def test_a_second_press_while_playing_does_nothing():
    player, stage = playing(LESSON[4:])
    task = await settled(player)
    await player.play()
    assert stage.asked == ["Longer?"]
    player.take_over()
    await task


async def test_a_demo_plays_to_the_end_and_answers_nobodys_questions():
    player, stage = playing(LESSON)
    await asyncio.wait_for(player.demo(), 2)
    assert player.finished
    captions = ["Watch.", "Scored.", "Longer?", "Answer: longer. It pays.", "Again."]
    assert [text for text, _, _ in stage.captions] == captions
    assert stage.captions[0][2] == TAKE_OVER
    assert stage.looks == [("lens", "probability"), ("lens", "auto")], "at the end the colour is automatic again"


async def test_a_demo_ends_when_somebody_takes_over():
    reading = asyncio.Event()

    def pace(_text: str) -> float:
        reading.set()
        return 0.01

    player, stage = playing(LESSON, pace)
    task = asyncio.create_task(player.demo())
    await reading.wait()
    player.take_over()
    await asyncio.wait_for(task, 2)
    assert [text for text, _, _ in stage.captions] == ["Watch."]
    assert stage.freed == 1
    assert not player.finished


async def test_a_refused_setting_does_not_hold_up_the_lesson(monkeypatch):
    monkeypatch.setattr("rlplay.ui.lesson.lesson_engine.REFUSED_AFTER", 0.01)
    player, stage = playing([{"set": {"epsilon": 0.3}}, {"say": "On."}])
    stage.stuck = True
    await asyncio.wait_for(player.play(), 2)
    assert stage.captions[-1][0] == "On."


@pytest.mark.parametrize("script", [[], [{"lens": "credit"}]])
async def test_a_script_without_words_just_ends(script):
    player, stage = playing(script)
    await player.play()
    assert player.finished
    assert stage.captions == []


WALK = [
    {"lens": "credit"},
    {"run": 2},
    {"set": {"beta": 0.1}},
    {"phase": 2},
    {"say": "Scored."},
    {"phase": 1},
    {"say": "Credited."},
]


async def test_the_users_own_changes_are_announced_and_undone_before_the_next_caption():
    player, stage = playing(WALK)
    await player.play()
    assert stage.captions[-1][0] == "Scored."
    await stage.send(Advance("update", 3))
    before = len(stage.sent)
    await player.play()
    text, _, hint = stage.captions[-1]
    assert text == "The lesson stopped in update 3, before CREDIT. This is after update 5."
    assert hint == "`t` back to the lesson"
    assert len(stage.sent) == before, "nothing is undone before it is agreed to"
    await stage.send(Advance("update", 1))
    await player.play()
    assert stage.sent[before + 1 :] == [Rewind(2), Set({"beta": 0.1}), Advance("phase", 2)], "by the way it came"
    assert stage.looks == [("lens", "credit")] * 2
    assert stage.captions[-1][0] == "Scored."
    await player.play()
    assert stage.captions[-1][0] == "Credited."
    assert (stage.status.update, stage.status.phase) == (2, "update")
    assert player.finished


async def test_a_lesson_whose_updates_were_undone_starts_again():
    player, stage = playing(WALK)
    await player.play()
    await stage.send(Rewind(0))
    await stage.send(Advance("update", 4))
    await player.play()
    text, _, hint = stage.captions[-1]
    assert text == "The lesson stopped in update 3, before CREDIT, which is undone. This is after update 4."
    assert hint == "`t` start the lesson again"
    before = len(stage.sent)
    await player.play()
    assert stage.sent[before:] == [Rewind(0), Advance("update", 2), Set({"beta": 0.1}), Advance("phase", 2)]
    assert stage.captions[-1][0] == "Scored."


async def test_a_lesson_begins_at_the_start_of_the_run():
    player, stage = playing(WALK)
    await stage.send(Advance("update", 4))
    await player.play()
    assert stage.captions[-1][0] == "The lesson begins at the start. This is after update 4."
    await player.play()
    assert stage.sent[1:3] == [Rewind(0), Advance("update", 2)]
    assert stage.captions[-1][0] == "Scored."


async def test_who_comes_back_alone_is_not_asked():
    player, stage = playing(WALK)
    await player.play()
    await stage.send(Advance("phase", 2))
    await player.play()
    assert "The lesson stopped" in stage.captions[-1][0]
    await stage.send(Rewind(2))
    await stage.send(Set({"beta": 0.1}))
    await stage.send(Advance("phase", 2))
    await player.play()
    assert stage.captions[-1][0] == "Credited."


async def test_the_colour_stays_for_the_last_words_and_goes_with_them():
    player, stage = playing([{"lens": "credit"}, {"say": "The colours are the credit."}])
    await player.play()
    assert player.finished
    assert stage.looks == [("lens", "credit")]
    player.take_over()
    player.take_over()
    assert stage.looks == [("lens", "credit"), ("lens", "auto")], "once: a colour chosen later stays"


async def test_it_goes_to_a_step_without_waiting_for_anybody():
    player, stage = playing([*LESSON, {"you": {"say": "Press `u`.", "update": 1}}, {"say": "Done."}])
    await player.go_to(5)
    assert stage.sent == [Advance("phase", 2)]
    assert stage.asked == ["Longer?"]
    assert player.played.steps == 5
    assert player.played.answers == {}, "nobody has answered"
    await player.go_to(11)
    assert player.played.steps == 11, "not into what the learner is to do"
    assert stage.captions[-1] == ("Again.", [], NEXT)
    assert not player.hands_free


async def test_whoever_takes_over_stops_it_on_the_way_to_a_step():
    player, stage = playing([{"say": "One."}, {"run": 10}, {"say": "Two."}, {"say": "Three."}])
    stage.stuck = True
    task = asyncio.create_task(player.go_to(4))
    while not stage.sent:
        await asyncio.sleep(0)
    player.take_over()
    stage.tell(running=True)
    stage.tell(running=False, update=10)
    await task
    assert stage.captions[-1][0] == "Two."
    assert player.played.steps == 3


async def test_a_setting_that_the_user_changed_between_two_words_is_set_back_on_request():
    player, stage = playing([{"run": 1}, {"say": "One."}, {"run": 1}, {"say": "Two."}])
    await player.play()
    stage.sent.clear()
    stage.tell(settings={"beta": 0.7})
    await player.play()
    assert stage.captions[-1] == (
        "You changed KL weight β. The lesson needs its own settings.",
        [],
        "`t` back to the lesson",
    )
    assert stage.sent == []
    await player.play()
    assert stage.status.settings["beta"] == 0.0
    assert stage.captions[-1][0] == "One."
    await player.play()
    assert stage.captions[-1][0] == "Two."


async def test_a_lesson_begins_with_its_own_settings():
    player, stage = playing([{"run": 1}, {"say": "One."}, {"say": "Two."}])
    stage.begun = {"beta": 0.7}
    stage.tell(settings=stage.begun)
    await player.play()
    assert stage.captions[-1][0] == "The lesson begins with its own settings. Changed since then: KL weight β."
    await player.play()
    assert (stage.captions[-1][0], stage.status.settings["beta"]) == ("One.", 0.0)


async def test_a_lesson_that_starts_again_has_its_own_settings():
    player, stage = playing([{"run": 1}, {"say": "One."}, {"say": "Two."}])
    await player.play()
    stage.begun = {"beta": 0.7}
    await stage.send(Rewind(0))
    player.start_over()
    for _ in range(2):
        await player.play()
    assert (stage.captions[-1][0], stage.status.settings["beta"]) == ("One.", 0.0)
