"""The digest of a small batch, against what can be counted in it by hand."""

from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.health.counts import WinCount, alike_prompts
from rlplay.health.digest import Digest, TokenPlace, digest
from rlplay.trace.records import Finished, Sampled, Stepped, spans
from rlplay.trace.update import Update
from tests.recorded import synthetic_update


def digested(length=12, cut=(), finished=True, token_ids=None, **metrics) -> Digest:
    """That of two prompts with two answers each, of which `cut` were; the last record has these metrics, too."""
    update = Update(1)
    for record in synthetic_update(1, prompts=2, generations=2, length=length):
        if isinstance(record, Sampled):
            truncated = np.isin(np.arange(4), cut).astype(np.uint8)
            ids = record.token_ids if token_ids is None else token_ids(record)
            update.add(msgspec.structs.replace(record, truncated=truncated, token_ids=ids))
        elif isinstance(record, Stepped | Finished):
            if finished or isinstance(record, Stepped):
                update.add(msgspec.structs.replace(record, metrics=record.metrics | metrics))
        else:
            update.add(record)
    found = digest(update)
    assert found is not None
    return found


def test_only_a_cut_answer_has_a_limit_and_a_place():
    whole, cut = digested(), digested(cut=(2, 3))
    assert (whole.cut, whole.limit, whole.cut_earned) == (0, 0, None)
    assert "cut" not in whole.places
    lengths = np.diff(synthetic_update(1, prompts=2, generations=2)[0].offsets)
    assert (cut.cut, cut.limit) == (2, lengths[2:].max())
    assert cut.places["cut"] == TokenPlace(1, 2, lengths[2] - 1)


def test_a_cut_answer_of_one_token_has_a_place_too():
    assert digested(length=1, cut=(3,)).places["cut"] == TokenPlace(1, 3, 0)


def test_tokens_are_on_record_unless_one_has_no_number():
    assert digested(token_ids=lambda sampled: np.zeros_like(sampled.token_ids)).tokens
    assert not digested(token_ids=lambda sampled: np.full_like(sampled.token_ids, -1)).tokens


def test_an_answer_without_tokens_is_no_place():
    sampled, *_ = synthetic_update(1, prompts=2, generations=2, length=1)
    update, offsets = Update(1), np.array([0, 0, 2, 3, 4])
    update.add(msgspec.structs.replace(sampled, offsets=offsets, truncated=np.array([1, 1, 0, 0])))
    found = digest(update)
    assert found is not None
    assert found.places["cut"] == TokenPlace(1, 1, 1)


def of_answers(answers, rewards, columns):
    """The digest of answers of one token each, two to a prompt."""
    sampled, scored, *_ = synthetic_update(1, prompts=2, generations=2, length=1)
    update = Update(1)
    update.add(msgspec.structs.replace(sampled, texts=list(answers), columns=columns))
    update.add(msgspec.structs.replace(scored, rewards=np.array(rewards)))
    found = digest(update)
    assert found is not None
    return found


def test_the_best_reward_and_the_only_one():
    columns = [{"answer": "1"}, {"answer": "2"}]
    unequal = of_answers("abcd", [0.5, -1.0, np.nan, 2.0], columns)
    assert (unequal.best, unequal.reward, unequal.scored) == (2.0, None, True)
    equal = of_answers("abcd", [0.5, np.nan, 0.5, 0.5], columns)
    assert (equal.best, equal.reward) == (0.5, 0.5)
    one = of_answers("abcd", [np.nan, np.nan, np.nan, 0.5], columns)
    assert (one.best, one.reward, one.scored) == (0.5, 0.5, True)
    unknown = of_answers("abcd", [np.nan] * 4, columns)
    assert (unknown.best, unknown.reward, unknown.scored) == (None, None, False)


