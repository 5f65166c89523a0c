"""One key, one meaning: all bindings of all screens and panels, side by side."""

from collections import defaultdict

import pytest

from rlplay.ui.app import RlplayApp
from rlplay.ui.bindings import bindings, is_screen, owners
from rlplay.verbs import VERBS
from tests.ui.stage import on_screen, pressed, settled

OPENS = {
    "BranchScreen": "branch", "CompareScreen": "compare", "FindScreen": "find", "GlossaryScreen": "glossary",
    "HealthScreen": "health", "HeldOutScreen": "held_out", "HelpScreen": "help", "KnobsScreen": "knobs",
    "LabelScreen": "prefer", "LessonsScreen": "lessons", "LogScreen": "log", "ProbeScreen": "probe",
    "SortScreen": "sort", "TimelineScreen": "timeline", "ColoursScreen": "colours",
    "MomentsScreen": "moments", "CompareMomentsScreen": "compare",
    "SurrogateScreen": "surrogate", "ReachScreen": "reach", "WritingScreen": "write",
    "WeightsScreen": "weights", "TeachersScreen": "teachers", "RepairScreen": "try",
}  # fmt: skip
"""The verb that opens a dialogue: its key closes it again."""

MOVES = {
    "left", "right", "up", "down", "home", "end", "pageup", "pagedown", "enter", "escape", "tab", "backspace",
    "minus", "plus", "shift+left", "shift+right", "shift+up", "shift+down",
}  # fmt: skip
"""They move, choose and leave in whatever has the focus, as in every program."""

UPDATE = "the update of this number"
PAINT = "paint"  # with the brush of this number, while the map is painted
SEVERAL = {
    "0": ({"skip this pair", UPDATE, PAINT}, "choose none, the start of the run, or the brush that takes paint away"),
    "1": ({"predict", "A is better", UPDATE, PAINT}, "choose the first of what is on the screen, or update 1"),
    "2": ({"predict", "B is better", UPDATE, PAINT}, "choose the second of what is on the screen, or update 2"),
    **{str(digit): ({"predict", UPDATE, PAINT}, "choose by number") for digit in range(3, 7)},
    **{str(digit): ({"predict", UPDATE}, "choose by number") for digit in range(7, 10)},
    "k": ({"knobs", "up"}, "up, as in vi, only in dialogues with one list, where no setting is in sight"),
    "b": ({"compare", "compare: branch from it"}, "both end side by side; without a branch, compare makes one, too"),
    "z": (
        {"undo", "undo: go back to it", "undo: the last stroke"},
        "undo: an update, those after the one under the cursor, a change, a label, a stroke",
    ),
    "q": ({"quit", "close", "leave"}, "leave what is on the screen; last the program"),
    "s": (
        {"step", "step: the typed number is its trainer's"},
        "by optimizer step: take one, or go to that of a number",
    ),
    "space": ({"run/pause", "play"}, "run or pause what moves: the run, or the evaluations of a held-out prompt"),
    "left_square_bracket": ({"older update", "evaluation before"}, "back in the run"),
    "right_square_bracket": ({"newer update", "evaluation after"}, "on in the run"),
    "question_mark": ({"help", "glossary"}, "more help: of the panel, then of its words"),
    "f1": ({"help", "glossary"}, "the same as ?"),
}
"""Keys with several descriptions, all of them, and what these have in common."""


def meanings() -> dict[str, set[str]]:
    found = defaultdict(set)
    for owner in owners(RlplayApp):
        opened_by = VERBS[OPENS[owner.__name__]].keys if owner.__name__ in OPENS else ()
        for key, binding in bindings(owner):
            closes = binding.action == "dismiss" and key in opened_by
            if key not in MOVES and not closes:
                found[key].add(binding.description)
    return found


def test_the_walk_finds_the_keys_of_every_part():
    names = {owner.__name__ for owner in owners(RlplayApp)}
    assert {"RlplayApp", "TokenMap", "AnswerList", "CurvePanel", "Updates", "ProbeScreen", "KnobsScreen"} <= names
    assert meanings()["u"] == {"update"}


def test_no_key_does_two_things():
    several = {key: said for key, said in meanings().items() if len(said) > 1}
    assert several == {key: said for key, (said, _) in SEVERAL.items()}


@pytest.mark.parametrize("owner", [owner for owner in owners(RlplayApp) if is_screen(owner)], ids=lambda o: o.__name__)
def test_lists_take_the_keys_of_vi_together(owner):
    keys = dict(bindings(owner))
    assert set("jkG") & set(keys) in (set(), set("jkG"), {"k"})
    if "j" in keys:
        assert [keys[key].description for key in "jkG"] == ["down", "up", "last"]


async def test_vi_keys_move_in_the_timeline():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        for number in (1, 2, 3):
            source.update(number)
        await settled(pilot)
        await pressed(pilot, "g", "k", "k")
        assert app.screen.cursor == 2
        await pressed(pilot, "j")
        assert app.screen.cursor == 3
        await pressed(pilot, "G")
        assert app.screen.cursor is None
