"""What the screen uses of Textual's insides, by name: a release that lacks one fails here by that name."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
import weakref
from importlib.metadata import version
from typing import Any

import pytest
from rich.segment import Segment
from textual._compositor import Compositor
from textual.app import App
from textual.cache import FIFOCache
from textual.command import CommandPalette
from textual.drivers.headless_driver import HeadlessDriver
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, OptionList

from rlplay.ui import compat
from rlplay.ui.parts.over_another import MainScreen
from tests.privates import defined, foreign, members, modules, overridden
from tests.ui.stage import home, on_screen, pressed, settled, until

if sys.platform == "win32":
    Terminal: type = HeadlessDriver
else:
    from textual.drivers.linux_driver import LinuxDriver as Terminal

USED: list[tuple[type, str, list[str]]] = [
    (Screen, "_compositor", []),
    (Screen, "_compositor_refresh", []),
    (Screen, "_dirty_regions", []),
    (Screen, "_dirty_widgets", []),
    (Screen, "_layout_required", []),
    (Screen, "_on_timer_update", []),
    (Screen, "_repaint_regions", []),
    (Screen, "_repaint_required", []),
    (Screen, "_screen_resized", ["size"]),
    (Screen, "_set_dirty", ["regions"]),
    (Screen, "_update_timer", []),
    (Compositor, "_dirty_regions", []),
    (Compositor, "_get_renders", ["crop"]),
    (Compositor, "_render_chops", ["crop", "is_rendered_line"]),
    (App, "_background_screens", []),
    (App, "_notifications", []),
    (Input, "_value", []),
    (Input, "_position_to_cell", ["position"]),
    (Input, "_cell_offset_to_index", ["offset"]),
    (CommandPalette, "_gather_commands", ["search_value"]),
    (CommandPalette, "_refresh_command_list", ["command_list", "commands", "clear_current"]),
    (CommandPalette, "_watch__list_visible", []),
    (CommandPalette, "_watch__show_busy", []),
    (ScrollView, "_scroll_update", ["virtual_size"]),
    (Terminal, "_auto_restart", []),
    (Terminal, "_get_terminal_size", []),
    (Terminal, "_must_signal_resume", []),
    (Terminal, "_sigcont_application", []),
]
"""Each name, with the arguments of a method."""


def has(owner: type, name: str) -> bool:
    """Whether a class of Textual has this name, or gives it to its instances."""
    return any(name in members(base) for base in owner.__mro__)


@pytest.mark.parametrize(("owner", "name", "arguments"), USED, ids=lambda each: getattr(each, "__name__", str(each)))
def test_textual_has_the_name(owner: type, name: str, arguments: list[str]) -> None:
    where = f"Textual {version('textual')}: {owner.__name__}.{name}"
    assert has(owner, name), f"{where} is gone; see rlplay/ui/compat.py for what is lost"
    if arguments:
        given = inspect.signature(getattr(owner, name)).parameters
        lost = [each for each in arguments if each not in given]
        assert not lost, f"{where} no longer takes {', '.join(lost)}"


def test_textual_says_whose_lines_are_drawn() -> None:
    found = importlib.import_module("textual._context")
    where = f"Textual {version('textual')}: _context.visible_screen_stack"
    assert hasattr(found, "visible_screen_stack"), f"{where} is gone; no view can be saved"


def test_textual_has_the_table_that_keeps_closed_widgets() -> None:
    """Once it is gone, so may be `OverAnother.on_unmount`."""
    found = importlib.import_module("textual._styles_cache").StylesCache
    where = f"Textual {version('textual')}: StylesCache.get_inner_outer.cache_clear"
    assert hasattr(found.get_inner_outer, "cache_clear"), f"{where} is gone; see that closed dialogues are let go"


def test_textual_gives_a_strip_these_fields() -> None:
    where = f"Textual {version('textual')}: Strip"
    assert {*Strip.__slots__} == {*compat._CACHES, *compat._REST}, (
        f"{where} has other fields; `lend_caches` does nothing"
    )


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips make their caches when they need them, until the test ends."""
    monkeypatch.setattr(Strip, "__init__", Strip.__init__)
    monkeypatch.setattr(Strip, "__getattr__", compat._cache, raising=False)
    compat.lend_caches()


