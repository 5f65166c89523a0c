"""The screen of who taught it: what is asked from where, what it shows of the answers, the test and the branch."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from textual.containers import Vertical

from rlplay.link.messages import Abilities, EndProbe, Failed, Status
from rlplay.trace.chosen_answers import tokens_of
from rlplay.trace.questions import Peek, Peeked, Prefix
from rlplay.trace.records import Rewound
from rlplay.trace.targets import token_target
from rlplay.trace.teachers import TakeAway, Target, Taught, TaughtCourse, Teach, TeachCourse
from rlplay.ui.main.other_runs import OtherRuns
from rlplay.ui.river.belief_river import River
from rlplay.ui.session.subjects import Subject
from rlplay.ui.teachers.teachers_screen import TeachersScreen
from rlplay.ui.teachers.words import named
from tests.recorded import synthetic_evaluated
from tests.ui.stage import CHOSEN, all_text, on_screen, pressed, settled, until
from tests.ui.taught import away, course, taught


def answered(source: SimpleNamespace, app: SimpleNamespace) -> None:
    """The engine answers the newest question."""
    question, session = source.commands[-1], app.play.session
    match question:
        case Teach():
            source.put(taught(question, session.run.find(question.by)))
        case TeachCourse():
            source.put(course(question, session.run.finished))
        case TakeAway():
            source.put(away(question, session.teachers.taught))


async def test_one_key_asks_and_the_answers_are_listed_and_coloured() -> None:
    async with on_screen(1, 2, size=(160, 45)) as (app, source, pilot):
        app.play.point(2, 1)
        shown = app.play.session.shown
        await pressed(pilot, "Y")
        screen = app.screen
        assert isinstance(screen, TeachersScreen)
        assert source.commands[-1] == Teach(token_target(shown, 2, 1), 2, 2)
        assert "backward pass" in screen.list.words
        answered(source, app)
        await settled(pilot)
        text = all_text(screen.list)
        assert "This answer" in text
        assert "update 1" in text
        assert "predicted" in str(screen.query_one("#sums").content)
        assert screen.tokens.cursor[0] == 2, "the cursor is on the strongest token of the first answer"
        assert app.play.session.teachers.taught is not None
        await pressed(pilot, "escape", "C")
        app.play.lens_choice = "share"
        assert app.play.colours.lens.title.startswith("Share in")
        assert not app.play.colours.why


async def test_the_whole_run_opens_an_update_and_an_earlier_one_opens_in_turn() -> None:
    async with on_screen(1, 2, 3, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        screen, target = app.screen, app.play.session.teachers.subject.target
        await pressed(pilot, "tab", "tab")
        assert source.commands[-1] == TeachCourse(target)
        answered(source, app)
        await settled(pilot)
        assert len(screen.course.rows) == 3
        assert "] open ·" in screen.query_one(Vertical).border_subtitle, "what enter does there"
        await pressed(pilot, "up", "enter")
        assert "] mark ·" in screen.query_one(Vertical).border_subtitle
        assert source.commands[-1] == Teach(target, 2, 2)
        answered(source, app)
        await settled(pilot)
        await pressed(pilot, "end", "enter")
        assert source.commands[-1] == Teach(target, 2, 1)
        answered(source, app)
        await settled(pilot)
        assert "update 1" in str(screen.query_one("#head").content)
        await pressed(pilot, "escape")
        assert app.screen is screen
        assert app.play.session.teachers.by == 2


async def test_marked_answers_are_taken_away_and_the_test_is_no_share() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        screen, update = app.screen, app.play.session.shown
        await pressed(pilot, "down", "enter", "backspace")
        asked = source.commands[-1]
        assert isinstance(asked, TakeAway)
        assert asked.tokens == tokens_of(update, frozenset(screen.list.chosen.completions))
        answered(source, app)
        await settled(pilot)
        said = str(screen.query_one("#sums").content)
        assert "without" in said
        assert "instead of" in said
        assert "Adam" in said
        commands = len(source.commands)
        await pressed(pilot, "backspace")
        assert len(source.commands) == commands, "it is known"


async def test_the_answers_that_the_sentence_names_are_marked_at_once() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        screen, teachers = app.screen, app.play.session.teachers
        assert "a marks the answers that the sentence names" in str(screen.query_one("#sums").content)
        await pressed(pilot, "ctrl+a")
        assert teachers.marked == named(teachers.taught, app.play.session.shown)
        assert f"{len(teachers.marked)} answer" in str(screen.query_one("#head").content)
        await pressed(pilot, "ctrl+a")
        assert not teachers.marked


async def test_another_candidate_in_its_place_and_another_update_are_asked_about() -> None:
    async with on_screen(1, 2, size=(80, 24)) as (app, source, pilot):
        app.play.point(1, 1)
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        subject = app.play.session.teachers.subject
        assert isinstance(subject, Subject)
        await pressed(pilot, "right")
        other = source.commands[-1]
        assert isinstance(other, Teach)
        assert other.target.answer_ids[:-1] == subject.target.answer_ids[:-1]
        assert other.target.answer_ids[-1] == subject.candidates[1][0]
        answered(source, app)
        await settled(pilot)
        await pressed(pilot, "left_square_bracket")
        assert source.commands[-1] == Teach(other.target, 1, 1)


async def test_escape_stops_a_question_and_the_refusal_says_why() -> None:
    async with on_screen(1, size=(80, 24)) as (app, source, pilot):
        await pressed(pilot, "Y", "escape")
        assert source.commands[-1] == EndProbe()
        assert not isinstance(app.screen, TeachersScreen)
        await pressed(pilot, "Y")
        question = source.commands[-1]
        source.put(Taught(question.target, 1, 1, refused="TRPO has no such shares"))
        await settled(pilot)
        assert "TRPO has no such shares" in app.screen.list.words


async def test_a_refusal_is_said_of_its_own_question_only() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        screen, target = app.screen, app.play.session.teachers.subject.target
        await pressed(pilot, "tab", "tab")
        assert "each update" in screen.course.words, "nothing is known yet, and it is being asked"
        source.put(TaughtCourse(target, refused="no earlier weights", done=True))
        await settled(pilot)
        assert "No earlier weights" in screen.course.words
        await pressed(pilot, "tab", "enter")
        assert "earlier weights" not in str(screen.query_one("#sums").content)
        assert "backspace" in str(screen.query_one("#sums").content)


async def test_a_trainer_that_cannot_leave_tokens_out_has_no_key_for_it() -> None:
    cannot = Abilities("TRL", {"branch": "no earlier weights", "withhold": "no own gradient"}, [])
    async with on_screen(1, size=(160, 45)) as (app, source, pilot):
        source.put(Status(False, 1, "sample", {**CHOSEN}, abilities=cannot))
        await pressed(pilot, "Y")
        answered(source, app)
        await pressed(pilot, "enter", "b")
        assert isinstance(app.screen, TeachersScreen), "b says why, and closes nothing"
        keys = app.screen.query_one(Vertical).border_subtitle
        assert "branch" not in keys
        assert "without them" not in keys


async def test_the_course_waits_for_the_question_before_it() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y", "tab", "tab")
        assert isinstance(source.commands[-1], Teach), "it is answered first"
        answered(source, app)
        await until(pilot, lambda: isinstance(source.commands[-1], TeachCourse))
        source.put(Failed("engine gone", ""))
        await settled(pilot)
        assert "engine has ended" in app.screen.course.words
        assert app.play.session.teachers.asked is None


async def test_nobody_waits_for_an_answer_once_the_screen_is_closed() -> None:
    async with on_screen(1, size=(80, 24)) as (app, source, pilot):
        await pressed(pilot, "Y", "q")
        await until(pilot, lambda: source.commands[-1] == EndProbe())
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        commands = len(source.commands)
        await pressed(pilot, "q")
        assert len(source.commands) == commands, "it is answered"


async def test_an_empty_held_out_answer_has_no_teachers() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        held_out = synthetic_evaluated(0)
        source.evaluated = [msgspec.structs.replace(held_out, completions=[""] * len(held_out.completions))]
        await pressed(pilot, "e", "Y")
        source.put(Peeked(source.commands[-1].prefix, 1, prompt_ids=[5], answer_ids=[]))
        await settled(pilot)
        assert "has no tokens" in app.screen.list.words


async def test_a_run_that_goes_back_meanwhile_empties_the_screen() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        source.records([Rewound(update=1, abandoned=2)])
        await settled(pilot)
        assert app.screen.list.count() == 0
        assert app.play.session.teachers.taught is None
        assert "gone back" in app.screen.list.words
        await pressed(pilot, "enter")
        assert source.commands[-1] == Teach(app.play.session.teachers.subject.target, 2, 2)


async def test_nobody_is_asked_before_the_first_update_or_without_an_engine() -> None:
    async with on_screen(size=(80, 24), notifications=True) as (app, source, pilot):
        commands = len(source.commands)
        await pressed(pilot, "Y")
        source.update(1)
        await settled(pilot)
        source.live = False
        await pressed(pilot, "Y")
        assert not isinstance(app.screen, TeachersScreen)
        assert len(source.commands) == commands


async def test_a_candidate_in_token_is_asked_about_instead_of_the_token() -> None:
    async with on_screen(1, 2, size=(160, 45)) as (app, source, pilot):
        app.play.point(1, 1)
        app.panels.inspector.focus()
        await pressed(pilot, "down", "down", "Y")
        picked = app.panels.inspector.picked
        assert source.commands[-1] == Teach(token_target(app.play.session.shown, 1, 1, picked), 2, 2)
        await pressed(pilot, "escape", "escape")
        app.play.point(1, 2)
        app.panels.tokens.focus()
        await pressed(pilot, "Y")
        assert source.commands[-1] == Teach(token_target(app.play.session.shown, 1, 2), 2, 2)


async def test_the_cursor_of_the_belief_river_says_in_which_update() -> None:
    async with on_screen(1, 2, 3, size=(160, 45)) as (app, source, pilot):
        app.play.point(1, 0)
        await pressed(pilot, "B")
        panel = next(panel for panel in app.panels.curves.panels if isinstance(panel.view, River))
        panel.focus()
        panel.point(2)
        await pressed(pilot, "Y")
        assert source.commands[-1] == Teach(token_target(app.play.session.shown, 1, 0), 2, 2)


async def test_the_probe_asks_about_its_chosen_candidate() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "i")
        probing = app.play.session.probing
        source.put(Peeked(probing.prefix, 2, prompt_ids=[5, 6], answer_ids=[], top_ids=[7, 8], top=[0.6, 0.4],
                          ref_top=[0.5, 0.5], pieces={7: "a", 8: "b"}))  # fmt: skip
        await settled(pilot)
        await pressed(pilot, "down", "Y")
        assert source.commands[-1] == Teach(Target([5, 6], [*probing.begun, 8], [len(probing.begun)]), 2, 2)


async def test_a_held_out_answer_is_spelled_and_then_asked_about_as_a_whole() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        source.evaluated = [synthetic_evaluated(0)]
        await pressed(pilot, "e", "down", "Y")
        spelled = source.commands[-1]
        held_out = source.evaluated[0]
        assert spelled == Peek(Prefix(held_out.prompts[1], text=held_out.completions[1]))
        source.put(Peeked(Prefix("another"), prompt_ids=[9], answer_ids=[9]))
        source.put(Peeked(spelled.prefix, 2, prompt_ids=[5, 6], answer_ids=[7, 8]))
        await settled(pilot)
        assert source.commands[-1] == Teach(Target([5, 6], [7, 8], [0, 1]), 2, 2)
        answered(source, app)
        await settled(pilot)
        assert app.screen.list.count() > 3


async def test_the_marked_answers_are_kept_out_of_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, dict[str, object], list[int]]] = []

    async def branch_off(_self: OtherRuns, number: int, changes: dict[str, object], withheld: list[int]) -> None:
        begun.append((number, changes, withheld))

    monkeypatch.setattr(OtherRuns, "branch_off", branch_off)
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        await pressed(pilot, "b")
        assert not begun, "none is marked"
        await pressed(pilot, "down", "enter", "b")
        await until(pilot, lambda: begun)
        chosen = app.play.session.teachers.marked
        assert begun == [(1, {}, tokens_of(app.play.session.shown, chosen))]
        assert app.screen is app.panels.main
