"""Which of two answers is better: as data, and on the screen."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from textual.widgets import Static

from rlplay.link.messages import Prefer, Status
from rlplay.trace.questions import Judge, Judged
from rlplay.trace.records import Labelled, Sampled
from rlplay.trace.update import Update
from rlplay.ui.help.help_screen import HelpScreen
from rlplay.ui.labels.label_screen import LabelScreen, progress, verdict_text
from rlplay.ui.labels.labelling import NONE_LEFT, Labelling
from rlplay.ui.labels.labels import labelling
from rlplay.ui.parts.framed_text import FramedText
from tests.recorded import synthetic_update
from tests.ui.stage import CHOSEN, Fed, all_text, on_screen, playground, pressed, settled, until

SIZES = [(160, 45), (120, 35), (80, 24)]
SCORES = {"log-probability": (-2.5, -1.5), "implicit reward": (0.125, -0.25), "hidden helpful": (0.0, 1.0)}


def sampled(number: int = 1) -> Sampled:
    """Two answers to each of three prompts."""
    record = synthetic_update(number, prompts=3, generations=2)[0]
    assert isinstance(record, Sampled)
    return record


def begun(*asks: int) -> Labelling:
    update = Update(1)
    update.add(sampled())
    return Labelling(update, asks or (0, 1, 2))


def test_a_choice_is_handed_in_only_when_the_user_goes_on() -> None:
    labelling = begun()
    assert labelling.answer("a") == 0
    assert labelling.go_on() is None, "nothing is chosen"
    assert labelling.choose("b") == Judge(0)
    assert labelling.choose("a") is None, "another choice takes its place, the scores stay the same"
    assert labelling.labels == {0: "a"}
    labelling.choose("b")
    assert labelling.labels == {0: "b"}
    assert labelling.go_on() == Prefer(0, "b")
    assert (labelling.pair, labelling.held, labelling.left) == (1, None, [2])
    assert (labelling.answer("a"), labelling.answer("b")) == (2, 3)
    labelling.choose("skip")
    assert labelling.go_on() == Prefer(1, "skip")
    assert labelling.pair == 2, "the engine's word of what was handed in comes later"
    labelling.choose("a")
    assert labelling.left == []
    assert labelling.go_on() == Prefer(2, "a")


def test_a_choice_can_be_taken_back() -> None:
    labelling = begun()
    labelling.take_back()
    assert labelling.pair == 0
    labelling.choose("a")
    labelling.take_back()
    assert (labelling.pair, labelling.held) == (0, None)
    labelling.choose("a")
    labelling.go_on()
    labelling.take_asks([1, 2])
    labelling.take_back()
    assert labelling.pair == 0
    labelling.take_asks([1, 2])
    assert labelling.pair == 0, "it stands although it waits no more"
    labelling.choose("b")
    assert labelling.go_on() == Prefer(0, "b")
    assert labelling.pair == 1


def test_what_the_models_think_comes_after_the_choice() -> None:
    labelling = begun()
    opinion = Judged(0, 1, scores=SCORES)
    labelling.take_judged(opinion)
    assert labelling.judged is None
    labelling.choose("a")
    labelling.take_judged(Judged(1, 1))
    labelling.take_judged(Judged(0, 2))
    assert labelling.judged is None, "of another pair, of another update"
    labelling.take_judged(opinion)
    lines = str(verdict_text(labelling)).split("\n")
    assert [line.split("  ")[-1].strip() for line in lines[2:]] == [
        "likelier: B", "better: A, like you", "better: B, unlike you",
    ]  # fmt: skip
    assert "+0.125   −0.250" in lines[3]
    labelling.take_judged(Judged(0, 1, scores={"implicit reward": (0.0, 1e-9)}))
    assert "not trained on yet" in str(verdict_text(labelling))
    labelling.take_judged(Judged(0, refused="out of memory"))
    assert "out of memory" in str(verdict_text(labelling))


def test_two_equal_answers_count_as_left_out() -> None:
    update, record = Update(1), sampled()
    start, end = (int(x) for x in record.offsets[:2])
    offsets = record.offsets + np.where(np.arange(7) >= 2, 2 * end - int(record.offsets[2]), 0)
    twice = record.texts[start:end] * 2 + record.texts[int(record.offsets[2]) :]
    update.add(msgspec.structs.replace(record, texts=twice, offsets=offsets))
    labelling = Labelling(update, [1, 2])
    assert labelling.labels == {0: "skip"}
    assert "2 of 3   – ◉ ○" in str(progress(labelling, 80))
    labelling.choose("skip")
    labelling.go_on()
    assert labelling.choose("skip") is None, "the last of two that can be compared"
    assert labelling.refused == NONE_LEFT


def test_at_least_one_pair_is_kept() -> None:
    labelling = begun()
    assert labelling.enough() == []
    assert labelling.refused == NONE_LEFT
    for _ in range(2):
        labelling.choose("skip")
        labelling.go_on()
    assert labelling.choose("skip") is None
    assert labelling.refused == NONE_LEFT
    assert labelling.choose("a") == Judge(2)
    assert labelling.refused == ""


def test_enough_leaves_out_what_has_no_answer() -> None:
    labelling = begun()
    labelling.choose("skip")
    assert (labelling.enough(), labelling.refused) == ([], NONE_LEFT)
    labelling = begun()
    labelling.choose("b")
    labelling.go_on()
    assert labelling.enough() == [Prefer(1, "skip"), Prefer(2, "skip")]
    held = begun()
    held.choose("a")
    assert held.enough() == [Prefer(0, "a"), Prefer(1, "skip"), Prefer(2, "skip")]


def test_a_pair_that_a_script_labels_is_not_asked_about() -> None:
    labelling = begun()
    labelling.update.add(Labelled(update=1, pair=0, choice="a"))
    labelling.take_asks([1, 2])
    assert labelling.pair == 1
    assert "2 of 3   ● ◉ ○" in str(progress(labelling, 80))


@pytest.mark.parametrize(("pairs", "width"), [(3, 74), (32, 106), (32, 74), (64, 106), (200, 74)])
def test_how_far_it_is_fits_into_its_line(pairs: int, width: int) -> None:
    record = synthetic_update(1, prompts=pairs, generations=2)[0]
    assert isinstance(record, Sampled)
    update = Update(11)
    update.add(record)
    line = progress(Labelling(update, range(pairs)), width)
    assert line.cell_length <= width
    assert line.plain.startswith(f"1 of {pairs}   ")
    assert line.plain.endswith(f"   update 11 waits for {pairs} labels")
    assert ("◉" in line.plain) == (pairs <= 32 or width - pairs > 40)


def waiting(script: list[dict[str, Any]] | None = None) -> tuple[Any, Fed]:
    """An app whose engine waits for three labels."""
    app, source = playground(script)
    source.records([sampled()])
    source.status(running=True)
    source.waiting(0, 1, 2)
    return app, source


def shown(app: Any) -> str:
    return str(app.screen.query_one("#verdict", Static).content)


@pytest.mark.parametrize("size", SIZES)
async def test_the_engine_waits_and_the_screen_asks(size: tuple[int, int]) -> None:
    app, source = waiting()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))
        await settled(pilot)
        prompt, first, second = (app.screen.query_one(f"#{name}", FramedText) for name in ("prompt", "a", "b"))
        whole = app.screen.region
        for part in (prompt, first, second, app.screen.query_one("#verdict")):
            assert part.region.area
            assert whole.contains_region(part.region), "nothing is cut off"
        assert first.region.y == second.region.y
        assert first.region.right <= second.region.x
        assert " ".join(all_text(prompt).split()) == sampled().prompts[0]
        assert "[bold]" in all_text(first), "model text is data"
        assert source.commands == []
        assert "implicit" not in shown(app)
        await pilot.press("right")
        assert source.commands == [Judge(0), Prefer(0, "b")], "one key for a pair"
        assert app.screen.labelling.pair == 1
        source.put(Judged(0, 1, scores=SCORES))
        await settled(pilot)
        app.screen.follow()
        assert "Pair 1: you chose B." in shown(app)
        assert "better: A, unlike you" in shown(app)
        await pilot.press("z")
        assert app.screen.labelling.pair == 0
        assert "implicit" not in shown(app)
        await pilot.press("1", "0")
        assert source.commands[2:] == [Judge(0), Prefer(0, "a"), Judge(1), Prefer(1, "skip")]
        await pilot.press("2")
        assert source.commands[-1] == Judge(2), "the last one can still be taken back"
        await settled(pilot)
        assert second.has_class("-chosen")
        await pilot.press("left", "enter")
        assert source.commands[-1] == Prefer(2, "a")
        assert app.screen is app.panels.main


async def test_leaving_shows_what_the_engine_waits_for_and_a_key_comes_back() -> None:
    app, source = waiting()
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))
        await pilot.press("left", "escape")
        assert source.commands == [Judge(0), Prefer(0, "a")], "what was chosen counts"
        source.waiting(1, 2)
        await settled(pilot)
        assert app.screen is app.panels.main, "who has left is not asked again by itself"
        assert "● waiting for 2 labels · press A" in str(app.panels.header.render())
        assert "2 pairs wait for you" in str(app.panels.narrator.render())
        assert app.panels.keys.render().plain.split()[:2] == ["A", "labels"], "what would play on waits, too"
        assert "update" not in app.panels.keys.render().plain
        source.status(running=True)
        await settled(pilot)
        assert app.panels.keys.render().plain.split()[:2] == ["space", "pause"]
        source.waiting(1, 2)
        await settled(pilot)
        await pressed(pilot, "A")
        assert isinstance(app.screen, LabelScreen)
        assert app.screen.labelling.pair == 1
        await pilot.press("escape")
        source.status(running=True)
        source.waiting(1, 2)
        await settled(pilot)
        await settled(pilot)
        assert isinstance(app.screen, LabelScreen), "u or space, and it cannot go on"
        source.status(running=True)
        await until(pilot, lambda: app.screen is app.panels.main)  # nothing waits any more


async def test_without_pairs_the_dialogue_closes_once_and_no_screen_above_it() -> None:
    app, source = waiting()
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))
        dialogue = app.screen
        await pilot.press("question_mark")
        source.status(running=True)
        await settled(pilot)
        dialogue.follow()
        assert isinstance(app.screen, HelpScreen), "it covers the dialogue"
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is app.panels.main, "it looks again once nothing covers it"
        assert labelling(app.play) is None


async def test_an_engine_that_goes_on_while_the_last_label_is_sent_closes_no_second_screen() -> None:
    app, source = waiting()
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))
        dialogue, send = app.screen, source.send

        async def answered_at_once(command: Any) -> None:
            await send(command)
            if isinstance(command, Prefer):
                app.play.session.apply(Status(True, 0, "score", CHOSEN))
                dialogue.follow()

        source.send = answered_at_once  # type: ignore[method-assign]
        await pilot.press("left", "escape")
        assert app.screen is app.panels.main
        assert source.commands[-1] == Prefer(0, "a")


async def test_stepping_by_phase_does_not_interrupt() -> None:
    async with on_screen(size=SIZES[0]) as (app, source, pilot):
        source.records([sampled()])
        source.status(running=True)
        source.waiting(0, 1, 2, waits=False)
        await settled(pilot)
        await settled(pilot)
        assert app.screen is app.panels.main, "the answers can be looked at first"
        assert "waiting for 3 labels" in str(app.panels.header.render())


async def test_by_mouse_by_palette_and_by_script() -> None:
    app, source = waiting()
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))
        await settled(pilot)
        await pilot.click("#b")
        assert source.commands == [Judge(0), Prefer(0, "b")], "a click goes on, too"
        await app.play.perform("prefer", "a")
        assert source.commands[2:] == [Judge(1), Prefer(1, "a")]
        await pilot.press("escape")
        await app.play.perform("prefer", ["skip", "b"])
        assert source.commands[-2:] == [Prefer(0, "skip"), Prefer(1, "b")]
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "Better: the first answer, A" in titles
        source.status()
        await settled(pilot)
        await pilot.press("A")
        assert app.screen is app.panels.main
        assert any("No pair needs a label" in toast.message for toast in app._notifications)


async def test_a_lesson_waits_until_the_pairs_are_labelled() -> None:
    app, source = playground([{"update": 1}, {"say": "Done."}])
    async with app.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        await pilot.press("t")
        await until(pilot, lambda: bool(source.commands))
        source.records([sampled()])
        source.status(running=True)
        source.waiting(0, 1, 2)
        await until(pilot, lambda: labelling(app.play) is not None)
        assert "Done." not in str(app.panels.narrator.render())
        await pilot.press("escape")
        await until(pilot, lambda: labelling(app.play) is None)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))  # the lesson cannot go on without them
        source.status(running=True)
        source.update(1)
        await until(pilot, lambda: "Done." in str(app.panels.narrator.render()))


async def test_on_request_a_lesson_labels_in_place_of_the_learner() -> None:
    labels = {"you": {"say": "Press `a` for the first pair.", "prefer": ["a", "b", "skip"]}}
    app, source = playground([{"phase": 1}, labels, {"say": "Done."}])
    async with app.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        await pilot.press("t")
        await until(pilot, lambda: bool(source.commands))
        source.records([sampled()])
        source.status(running=True)
        source.waiting(0, 1, 2, waits=False)
        await until(pilot, lambda: "do it for me" in str(app.panels.narrator.render()))
        source.waiting(0, 1, 2)
        await until(pilot, lambda: labelling(app.play) is not None)
        await pilot.press("escape")
        await until(pilot, lambda: labelling(app.play) is None)
        source.commands.clear()
        await pilot.press("t")
        for given, left in enumerate(((1, 2), (2,), ()), start=1):
            await until(pilot, lambda given=given: len(source.commands) == given)
            source.waiting(*left, waits=bool(left))
        await until(pilot, lambda: "Done." in str(app.panels.narrator.render()))
        assert source.commands == [Prefer(0, "a"), Prefer(1, "b"), Prefer(2, "skip")]
        assert app.screen is app.panels.main
