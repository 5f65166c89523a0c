"""The registry of verbs, walked: each is reached by key or palette, explained in help, and takes a script's word."""

import re
from collections import Counter

import pytest
from textual.binding import Binding
from textual.widgets import Static

from rlplay.scenario.script import Say, ScreenVerb, parse_step
from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.app import RlplayApp
from rlplay.ui.command_palette import commands
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.format.shortcuts import KEY_NAMES
from rlplay.ui.narrator.narrator import Narrator
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import VERBS
from tests.ui.stage import home, on_screen, playground, pressed, settled

GIVEN = {
    "run": 2,
    "token": 2,
    "phase": 1,
    "step": 1,
    "update": 1,
    "rewind": 0,
    "set": {"beta": 0.1},
    "prefer": ["a", "skip"],
    "withhold": [1, 2],
    "lens": "entropy",
    "focus": {"completion": 1, "token": 2},
    "curve": "kl",
    "find": "reward<0.5",
    "sort": "length",
    "panel": "token",
    "stage": "answers",
    "maths": True,
    "knobs": "beta",
    "slider": "gamma",
    "morph": 5,
    "probe": {"completion": 0, "token": 1},
    "weights": "layers",
    "teachers": {"completion": 1, "token": 0},
    "glossary": "advantage",
    "say": "Look.",
    "ask": {"question": "Up?", "choices": ["yes", "no"], "answer": "yes", "because": "So it is."},
    "you": {"say": "Press `u`.", "update": 1},
    "write": "baseline",
    "exercise": {
        "say": "Learn.",
        "expect": [{"text": "It learns", "metric": "reward", "above": 0}],
        "hint": "Train.",
        "solution": [{"run": 2}],
    },
    "watch": {"say": "Half of it.", "metric": "reward", "above": 0.5},
    "expect": {"text": "It learns", "metric": "reward", "above": 0},
}
"""An argument for each verb that takes one."""


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # what is saved is saved beside the run


def keys_of(bindings) -> list[str]:
    return [key for binding in bindings if isinstance(binding, Binding) for key in binding.key.split(",")]


def test_there_is_an_argument_for_each_verb_that_takes_one():
    assert {name for name, verb in VERBS.items() if verb.argument} == set(GIVEN)


@pytest.mark.parametrize("verb", VERBS)
def test_a_script_can_say_it(verb):
    if verb == "tour":
        with pytest.raises(ValueError, match=r"^a script cannot contain tour, which plays a script$"):
            parse_step({verb: None})
        return
    step = parse_step({verb: GIVEN.get(verb)})
    assert not isinstance(step, ScreenVerb) or step == ScreenVerb(verb, GIVEN.get(verb))
    assert not isinstance(step, Say) or step.text == GIVEN[verb]
    assert (VERBS[verb].where == "screen") == isinstance(step, ScreenVerb), (
        "a run without a screen passes over just those"
    )


async def test_each_can_be_performed_by_name_while_a_run_plays():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        source.update(1)
        source.update(2)
        source.status(2, running=True)
        await settled(pilot)
        for verb in [verb for verb in app.play.actions if verb != "quit"]:
            for argument in [None, GIVEN[verb]] if verb in GIVEN else [None]:
                await app.play.perform(verb, argument)
                await pilot.pause()
                await home(pilot)
        kinds = [type(command).__name__ for command in source.commands]
        assert set(kinds) == {
            "Advance",
            "Pause",
            "Rewind",
            "Set",
            "Peek",
            "Teach",
            "Weigh",
            "ReadLayers",
            "EndProbe",
            "RecordView",
            "Withhold",
        }, "each that concerns the engine"
        assert app.play.session.shown.number == 2
        assert not app.play.session.failed
        await app.play.perform("quit")
    assert app.return_code == 0


async def test_none_does_harm_before_anything_has_happened():
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        for verb in app.play.actions:
            if verb != "quit":
                await app.play.perform(verb, GIVEN.get(verb))
                await pilot.pause()
        assert app.play.session.shown is None
        assert "Peek" not in {type(command).__name__ for command in source.commands}, "there is no token to ask about"
        await app.play.perform("quit")
    assert app.return_code == 0


def test_each_is_reached_by_a_key_or_by_its_name():
    app, _ = playground()
    offered = {command.title.lower() for command in commands(app.play)}
    bound = dict(Counter(keys_of(RlplayApp.BINDINGS)))
    for verb in VERBS.values():
        if verb.where == "script":
            continue
        assert verb.title.lower() in offered
        assert all(bound[key] == 1 for key in verb.keys)


@pytest.mark.parametrize("panel", [TokenMap, AnswerList, Inspector, CurvePanel, Narrator])
def test_no_panel_takes_a_verbs_key_away(panel):
    taken = {key for verb in VERBS.values() for key in verb.keys}
    assert taken & set(keys_of(panel.BINDINGS)) == set()


def test_titles_and_help_are_there_and_tell_verbs_apart():
    for texts in ([verb.title for verb in VERBS.values()], [verb.help for verb in VERBS.values()]):
        assert len(set(texts)) == len(texts)
    for verb in VERBS.values():
        assert re.fullmatch(r"[A-Z].+\.", verb.help), verb.name


async def test_the_help_screen_shows_them_all():
    async with on_screen(size=(100, 40)) as (app, _, pilot):
        await settled(pilot)
        await pressed(pilot, "question_mark")
        shown = "\n".join(str(part.render()) for part in app.screen.query(Static) if type(part) is Static)
    for verb in VERBS.values():
        called = [KEY_NAMES.get(key, key) for key in verb.keys] or [verb.name]
        line = next(line for line in shown.splitlines() if verb.help in line)
        assert set(called) <= set(line.split()), verb.name


def test_no_panel_takes_some_of_hjkl_and_leaves_the_others():
    from rlplay.ui.labels.label_screen import LabelScreen
    from rlplay.ui.probe.probe_screen import ProbeScreen
    from rlplay.ui.timeline.updates import Updates

    for owner in (TokenMap, AnswerList, Inspector, CurvePanel, LabelScreen, ProbeScreen, Updates):
        keys = {key for binding in owner.BINDINGS if isinstance(binding, Binding) for key in binding.key.split(",")}
        assert keys & set("hjkl") in (set(), set("hjkl")), f"{owner.__name__}: the arrows are complete"
