"""Keys typed faster than the screen follows: none is lost, none goes to what had the focus before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual import events
from textual.command import CommandPalette
from textual.keys import _character_to_key
from textual.widgets import Input

from rlplay.ui.answers.find_line import FindScreen
from rlplay.ui.glossary.glossary_screen import GlossaryScreen
from rlplay.ui.key_queue import ROUNDS, KeyQueue
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.probe.probe_screen import ProbeScreen
from tests.ui.stage import on_screen, settled


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
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        before = len(source.commands)
        typed(app, *opens, *"quzsn")
        await settled(pilot)
        assert isinstance(app.screen, screen)
        assert app.focused is not None
        assert app.focused.value.endswith("quzsn")
        kinds = [type(command).__name__ for command in source.commands[before:]]
        assert not {"Advance", "Rewind"} & set(kinds), "no letter was taken for a verb"


async def test_keys_after_the_one_that_closes_belong_to_what_was_below():
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        typed(app, *"/length>0", "enter", "u", "d", *"beta", "escape", "u")
        await settled(pilot)
        assert app.screen is app.panels.main
        assert app.play.finder.query.typed == "length>0"
        assert [command.until for command in source.commands] == ["update", "update"]


async def test_a_question_is_not_answered_from_a_screen_that_covers_it():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        app.panels.narrator.ask("Longer?", ["shorter", "longer"])
        typed(app, "g", "1", "2", "escape")
        await settled(pilot)
        assert app.panels.narrator.asking
        typed(app, "2")
        await settled(pilot)
        assert not app.panels.narrator.asking


async def test_what_is_pasted_keeps_its_place_among_the_keys():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        typed(app, "/", "l", "e")
        app.post_message(events.Paste("ngth"))
        typed(app, *">0")
        await settled(pilot)
        assert app.screen.query_one(Input).value == "length>0"


async def test_leaving_waits_for_nothing():
    async with on_screen(size=(120, 35)) as (app, _, pilot):
        await settled(pilot)
        typed(app, *"/abc", "ctrl+q", *"def")
        await pilot.pause()
    assert app.return_code == 0


async def test_control_c_names_the_key_that_quits():
    async with on_screen(size=(120, 35)) as (app, _, pilot):
        await settled(pilot)
        await pilot.press("ctrl+c")
        assert "q quits" in [notice.message for notice in app._notifications][-1]
        await pilot.press("q")
    assert app.return_code == 0


class Screen:
    """A panel that notes when it has passed a message on."""

    def __init__(self, log: list[str]) -> None:
        self.log, self.gone = log, False

    @property
    def ancestors_with_self(self) -> list[Screen]:
        return [self, self]

    def call_later(self, done: Callable[[], None]) -> bool:
        if self.gone:
            return False
        if self.log[-1] != "|":
            self.log.append("|")
        done()
        return True


class Desk:
    """An app with one panel, as far as a queue of keys needs it."""

    focused = None

    def __init__(self) -> None:
        self.log: list[str] = []
        self.screen = Screen(self.log)
        self.queue = KeyQueue(self, self.give_out)  # type: ignore[arg-type]
        self.work: list[asyncio.Task[None]] = []

    async def give_out(self, event: events.Key | events.Paste) -> None:
        self.log.append(event.key if isinstance(event, events.Key) else event.text)

    def run_worker(self, work: Callable[[], Any], group: str) -> None:
        assert group == "keys"
        self.work.append(asyncio.ensure_future(work()))

    async def typed(self, *keys: str | events.Paste) -> str:
        """What happens when all of them come at once; a bar stands where the queue has waited for their effect."""
        for key in keys:
            await self.queue.take(events.Key(key, None) if isinstance(key, str) else key)
        await asyncio.gather(*self.work)
        return " ".join(self.log)


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("a b c", "a | b | c |"),
        ("a a a", "a | a | a |"),
        ("c right right right c", "c | right right right | c |"),
        ("right right right", "right | right right |"),
        ("c up up down down", "c | up up | down down |"),
        ("c backspace backspace pageup pageup", "c | backspace backspace | pageup pageup |"),
        ("c enter enter", "c | enter | enter |"),
        ("a b ctrl+q c", "a ctrl+q | b | c |"),
    ],
)
async def test_only_keys_that_are_held_down_are_taken_together(keys: str, order: str) -> None:
    desk = Desk()
    assert await desk.typed(*keys.split()) == order
    assert not desk.queue.busy
    desk.log.clear()
    assert await desk.typed("z") == "z |"


class Named(Screen):
    """A panel in a screen in an app, each of which notes that it has passed a message on."""

    def __init__(self, log: list[str], *names: str) -> None:
        super().__init__(log)
        self.path = [Stop(log, name) for name in names]

    @property
    def ancestors_with_self(self) -> list[Any]:
        return self.path


class Stop(Screen):
    def __init__(self, log: list[str], name: str) -> None:
        super().__init__(log)
        self.name = name

    def call_later(self, done: Callable[[], None]) -> bool:
        self.log.append(self.name)
        done()
        return True


async def test_what_a_key_left_is_waited_for_before_what_it_opened() -> None:
    desk = Desk()
    desk.screen = Named(desk.log, "input", "panel", "screen", "app")

    async def opens(event: events.Key | events.Paste) -> None:
        desk.screen = Named(desk.log, "dialogue", "app")

    desk.queue._give_out = opens
    await desk.typed("a")
    assert desk.log == ["input", "panel", "screen", "dialogue", "app"] * ROUNDS


async def test_what_is_pasted_is_no_repeat_of_a_key() -> None:
    assert await Desk().typed("a", events.Paste("x"), events.Paste("x")) == "a | x | x |"


async def test_a_panel_that_is_gone_is_not_waited_for() -> None:
    desk = Desk()
    desk.screen.gone = True
    assert await desk.typed("a", "b") == "a b"


async def test_a_panel_that_hangs_holds_up_the_keys_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.ui.key_queue.PATIENCE", 0.01)
    desk = Desk()
    desk.screen.call_later = lambda _: True  # type: ignore[method-assign]
    assert await desk.typed("a", "b") == "a b"


async def test_the_queue_is_free_again_after_a_key_that_failed() -> None:
    desk = Desk()

    async def fails(event: events.Key | events.Paste) -> None:
        await Desk.give_out(desk, event)
        if len(desk.log) > 1:
            raise RuntimeError("broken")

    desk.queue._give_out = fails
    with pytest.raises(RuntimeError, match="broken"):
        await desk.typed("a", "b")
    assert not desk.queue.busy
