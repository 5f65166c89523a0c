"""Turns of a conversation as the model's chat template writes them."""

from __future__ import annotations

from itertools import takewhile

from rlplay.engine.model import LanguageModel
from rlplay.tasks.task import Message


def turn_and_rest(
    lm: LanguageModel, prompt: list[Message], turn: Message, replies: list[Message], end: str
) -> tuple[str, str] | None:
    """A turn up to its `end` as the template writes it once `replies` follow, and these up to the model's next word.

    None if the template writes no `end`. Templates write a turn that is not the last one differently: they strip its
    thinking, or white space.
    """
    begun = lm.templated(prompt, add_generation_prompt=True)
    whole = lm.templated([*prompt, turn, *replies], add_generation_prompt=bool(replies))
    start = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(begun, whole, strict=False)))
    close = whole.find(end, start)
    return None if close < 0 else (whole[start : close + len(end)], whole[close + len(end) :])
