"""The answers of a group as a tree: merged, token by token, as far as they agree."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rlplay.trace.update import Update


@dataclass
class Node:
    """A stretch that the answers `rows` share: their tokens `start` to `end`, exclusive.

    `reward` is the mean reward of these answers, the Monte-Carlo estimate of what this beginning is worth; None before
    rewards are known. Children differ in their first token, the most frequent first. An answer that ends where others
    go on is a child without tokens.
    """

    rows: list[int]
    start: int
    end: int
    reward: float | None
    children: list[Node] = field(default_factory=list)


def answer_tree(update: Update, group: int) -> Node | None:
    """The tree of a group's answers so far; its root is their common beginning. None without answers."""
    sampled = update.sampled
    rows = [] if sampled is None else np.flatnonzero(sampled.group == group).tolist()
    return _node(update, rows, 0) if rows else None


def _node(update: Update, rows: list[int], start: int) -> Node:
    sampled = update.sampled
    assert sampled is not None
    tokens = [sampled.token_ids[sampled.offsets[row] : sampled.offsets[row + 1]] for row in rows]
    end, shortest = start, min(map(len, tokens))
    while end < shortest and all(each[end] == tokens[0][end] for each in tokens):
        end += 1
    reward = None
    if update.scored is not None:
        known = update.scored.rewards[rows]
        known = known[np.isfinite(known)]
        reward = float(known.mean()) if len(known) else None
    node = Node(rows, start, end, reward)
    following: dict[int | None, list[int]] = {}
    for row, each in zip(rows, tokens, strict=True):
        following.setdefault(int(each[end]) if len(each) > end else None, []).append(row)
    if set(following) != {None}:
        parts = sorted(following.values(), key=len, reverse=True)
        node.children = [_node(update, part, end) for part in parts]
    return node
