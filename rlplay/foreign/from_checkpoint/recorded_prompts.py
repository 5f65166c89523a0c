"""The prompts that a recording holds, with their columns, and the answers that were given with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update

MOST = 2000
"""Prompts that are taken, those of the updates nearest to the checkpoint first."""


@dataclass(frozen=True)
class RecordedPrompt:
    """A prompt as it was recorded: its heading, the last user turn; its ids; the text of all its tokens; its columns.

    `answers` holds the ids of those that were given with it, by role: "chosen", "rejected", or "" to be imitated.
    """

    heading: str
    ids: tuple[int, ...]
    text: str
    columns: dict[str, Any]
    answers: dict[str, tuple[int, ...]] = field(default_factory=dict)


def recorded_prompts(run: RunReader, since: int, given: bool) -> list[RecordedPrompt]:
    """Up to `MOST` different prompts, those of the updates after `since` first; `given` with the answers given."""
    found: dict[str, RecordedPrompt] = {}
    for number in sorted(run.detailed(), key=lambda each: abs(each - since - 1)):
        for prompt in prompts_of(run.load(number), given):
            found.setdefault(repr(prompt), prompt)
        if len(found) >= MOST:
            break
    return list(found.values())[:MOST]


def prompts_of(update: Update, given: bool) -> Iterator[RecordedPrompt]:
    """The prompts of an update in their order; none if their ids are not on record."""
    sampled = update.sampled
    if sampled is None or not len(sampled.prompt_ids):
        return
    answers = _given(update) if given else {}
    for place, heading in enumerate(sampled.prompts):
        span = slice(int(sampled.prompt_offsets[place]), int(sampled.prompt_offsets[place + 1]))
        ids, texts = sampled.prompt_ids[span].tolist(), sampled.prompt_texts[span]
        columns = sampled.columns[place] if place < len(sampled.columns) else {}
        yield RecordedPrompt(heading, tuple(ids), "".join(texts), columns, answers.get(place, {}))


def _given(update: Update) -> dict[int, dict[str, tuple[int, ...]]]:
    """The ids of the answers by group and role; an answer that was trained in part has none."""
    sampled, found = update.sampled, dict[int, dict[str, tuple[int, ...]]]()
    roles = [] if update.scored is None else update.scored.roles
    if sampled is None:
        return found
    for row, group in enumerate(sampled.group.tolist()):
        span = slice(int(sampled.offsets[row]), int(sampled.offsets[row + 1]))
        if np.all(sampled.mask[span] == 1):
            role = roles[row] if row < len(roles) else ""
            found.setdefault(group, {})[role] = tuple(sampled.token_ids[span].tolist())
    return found
