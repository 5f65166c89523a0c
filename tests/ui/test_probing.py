"""The probe's state: which tokens it asks about, what an answer changes and which requests it makes."""

from __future__ import annotations

from typing import Any

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import Continue, Continued, Estimate, Estimated, Peek, Prefix, Recall, Recalled
from rlplay.ui.session.probing import RECALLED, SAMPLES, TAILS, Probing
from tests.recorded import synthetic_update
from tests.ui.probed import PIECES, begun, peeked, tail


def test_it_begins_with_the_tokens_before_the_cursor() -> None:
    probing = Probing()
    sampled: Any = synthetic_update(1)[0]
    probing.open(sampled, (1, 2))
    start = int(sampled.offsets[1])
    assert probing.peek() == Peek(
        Prefix(sampled.prompts[0], sampled.token_ids[start : start + 2].tolist(), sampled.columns[0])
    )
    assert probing.answer == sampled.token_ids[start : sampled.offsets[2]].tolist()
    untouched = Probing()
    untouched.open(None, (0, 0))
    assert untouched.vacant


def test_forcing_a_candidate_writes_the_rest_anew() -> None:
    probing = begun()
    probing.choose(1)
    look, go_on = probing.force()
    assert look == Peek(Prefix("How many?", [8]))
    assert isinstance(go_on, Continue)
    assert (go_on.prefix.answer, go_on.count, go_on.greedy) == ([8], 1, False)
    probing.take(peeked(look.prefix))
    probing.take(Continued(look.prefix, tails=[tail(7, 9)], pieces=PIECES))
    assert probing.answer == [8, 7, 9]
    assert "".join(probing.texts) == "[bold]\x1b seven<|end|>"
    assert probing.place == 1
    assert probing.chosen == 7, "what now stands at the place"
    assert probing.asked is None


def test_answers_about_a_place_that_was_left_are_not_shown_here() -> None:
    probing = begun()
    old = probing.prefix
    probing.force()
    assert probing.place == 1
    probing.take(peeked(old, top_ids=[9]))
    assert not probing.fresh
    probing.take(Continued(old, tails=[tail(9)]))
    assert probing.answer == [7], "a tail of another beginning changes nothing"
    assert probing.move(-1) == Peek(old)
    assert probing.tails[(), "policy"] == [tail(9)], "but is there on the way back"


def test_the_chosen_candidate_stays_chosen_when_the_numbers_move() -> None:
    probing = begun()
    probing.choose(2)
    probing.take(peeked(probing.prefix, top_ids=[9, 7, 8]))
    assert (probing.chosen, probing.rank) == (9, 0)
    probing.take(peeked(probing.prefix, top_ids=[7, 8, 6]))
    assert probing.rank == 0


def test_a_value_stops_where_it_is_asked_for_again() -> None:
    probing = begun()
    question = probing.estimate()
    assert question == Estimate(probing.prefix, "policy", SAMPLES)
    probing.take(Estimated(probing.prefix, count=32, mean=0.5))
    assert probing.asked == question
    assert probing.estimate() == EndProbe()
    probing.take(Estimated(probing.prefix, count=48, mean=0.5, done=True))
    assert probing.asked is None
    assert probing.values[(), "policy"].count == 48


def test_each_request_draws_other_random_numbers_and_the_writer_can_change() -> None:
    probing = begun()
    first, second = probing.sample(), probing.sample()
    assert (first.count, first.writer) == (TAILS, "policy")
    assert first.draw != second.draw
    probing.other_writer()
    assert probing.sample().writer == "reference"
    assert probing.greedy().greedy


def test_a_refusal_is_shown_and_leaves_the_text_alone() -> None:
    probing = begun()
    probing.force()
    probing.take(Continued(probing.prefix, refused="the answer has ended"))
    assert probing.refused == "the answer has ended"
    assert probing.answer == [7]
    probing.move(-1)
    assert probing.refused == ""


def test_there_is_something_to_draw_after_every_change() -> None:
    probing = Probing()
    for change in (
        lambda: probing.type("How many?"), lambda: probing.take(peeked(probing.prefix)), lambda: probing.choose(1),
        lambda: probing.pick(" seven"), probing.other_writer, probing.toggle_template, lambda: probing.give({"a": 1}),
        probing.sample, probing.greedy,
        lambda: probing.take(Continued(probing.prefix, tails=[tail(7)], pieces=PIECES)),
        lambda: probing.move(1),
    ):  # fmt: skip
        before = probing.version
        change()
        assert probing.version > before, change
    before = probing.version
    probing.take(peeked(Prefix("Another?")))
    assert probing.move(99) is None
    assert probing.version == before


def test_it_is_vacant_until_there_is_a_prompt_or_an_answer() -> None:
    assert Probing().vacant
    assert not begun().vacant
    answered = Probing()
    answered.answer = [7]
    assert not answered.vacant


def test_it_opens_only_on_answers_that_are_there() -> None:
    sampled: Any = synthetic_update(1)[0]
    probing = Probing()
    probing.open(sampled, (len(sampled.group), 0))
    assert probing.vacant
    probing.open(sampled, (len(sampled.group) - 1, 999))
    assert probing.place == len(probing.answer) > 0
    assert probing.texts == sampled.texts[sampled.offsets[-2] :]
    assert {probing.pieces[token] for token in probing.answer} <= set(sampled.pieces.values())