def caches(strip: Strip) -> int:
    return sum(isinstance(each, FIFOCache) for each in gc.get_referents(strip))


def test_a_strip_has_the_caches_that_it_has_used(lent: None) -> None:
    strip = Strip([Segment("ab"), Segment("c")], 3)
    assert caches(strip) == 0
    assert strip.crop(1, 3).text == "bc"
    assert strip.crop(1, 3) is strip.crop(1, 3)
    assert caches(strip) == 1
    assert [part.text for part in strip.divide([2, 3])] == ["ab", "c"]
    assert strip.extend_cell_length(5).text == "abc  "
    assert strip.apply_offsets(1, 1).text == "abc"
    assert not hasattr(strip, "unheard_of")


def test_strips_of_another_release_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strip, "__slots__", [*Strip.__slots__, "_another_cache"])
    monkeypatch.setattr(Strip, "__init__", begins := object())
    compat.lend_caches()
    assert vars(Strip)["__init__"] is begins


async def test_a_closed_dialogue_leaves_no_lines_behind() -> None:
    async with on_screen(size=(120, 35)) as (app, _, pilot):
        await settled(pilot)
        await pressed(pilot, "o")
        lines = weakref.ref(app.screen.query_one(OptionList)._styles_cache)
        await home(pilot)

        def gone() -> bool:
            gc.collect()
            return lines() is None

        await until(pilot, gone)  # a timer knows the dialogue a little longer


@pytest.mark.timeout(60)  # Textual's own loop would never end
async def test_a_timer_whose_time_is_over_ends() -> None:
    ended: list[bool] = []
    async with on_screen() as (app, _, pilot):
        app.set_timer(-0.003, lambda: ended.append(True))
        await until(pilot, lambda: ended)


def test_every_name_that_is_used_is_tested() -> None:
    names = {name for _, name, _ in USED} | {"_context", "_styles_cache"} | {*compat._CACHES}
    both = "rlplay.ui.compat", "rlplay.ui.terminal.compat"
    wanted = set().union(*map(foreign, both))
    for module in both:
        for kind in vars(importlib.import_module(module)).values():
            if isinstance(kind, type) and kind.__module__ == module:
                wanted |= set(overridden(kind))
    # Of classes that have no base of Textual, so that nothing tells these names from their own.
    hooks = {"_compositor_refresh", "_screen_resized", "_on_timer_update", "_repaint_required"}
    hooks |= {"_compositor", "_get_renders"}
    assert hooks <= defined(modules()["rlplay.ui.compat"])
    assert wanted | hooks == names


@pytest.mark.parametrize("name", [*compat._OF_SCREEN, *compat._OF_COMPOSITOR])
async def test_without_a_name_textual_draws_the_screen_below_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    group = "_OF_SCREEN" if name in compat._OF_SCREEN else "_OF_COMPOSITOR"
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await pressed(pilot, "o")
        before = texts(app)
        await pilot.press("escape")
        monkeypatch.setattr(compat, group, (f"{name}_renamed",))
        await pressed(pilot, "o")
        assert app.screen._seen_below is None
        assert texts(app) == before


def test_without_a_name_textual_asks_every_widget_for_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(MainScreen()._compositor, compat.Near)
    monkeypatch.setattr(compat, "_TO_COMPOSE", ("renamed",))
    assert type(MainScreen()._compositor) is Compositor


def texts(app: Any) -> list[str]:
    """What is on the screen."""
    return [strip.text for strip in compat.lines_of(app)]


async def test_without_its_names_a_screenshot_and_a_notification_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen() as (app, _, pilot):
        await settled(pilot)
        for _ in range(2):
            app.notify("twice")
            await settled(pilot)
        assert [each.message for each in compat.notifications_of(app)] == ["twice"]
        monkeypatch.delattr(App, "_background_screens")
        with pytest.raises(OSError, match="does not give its lines"):
            compat.lines_of(app)
        assert list(compat.notifications_of(App.__new__(App))) == []
        monkeypatch.undo()


async def test_without_its_name_content_is_resized_by_a_new_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen() as (app, source, pilot):
        monkeypatch.setattr(compat, "hasattr", lambda _widget, _name: False, raising=False)
        source.update(1)
        await settled(pilot)
        assert app.panels.rollouts.virtual_size.height == app.panels.rollouts.count() > 0
