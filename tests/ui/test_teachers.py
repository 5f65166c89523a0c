"""Who taught it that: what is asked from where, what the screen says of the answers, and the test of the teachers."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import Peek, Peeked, Prefix
from rlplay.trace.records import Rewound
from rlplay.trace.targets import token_target
from rlplay.trace.teachers import TakeAway, Target, Taught, Teach, TeachCourse
from rlplay.trace.update import Update
from rlplay.ui.river.belief_river import River
from rlplay.ui.session.subjects import Subject, token_subject
from rlplay.ui.session.teachers import Teachers, scale_end
from rlplay.ui.teachers.teacher_rows import AnswerRow, GroupRow, UpdatesRow, teacher_rows, tokens_of
from rlplay.ui.teachers.teachers_screen import TeachersScreen
from rlplay.ui.teachers.words import disagreement, nats, probability, sentence, sum_line
from tests.recorded import synthetic_evaluated, synthetic_update
from tests.ui.stage import all_text, on_screen, pressed, settled
from tests.ui.taught import away, course, taught


def recorded(number: int = 3) -> Update:
    update = Update(number)
    for record in synthetic_update(number):
        update.add(record)
    return update


UPDATE = recorded()
SUBJECT = token_subject(UPDATE, 1, 0)
QUESTION = Teach(SUBJECT.target, 3, 3)
TAUGHT = taught(QUESTION, UPDATE)


# The state


def test_an_answer_to_an_earlier_question_is_kept_and_does_not_end_the_new_one() -> None:
    teachers = Teachers()
    assert teachers.about(SUBJECT, 3) == QUESTION
    other = SUBJECT.instead(1) if SUBJECT.instead(1) is not SUBJECT else SUBJECT.instead(-1)
    assert teachers.about(other, 3) == Teach(other.target, 3, 3)
    teachers.take(TAUGHT)
    assert teachers.taught is None
    assert teachers.asked is not None
    assert teachers.about(SUBJECT, 3) is None, "its answer is there by now"
    assert teachers.taught is TAUGHT


def test_a_refusal_is_shown_only_where_it_was_asked() -> None:
    teachers = Teachers()
    teachers.about(SUBJECT, 3)
    teachers.take(Taught(SUBJECT.target, 2, 2, refused="no snapshot"))
    assert not teachers.refused
    teachers.take(Taught(SUBJECT.target, 3, 3, refused="no snapshot"))
    assert teachers.refused == "no snapshot"
    assert teachers.asked is None


def test_a_run_that_went_back_has_taught_nothing_yet() -> None:
    teachers = Teachers()
    teachers.about(SUBJECT, 3)
    teachers.take(TAUGHT)
    teachers.mark(frozenset({1}))
    assert not teachers.at(0)
    assert teachers.at(1)
    assert teachers.taught is None
    assert not teachers.marked


def test_the_course_of_the_run_grows_and_is_asked_again_if_another_question_ended_it() -> None:
    teachers = Teachers()
    teachers.about(SUBJECT, 3)
    teachers.take(TAUGHT)
    question = teachers.look_over_run()
    assert question == TeachCourse(SUBJECT.target)
    teachers.take(course(question, 2, done=False))
    assert teachers.asked is not None
    assert teachers.course is not None
    teachers.look_at(2, 2)
    assert teachers.course is None
    teachers.take(taught(Teach(SUBJECT.target, 2, 2), UPDATE))
    again = teachers.look_over_run()
    assert again is not None
    teachers.take(course(again, 3))
    assert teachers.look_over_run() is None, "all is known"


def test_marks_are_of_one_update_and_go_off_again() -> None:
    teachers = Teachers()
    teachers.about(SUBJECT, 3)
    teachers.mark(frozenset({1, 2}))
    teachers.mark(frozenset({1}))
    assert teachers.marked == {2}
    teachers.look_at(3, 2)
    assert not teachers.marked


def test_the_lens_is_named_after_the_token_and_its_scale_is_that_of_most_shares() -> None:
    teachers = Teachers()
    teachers.about(SUBJECT, 3)
    teachers.take(TAUGHT)
    assert SUBJECT.name in teachers.lens.title
    assert teachers.lens.low == -teachers.lens.high
    shares = np.concatenate([np.full(400, 0.01), [5.0], np.zeros(9)]).astype(np.float32)
    assert scale_end(shares) == pytest.approx(0.01)


# Rows and words


def test_the_rows_are_all_of_the_sum() -> None:
    rows = teacher_rows(TAUGHT, UPDATE, 1)
    groups = [row for row in rows if isinstance(row, GroupRow)]
    assert sum(group.total for group in groups) == pytest.approx(TAUGHT.predicted, abs=1e-5)
    assert sum(row.total for row in rows if not isinstance(row, GroupRow)) == pytest.approx(TAUGHT.predicted, abs=1e-5)
    first = rows[1]
    assert isinstance(first, AnswerRow)
    assert first.completions == (1,)
    assert [row.update for row in rows if isinstance(row, UpdatesRow)] == [2, 1]


def test_taking_an_answer_away_takes_its_sampled_tokens() -> None:
    update = recorded()
    sampled = update.sampled
    assert sampled is not None
    mask = sampled.mask.copy()
    start, end = sampled.offsets[2:4].tolist()
    mask[start] = 0
    update.sampled = msgspec.structs.replace(sampled, mask=mask)
    assert tokens_of(update, frozenset({2})) == list(range(start + 1, end))


def test_the_sum_line_has_all_parts() -> None:
    known = msgspec.structs.replace(
        TAUGHT, before=np.log(0.618), after=np.log(0.618) - 0.1456, batch=-0.0475, earlier=-0.0763, rest={}
    )
    assert sum_line(known) == "predicted −.124 (this batch −.048, earlier −.076, rest 0) · measured −.146"
    assert (probability(known.before), probability(known.after)) == (".618", ".534")
    assert nats(-0.00123, 0.00123) == "−.00123"
    assert nats(0.0) == "0"


def test_a_disagreement_is_said_from_two_per_cent_on() -> None:
    assert not disagreement(TAUGHT)
    apart = msgspec.structs.replace(TAUGHT, first_order=TAUGHT.first_order * 1.05)
    assert "5% apart" in disagreement(apart)


def made_of(*shares: tuple[int, float], earlier: float = 0.0, measured: float | None = None) -> Taught:
    """Shares of single tokens of the batch."""
    flat = np.zeros(UPDATE.tokens, dtype=np.float32)
    for token, share in shares:
        flat[token] = share
    batch = float(flat.sum())
    after = -0.5 + (batch + earlier if measured is None else measured)
    return msgspec.structs.replace(
        TAUGHT, shares=flat, batch=batch, earlier=earlier, before=-0.5, after=after, first_order=batch + earlier
    )


def test_the_sentence_names_the_tokens_that_did_most() -> None:
    sampled, pull = UPDATE.sampled, UPDATE.pull()
    assert sampled is not None
    assert pull is not None
    token = int(np.flatnonzero((pull < 0) & (sampled.token_ids == sampled.token_ids[sampled.offsets[-3]]))[0])
    text = sampled.pieces[int(sampled.token_ids[token])]
    said = sentence(made_of((token, 0.07), (0, -0.01)), UPDATE, SUBJECT)
    assert said.startswith("Mostly the blame on 1 answer")
    assert f'"{text}" pushed {SUBJECT.name} up (+.070 of +.070' in said


def test_mostly_needs_half_of_all_that_pushed_that_way() -> None:
    spread = [(int(token), 0.01) for token in np.flatnonzero(UPDATE.pull() > 0)[::2]]
    assert sentence(made_of(*spread), UPDATE, SUBJECT).startswith("Most of all, the credit for")


def test_earlier_updates_are_named_if_they_did_most() -> None:
    token = int(np.flatnonzero(UPDATE.pull() > 0)[0])
    assert sentence(made_of((token, 0.01), earlier=0.05), UPDATE, SUBJECT).startswith("Mostly earlier updates, through")


def test_what_did_not_move_or_moved_against_the_shares_has_no_teachers() -> None:
    assert "did not move" in sentence(made_of(), UPDATE, SUBJECT)
    token = int(np.flatnonzero(UPDATE.pull() > 0)[0])
    assert "does not explain" in sentence(made_of((token, 0.05), measured=-0.1), UPDATE, SUBJECT)


# The screen


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
        await pressed(pilot, "up", "enter")
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


async def test_a_run_that_goes_back_meanwhile_empties_the_screen() -> None:
    async with on_screen(1, 2, size=(120, 35)) as (app, source, pilot):
        await pressed(pilot, "Y")
        answered(source, app)
        await settled(pilot)
        source.records([Rewound(update=1, abandoned=2)])
        await settled(pilot)
        assert app.screen.list.count() == 0
        assert app.play.session.teachers.taught is None


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
