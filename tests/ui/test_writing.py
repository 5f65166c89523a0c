"""The editor of a writing exercise: what is typed runs after a pause, and the first difference is at its token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay import user_preferences
from rlplay.engine.own_functions import allow_functions
from rlplay.exercises import NAMES, exercise_called
from rlplay.link.messages import Set
from rlplay.trace.questions import BothNumbers, Tried, TryCode
from rlplay.trusted import strange
from rlplay.ui.lesson.teaching import Plan
from rlplay.ui.session.writing import Writing
from rlplay.ui.writing.code_editor import CodeEditor, coloured
from rlplay.ui.writing.engine_lines_screen import EngineLinesScreen, line_of, source_of
from rlplay.ui.writing.writing_screen import WritingScreen
from tests.recorded import SETTINGS
from tests.ui.stage import Fed, on_screen, playground, pressed, settled, until

NARROWEST = 54
"""Columns of the editor that are free for code at 120 × 35."""
SIZES = [(80, 24), (120, 35), (160, 45), (240, 67)]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))


def tries(source: Fed) -> list[TryCode]:
    return [command for command in source.commands if isinstance(command, TryCode)]


def editor(app: Any) -> CodeEditor:
    found: CodeEditor = app.screen.query_one(CodeEditor)
    return found


def words(app: Any, name: str) -> str:
    return str(app.screen.query_one(f"#{name}").render())


async def answer(pilot: Any, source: Fed, **fields: Any) -> None:
    await until(pilot, lambda: tries(source))
    last = tries(source)[-1]
    source.put(Tried(last.exercise, last.number, **fields))
    await settled(pilot)


WRONG = BothNumbers("answer 3", 2, 1, 4.9, -0.275)


async def test_what_is_typed_reaches_the_engine_and_no_verb() -> None:
    async with on_screen(1) as (app, source, pilot):
        before = len(source.commands)
        await app.play.perform("write", "baseline")
        await pressed(pilot, *"return u", "enter", *"zq?/", "space")
        assert editor(app).text.endswith("    return u\n    zq?/ ")
        await until(pilot, lambda: tries(source))
        assert {type(command) for command in source.commands[before:]} == {TryCode}
        assert tries(source)[-1].code == editor(app).text
        assert tries(source)[-1].exercise == "baseline"


async def test_the_first_difference_is_shown_at_its_token() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await app.play.perform("write", "baseline")
        await pressed(pilot, *"return 0", "ctrl+r")
        await answer(
            pilot, source, compared=8, unit="answers", first=WRONG, rows=[WRONG], remark="Nothing is subtracted."
        )
        await until(pilot, lambda: "Nothing" in words(app, "verdict"))
        assert "answer 3. Yours 4.9, the engine's −0.275." in words(app, "verdict")
        assert app.panels.tokens.cursor == (2, 1)
        assert "4.9" in words(app, "numbers")


async def test_an_error_marks_its_line_and_printing_is_shown() -> None:
    async with on_screen(1) as (app, source, pilot):
        await app.play.perform("write", "baseline")
        await pressed(pilot, "x", "ctrl+r")
        await answer(pilot, source, error="NameError: x", line=4, printed="one\ntwo")
        await until(pilot, lambda: "line 4: NameError: x" in words(app, "verdict"))
        assert "printed: one" in words(app, "verdict")
        assert (editor(app).marked, editor(app).wrong) == (4, True)


async def test_hints_then_the_solution_which_can_be_taken_back() -> None:
    async with on_screen(1) as (app, _source, pilot):
        await app.play.perform("write", "kl")
        await pressed(pilot, *"pass")
        mine, exercise = editor(app).text, exercise_called("kl")
        await pressed(pilot, "ctrl+t")
        await until(pilot, lambda: "Hint" in words(app, "words"))
        assert editor(app).text == mine
        await pressed(pilot, "ctrl+t", "ctrl+t")
        await until(pilot, lambda: editor(app).text.strip() == exercise.solution.strip())
        await pressed(pilot, "ctrl+z")
        await until(pilot, lambda: editor(app).text == mine)
        assert app.is_running, "ctrl+z must not suspend the program while it takes back what was typed"


async def test_what_was_written_is_there_again_after_a_restart() -> None:
    async with on_screen(1) as (app, source, pilot):
        await app.play.perform("write", "baseline")
        await pressed(pilot, *"return 7", "escape")
        assert app.play.at_home
    kept = user_preferences.written("baseline")
    assert kept is not None
    assert not kept.solved
    async with on_screen(1) as (app, source, pilot):
        await app.play.perform("write", "baseline")
        await until(pilot, lambda: tries(source))
        assert editor(app).text == kept.text
        await answer(pilot, source, compared=8, unit="answers", passed=True)
        await until(pilot, lambda: "All 8 answers agree" in words(app, "verdict"))
        await pressed(pilot, "escape")
    kept = user_preferences.written("baseline")
    assert kept is not None
    assert kept.solved


async def test_once_solved_the_engines_own_lines_are_a_key_away() -> None:
    async with on_screen(1, notifications=True) as (app, source, pilot):
        await app.play.perform("write", "reinforce")
        await pressed(pilot, "x", "ctrl+g")
        assert isinstance(app.screen, WritingScreen), "not before it is solved"
        await pressed(pilot, "ctrl+r")
        await answer(pilot, source, compared=8, unit="tokens", passed=True)
        await pressed(pilot, "ctrl+g")
        await until(pilot, lambda: isinstance(app.screen, EngineLinesScreen))
        page = editor(app)
        assert page.text == (Path(__file__).parents[2] / "rlplay/engine/loop.py").read_text()
        assert "optimize(" in page.document.get_line(page.marked - 1)
        await until(pilot, lambda: page.scroll_y < page.marked <= page.scroll_y + page.size.height)
        await pressed(pilot, *"xu", "escape")
        assert isinstance(app.screen, WritingScreen)
        assert page.text == source_of("engine/loop.py")


async def test_a_run_goes_on_with_the_learners_function_where_a_setting_takes_it(tmp_path: Path) -> None:
    async with on_screen(1) as (app, source, pilot):
        await app.play.perform("write", "clip")
        await pressed(pilot, "ctrl+t", "ctrl+t", "ctrl+t", "ctrl+n")
        assert isinstance(app.screen, WritingScreen), "not before it is solved"
        await answer(pilot, source, compared=8, unit="tokens", passed=True)
        await pressed(pilot, "ctrl+n")
        await until(pilot, lambda: any(isinstance(command, Set) for command in source.commands))
        file = tmp_path / "written" / "clip.py"
        assert source.commands[-1] == Set({"surrogate": f"{file}:surrogate"})
        assert file.read_text().strip() == exercise_called("clip").solution.strip()
        assert strange([str(file)]) == [], "who has typed it need not be asked about it"


def test_the_learners_surrogate_is_one_that_training_accepts(tmp_path: Path) -> None:
    writing = Writing()
    writing.open("clip")
    writing.show_solution()
    name, value = writing.own_setting()
    allow_functions(msgspec.structs.replace(SETTINGS, **{name: value}))


@pytest.mark.parametrize("name", NAMES)
def test_every_exercise_points_to_a_line_of_the_engine(name: str) -> None:
    file, begins = exercise_called(name).engine
    assert source_of(file).splitlines()[line_of(file, begins) - 1].startswith(begins)


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_fit_into_the_narrowest_editor(name: str) -> None:
    exercise = exercise_called(name)
    assert max(map(len, [*exercise.starter.splitlines(), *exercise.solution.splitlines()])) <= NARROWEST


@pytest.mark.parametrize("size", SIZES)
async def test_answers_editor_and_result_are_seen_together(size: tuple[int, int]) -> None:
    async with on_screen(1, size=size) as (app, source, pilot):
        await app.play.perform("write", "reinforce")
        await pressed(pilot, "x", "ctrl+r")
        await answer(pilot, source, compared=8, unit="tokens", first=WRONG, rows=[WRONG], remark="A remark. " * 9)
        pane, tokens = app.screen.query_one("Vertical").region, app.panels.tokens.region
        assert tokens.height >= 6
        assert tokens.width >= 50
        assert not pane.overlaps(tokens)
        assert editor(app).region.height >= 4
        assert app.screen.query_one("#verdict").region.height >= 2


async def test_a_run_that_goes_on_tries_the_same_lines_on_the_new_answers() -> None:
    async with on_screen(1) as (app, source, pilot):
        await app.play.perform("write", "baseline")
        await pressed(pilot, "x", "ctrl+r")
        await until(pilot, lambda: len(tries(source)) == 1)
        source.update(2)
        await until(pilot, lambda: len(tries(source)) == 2)
        assert tries(source)[0].code == tries(source)[1].code


async def test_an_answer_about_earlier_lines_is_ignored() -> None:
    async with on_screen(1) as (app, source, pilot):
        await app.play.perform("write", "baseline")
        await pressed(pilot, "x", "ctrl+r", "y", "ctrl+r")
        await until(pilot, lambda: len(tries(source)) == 2)
        source.put(Tried("baseline", tries(source)[0].number, passed=True, compared=8, unit="answers"))
        await settled(pilot)
        assert app.play.session.writing.tried is None
        assert app.play.session.writing.solved == set()


SCRIPT = [{"write": "baseline"}, {"say": "On we go."}]


async def test_a_lesson_waits_until_it_is_solved() -> None:
    app, source = playground(SCRIPT)
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pressed(pilot, "t")
        await until(pilot, lambda: isinstance(app.screen, WritingScreen))
        await pressed(pilot, "x", "escape")
        assert app.teaching.lesson.playing
        await pressed(pilot, "t")  # help: the editor is open again, with a hint
        await until(pilot, lambda: isinstance(app.screen, WritingScreen))
        await until(pilot, lambda: "Hint" in words(app, "words"))
        await pressed(pilot, "y", "ctrl+r")
        await answer(pilot, source, compared=8, unit="answers", passed=True)
        await pressed(pilot, "escape")
        await until(pilot, lambda: not app.teaching.lesson.playing)
        assert "Solved" in str(app.panels.narrator.words)
        await pressed(pilot, "t")
        await until(pilot, lambda: "On we go" in str(app.panels.narrator.words))


async def test_hands_free_the_solution_is_shown_and_the_lesson_goes_on() -> None:
    app, source = playground(SCRIPT, Plan(demo=True))
    app.teaching.lesson._pace = lambda text: 0.2
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: tries(source))
        assert tries(source)[-1].code.strip() == exercise_called("baseline").solution.strip()
        await until(pilot, lambda: "On we go" in str(app.panels.narrator.words))
        assert app.play.at_home


def test_colours_follow_the_lines() -> None:
    lines = coloured('def f(x):\n    """Two\n    lines."""\n    return x + 1.5  # half')
    assert [[kind for _, _, kind in line] for line in lines] == [
        ["keyword"], ["comment"], ["comment"], ["keyword", "literal", "comment"],
    ]  # fmt: skip


async def test_the_caret_stays_where_it_is_while_typed_lines_are_on_their_way() -> None:
    async with on_screen(1, size=(120, 35)) as (app, _source, pilot):
        await app.play.perform("write", "reinforce")
        await pressed(pilot, "x")
        screen = app.screen
        assert isinstance(screen, WritingScreen)
        editor = screen.query_one(CodeEditor)
        editor.insert("yz")  # the app has not been told yet
        at, text = editor.cursor_location, editor.text
        screen.follow()
        assert (editor.cursor_location, editor.text) == (at, text)
        await pilot.pause()
        assert screen.writing.text == text
