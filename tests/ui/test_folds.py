"""What of the answers is folded: identical ones to the first of them, until the user unfolds it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.trace.kinds import Kind
from rlplay.trace.records import Stepped
from rlplay.trace.update import Update
from rlplay.ui.answers.folding import Folding
from rlplay.ui.tokens.token_layout import LONG
from tests.recorded import synthetic_update
from tests.written import sampled_of, scored_of, update_with

ANSWERS = (["a", "b"], ["a", "b"], ["c"], ["a", "b"], ["a", "b"], ["c"])
REWARDS = (1.0, 1.0, 0.0, 0.5, 1.0, 0.0)
ALL = [0, 1, 2, 3, 4, 5]


def written(number: int = 1, rewards: tuple[float, ...] = REWARDS, **fields: object) -> Update:
    sampled = msgspec.structs.replace(sampled_of(*ANSWERS, **fields), update=number)
    return update_with(sampled, scored_of(*rewards, update=number))


def clipped(*tokens: int) -> Stepped:
    """An optimizer step that clips these tokens."""
    template = next(record for record in synthetic_update(1) if isinstance(record, Stepped))
    clips = np.zeros(10, dtype=np.int8)
    clips[list(tokens)] = 1
    zeros = np.zeros(10, dtype=np.float32)
    return msgspec.structs.replace(
        template, rows=np.arange(6, dtype=np.int32), clip_state=clips, logprobs=zeros, importance_ratio=zeros,
        dloss_dlogp=zeros, dkl_dlogp=None, weights=None, left_out=None, kl=None,
    )  # fmt: skip


def test_identical_answers_with_one_reward_are_one() -> None:
    folding = Folding()
    assert folding.fold(written(), ALL, "rewards") == [0, 2, 3]
    assert folding.copies == {0: 3, 2: 2}
    assert [folding.shown_for(answer) for answer in ALL] == [0, 0, 2, 3, 0, 2]
    assert [folding.folds(written(), answer) for answer in ALL] == [True, True, True, False, True, True]
    assert folding.fold(written(), [5, 4, 3, 1], "rewards") == [5, 4, 3], "the first that is listed stands for all"
    assert folding.copies == {4: 2}
    assert [folding.shown_for(answer) for answer in (0, 1, 2, 5)] == [0, 4, 2, 5]


def test_answers_without_a_reward_are_alike() -> None:
    folding, nan = Folding(), float("nan")
    assert folding.fold(written(rewards=(nan, nan, 0.0, 0.0, 1.0, 0.0)), ALL, "rewards") == [0, 2, 3, 4]


@pytest.mark.parametrize(("tokens", "kept"), [((), [0, 2, 3]), ((2,), [0, 1, 2, 3]), ((2, 8), [0, 1, 2, 3, 4])])
def test_answers_that_are_clipped_elsewhere_are_others(tokens: tuple[int, ...], kept: list[int]) -> None:
    update = written()
    update.steps.append(clipped(*tokens))
    assert Folding().fold(update, ALL, "rewards") == kept


def test_answers_to_other_prompts_are_others() -> None:
    assert Folding().fold(written(prompts=["P", "Q"]), ALL, "rewards") == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["imitation", "pairs", "reward model"])
def test_nothing_is_folded_where_nothing_is_rewarded(kind: Kind) -> None:
    folding = Folding()
    folding.fold(written(), ALL, "rewards")
    assert folding.fold(written(), ALL, kind) == ALL
    assert folding.copies == {}
    assert folding.shown_for(1) == 1
    assert folding.fold(update_with(sampled_of(*ANSWERS)), ALL, "rewards") == ALL
    assert folding.fold(None, [], "rewards") == []


def test_unfolded_answers_stay_so_until_another_update_is_shown() -> None:
    folding, update = Folding(), written()
    folding.fold(update, ALL, "rewards")
    folding.toggle(4)
    assert folding.fold(update, ALL, "rewards") == [0, 1, 2, 3, 4]
    assert folding.copies == {2: 2}
    assert (folding.shown_for(4), folding.shown_for(5)) == (4, 2)
    assert [folding.folds(update, answer) for answer in (1, 3)] == [True, False]
    folding.fold(None, ALL, "rewards")
    assert folding.fold(update, ALL, "rewards") == [0, 1, 2, 3, 4]
    folding.toggle(1)
    assert folding.fold(update, ALL, "rewards") == [0, 2, 3]
    folding.toggle(3)
    assert folding.unfolded == {3}
    assert folding.fold(written(2), ALL, "rewards") == [0, 2, 3]
    assert folding.unfolded == set()


def test_every_long_answer_can_be_unfolded() -> None:
    long = update_with(sampled_of(["a"] * (LONG + 1)))
    assert Folding().folds(long, 0)
    assert not Folding().folds(update_with(sampled_of(["a"] * LONG)), 0)
    assert not Folding().folds(Update(1), 0)
