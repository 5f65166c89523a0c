"""Pairs of a recorded update: what can be compared, and what was."""

import msgspec
import numpy as np

from rlplay.trace.pairs import identical_answers, pairs
from rlplay.trace.records import Sampled, Scored
from rlplay.trace.update import Update
from tests.recorded import synthetic_update


def sampled(*answers: list[str]) -> Sampled:
    """Two answers, token by token, to each prompt."""
    whole = synthetic_update(1, prompts=len(answers) // 2, generations=2)[0]
    assert isinstance(whole, Sampled)
    return msgspec.structs.replace(
        whole,
        group=np.repeat(np.arange(len(answers) // 2, dtype=np.int32), 2),
        offsets=np.cumsum([0, *map(len, answers)]),
        texts=[text for answer in answers for text in answer],
    )


def test_answers_are_alike_if_their_text_is_whatever_its_tokens() -> None:
    end = "<|end|>"
    same = ["Use", " salt", ".", end], ["Use", " sa", "lt", ".", end]
    other, cut = (["Use", " salt", ".", end], ["No", ".", end]), (["Use", " salt", end], ["Use", " salt"])
    assert identical_answers(sampled(*same, *other, *cut)).tolist() == [True, False, False]


def test_one_answer_to_a_prompt_is_like_no_other() -> None:
    whole = sampled(["a"], ["a"])
    alone = msgspec.structs.replace(whole, prompts=["p", "q"], group=np.array([0, 1], dtype=np.int32))
    assert identical_answers(alone).tolist() == [False, False]


def test_ties_are_no_comparisons() -> None:
    update = Update(1)
    update.add(sampled(["a", "."], ["b", "."], ["c", "."], ["d", "."], ["e", "."], ["f", "."]))
    roles = ["rejected", "chosen", "tie", "tie", "", ""]
    update.add(Scored(update=1, rewards=np.zeros(6), parts={}, weights={}, gold={}, roles=roles))
    assert [(pair.chosen, pair.rejected) for pair in pairs(update)] == [("b", "a")]
