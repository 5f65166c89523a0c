"""The distribution at a place over the updates: only what was recorded, averaged as it says."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.trace import beliefs as module
from rlplay.trace.beliefs import CANDIDATES, Beliefs, Context
from rlplay.trace.known import MOST
from rlplay.trace.records import Sampled, Survey
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
        found = beliefs.at(Context(before))
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
    assert beliefs.place(update_of(sampled(5)), (0, 0)) == Context()


def test_no_place_without_a_sampled_token() -> None:
    record = sampled(1)
    written, empty = msgspec.structs.replace(record, mask=np.zeros_like(record.mask)), record.offsets.copy()
    empty[1:6] = empty[6]  # the first answer has the tokens of six, the next five have none
    one = record.mask.copy()
    one[record.offsets[5] + 1] = 0
    assert Beliefs().place(update_of(msgspec.structs.replace(record, offsets=empty)), (5, 0)) is None
    assert Beliefs().place(update_of(msgspec.structs.replace(record, mask=one)), (5, 1)) is None
    assert Beliefs().place(None, (0, 0)) is None
    assert Beliefs().place(Update(1), (0, 0)) is None
    assert Beliefs().place(update_of(written), (0, 0)) is None
    assert Beliefs().place(update_of(record), (999, 0)) is None


def test_only_finished_sampling_counts() -> None:
    beliefs = Beliefs()
    beliefs.add(synthetic_sampling(1)[0])
    assert beliefs.known == 0
    beliefs.add(sampled(1))
    assert set(beliefs.at(Context())) == {1}


def test_an_update_that_is_sampled_again_takes_the_place_of_the_first() -> None:
    beliefs, record = Beliefs(), sampled(1)
    beliefs.add(record)
    first = beliefs.at(Context())[1].shares
    beliefs.add(msgspec.structs.replace(record, top_logprobs=record.top_logprobs - np.float32(np.log(2))))
    assert beliefs.at(Context())[1].shares == pytest.approx({token: share / 2 for token, share in first.items()})


def test_a_cursor_behind_the_last_token_is_on_it() -> None:
    record = sampled(1)
    start, end = record.offsets[5:7].tolist()
    before = tuple(record.token_ids[start : end - 1].tolist())
    assert Beliefs().place(update_of(record), (5, 99)) == Context(before)


def test_the_prompt_is_kept_if_half_of_the_updates_asked_it() -> None:
    beliefs, cursor = Beliefs(), (5, 0)
    for number, asked in enumerate((same_prompt, same_prompt, sampled, sampled, sampled), start=1):
        beliefs.add(asked(number))
        place = beliefs.place(update_of(sampled(1)), cursor)
        assert place is not None
        assert (place.prompt is None) == (number == 5)


def test_in_a_world_a_place_is_a_square_and_its_shares_those_of_the_moves() -> None:
    logprobs = np.log(np.array([[0.5, 0.5], [0.9, 0.1]], dtype=np.float32))
    survey = Survey(states=["a1", "b1"], actions=["←", "→"], logprobs=logprobs, values=None)
    record = msgspec.structs.replace(sampled(1), survey=survey, columns=[{"start": "b1"}] * 4)
    beliefs = Beliefs()
    beliefs.add(record)
    beliefs.add(sampled(2))
    place = beliefs.place(update_of(record), (0, 0))
    assert place == Context(state="b1")
    found = beliefs.at(place)
    assert set(found) == {1}
    assert found[1].prompts == 1
    assert found[1].shares == pytest.approx({0: 0.9, 1: 0.1})
    assert [beliefs.name(place, move) for move in (0, 1, 809)] == ["←", "→", ""]
    assert beliefs.at(Context(state="c1")) == {}


def test_the_whole_vocabulary_is_not_kept() -> None:
    record = sampled(1)
    ids = np.tile(np.arange(100, dtype=np.int32), (len(record.token_ids), 1))
    wide = msgspec.structs.replace(record, top_ids=ids, top_logprobs=np.full(ids.shape, -5, dtype=np.float32))
    beliefs = Beliefs()
    beliefs.add(wide)
    assert set(beliefs.at(Context())[1].shares) == set(range(CANDIDATES))


@pytest.mark.parametrize("updates_at_most", [2, 9, 40])
def test_of_large_updates_fewer_are_kept_and_read(monkeypatch: pytest.MonkeyPatch, updates_at_most: int) -> None:
    record = sampled(1)
    monkeypatch.setattr(module, "MOST_CANDIDATES", updates_at_most * record.top_ids.size)
    beliefs = Beliefs()
    beliefs.expect(range(1, 101))
    while beliefs.missing:
        number = beliefs.missing[-1]
        beliefs.take(number, msgspec.structs.replace(record, update=number))
        assert len(beliefs.missing) <= updates_at_most
        assert beliefs.known <= updates_at_most
    for number in range(101, 200):
        beliefs.add(msgspec.structs.replace(record, update=number))
        assert beliefs.known <= updates_at_most
    found = list(beliefs.at(Context()))
    assert (found[0], found[-1]) == (1, 199)
    assert len(found) >= updates_at_most // 2


def test_of_updates_as_large_as_those_of_lessons_twice_the_usual_number_is_kept() -> None:
    beliefs, record = Beliefs(), sampled(1)
    tokens, candidates = 256 * 40, 10
    record = msgspec.structs.replace(
        record, top_ids=np.zeros((tokens, candidates), np.int8), top_logprobs=np.zeros((tokens, candidates), np.int8)
    )
    for number in range(2 * MOST):
        beliefs.add(msgspec.structs.replace(record, update=number))
    assert beliefs.known == 2 * MOST
