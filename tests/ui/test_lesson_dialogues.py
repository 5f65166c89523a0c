"""A dialogue that a lesson asks for: the lesson stays readable in it, and goes on once it is closed."""

from __future__ import annotations

from typing import Any

import pytest
from textual.widgets import Input

from rlplay.trace.questions import Continue
from rlplay.ui.glossary.glossary_screen import GlossaryScreen
from rlplay.ui.narrator.caption import Caption
from rlplay.ui.probe.probe_panels import ProbeBars, ProbeTails, ProbeText
from rlplay.ui.probe.probe_screen import ProbeScreen
from tests.ui.probed import peeked
from tests.ui.stage import Fed, playground, pressed, settled, shown, until

DIALOGUES: dict[str, dict[str, Any]] = {
    "d": {"glossary": "clipping"},
    "i": {"probe": {"completion": 0, "token": 0}},
    "k": {"knobs": "beta"},
    "g": {"timeline": None},
    "slash": {"find": None},
    "W": {"weights": None},
}


def lesson(step: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"you": {"say": "Look into it, then come back.", **step}}, {"say": "Next."}]


async def begun(pilot: Any, source: Fed) -> None:
    """The lesson waits for the learner, and there is something to look at."""
    await settled(pilot)
    await pilot.press("t")
    await until(pilot, lambda: pilot.app.teaching.lesson.learner.at_work)
    source.update(1)
    await settled(pilot)


@pytest.mark.parametrize("size", [(80, 24), pytest.param((120, 35), marks=pytest.mark.slow)])
@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "by t"])
@pytest.mark.parametrize("key", DIALOGUES)
async def test_a_lesson_goes_on_only_once_the_dialogue_that_it_asks_for_is_closed(
    key: str, by_hand: bool, size: tuple[int, int]
) -> None:
    app, source = playground(lesson(DIALOGUES[key]))
    async with app.run_test(size=size) as pilot:
        await begun(pilot, source)
        await pilot.press(key if by_hand else "t")
        await until(pilot, lambda: app.screen is not app.panels.main)
        await settled(pilot)
        (caption,) = app.screen.query(Caption)
        assert "Look into it" in shown(caption)
        assert "esc" in shown(caption)
        assert caption.region.height
        await pressed(pilot, "t", "t")
        assert "Next." not in shown(app.panels.narrator), (
            "no caption waits behind the dialogue for a key that is typed there"
        )
        while app.screen is not app.panels.main:
            await pressed(pilot, "escape")
        await until(pilot, lambda: "Next." in shown(app.panels.narrator))


async def test_a_long_caption_leaves_the_probe_room_for_its_answer() -> None:
    """A lesson speaks of V, which stands among the continuations."""
    app, source = playground([{"you": {"say": "Look into it, then come back. " * 11, **DIALOGUES["i"]}}])
    async with app.run_test(size=(80, 24)) as pilot:
        await begun(pilot, source)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, ProbeScreen))
        await settled(pilot)
        assert app.screen.query_one(Caption).region.height >= 5
        for panel in (ProbeText, ProbeBars, ProbeTails):
            assert app.screen.query_one(panel).content_size.height >= 3, panel


async def test_the_letter_of_the_lesson_is_typed_where_one_types() -> None:
    app, source = playground(lesson(DIALOGUES["d"]))
    async with app.run_test(size=(120, 35)) as pilot:
        await begun(pilot, source)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, GlossaryScreen))
        await pressed(pilot, "t")
        assert app.screen.query_one(Input).value == "t"


async def test_a_dialogue_that_nobody_was_asked_to_open_has_no_caption() -> None:
    app, _ = playground([{"say": "Read this."}, {"say": "Next."}])
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pilot.press("t", "d")
        await until(pilot, lambda: isinstance(app.screen, GlossaryScreen))
        assert not app.screen.query(Caption)


async def test_hands_free_a_dialogue_is_closed_again() -> None:
    app, _ = playground(lesson(DIALOGUES["d"]))
    app.teaching.lesson._pace = lambda _text: 0.01
    app.teaching.lesson.hands_free = True
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.teaching.lesson.finished)
        await until(pilot, lambda: app.screen is app.panels.main)


async def test_the_probe_forces_the_token_that_a_lesson_names() -> None:
    step = {"probe": {"completion": 0, "token": 0, "force": " seven"}}
    app, source = playground(lesson(step))
    async with app.run_test(size=(120, 35)) as pilot:
        await begun(pilot, source)
        await pilot.press("t")
        await until(pilot, lambda: app.screen is not app.panels.main)
        probing = app.play.session.probing
        probing.take(peeked(probing.prefix))
        await until(pilot, lambda: any(isinstance(each, Continue) for each in source.commands))
        assert probing.texts[0] == " seven"
        assert probing.answer == [7]
        await pilot.press("escape")
        await until(pilot, lambda: "Next." in shown(app.panels.narrator))
