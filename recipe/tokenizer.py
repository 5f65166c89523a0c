"""The pocket model's tokenizer: byte-level BPE in which every digit is a token and common words are one token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

USER, ASSISTANT, END, PAD = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"
LONGEST = 512

# There is no system token: a system message becomes the first line of the next user message. Any role
# but assistant (a tool, an environment) speaks as the user. `generation` marks the assistant's tokens, including
# <|end|>, for the loss masks of transformers and TRL.
CHAT_TEMPLATE = (
    "{%- set ns = namespace(system='') -%}"
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'system' -%}"
    "{%- set ns.system = message['content'] + '\n' -%}"
    "{%- elif message['role'] == 'assistant' -%}"
    "{{- '<|assistant|>' -}}{%- generation -%}{{- message['content'] + '<|end|>' -}}{%- endgeneration -%}"
    "{%- else -%}"
    "{{- '<|user|>' + ns.system + message['content'] + '<|end|>' -}}{%- set ns.system = '' -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """A `PreTrainedTokenizerFast` of at most `vocabulary` tokens trained on `texts`.

    All 256 bytes are in the vocabulary, so any text makes the round trip exactly. Digits are split off before
    the merges are learnt, hence never part of a longer token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END, USER, ASSISTANT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=USER,
        eos_token=END,
        pad_token=PAD,
        extra_special_tokens=[ASSISTANT],
        padding_side="left",
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
