"""Who taught it that: what the screen knows, the rows of the list, and the words, from made-up shares."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.trace.chosen_answers import tokens_of
from rlplay.trace.teachers import Taught, Teach, TeachCourse
from rlplay.trace.update import Update
from rlplay.ui.session.subjects import token_subject
from rlplay.ui.session.teachers import Teachers, scale_end
from rlplay.ui.teachers.teacher_rows import AnswerRow, GroupRow, UpdatesRow, teacher_rows
from rlplay.ui.teachers.words import disagreement, named, nats, probability, sentence, sum_line
from tests.recorded import synthetic_update
from tests.ui.taught import course, taught


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
    assert teachers.refused == {Teach: "no snapshot"}
    assert teachers.asked is None


def test_what_a_stopped_question_still_says_does_not_stand_beside_the_answer_to_the_next() -> None:
    teachers = Teachers()
    teachers.about(SUBJECT, 3)
    assert teachers.cancel() is not None
    assert teachers.look_at(3, 3) == QUESTION
    teachers.take(Taught(SUBJECT.target, 3, 3, refused="another command came first"))  # of the first
    teachers.take(TAUGHT)
    assert teachers.taught is TAUGHT
    assert not teachers.refused


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
    question = teachers.look_over_run(3)
    assert question == TeachCourse(SUBJECT.target)
    teachers.take(course(question, 2, done=False))
    assert teachers.asked is not None
    assert teachers.course is not None
    teachers.look_at(2, 2)
    assert teachers.course is None
    teachers.take(taught(Teach(SUBJECT.target, 2, 2), UPDATE))
    again = teachers.look_over_run(3)
    assert again is not None
    teachers.take(course(again, 3))
    assert teachers.look_over_run(3) is None, "all is known"
    assert teachers.look_over_run(4) == again, "the run has gone on"


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
    assert (nats(10.345), nats(-20.7)) == ("+10.345", "−20.700")


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
    assert f'"{text}" pushed {SUBJECT.name} up (+.070 of +.070 upward)' in said


def test_the_sentence_speaks_of_one_answer_that_did_nearly_all_and_of_those_that_pushed_back() -> None:
    sampled, pull = UPDATE.sampled, UPDATE.pull()
    assert sampled is not None
    assert pull is not None
    ids, counts = np.unique(sampled.token_ids[pull > 0], return_counts=True)
    alike = np.flatnonzero((pull > 0) & (sampled.token_ids == ids[counts.argmax()])).tolist()
    owners = np.repeat(np.arange(len(sampled.group)), np.diff(sampled.offsets))
    one, other = alike[0], next(token for token in alike if owners[token] != owners[alike[0]])
    back = int(np.flatnonzero(pull < 0)[0])
    said = sentence(made_of((one, 0.09), (other, 0.01), (back, -0.04)), UPDATE, SUBJECT)
    assert said.startswith("Mostly the credit for 1 answer that")
    assert said.endswith("up (+.090 of +.100 upward). Others pushed it down (−.040).")
    shared = sentence(made_of((one, 0.06), (other, 0.04)), UPDATE, SUBJECT)
    assert shared.startswith("Mostly the credit for 2 answers that")
    assert shared.endswith("up (+.100 of +.100 upward).")


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


def test_huge_pushes_that_nearly_cancel_name_no_cause() -> None:
    first, second = np.flatnonzero(UPDATE.pull() > 0)[:2].tolist()
    known = made_of((first, 230.4), (second, -230.0))
    pushes = f"The pushes on {SUBJECT.name} nearly cancel (+230.4 and −230.0 nats)"
    assert sentence(known, UPDATE, SUBJECT) == f"{pushes}: trust only their sum, not single answers."
    assert not named(known, UPDATE), "nor does `ctrl+a` mark any"


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param((9.7, -9.6), id="they cancel, but none is huge"),
        pytest.param((30.0, -28.0), id="one is huge, but enough is left"),
    ],
)
def test_pushes_that_cancel_or_are_large_still_have_a_cause(shares: tuple[float, float]) -> None:
    first, second = np.flatnonzero(UPDATE.pull() > 0)[:2].tolist()
    known = made_of((first, shares[0]), (second, shares[1]))
    assert sentence(known, UPDATE, SUBJECT).startswith("Mostly the credit for 1 answer that")
    assert named(known, UPDATE)
