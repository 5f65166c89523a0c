"""The probe's state: which tokens it asks about, what an answer changes and which requests it makes."""

from __future__ import annotations

from typing import Any

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import Continue, Continued, Estimate, Estimated, Peek, Prefix
from rlplay.ui.session.probing import SAMPLES, TAILS, Probing
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
