"""The text of every token, such that the texts of a sequence joined are its decoded text."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.record.texts import decode_each
from rlplay.trace.records import Array


class Texts:
    """Decodes token by token; a token that ends inside a character has the text ""."""

    def __init__(self, trainer: Any) -> None:
        """Takes a trainer whose `processing_class` is a tokenizer, or a processor that holds one."""
        processing_class = trainer.processing_class
        tokenizer = getattr(processing_class, "tokenizer", processing_class)
        self.pad: int | None = tokenizer.pad_token_id
        own = getattr(getattr(trainer.model, "generation_config", None), "eos_token_id", None)
        ends = getattr(trainer, "eos_token_ids", None) or (own if isinstance(own, list) else [own])
        self.stops: set[int] = {*ends, tokenizer.eos_token_id} - {None}
        """The ids that end an answer."""
        self.ends = {*self.stops, self.pad} - {None}
        """The ids that an answer ends with which was not cut, as TRL counts them."""
        self._tokenizer = tokenizer

    def whole(self, ids: Array) -> str:
        """The text of a sequence, without its special tokens."""
        return str(self._tokenizer.decode([int(i) for i in ids], skip_special_tokens=True)).strip()

    def decode_each(self, ids: Array) -> list[str]:
        """One text for each id."""
        return decode_each(self._tokenizer, ids)


def ends_of(trainer: Any) -> dict[int, str]:
    """The tokens that end an answer, with their text; empty if the trainer has no tokenizer."""
    given = getattr(trainer, "processing_class", None)
    if not hasattr(getattr(given, "tokenizer", given), "pad_token_id"):
        return {}
    texts = Texts(trainer)
    return {token: text for token in sorted(texts.stops) for text in texts.decode_each(np.array([token]))}
