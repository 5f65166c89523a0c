"""The text of every token, such that the texts of a sequence joined are its decoded text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def decode_each(tokenizer: Any, ids: Iterable[Any]) -> list[str]:
    """One text for each id, by a tokenizer of transformers; "" for a token that ends inside a character."""
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        return [tokenizer.decode([int(i)], skip_special_tokens=False) for i in ids]
    from tokenizers.decoders import DecodeStream  # most that import this module decode nothing

    stream = DecodeStream(skip_special_tokens=False)
    return [stream.step(fast, int(i)) or "" for i in ids]
