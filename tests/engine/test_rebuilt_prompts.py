"""A recorded prompt becomes the text or the messages of which the tokenizer makes the recorded ids, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoTokenizer

from rlplay.engine.from_checkpoint.prompts import rows_of
from rlplay.foreign.from_checkpoint.recorded_prompts import RecordedPrompt
from rlplay.paths import POCKET_PATH

THINKING = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if enable_thinking is defined %}!{% endif %}"
)
"""A template whose prompts say whether the model may think."""


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(POCKET_PATH)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def of_messages(tokenizer: Any, messages: list[dict[str, str]], **options: Any) -> RecordedPrompt:
    """As the recorder has it: the last user's words, and what the template made of all messages."""
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return RecordedPrompt(messages[-1]["content"], tuple(ids), tokenizer.decode(ids), {"answer": 4})


@pytest.mark.parametrize("messages", [
    [user("2+2=")], [{"role": "system", "content": "Be brief, and kind."}, user("2+2=")],
])  # fmt: skip
def test_messages_are_found_with_their_system_message(tokenizer: Any, messages: list[dict[str, str]]) -> None:
    found = rows_of([of_messages(tokenizer, messages)], tokenizer, frozenset(), None)
    assert found.rows == [{"answer": 4, "prompt": messages}]
    assert found.left_out == 0


def test_plain_text_stays_text(tokenizer: Any) -> None:
    recorded = RecordedPrompt("2+2=", tuple(tokenizer("2+2=")["input_ids"]), "2+2=", {})
    assert rows_of([recorded], tokenizer, frozenset(), None).rows == [{"prompt": "2+2="}]


def test_what_the_template_was_given_is_found(tokenizer: Any) -> None:
    plain = tokenizer.chat_template
    try:
        tokenizer.chat_template = THINKING
        recorded = of_messages(tokenizer, [user("2+2=")], enable_thinking=False)
        found = rows_of([recorded], tokenizer, frozenset(), None)
    finally:
        tokenizer.chat_template = plain
    assert found.template == {"enable_thinking": False}
    assert found.rows == [{"answer": 4, "prompt": [user("2+2=")]}]


def test_earlier_turns_are_not_on_record_so_the_prompt_is_left_out(tokenizer: Any) -> None:
    talk = [user("2+2="), {"role": "assistant", "content": "4"}, user("and 3+3=")]
    found = rows_of([of_messages(tokenizer, talk), of_messages(tokenizer, talk[:1])], tokenizer, frozenset(), None)
    assert found.rows == [{"answer": 4, "prompt": talk[:1]}]
    assert found.left_out == 1
