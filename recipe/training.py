"""The recipe of the pocket model: corpus, tokenizer, a small Llama, one supervised run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from recipe.conversation import Conversation
from recipe.corpus import conversations
from recipe.pretraining import Document, SupervisedPlan, SupervisedStep, supervised
from recipe.tokenizer import LONGEST, train_tokenizer

VOCABULARY = 1024
_TOKENIZER_CONVERSATIONS = 20_000
_STEPS_PER_CHECKPOINT = 500


class Recipe(msgspec.Struct, frozen=True):
    """The settings of one training run. `tokens` counts all tokens in the batches, including prompts and padding."""

    tokens: int = 9_000_000
    seed: int = 0
    rows: int = 12
    row_length: int = 128

    @property
    def plan(self) -> SupervisedPlan:
        steps = max(1, self.tokens // (self.rows * self.row_length))
        return SupervisedPlan(steps=steps, rows=self.rows, row_length=self.row_length)


def new_tokenizer(seed: int) -> Any:
    """The tokenizer, trained on the first conversations of the corpus of `seed`."""
    sample = islice(conversations(seed), _TOKENIZER_CONVERSATIONS)
    texts = (message["content"] for conversation in sample for message in conversation.messages)
    return train_tokenizer(texts, VOCABULARY)


def new_model(tokenizer: Any, seed: int) -> Any:
    """An untrained Llama of about 1.75 million parameters, in float32.

    Wide and shallow with few key-value heads: the shape that samples fastest on a CPU at this size.
    """
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=512,
        max_position_embeddings=LONGEST,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    model.generation_config.do_sample = True
    return model


def document(tokenizer: Any, conversation: Conversation) -> Document:
    """`conversation` as the chat template renders it; the mask marks the assistant's tokens, which are learned."""
    encoded = tokenizer.apply_chat_template(
        conversation.messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    return Document(token_ids=encoded["input_ids"], mask=encoded["assistant_masks"])


def train(model: Any, tokenizer: Any, recipe: Recipe, out: Path) -> Iterator[SupervisedStep]:
    """Trains `model` on the corpus, saving it to `out` now and then and at the end."""
    corpus = (document(tokenizer, conversation) for conversation in conversations(recipe.seed))
    for step in supervised(model, corpus, recipe.plan):
        yield step
        if (step.step + 1) % _STEPS_PER_CHECKPOINT == 0:
            model.save_pretrained(out)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
