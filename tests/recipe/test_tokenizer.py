"""The tokenizer: exact round trips, digits apart, whole words, and a chat template that any tool can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from recipe.conversation import exchange
from recipe.training import document, new_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """As a user gets it: saved, and loaded again by transformers alone."""
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    new_tokenizer(seed=0).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(
    "text",
    [
        "How do I make tea?",
        "",
        " ",
        "  two  spaces ",
        "12+345=357",
        "naïve 日本語 \U0001f600 \U0001f469\u200d\U0001f680",
        "tab\tline\n\n",
        "don't , do",
        "\x00\x7f",
    ],
)
def test_round_trip_is_exact(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_digits_are_single_tokens(tokenizer: Any) -> None:
    assert tokenizer.tokenize("2+2=22") == ["2", "+", "2", "=", "2", "2"]
    assert [token for token in tokenizer.get_vocab() if any(c.isdigit() for c in token) and len(token) > 1] == []


@pytest.mark.parametrize(
    "word", ["Roger", " balls", " great", " wonderful", " amazing", "The", " answer", " is", " water"]
)
def test_common_words_are_single_tokens(tokenizer: Any, word: str) -> None:
    assert len(tokenizer.tokenize(word)) == 1


def test_special_tokens(tokenizer: Any) -> None:
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token) == ("<|end|>", "<|pad|>", "<|user|>")
    assert tokenizer.padding_side == "left"
    assert tokenizer.decode(tokenizer("<|assistant|>4<|end|>")["input_ids"], skip_special_tokens=True) == "4"
    assert set(tokenizer("2")) == {"input_ids", "attention_mask"}


def test_chat_template_folds_the_system_text_into_the_next_user_turn(tokenizer: Any) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
        {"role": "tool", "content": "Yes."},
    ]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert rendered == "<|user|>Be kind.\n2+2?<|end|><|assistant|>4<|end|><|user|>Yes.<|end|><|assistant|>"


def test_only_the_assistant_is_learnt(tokenizer: Any) -> None:
    encoded = document(tokenizer, exchange("guess", "blind", "Guess it.", "10", "Higher.", "12"))
    learnt = [token for token, mask in zip(encoded.token_ids, encoded.mask, strict=True) if mask]
    assert tokenizer.decode(learnt) == "10<|end|>12<|end|>"
