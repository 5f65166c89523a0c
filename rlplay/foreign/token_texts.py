"""The texts of tokens of which a trainer's files hold only the ids, by a tokenizer that lies beside the files.

That is `tokenizer.json`, in the folder or in `tokenizer` below it, where miles puts it; or that of the model which the
files name, if it is in Hugging Face's cache. Nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from rlplay.foreign.token_rows import placeholder
from rlplay.record.format import Rollouts
from rlplay.record.texts import decode_each

_LARGEST = 2**27
"""Bytes of a tokenizer; the largest in use have a quarter of that."""


class TokenTexts:
    """The tokenizer for the files in a folder, if there is one."""

    def __init__(self, folder: Path, model: str = "") -> None:
        self._tokenizer: Any = None
        for path in (folder / "tokenizer.json", folder / "tokenizer" / "tokenizer.json", _cached(model)):
            if self._tokenizer is None and path is not None and path.is_file() and path.stat().st_size <= _LARGEST:
                self._tokenizer = _read(path)

    def spelled(self, rollouts: Rollouts) -> Rollouts:
        """The answers with the texts of their tokens, if these stand for their ids only."""
        ids, asked, sizes = rollouts.token_ids, rollouts.prompt_ids, rollouts.prompt_lengths
        if self._tokenizer is None or ids is None or not len(ids) or rollouts.texts[0] != placeholder(int(ids[0])):
            return rollouts
        try:
            texts = self._split(ids, rollouts.lengths)
            if asked is None or sizes is None:
                return msgspec.structs.replace(rollouts, texts=[text for each in texts for text in each])
            spoken = self._split(asked, sizes)
        except Exception:  # of an id that this tokenizer does not have
            return rollouts
        unknown = [text.startswith("⟨") for text in rollouts.prompts]
        return msgspec.structs.replace(
            rollouts, texts=[text for each in texts for text in each],
            prompt_texts=[text for each in spoken for text in each],
            prompts=[
                "".join(each) if is_unknown else text
                for each, text, is_unknown in zip(spoken, rollouts.prompts, unknown, strict=True)
            ],
        )  # fmt: skip

    def _split(self, ids: Any, lengths: Any) -> list[list[str]]:
        """The texts of each answer's tokens."""
        found: list[list[str]] = []
        for row in np.split(ids, np.cumsum(lengths)[:-1]):
            if len(row) and int(row.max()) >= self._tokenizer.get_vocab_size():
                raise ValueError("it has a token that the tokenizer has not")
            found.append(decode_each(SimpleNamespace(backend_tokenizer=self._tokenizer), row))
        return found


def _read(path: Path) -> Any:
    """A tokenizer; None if the file holds none."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception:  # it raises nothing more special
        return None


def _cached(model: str) -> Path | None:
    """The tokenizer of a model by its name or folder, if it is on this machine."""
    if not model:
        return None
    if (local := Path(model) / "tokenizer.json").is_file():
        return local
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(model, "tokenizer.json")
    except ValueError:  # it is no name of a model
        return None
    return Path(found) if isinstance(found, str) else None
