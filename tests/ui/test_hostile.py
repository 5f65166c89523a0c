"""Strings that would command the terminal, in every text field of what the screen is fed, on every screen there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from msgspec import inspect
from textual.widgets import Input

from rlplay.link.messages import AnyEvent, Failed, Loading, LogLine
from rlplay.scenario.schema import Job, Scenario, Stage
from rlplay.scenario.share import Shared
from rlplay.trace.questions import Tail
from rlplay.trace.records import AnyRecord, Changed
from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_moments import CompareMomentsScreen
from rlplay.ui.log.log_screen import LEVELS
from rlplay.ui.main.copying import CopyingScreen
from rlplay.ui.opening.opening import open_first
from rlplay.ui.parts.confirm import ConfirmScreen
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.writing.engine_lines_screen import EngineLinesScreen
from rlplay.verbs import PANELS, STAGES, VERBS
from tests.hostile import HOSTILE, tame
from tests.poisoned import OF_ITS_OWN, Poison, made, members, run_of
from tests.ui.stage import playground
from tests.ui.touring import Answering, all_screens, touring

MEDIUM, SMALL = (120, 35), (80, 24)
ORDERS = ["title", "clipboard", "colour, C1", "cursor", "C0", "turned", "invisible"]
OTHERS = ["C1", "link", "application", "tags", "joined", "markup", "keys", "storm", "line breaks", "long", "private"]
EACH = {name: pytest.param([name], SMALL, marks=pytest.mark.slow) for name in HOSTILE}
"""Every string by itself in every field."""
IN_FILES = [parameters for name, parameters in EACH.items() if name != "surrogate"]
"""A run file cannot hold a lone surrogate."""
KEYS = {
    "probe": ("tab", "a", "escape", "equals_sign", "escape", "N", "V", "H", "enter"),
    "log": ("y", "right"),
    "knobs": ("home", "enter", "down", "escape", "tab", "y", "down"),
    "timeline": ("up", "y"),
    "weights": ("right", "tab", "tab"),
    "teachers": ("down", "enter", "backspace", "tab", "m", "x", "tab"),
}
"""What is pressed on a screen, where it is not tab."""


SEEN = {
    "source: title", "script: say", "script: question", "script: a", "script: because", "script: claim",
    "Started.model", "Started.device", "Started.run_id", "Sampled.prompts", "Sampled.texts", "Sampled.pieces",
    "Sampled.columns", "Scored.parts: name", "Scored.gold: name", "Finished.metrics: name", "Finished.timings: name",
    "Changed.value", "Notice.text", "LogLine.text", "Loading.what", "Peeked.texts", "Peeked.pieces", "Peeked.refused",
    "MovedWeight.label", "Weighed.refused", "LayersRead.pieces", "NeighboursFound.pieces",
    "Tail.texts", "Estimated.refused", "Recalled.refused", "Tried.error", "Tried.printed",
    "Imagined.refused", "Failed.text", "code: scenario",
}  # fmt: skip
"""Fields whose words must have been on some screen."""


def speaks(kind: Any) -> bool:
    """Whether there is text of any wording in a type, by msgspec's word."""
    parts = [getattr(kind, name) for name in ("item_type", "key_type", "value_type") if hasattr(kind, name)]
    parts += getattr(kind, "types", ())
    return isinstance(kind, (inspect.StrType, inspect.AnyType)) or any(map(speaks, parts))


@pytest.mark.parametrize("kind", [*members(AnyRecord), *members(AnyEvent), Scenario, Stage, Job, Tail])
def test_every_text_field_there_is_gets_a_word(kind: type[msgspec.Struct]) -> None:
    poison = Poison("title")
    poison.into(made(kind))
    known: Any = inspect.type_info(kind)
    expected = {f"{kind.__name__}.{field.name}" for field in known.fields if speaks(field.type)} - set(OF_ITS_OWN)
    assert expected <= {name.partition(":")[0] for name in poison.fields}