def test_an_example_is_an_answer_that_contains_what_its_prompt_asks_for():
    found = of_answers(["no", "it is 7", "8", "9"], [0.0, 1.0, 2.0, 3.0],
                       [{"answer": "7", "size": "no"}, {"answer": "10", "size": "9"}])  # fmt: skip
    assert [(each.place, each.answer, each.reward) for each in found.examples] == [
        (TokenPlace(1, 1), "it is 7", 1.0), (TokenPlace(1, 2), "8", 2.0),
    ]  # fmt: skip
    assert found.examples[0].columns == {"answer": "7", "size": "no"}
    numbers = of_answers("7777", [0.0] * 4, [{"answer": 7, "size": float("inf"), "row": 2**70}, {"answer": 8}])
    assert numbers.examples[0].columns == {"answer": 7, "size": "inf", "row": str(2**70)}, "as the reward gets them"
    assert found.contained == {"answer": 1, "size": 2}
    other = of_answers(["no", "it is 7", "8", "9"], [0.0, 1.0, 2.0, 3.0], [{"size": "no"}, {"size": "9"}])
    assert [each.answer for each in other.examples] == ["no", "9"]


def test_an_answer_is_empty_if_it_ended_at_once():
    assert digested(length=1, cut=(3,)).empty == 3
    assert digested().empty == 0


def test_one_answer_that_repeats_itself_has_a_place():
    def repeating(sampled):
        ids = np.arange(len(sampled.token_ids), dtype=np.int32)
        ids[sampled.offsets[1] : sampled.offsets[2]] = 7
        return ids

    found, (a, b) = digested(token_ids=repeating), synthetic_update(1, prompts=2, generations=2)[0].offsets[1:3]
    assert found.places["repeated"].answer == 1
    assert found.repeats == pytest.approx((1 - 1 / (b - a - 3)) / 4)
    assert "repeated" not in digested(token_ids=lambda sampled: np.arange(len(sampled.token_ids))).places


@pytest.mark.parametrize("finished", [True, False])
def test_numbers_that_are_not_finite_are_those_of_the_last_record(finished):
    assert digested(finished=finished, loss=np.nan, grad_norm=np.inf).broken == ("grad_norm", "loss")
    assert digested(finished=finished).broken == ()


def test_the_token_that_moved_most_and_the_one_that_is_farthest_off_have_places():
    sampled, *_, stepped, finished = synthetic_update(1, prompts=2, generations=2, steps=1)
    old = sampled.old_logprobs
    token = int(sampled.offsets[2]) + 1
    new = np.where(np.arange(len(old)) == token, old - 0.5, old).astype(np.float32)
    update = Update(1)
    update.add(sampled)
    update.add(msgspec.structs.replace(stepped, logprobs=new[spans(sampled.offsets, stepped.rows)]))
    update.add(msgspec.structs.replace(finished, logprobs=new))
    found = digest(update)
    assert found is not None
    assert found.places["moved"] == found.places["mismatch"] == TokenPlace(1, 2, 1)
    assert found.mismatch == pytest.approx((np.exp(-0.5) - 1 + 0.5) / len(old), rel=1e-5)
    assert found.shift == pytest.approx((1 - np.exp(-0.5)) / len(old), rel=1e-5)


def moved(mask, old, new):
    """The digest of an update that moved log-probabilities from `old` to `new`, before its first step already."""
    sampled, *_, stepped, finished = synthetic_update(1, prompts=2, generations=2, length=1, steps=1)
    old, new = (np.array(each, dtype=np.float32) for each in (old, new))
    update = Update(1)
    update.add(msgspec.structs.replace(sampled, mask=np.array(mask, dtype=np.uint8), old_logprobs=old))
    update.add(msgspec.structs.replace(stepped, logprobs=new[spans(sampled.offsets, stepped.rows)]))
    update.add(msgspec.structs.replace(finished, logprobs=new))
    found = digest(update)
    assert found is not None
    return found


def test_a_sampler_in_another_program_is_compared_with_the_first_step():
    sampled, *_, stepped, _ = synthetic_update(1, prompts=2, generations=2, length=1, steps=1)
    own = np.array([-1, np.nan, -0.5, -1], dtype=np.float32)  # vLLM had no number for the second
    update = Update(1)
    update.add(msgspec.structs.replace(sampled, old_logprobs=np.float32([-2] * 4), sampling_logprobs=own))
    update.add(msgspec.structs.replace(stepped, logprobs=np.float32([-2] * 4)))
    found = digest(update)
    assert found is not None
    assert found.apart
    gaps = np.array([-1, -1.5, -1])
    assert found.mismatch == pytest.approx((np.exp(gaps) - 1 - gaps).mean())
    assert found.places["mismatch"] == TokenPlace(1, 2)
    update.add(msgspec.structs.replace(sampled, old_logprobs=np.float32([-2] * 4)))
    same = digest(update)
    assert same is not None
    assert (same.apart, same.mismatch) == (False, 0)


