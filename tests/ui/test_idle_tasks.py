"""In pauses the screen's process imports its dialogues and collects garbage; while keys are pressed it does neither."""

import gc
import importlib
import sys

import pytest

from rlplay.ui import idle_tasks
from rlplay.ui.idle_tasks import AT_LEAST, EVERY, PAUSE, YOUNG, IdleTasks
from tests.ui.stage import on_screen, settled


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def collected(monkeypatch):
    """How many times all garbage was collected, and how often the rest was set aside."""
    done = []
    monkeypatch.setattr(idle_tasks.gc, "collect", lambda: done.append("collected"))
    monkeypatch.setattr(idle_tasks.gc, "freeze", lambda: done.append("set aside"))
    return done


@pytest.fixture
def imported(monkeypatch):
    """What was imported, of two modules that are not in use and one that is."""
    names = []
    monkeypatch.setattr(idle_tasks, "modules", lambda: ["rooms.one", "sys", "rooms.two"])
    monkeypatch.setattr(idle_tasks, "import_module", names.append)
    return names


def test_every_dialogue_is_among_what_is_imported():
    modules = IdleTasks(lambda: True, Clock())._modules
    known = {f"rlplay.ui.{name}" for name in ("command_palette", "compare.compare_moments", "knobs.knobs_screen")}
    assert known <= {*modules}
    for name in modules:
        importlib.import_module(name)
    assert not any("screenshot" in name for name in modules), "it may need what is not installed"


def test_all_waits_for_a_pause(collected, imported, monkeypatch):
    monkeypatch.setitem(sys.modules, "rlplay.ui.command_palette", None)
    clock, home = Clock(), True
    it = IdleTasks(lambda: home, clock)
    it.look()
    assert imported == []
    clock.now += PAUSE
    it.look()
    assert imported == ["rooms.one"], "one at a time"
    it.look()
    assert imported == ["rooms.one", "rooms.two"], "what is in use takes no turn"
    assert collected == []
    home = False
    it.look()
    assert collected == [], "while a dialogue is open, its objects are not set aside"
    clock.now += EVERY + 1
    it.look()
    it.look()
    assert collected == ["collected"], "not at every look"
    home = True
    it.look()
    assert collected == ["collected", "collected", "set aside"]
    it.look()
    assert len(collected) == 3
    clock.now += 0.1
    it.end()
    it.look()
    assert len(collected) == 3, "a key has just been pressed"
    clock.now += PAUSE
    it.look()
    it.look()
    assert len(collected) == 4
    clock.now += EVERY + 1
    it.look()
    assert len(collected) == 5


def test_keys_that_never_pause_put_it_off_for_some_seconds_only(collected):
    clock = Clock()
    it = IdleTasks(lambda: False, clock)
    for _ in range(round(3.5 * AT_LEAST)):
        clock.now += 1.0
        it.end()
        it.look()
    assert collected == ["collected"] * 3


def test_while_keys_are_pressed_only_young_objects_are_collected():
    before = gc.get_threshold()
    try:
        IdleTasks(lambda: True).begin()
        assert gc.get_threshold() == YOUNG
    finally:
        gc.set_threshold(*before)


async def test_a_key_ends_the_pause():
    async with on_screen() as (app, _, pilot):
        await settled(pilot)
        pressed = app.idle_tasks._pressed
        await pilot.press("c")
        await settled(pilot)
        assert app.idle_tasks._pressed > pressed
