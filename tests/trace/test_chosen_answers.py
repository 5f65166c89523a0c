"""Answers that a script names by their prompt and their words."""

import msgspec
import numpy as np
import pytest

from rlplay.trace.chosen_answers import answer_to, answers_of, tokens_of
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update

TEXTS = [["5", "<|end|>"], ["4", "2"], ["4", "<|end|>"], ["4", "<|end|>"], ["22", "<|end|>"]]
"""Two answers to 2+3, the second of which was cut, then three to 2+2."""


def asked() -> Update:
    words = [word for text in TEXTS for word in text]
    pieces = {word: at for at, word in enumerate(dict.fromkeys(words), start=7)}
    count = len(words)
    flat = np.zeros(count, dtype=np.float32)
    update = Update(1)
    update.add(Sampled(
        update=1, done=True, position=2, temperature=1.0, prompts=["What is 2+3?", "What  is\n2+2?"],
        prompt_ids=np.array([1, 2, 3], dtype=np.int32), prompt_offsets=np.array([0, 1, 3]),
        prompt_texts=["a", "b", "c"], columns=[{}, {}],
        group=np.array([0, 0, 1, 1, 1], dtype=np.int32), offsets=np.arange(0, count + 1, 2),
        token_ids=np.array([pieces[word] for word in words], dtype=np.int32), texts=words,
        mask=np.ones(count, dtype=np.uint8), old_logprobs=flat, entropy=flat,
        top_ids=np.tile(np.array([pieces["4"], pieces["5"]], dtype=np.int32), (count, 1)),
        top_logprobs=np.zeros((count, 2), dtype=np.float32), truncated=np.array([0, 1, 0, 0, 0], dtype=np.uint8),
        pieces={at: word for word, at in pieces.items()},
    ))  # fmt: skip
    return update


def test_an_answer_is_found_by_its_prompt_and_its_token() -> None:
    update = asked()
    assert answer_to(update, "What is 2+3?") == 0
    assert answer_to(update, "What is 2+3?", "4") == 1
    assert answer_to(update, "What is 2+3?", "2", token=1) == 1
    assert answer_to(update, "What is 2+2?", "9") == 2, "nobody wrote that, and it is a candidate in the same place"
    with pytest.raises(ValueError, match="update 1 did not ask 'What is 9\\+9\\?'"):
        answer_to(update, "What is 9+9?")


def test_answers_are_those_to_a_prompt_or_to_all_others() -> None:
    update = asked()
    assert answers_of(update, "What is 2+3?", "same prompt") == [0, 1]
    assert answers_of(update, "What is 2+3?", "other prompts") == [2, 3, 4]
    assert answers_of(update, "What is 2+3?", "other prompts", "4") == [2, 3]
    assert answers_of(update, "What is 2+3?", "same prompt", "4") == [], "42 is another answer"
    assert answers_of(update, "What is 2+3?", "same prompt", "42") == [1], "it was cut, so it has no end"


def test_tokens_of_the_environment_are_left_out() -> None:
    update = asked()
    assert update.sampled is not None
    mask = update.sampled.mask.copy()
    mask[5] = 0
    update.sampled = msgspec.structs.replace(update.sampled, mask=mask)
    assert tokens_of(update, [2, 0, 2]) == [0, 1, 4]