def test_what_the_environment_wrote_and_what_is_unknown_has_not_moved():
    written = moved([1, 1, 1, 0], [-1, -1, -1, -9], [-1, -2, -1, -1])
    assert written.shift == pytest.approx((1 - np.exp(-1)) / 3)
    assert written.mismatch == pytest.approx(np.exp(-1) / 3)
    assert written.places["moved"] == TokenPlace(1, 1)
    unknown = moved([1, 1, 1, 1], [-1, np.nan, -1, -1], [-1, -1, -2, -1])
    assert unknown.shift == pytest.approx((1 - np.exp(-1)) / 3)
    assert unknown.mismatch is None
    assert unknown.places["moved"] == TokenPlace(1, 2)
    nothing = moved([0, 0, 0, 0], [-1] * 4, [-2] * 4)
    assert (nothing.shift, nothing.mismatch) == (None, None)


@pytest.mark.parametrize("steps", [1, 2])
def test_where_no_pass_follows_the_update_its_last_step_shows_how_far_the_others_moved_it(steps):
    sampled, *_, stepped, finished = synthetic_update(1, prompts=2, generations=2, length=1, steps=1)
    old = np.float32([-1, -1, -1, -1])
    update = Update(1)
    update.add(msgspec.structs.replace(sampled, old_logprobs=old))
    seen = [old, old - np.float32([0, 0, 0.5, 0])]
    for number in range(steps):
        logprobs = seen[number][spans(sampled.offsets, stepped.rows)]
        update.add(msgspec.structs.replace(stepped, step=number, logprobs=logprobs))
    update.add(msgspec.structs.replace(finished, rows=np.array([], dtype=np.int32), logprobs=np.float32([])))
    found = digest(update)
    assert found is not None
    assert found.shift == (None if steps == 1 else pytest.approx((1 - np.exp(-0.5)) / 4))
    assert found.shift_before_last
    assert ("moved" in found.places) is (steps == 2)


def test_without_its_last_record_an_update_is_as_finite_as_its_last_step():
    sampled, *_, first, last, _ = synthetic_update(1, prompts=2, generations=2, steps=2)
    update = Update(1)
    for record in (sampled, msgspec.structs.replace(first, metrics={"loss": np.nan}), last):
        update.add(record)
    found = digest(update)
    assert found is not None
    assert found.broken == ()


def test_prompts_that_differ_in_their_words_and_not_in_their_tokens() -> None:
    sampled = synthetic_update(1)[0]
    assert isinstance(sampled, Sampled)
    count = len(sampled.prompts)
    ids = np.tile(np.array([3, 4], dtype=np.int32), count)
    changes: dict[str, Any] = {
        "prompt_ids": ids, "prompt_offsets": np.arange(0, 2 * count + 1, 2), "prompt_texts": ["a", "b"] * count,
    }  # fmt: skip
    alike = msgspec.structs.replace(sampled, **changes)
    assert alike_prompts(sampled) == (count, 0)
    assert alike_prompts(alike) == (count, count)
    assert alike_prompts(msgspec.structs.replace(alike, prompts=["p"] * count)) == (1, 0), "the same prompt again"
    assert alike_prompts(msgspec.structs.replace(alike, prompt_ids=np.full_like(ids, -1))) == (0, 0), "not on record"


def test_a_gold_score_of_0_and_1_is_compared_with_the_reward():
    sampled, scored, *_ = synthetic_update(1, prompts=2, generations=2)

    def scores(*gold: float) -> dict[str, WinCount]:
        update = Update(1)
        update.add(sampled)
        rewards, kept = np.array([0.2, -0.8, 0.0, 0.2]), {"correct": np.array(gold)}
        update.add(msgspec.structs.replace(scored, rewards=rewards, gold=kept))
        found = digest(update)
        assert found is not None
        return found.scores

    assert scores(0, 1, 0, 0) == {"correct": WinCount(0, 1)}
    assert scores(0, 1, 0, 1) == {"correct": WinCount(1, 2)}
    assert scores(0, 1, np.nan, 1) == {"correct": WinCount(0, 1)}
    assert scores(0, 0.5, 0, 1) == {}, "how good an answer is, not whether it is right"
