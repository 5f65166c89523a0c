"""One answer cut out of an update has the numbers that it has there, and results about an update stay true to it."""

import msgspec
import numpy as np
import pytest

from rlplay.trace.answers import advantages
from rlplay.trace.lenses import LENSES
from rlplay.trace.one_answer import one_answer
from rlplay.trace.records import Record, spans
from rlplay.trace.update import Update
from tests.recorded import synthetic_update


def an_update(**shape: int) -> Update:
    update = Update(1)
    for record in synthetic_update(1, **shape):
        update.add(record)
    return update


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_every_statistic_of_one_answer_is_the_one_it_has_in_the_batch(steps):
    update = an_update(steps=steps)
    update.sampled.mask[3] = 0
    for completion in range(update.completions):
        alone = one_answer(update, completion)
        own = slice(*update.sampled.offsets[completion : completion + 2])
        for name, lens in LENSES.items():
            there, here = lens.values(update), lens.values(alone)
            assert (here is None) == (there is None), name
            if there is not None:
                np.testing.assert_allclose(here, there[own], rtol=1e-6, err_msg=name)
        for field in ("logprobs", "kl", "weights"):
            there, here = update.latest_step(field), alone.latest_step(field)
            assert there is None or np.array_equal(here, there[own], equal_nan=True)
        assert alone.phase == update.phase
        assert alone.scored.rewards.tolist() == [update.scored.rewards[completion]]
        assert [step.metrics for step in alone.steps] == [step.metrics for step in update.steps]


def test_no_array_of_the_whole_batch_is_left_in_one_answer():
    update = an_update()
    alone = one_answer(update, 5)
    assert alone.tokens not in (update.tokens, update.completions)
    whole = {"prompt_ids", "prompt_offsets", "group_mean", "group_std"}
    for record in (alone.sampled, alone.scored, alone.credited, *alone.steps, alone.finished):
        assert isinstance(record, Record)
        for name, value in msgspec.structs.asdict(record).items():
            if isinstance(value, np.ndarray) and name not in whole:
                assert len(value) in (0, 1, 2, alone.tokens), name


def test_a_step_without_the_answer_keeps_its_metrics_and_has_no_tokens():
    update = an_update(steps=2)  # two minibatches
    missing = next(row for row in range(update.completions) if row not in update.steps[-1].rows)
    alone = one_answer(update, missing)
    assert [len(step.rows) for step in alone.steps] == [1, 0]
    assert alone.steps[-1].metrics == update.steps[-1].metrics


def test_a_result_is_computed_once_until_a_record_comes_or_changes():
    update, times = an_update(), []
    for _ in range(3):
        update.once(times.append)
    assert times == [update]
    before = advantages(update)
    assert advantages(update) is before
    update.add(msgspec.structs.replace(update.credited, advantages=update.credited.advantages + 1))
    assert advantages(update)[0] == pytest.approx(before[0] + 1)
    update.once(times.append)
    update.steps.pop()
    update.once(times.append)
    assert len(times) == 3


def test_the_tokens_of_some_answers_in_their_order():
    offsets = np.array([0, 3, 3, 5, 9])
    for rows in ([0, 1, 2, 3], [3, 0], [1], [2, 1, 2], []):
        expected = [token for row in rows for token in range(offsets[row], offsets[row + 1])]
        found = spans(offsets, np.array(rows, dtype=np.int32))
        assert (found.tolist(), found.dtype) == (expected, np.int64)
