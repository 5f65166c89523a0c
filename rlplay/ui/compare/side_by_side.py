"""Two layouts side by side: answers to the same prompt begin on the same line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, zip_longest

import numpy as np

from rlplay.trace.records import Sampled
from rlplay.ui.tokens.token_layout import LayoutRow, TokenLayout

_BLANK = 1 << 30  # the place, within its prompt, of the line after the last answer
_Place = tuple[int, int]  # a prompt, and the rank in it: 0 for the prompt's lines, answers from 1


def align_rows(one: TokenLayout, other: TokenLayout, groups: Mapping[int, int] | None = None) -> None:
    """Fill both with empty lines until each prompt, and each of its answers, begins on the same line in both.

    `groups` has for each group of `other` the group of `one` with the same prompt; None: both number them alike.
    """
    blocks = _blocks(one.rows, None), _blocks(other.rows, groups)
    filled: tuple[list[LayoutRow], list[LayoutRow]] = ([], [])
    for place in sorted({*blocks[0], *blocks[1]}):
        both = [block.get(place, []) for block in blocks]
        height = max(map(len, both))
        for rows, mine in zip(filled, both, strict=True):
            # Filler lines belong to the answer; `values` suppresses the sign of an empty answer on them.
            filler = (
                LayoutRow(mine[0].group, mine[0].completion, [], values=True) if mine else LayoutRow(place[0], -1, [])
            )
            rows.extend([*mine, *[filler] * (height - len(mine))])
    one.replace(filled[0])
    other.replace(filled[1])


def _blocks(rows: list[LayoutRow], groups: Mapping[int, int] | None) -> dict[_Place, list[LayoutRow]]:
    blocks: dict[_Place, list[LayoutRow]] = {}
    for own, of_prompt in groupby(rows, key=lambda row: row.group):
        group = own if groups is None else groups[own]
        parts = [list(part) for _, part in groupby(of_prompt, key=lambda row: row.completion)]
        for rank, part in enumerate(parts):
            blank = rank and part[0].completion < 0
            blocks[group, _BLANK if blank else rank] = part
    return blocks


def counterpart(completion: int, here: Sampled, there: Sampled, groups: Mapping[int, int] | None = None) -> int | None:
    """The completion of `there` with the same prompt and the same rank; None if there is none.

    `groups` has for groups of `here` the group of `there` with the same prompt; None: both number them alike.
    """
    group = int(here.group[completion])
    rank = int(np.flatnonzero(here.group == group).tolist().index(completion))
    others = np.flatnonzero(there.group == (group if groups is None else groups.get(group, -1)))
    return int(others[rank]) if rank < len(others) else None


def first_difference(one: tuple[Sampled, int], other: tuple[Sampled, int]) -> int | None:
    """The first token, from 0, in which two completions differ; None if they are the same, −1 if the prompts differ."""
    first, second = (_prompt(*each) for each in (one, other))
    if first != second:
        return -1
    pairs = zip_longest(*(_ids(*each) for each in (one, other)))
    return next((token for token, (a, b) in enumerate(pairs) if a != b), None)


def _prompt(sampled: Sampled, completion: int) -> list[int]:
    group = int(sampled.group[completion])
    start, end = sampled.prompt_offsets[group : group + 2]
    ids: list[int] = sampled.prompt_ids[start:end].tolist()
    return ids


def _ids(sampled: Sampled, completion: int) -> list[int]:
    start, end = sampled.offsets[completion : completion + 2]
    ids: list[int] = sampled.token_ids[start:end].tolist()
    return ids
