"""A tiny random language model, its tokenizer and a dataset: a trainer of TRL takes milliseconds with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedTokenizerFast

LETTERS = "abcdefgh0123 "
PAD, END = 0, 1


def tokenizer() -> Any:
    """One token for each letter."""
    vocabulary = {"<pad>": PAD, "<end>": END} | {letter: i for i, letter in enumerate(LETTERS, 2)}
    whole = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    whole.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    whole.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=whole, pad_token="<pad>", eos_token="<end>")


def talker() -> Any:
    """The same with a chat template, as byte-level BPE without merges, which GOLDTrainer asks for."""
    vocabulary = {"<pad>": PAD, "<end>": END} | {letter.replace(" ", "Ġ"): i for i, letter in enumerate(LETTERS, 2)}
    whole = Tokenizer(models.BPE(vocabulary, []))
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=whole, pad_token="<pad>", eos_token="<end>")
    made.chat_template = (
        "{% for m in messages %}{{ m['content'] }}{% if m['role'] == 'assistant' %}<end>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %} {% endif %}"
    )
    return made


def _config(**own: Any) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(LETTERS) + 2, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=PAD, eos_token_id=END, bos_token_id=None,
        attn_implementation="eager", **own,
    )  # fmt: skip


def model(folder: Path, seed: int = 0) -> Any:
    """A causal language model whose next tokens are far from equally likely, loaded from `folder`.

    With a seed it is another model, that says it came from there.
    """
    if seed or not folder.exists():
        torch.manual_seed(seed)
        made = LlamaForCausalLM(_config(initializer_range=0.4))
        if seed:
            made.config._name_or_path = str(folder)
            return made
        made.save_pretrained(folder)
    return LlamaForCausalLM.from_pretrained(folder)


def scorer() -> Any:
    """A reward model."""
    torch.manual_seed(0)
    return LlamaForSequenceClassification(_config(initializer_range=0.4, num_labels=1))


PROMPTS = [{"prompt": f"{a}{b} "[: 2 + (a + b) % 2], "answer": (a + b) % 4} for a in range(4) for b in range(4)]


def digits(completions: list[str], **_: Any) -> list[float | None]:
    """The share of digits in an answer; no reward for an empty one."""
    return [sum(c.isdigit() for c in text) / len(text) if text else None for text in completions]


def length(completions: list[str], **_: Any) -> list[float]:
    """Minus the length."""
    return [-len(text) / 10 for text in completions]