@pytest.mark.parametrize(("names", "size"), [(ORDERS, MEDIUM), *EACH.values()])
async def test_nothing_in_a_live_run_is_obeyed_on_any_screen(
    names: list[str], size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    poison = Poison(*names)
    source = Answering(poison, tmp_path / "run.rlplay")
    app = RlplayApp(source)
    async with touring(app, size) as tour:
        source.say(Loading("x", 0.5))
        await tour.look()
        source.begin()
        await tour.look()
        await tour.press("t", "t", "1", "t", "t", "t", "t")  # the lesson
        source.go_on()
        source.say(*(LogLine(level, "x") for level in LEVELS))
        await tour.look()
        for panel in PANELS:
            await app.play.perform("panel", panel)
            await tour.press("y")
        for stage in STAGES:
            await app.play.perform("stage", stage)
            await tour.press("y")
        for verb in VERBS.values():
            if verb.where != "script" and verb.name not in ("quit", "resume", "tour"):
                await tour.perform(verb.name, *KEYS.get(verb.name, ("tab",)))
        await app.play.perform("write", "baseline")
        await tour.press("x", "ctrl+r", "ctrl+t", "ctrl+t", "ctrl+t", "f1", "escape", "escape")
        app.push_screen(EngineLinesScreen("engine/loop.py", "def train("))
        await tour.look()
        await tour.home()

        source.refuses = True
        await tour.perform("probe", *KEYS["probe"])
        await app.play.perform("paste")
        await tour.look()
        app.screen.query_one(Input).value = Shared(poison.word("code: scenario"), 0).code
        await tour.look()
        await tour.home()
        app.action_command_palette()
        await tour.press("q")
        await tour.home()
        source.waiting(0, 1)
        await tour.look()
        await tour.press("left", "right", "escape")
        await tour.press("q")  # the question names the run
        await tour.home()
        for dialogue in (CopyingScreen(3), ConfirmScreen("Reset", "Forget the answers?", "forget")):
            app.push_screen(dialogue)
            await tour.look()
            await tour.home()
        open_first(app.play)
        await tour.look()
        await tour.home()
        source.fall_ill()
        await tour.look()
        await tour.perform("try", "down", "k", "escape", "plus", "enter")
        source.say(Failed("x", "x"))
        await tour.look()
    assert all_screens() - {"CompareScreen", "CompareMomentsScreen"} <= tour.screens
    if names is ORDERS:
        assert sorted(SEEN & set(tour.unseen(poison))) == [], "a tour that misses the words proves nothing"
    views = sorted(tmp_path.glob("*.view-1.*"))
    assert [path.suffix for path in views if path.suffix != ".png"] == [".svg", ".txt"]
    for path in views[-2:]:
        tame(path.read_text(encoding="utf-8"))
    ElementTree.parse(tmp_path / "run.view-1.svg")


@pytest.mark.parametrize(("names", "size"), [(OTHERS, SMALL), *IN_FILES])
async def test_nothing_in_run_files_side_by_side_is_obeyed(
    names: list[str], size: tuple[int, int], tmp_path: Path
) -> None:
    poison = Poison(*names)
    paths = [tmp_path / f"{letter}\x1b]0;owned\x07\u202e.rlplay" for letter in "ab"]
    one, other = (ReplaySource(run_of(poison, path)) for path in paths)
    app = RlplayApp(one, others=[other])
    async with touring(app, size) as tour:
        await tour.look()
        await tour.press("u", "tab", "y", "tab", "y", "c", "x", "question_mark", "escape", "w", "s")
        await tour.home()
        await tour.look()
        for verb in (
            "timeline",
            "surrogate",
            "health",
            "held_out",
            "learning",
            "morph",
            "moments",
            "probe",
            "log",
            "knobs",
            "help",
        ):
            await tour.perform(verb, "tab", "up")
        app.push_screen(CompareMomentsScreen(app.play, app.play.session, 1, 1, 0))
        await tour.look()
    assert {"CompareScreen", "CompareMomentsScreen"} <= tour.screens
    for path in tmp_path.glob("*.svg"):
        ElementTree.parse(path)
        tame(path.read_text(encoding="utf-8"))


async def test_a_setting_of_a_hostile_name_is_shown_where_it_was_changed() -> None:
    app, source = playground()
    poison = Poison(*ORDERS)
    change = made(Changed)
    async with touring(app, MEDIUM) as tour:
        source.update(1)
        source.records([msgspec.structs.replace(change, phase="sample", name=poison.word("a"), also={}, value="x")])
        source.update(2)
        await tour.look()
        await tour.perform("timeline", "up", "up", "y")
    assert not list(tour.unseen(poison))


@pytest.mark.parametrize("debug", [False, True])
async def test_a_crash_prints_what_it_happened_on_and_obeys_none_of_it(
    debug: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    poison = Poison("title", "colour", "C1", "turned")
    app, _ = playground()
    if debug:
        app.features = frozenset({"debug"})
    words = [poison.word(str(number)) for number in range(4)]

    def crash(notice: list[str]) -> None:
        raise RuntimeError(" ".join(notice))

    with pytest.raises(RuntimeError):
        async with touring(app, MEDIUM):
            app.call_later(crash, words)
    printed = capsys.readouterr().err
    assert "RuntimeError" in printed
    assert all(marker in printed for marker in poison.fields.values())
    tame(printed)
