"""Turns of a conversation: who wrote what, in the ways of several chat templates."""

import msgspec
import numpy as np
import pytest

from rlplay.trace.turns import are_conversations, marks_and_text, turns
from tests.recorded import synthetic_update


def talk(*said: tuple[str, int], repeated: int = 4):
    """One answer of these turns, each text as tokens of one word; 1 marks the model's."""
    words = [(word, mask) for text, mask in said for word in text.split("/")]
    sampled = synthetic_update(1, prompts=1, generations=1)[0]
    return msgspec.structs.replace(
        sampled, texts=[word for word, _ in words] * repeated, group=np.zeros(repeated, dtype=np.int32),
        mask=np.array([mask for _, mask in words] * repeated, dtype=np.uint8),
        token_ids=np.arange(len(words) * repeated, dtype=np.int32),
        offsets=np.arange(repeated + 1) * len(words),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mark", "role"),
    [
        ("<|user|>", "user"),
        ("<|im_start|>/tool/\n", "tool"),
        ("<|eot_id|>/<|start_header_id|>/ipython/<|end_header_id|>", "ipython"),
        ("<start_of_turn>/user/\n", "user"),
        ("Observation:", "environment"),
    ],
)
def test_the_role_is_read_from_the_template(mark, role):
    sampled = talk(("Let/ me/ see", 1), (f"{mark}/ 12/ is/ it/<|assistant|>", 0), ("The/ answer/ is/ 12", 1))
    assert [turn.role for turn in turns(sampled, 1)] == ["model", role, "model"]
    assert [turn.start for turn in turns(sampled, 1)] == [0, 3, 3 + mark.count("/") + 5]


def test_a_turn_that_calls_a_tool_says_so():
    sampled = talk(('I/ look/<tool_call>/{"a": 1}/</tool_call>', 1), ("<|im_start|>/tool/ 3", 0), ("so/ 3", 1))
    assert [turn.role for turn in turns(sampled, 0)] == ["model · tool call", "tool", "model"]


def test_only_longer_turns_are_set_apart():
    assert not are_conversations(talk(("8/.", 1), ("Higher", 0), ("9/.", 1)))
    long = "/".join(["word"] * 9)
    assert are_conversations(talk((long, 1), (long, 0), (long, 1)))
    assert not are_conversations(talk((long, 1))), "one turn"
    assert not are_conversations(synthetic_update(1)[0])


def test_answers_that_begin_or_end_with_an_environment_do_not_run_together():
    sampled = talk(("a/b/c/d/e/f/g/h", 1), ("<|user|>/b/c/d/e/f/g/h", 0), repeated=2)
    assert [turn.role for turn in turns(sampled, 1)] == ["model", "user"]


def test_marks_are_told_from_text():
    text = "<|im_start|>system\nBe <b>brief</b>.<|im_end|>[INST] 1 < 2 [/INST]"
    parts = marks_and_text(text)
    assert "".join(part for part, _ in parts) == text
    assert [part for part, mark in parts if mark] == ["<|im_start|>system", "<|im_end|>", "[INST]", "[/INST]"]
