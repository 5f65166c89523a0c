"""A recorded update at every point: what a replay steps through is what was recorded, in the order it happened."""

import numpy as np
import pytest

from rlplay.trace.playhead import at, length, onward
from rlplay.trace.update import Update
from tests.recorded import synthetic_sampling, synthetic_search, synthetic_update


@pytest.fixture
def whole() -> Update:
    update = Update(1)
    for record in synthetic_update(1, steps=4):
        update.add(record)
    return update


def test_sampling_comes_back_position_by_position(whole):
    for point, record in enumerate(synthetic_sampling(1, steps=4), start=1):
        shown = at(whole, point).sampled
        assert shown.done == record.done
        assert shown.texts == record.texts
        for name in ("token_ids", "offsets", "top_logprobs", "truncated"):
            assert np.array_equal(getattr(shown, name), getattr(record, name)), name


def test_phases_follow_each_other(whole):
    phases = [at(whole, point).phase for point in range(1, length(whole) + 1)]
    sampling = phases.count("sample")
    assert phases[sampling:] == ["score", "credit", "update", "update", "update", "update", "after"]
    assert at(whole, length(whole)) is whole
    assert at(whole, 0).sampled is None


def test_strides(whole):
    sampled = len(synthetic_sampling(1, steps=4))
    ends = {}
    for stride in ("token", "step", "phase", "update"):
        point, ends[stride] = 0, []
        while point < length(whole):
            point = onward(whole, point, stride)
            ends[stride].append(point)
    assert ends["token"][:3] == [1, 2, 3]
    assert ends["phase"] == [sampled, sampled + 1, sampled + 2, sampled + 6, sampled + 7]
    assert ends["step"] == list(range(sampled, sampled + 8))
    assert ends["update"] == [length(whole)]


def test_a_search_is_stepped_through_before_its_step():
    update = Update(1)
    records = synthetic_update(1, steps=1)
    for record in (*records[:-2], *synthetic_search(1), *records[-2:]):
        update.add(record)
    credited = len(synthetic_sampling(1, steps=1)) + 2
    searched = len(update.searched)
    assert searched > 3
    assert [at(update, credited + n).phase for n in (0, 1, searched)] == ["credit", "update", "update"]
    assert [len(at(update, credited + n).searched) for n in (0, 1, searched)] == [0, 1, searched]
    assert at(update, credited + searched).steps == []
    ends = {stride: onward(update, credited, stride) - credited for stride in ("token", "step", "phase")}
    assert ends == {"token": 1, "step": searched + 1, "phase": searched + 1}


def test_an_update_cut_short_ends_where_its_records_do():
    update = Update(1)
    for record in synthetic_update(1)[:2]:
        update.add(record)
    assert at(update, length(update)).phase == "score"


def test_an_update_whose_tokens_were_thinned_away():
    update = Update(1)
    update.add(synthetic_update(1)[-1])
    assert onward(update, 0, "update") == length(update) == 1
