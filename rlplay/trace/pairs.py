"""The answers that a recorded update compared: the prompt, the chosen answer and the rejected one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rlplay.trace.records import Array, Sampled
from rlplay.trace.update import Update


class Pair(NamedTuple):
    """One comparison; `prompt` is what the user said in it, `rejected` is None where an answer is only imitated."""

    prompt: str
    chosen: str
    rejected: str | None
    columns: dict[str, object]


def identical_answers(sampled: Sampled) -> Array:
    """Whether both answers to a prompt have the same text, so that there is nothing to choose: bool [G].

    False where a prompt has one answer. The end token counts: an answer that was cut differs from one that ended.
    """
    texts: list[list[str]] = [[] for _ in sampled.prompts]
    for group, (start, end) in zip(sampled.group.tolist(), pairwise(sampled.offsets.tolist()), strict=True):
        texts[group].append("".join(sampled.texts[start:end]))
    return np.array([len(answers) == 2 and answers[0] == answers[1] for answers in texts], dtype=bool)


def pairs(update: Update) -> Iterator[Pair]:
    """The comparisons of a labelled update, without ties and skipped pairs; texts have no end tokens.

    An update that learned from rewards has none.
    """
    sampled, scored = update.sampled, update.scored
    if sampled is None or scored is None or not scored.roles:
        return
    # The last token of an answer is its end token, unless the answer was cut.
    texts = [
        "".join(sampled.texts[start : end if cut else end - 1])
        for (start, end), cut in zip(pairwise(sampled.offsets.tolist()), sampled.truncated.tolist(), strict=True)
    ]
    for group, (prompt, columns) in enumerate(zip(sampled.prompts, sampled.columns, strict=True)):
        found = {scored.roles[row]: texts[row] for row in (sampled.group == group).nonzero()[0]}
        if "chosen" in found:
            yield Pair(prompt, found["chosen"], found.get("rejected"), columns)
