"""The distribution at a place over the updates: only what was recorded, averaged as it says."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.trace.beliefs import CANDIDATES, MOST, Beliefs, Place
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update
from tests.recorded import synthetic_sampling, synthetic_update


def sampled(number: int) -> Sampled:
    record = synthetic_update(number)[0]
    assert isinstance(record, Sampled)
    return record


def same_prompt(number: int) -> Sampled:
    """The answers of an update to the prompts of update 1."""
    first = sampled(1)
    names = ("prompts", "prompt_ids", "prompt_offsets", "prompt_texts", "columns")
    return msgspec.structs.replace(sampled(number), **{name: getattr(first, name) for name in names})


def update_of(record: Sampled) -> Update:
    update = Update(record.update)
    update.add(record)
    return update


def by_hand(record: Sampled, before: tuple[int, ...]) -> tuple[dict[int, float], int]:
    """The mean over the prompts, written as loops."""
    one_of_group: dict[int, dict[int, float]] = {}
    for row, group in enumerate(record.group.tolist()):
        start, end = int(record.offsets[row]), int(record.offsets[row + 1])
        here = start + len(before)
        if here < end and tuple(record.token_ids[start:here].tolist()) == before and record.mask[here] == 1:
            pairs = zip(record.top_ids[here].tolist(), record.top_logprobs[here].tolist(), strict=True)
            one_of_group.setdefault(group, {token: float(np.exp(logprob)) for token, logprob in pairs})
    total: dict[int, float] = {}
    for shares in one_of_group.values():
        for token, share in shares.items():
            total[token] = total.get(token, 0.0) + share / len(one_of_group)
    return total, len(one_of_group)


def test_the_mean_over_the_prompts_is_that_of_the_records() -> None:
    beliefs = Beliefs()
    records = [sampled(number) for number in (1, 2, 3)]
    for record in records:
        beliefs.add(record)
    start = int(records[0].offsets[4])
    for before in ((), tuple(records[0].token_ids[start : start + 2].tolist())):
        found = beliefs.at(Place(before))
        for record in records:
            expected, prompts = by_hand(record, before)
            if not prompts:
                assert record.update not in found  # a gap, nothing drawn in between
                continue
            assert found[record.update].prompts == prompts
            assert found[record.update].shares == pytest.approx(expected)
            assert sum(found[record.update].shares.values()) <= 1 + 1e-6


def test_a_prompt_that_most_updates_ask_has_its_own_river() -> None:
    beliefs = Beliefs()
    for number in (1, 2, 3):
        beliefs.add(same_prompt(number))
    place = beliefs.place(update_of(same_prompt(3)), (5, 0))
    assert place is not None
    assert place.prompt is not None
    for number, belief in beliefs.at(place).items():
        record = same_prompt(number)
        here = int(record.offsets[record.group.tolist().index(int(record.group[5]))])
        shares = np.exp(record.top_logprobs[here].astype(np.float64))
        assert belief.prompts == 1
        assert belief.shares == pytest.approx(dict(zip(record.top_ids[here].tolist(), shares, strict=True)))


def test_a_prompt_that_few_updates_ask_stands_for_all_prompts() -> None:
    beliefs = Beliefs()
    for number in (1, 2, 3, 4, 5):
        beliefs.add(sampled(number))
    assert beliefs.place(update_of(sampled(5)), (0, 0)) == Place()


def test_no_place_without_a_sampled_token() -> None:
    record = sampled(1)
    written = msgspec.structs.replace(record, mask=np.zeros_like(record.mask))
    assert Beliefs().place(None, (0, 0)) is None
    assert Beliefs().place(Update(1), (0, 0)) is None
    assert Beliefs().place(update_of(written), (0, 0)) is None
    assert Beliefs().place(update_of(record), (999, 0)) is None


def test_only_finished_sampling_counts_and_going_back_forgets() -> None:
    beliefs = Beliefs()
    beliefs.add(synthetic_sampling(1)[0])
    assert beliefs.known == 0
    for number in (1, 2, 3):
        beliefs.add(sampled(number))
    assert set(beliefs.at(Place())) == {1, 2, 3}
    beliefs.go_back(1)
    assert set(beliefs.at(Place())) == {1}


def test_recorded_updates_are_read_again_after_a_rewind() -> None:
    beliefs = Beliefs()
    beliefs.expect([1, 2], 0)
    beliefs.take(1, update_of(sampled(1)))
    beliefs.take(2, None)  # its tokens were not kept
    assert beliefs.missing == []
    assert set(beliefs.at(Place())) == {1}
    beliefs.expect([1, 2, 3], 0)
    assert beliefs.missing == [2, 3]
    beliefs.expect([1, 2, 3], 1)
    assert beliefs.missing == [1, 2, 3]


def test_a_long_run_is_read_in_strides_and_ends_with_its_newest_update() -> None:
    beliefs = Beliefs()
    beliefs.expect(range(1, 10 * MOST + 1))
    assert len(beliefs.missing) <= MOST + 1
    assert beliefs.missing[-1] == 10 * MOST


def test_the_whole_vocabulary_is_not_kept() -> None:
    record = sampled(1)
    ids = np.tile(np.arange(100, dtype=np.int32), (len(record.token_ids), 1))
    wide = msgspec.structs.replace(record, top_ids=ids, top_logprobs=np.full(ids.shape, -5, dtype=np.float32))
    beliefs = Beliefs()
    beliefs.add(wide)
    assert set(beliefs.at(Place())[1].shares) == set(range(CANDIDATES))
