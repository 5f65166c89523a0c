"""What the panels read of an update's records, by token."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update
from rlplay.ui.theme.inks import STEPS, levels
from rlplay.ui.tokens.facts import Facts, facts_of
from tests.numbers import numbers_of
from tests.recorded import synthetic_update


def recorded() -> Update:
    update = Update(3)
    for record in synthetic_update(3, steps=3):
        update.add(record)
    return update


@pytest.mark.parametrize("name", ["advantages", "entropy", "importance_ratio"])
def test_the_spread_of_a_lens_is_that_of_the_sampled_tokens(name: str) -> None:
    update = recorded()
    values = LENSES[name].values(update)
    assert values is not None
    assert update.sampled is not None
    update.sampled.mask[(values == np.nanmin(values)) | (values == np.nanmax(values))] = 0
    own = values[update.sampled.mask == 1]
    assert Facts(update).spread(name) == (np.nanmin(own), np.nanmax(own))
    assert np.nanmin(own) > np.nanmin(values)
    assert np.nanmax(own) < np.nanmax(values)


def test_the_log_ratio_is_the_new_log_probability_less_the_old() -> None:
    update = recorded()
    assert update.sampled is not None
    found = [numbers_of(update, token) for token in range(len(update.sampled.old_logprobs))]
    known = [(token, n) for token, n in enumerate(found) if n.logprob is not None and n.log_ratio is not None]
    assert len({round(n.log_ratio or 0.0, 3) for _, n in known}) > 2
    for token, n in known:
        assert n.logprob is not None
        assert n.ratio is not None
        assert n.log_ratio == pytest.approx(n.logprob - float(update.sampled.old_logprobs[token]))
        assert n.log_ratio == pytest.approx(np.log(n.ratio), abs=1e-4)


def test_facts_hold_until_their_update_goes_on() -> None:
    update = recorded()
    facts = facts_of(update)
    assert facts_of(update) is facts
    other = facts_of(recorded())
    assert other is not facts
    assert facts_of(update) is facts, "two of them are kept"
    for _ in range(2):
        facts_of(recorded())
    assert facts_of(update) is not facts
    facts = facts_of(update)
    last = update.steps.pop()
    assert facts_of(update) is not facts
    update.steps.append(last)
    assert update.sampled is not None
    facts = facts_of(update)
    update.sampled = msgspec.structs.replace(update.sampled)
    assert not facts.hold_for(update)


def test_what_is_not_known_yet_has_no_spread_and_no_shades() -> None:
    bare, sampled = Update(1), Update(1)
    sampled.add(synthetic_update(1)[0])
    for update in (bare, sampled):
        assert np.isnan(Facts(update).spread("credit")).all()
        assert Facts(update).shades(LENSES["credit"]).tolist() == [0] * (2 * STEPS + 1)
    assert Facts(sampled).means is None
    assert np.isfinite(Facts(sampled).spread("entropy")).all()


@pytest.mark.parametrize(("lens", "count"), [("credit", 2 * STEPS + 1), ("entropy", STEPS + 1)])
def test_shades_count_the_sampled_tokens(lens: str, count: int) -> None:
    update = recorded()
    assert update.sampled is not None
    update.sampled.mask[:5] = 0
    shades = Facts(update).shades(LENSES[lens])
    values = LENSES[lens].values(update)
    assert values is not None
    own = values[update.sampled.mask == 1]
    found = levels(LENSES[lens], own[np.isfinite(own)]) + (STEPS if LENSES[lens].two_sided else 0)
    assert shades.tolist() == [int((found == level).sum()) for level in range(count)]


def test_an_answers_facts_are_counted_from_its_first_token() -> None:
    update = recorded()
    facts = Facts(update)
    assert facts.answer(2) is facts.answer(2)
    assert facts.answer(1) is not facts.answer(2)
    sampled, credited, finished = update.sampled, update.credited, update.finished
    assert sampled is not None
    assert credited is not None
    assert finished is not None
    start, answer = int(sampled.offsets[2]), facts.answer(2)
    assert answer.value("entropy", 1) == pytest.approx(float(sampled.entropy[start + 1]))
    assert answer.ref is not None
    assert credited.ref_logprobs is not None
    assert answer.ref[1] == credited.ref_logprobs[start + 1]
    assert answer.ref_top is not None
    assert credited.ref_top_logprobs is not None
    assert answer.ref_top[1].tolist() == credited.ref_top_logprobs[start + 1].tolist()
    assert answer.new is not None
    assert answer.new[1] == finished.logprobs[start + 1]
    assert answer.new_top is not None
    assert finished.top_logprobs is not None
    assert answer.new_top[1].tolist() == finished.top_logprobs[start + 1].tolist()
    favourite = answer.favourite(1)
    assert favourite is not None
    assert finished.favourite_ids is not None
    assert finished.favourite_logprobs is not None
    number = int(finished.favourite_ids[start + 1])
    assert favourite.id == number
    assert favourite.text == {**finished.pieces, **sampled.pieces}[number]
    assert favourite.probability == pytest.approx(float(np.exp(finished.favourite_logprobs[start + 1])))
    assert answer.action_values(1) == {}


def test_an_answer_before_credit_and_before_the_end() -> None:
    update = Update(1)
    update.add(synthetic_update(1)[0])
    answer = Facts(update).answer(0)
    assert (answer.ref, answer.ref_top, answer.new, answer.new_top, answer.favourite(0), answer.steps) == (None,) * 6
    numbers = answer.numbers(0)
    assert (numbers.logprob, numbers.clip_state, numbers.left_out, numbers.log_ratio, numbers.beta) == (None,) * 5
    assert numbers.answer is None
    assert (numbers.place, numbers.reached) == (0, "sample")


def test_the_steps_that_included_an_answer() -> None:
    update = recorded()  # three steps over whole batches
    steps = Facts(update).answer(1).steps
    assert steps == (3, 3, 3)
    update = Update(1)
    for record in synthetic_update(1, steps=4):  # two passes of two minibatches
        update.add(record)
    for answer in range(16):
        seen = [step.step + 1 for step in update.steps if answer in step.rows]
        assert Facts(update).answer(answer).steps == (seen[-1], 4, 2)
    single = Update(1)
    for record in synthetic_update(1, steps=1):
        single.add(record)
    assert Facts(single).answer(0).steps is None


def test_the_answers_arrays_are_there_for_its_formula() -> None:
    update = recorded()
    assert update.sampled is not None
    numbers = Facts(update).answer(1).numbers(0)
    assert numbers.answer is not None
    assert set(numbers.answer) == {"logprobs", "old_logprobs", "ratio", "advantages", "ref_logprobs", "mask"}
    assert numbers.answer["mask"].all()
    assert numbers.beta is None
    for step in (0, -1):
        update.steps[step].metrics["kl_coef"] = 0.5 + step
    assert Facts(update).answer(1).numbers(0).beta == -0.5
    assert update.credited is not None
    assert numbers.baseline == pytest.approx(float(update.credited.baseline[update.sampled.offsets[1]]))
