"""Keys typed faster than the screen follows: none is lost, none goes to what had the focus before."""

import asyncio

import pytest
from textual import events
from textual.command import CommandPalette
from textual.keys import _character_to_key
from textual.widgets import Input

from rlplay.ui.key_queue import KeyQueue
from rlplay.ui.screens.find import FindScreen
from rlplay.ui.screens.glossary import GlossaryScreen
from rlplay.ui.screens.knobs import KnobsScreen
from rlplay.ui.screens.probe import ProbeScreen
from tests.ui.stage import PATIENCE, playground, settled


def typed(app, *keys: str) -> None:
    """All of them at once, before the first has done anything."""
    for key in keys:
        single = len(key) == 1
        app.post_message(events.Key(_character_to_key(key) if single else key, key if single else None))


@pytest.mark.parametrize(
    ("opens", "screen"),
    [
        (["/"], FindScreen),
        (["d"], GlossaryScreen),
        (["ctrl+p"], CommandPalette),
        (["k", "down", "down", "enter"], KnobsScreen),
        (["i", "equals_sign"], ProbeScreen),
        (["right", "d", "d"], GlossaryScreen),
    ],
)
async def test_what_is_typed_right_after_a_key_that_opens_an_input_stands_in_it(opens, screen):
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        before = len(source.commands)
        typed(app, *opens, *"quzsn")
        await settled(pilot)
        assert isinstance(app.screen, screen)
        assert app.focused is not None
        assert app.focused.value.endswith("quzsn")
        kinds = [type(command).__name__ for command in source.commands[before:]]
        assert not {"Advance", "Rewind"} & set(kinds), "no letter was taken for a verb"


async def test_keys_after_the_one_that_closes_belong_to_what_was_below():
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        typed(app, *"/length>0", "enter", "u", "d", *"beta", "escape", "u")
        await settled(pilot)
        assert app.screen is app.panels.main
        assert app.play.finder.query.typed == "length>0"
        assert [command.until for command in source.commands] == ["update", "update"]


async def test_a_question_is_not_answered_from_a_screen_that_covers_it():
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        app.panels.narrator.ask("Longer?", ["shorter", "longer"])
        typed(app, "g", "1", "2", "escape")
        await settled(pilot)
        assert app.panels.narrator.asking
        typed(app, "2")
        await settled(pilot)
        assert not app.panels.narrator.asking


async def test_what_is_pasted_keeps_its_place_among_the_keys():
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        typed(app, "/", "l", "e")
        app.post_message(events.Paste("ngth"))
        typed(app, *">0")
        await settled(pilot)
        assert app.screen.query_one(Input).value == "length>0"


async def test_leaving_waits_for_nothing():
    app, _ = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        typed(app, *"/abc", "ctrl+q", *"def")
        await pilot.pause()
    assert app.return_code == 0


async def test_control_c_names_the_key_that_quits():
    app, _ = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+c")
        assert "q quits" in [notice.message for notice in app._notifications][-1]
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_key_held_down_does_not_lag_behind_the_finger(monkeypatch):
    waits, done = [], KeyQueue._done

    async def noted(self, before):
        waits.append(app.panels.tokens.cursor)
        await done(self, before)

    monkeypatch.setattr(KeyQueue, "_done", noted)
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        typed(app, *["right"] * 60, "c")
        await settled(pilot)
        assert app.panels.tokens.cursor != waits[0]
    assert len(waits) == 3, "after the first, after all that repeat it, after another key"


async def test_keys_go_on_although_a_panel_never_answers(monkeypatch):
    monkeypatch.setattr("rlplay.ui.key_queue.PATIENCE", 0.05)
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.update(1)
        await settled(pilot)
        app.panels.tokens.call_later = lambda *_: True
        typed(app, "c", "q", "q")
        async with asyncio.timeout(PATIENCE):
            while app.return_code is None:
                await asyncio.sleep(0.01)  # the pilot would wait for the panel
    assert app.return_code == 0
