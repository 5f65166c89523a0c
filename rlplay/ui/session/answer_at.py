"""A token of an answer, with all that a question to the model needs to name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlplay.trace.questions import Prefix
from rlplay.trace.records import Sampled


@dataclass(frozen=True)
class AnswerAt:
    """A prompt with its columns, the tokens of an answer to it with their texts, and one of them: `token`, from 0."""

    prompt: str
    columns: dict[str, Any]
    ids: list[int]
    texts: list[str]
    pieces: dict[int, str]
    token: int

    @property
    def prefix(self) -> Prefix:
        """What comes before the token."""
        return Prefix(self.prompt, self.ids[: self.token], self.columns)


def answer_at(sampled: Sampled | None, cursor: tuple[int, int]) -> AnswerAt | None:
    """The token under the cursor; None if there is no such answer. The place after the last token counts as one."""
    if sampled is None or cursor[0] >= len(sampled.group):
        return None
    completion, token = cursor
    group = int(sampled.group[completion])
    start, end = (int(x) for x in sampled.offsets[completion : completion + 2])
    ids = [int(i) for i in sampled.token_ids[start:end]]
    pieces = {i: sampled.pieces.get(i, "") for i in ids}
    texts = list(sampled.texts[start:end])
    return AnswerAt(sampled.prompts[group], dict(sampled.columns[group]), ids, texts, pieces, min(token, len(ids)))