def written() -> Probing:
    """Begun, with an answer of three tokens, at its start."""
    probing = begun()
    probing.greedy()
    probing.take(Continued(probing.prefix, tails=[tail(8, 7, 9)], pieces=PIECES))
    return probing


def test_the_place_stays_within_the_answer() -> None:
    probing = written()
    assert probing.answer == [8, 7, 9]
    assert probing.chosen == 8, "what now stands at the place"
    assert probing.move(-1) is None
    assert probing.move(9) == Peek(Prefix("How many?", [8, 7, 9]))
    assert probing.move(1) is None
    assert probing.go(1) == Peek(Prefix("How many?", [8]))
    assert probing.chosen is None, "its candidates are not known yet"
    assert probing.begun == (8,)


def test_candidates_are_chosen_by_step_and_by_text() -> None:
    probing = begun()
    for step, rank in ((1, 1), (9, 2), (-1, 1), (-9, 0)):
        probing.choose(step)
        assert probing.rank == rank
    probing.pieces[9] = " seven"
    assert probing.pick(" seven")
    assert probing.rank == 0, "the likeliest of two"
    assert probing.pick("[bold]\x1b")
    assert probing.rank == 1
    assert not probing.pick("nothing")
    assert probing.rank == 1
    probing.force()
    assert not probing.pick(" seven"), "of another place"
    assert not Probing().pick(" seven")


def test_nothing_is_forced_where_nothing_is_known_or_the_answer_has_ended() -> None:
    probing = begun()
    probing.take(peeked(probing.prefix, ended=True))
    assert probing.force() == []
    assert Probing().force() == []
    forced = begun()
    forced.force()
    assert isinstance(forced.asked, Continue)


def test_another_writer_and_other_columns_keep_the_prefix() -> None:
    probing = written()
    probing.move(1)
    probing.take(Estimated(probing.prefix, count=8, mean=0.5, done=True))
    assert probing.give({"answer": "3"}) == Peek(Prefix("How many?", [8], {"answer": "3"}))
    assert (probing.tails, probing.values) == ({}, {})
    assert probing.toggle_template() == Peek(Prefix("How many?", [], None, True))
    assert probing.toggle_template().prefix.plain is False
    assert (probing.writer, probing.other_writer(), probing.writer) == ("policy", None, "reference")


def test_values_of_another_prompt_and_without_samples_are_not_kept() -> None:
    probing = begun()
    probing.take(Estimated(Prefix("Another?"), count=8, mean=0.5))
    probing.take(Estimated(probing.prefix, count=0, mean=0.5))
    assert probing.values == {}
    question = probing.estimate()
    probing.take(Estimated(Prefix("Another?"), count=8, mean=0.5, done=True))
    assert probing.asked == question
    probing.take(Estimated(probing.prefix, refused="no reward"))
    assert (probing.asked, probing.refused) == (None, "no reward")


def recalled(probing: Probing, updates: list[int], **fields: Any) -> Recalled:
    rows = [[n / 10, n / 20, n / 40] for n in updates]
    return Recalled(probing.prefix, token_ids=[7, 8, 9], updates=updates, probabilities=rows, **fields)


def test_candidates_are_recalled_over_training_and_what_comes_is_added() -> None:
    probing = begun()
    assert probing.recall_on(3) is None
    probing.choose(2)
    assert probing.recall() == Recall(probing.prefix, [7, 8, 9])
    assert probing.recall_on(3) is None, "asked already"
    probing.take(recalled(probing, [1, 2]))
    assert probing.asked is not None
    probing.take(recalled(probing, [2, 3], done=True))
    assert probing.asked is None
    course = probing.courses[()]
    assert (course.updates, course.probabilities[1][0]) == ([1, 2, 3], 0.2)
    assert len(course.probabilities) == 3
    assert probing.recall_on(3) is None
    assert probing.recall_on(5) == Recall(probing.prefix, [7, 8, 9], 4)
    probing.take(Recalled(probing.prefix, token_ids=[9], updates=[4], probabilities=[[0.5]], done=True))
    assert probing.courses[()].updates == [4], "of other candidates"
    probing.take(Recalled(Prefix("Another?"), token_ids=[9], updates=[9], probabilities=[[0.5]]))
    probing.take(Recalled(probing.prefix, token_ids=[9], updates=[], probabilities=[]))
    assert probing.courses[()].updates == [4]
    before = probing.version
    assert probing.recall_on(3) is None
    assert probing.courses == {}, "the run went back"
    assert probing.version > before
    assert Probing().recall() is None
    probing.force()
    assert probing.recall() is None, "the candidates of the place are not known"


def test_a_candidate_beyond_those_that_are_shown_is_recalled_with_them() -> None:
    probing = begun()
    many = list(range(20, 30))
    probing.take(peeked(probing.prefix, top_ids=many))
    probing.choose(9)
    question = probing.recall()
    assert question is not None
    assert question.token_ids == [*many[:RECALLED], 29]
