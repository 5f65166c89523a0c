"""The tree of beginnings: every distinct one is in it once, and a node sees exactly what stands before it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlplay.engine.prefix_tree import _SIZES, PrefixTree, _cost, _tried, blocks_of, prefix_tree, shape_of

SEQUENCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=30)


def _tree(sequences: list[list[int]], beyond: int) -> PrefixTree:
    """The tree of sequences behind which something is left over that must not be read."""
    rows = np.full((len(sequences), max(map(len, sequences))), beyond)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return prefix_tree(rows, np.array([len(sequence) for sequence in sequences]))


def _beginnings(tree: PrefixTree) -> list[tuple[int, ...]]:
    """The beginning that each node stands for, as its owner's path spells it."""
    owned = zip(tree.owners.tolist(), tree.depths.tolist(), strict=True)
    return [tuple(tree.ids[tree.paths[owner, : depth + 1]].tolist()) for owner, depth in owned]


@given(SEQUENCES, st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_every_beginning_is_one_node(sequences: list[list[int]], beyond: int) -> None:
    tree = _tree(sequences, beyond)
    beginnings = _beginnings(tree)
    assert len(set(beginnings)) == len(beginnings)
    assert set(beginnings) == {tuple(s[: n + 1]) for s in sequences for n in range(len(s))}
    for sequence, path in zip(sequences, tree.paths, strict=True):
        assert [beginnings[node] for node in path[: len(sequence)]] == [
            tuple(sequence[: n + 1]) for n in range(len(sequence))
        ]


@given(SEQUENCES, st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_a_node_sees_itself_and_its_ancestors_once(sequences: list[list[int]], beyond: int) -> None:
    tree = _tree(sequences, beyond)
    shape = min((_tried(tree, size) for size in _SIZES), key=_cost)
    assert shape_of(tree) in (shape, None)
    beginnings, blocks = _beginnings(tree), blocks_of(tree, shape)
    number, size, keys = blocks.visible.shape
    assert keys % 8 == 0
    assert 0 <= blocks.keys.min() <= blocks.keys.max() < number * size
    assert (number - 1) * size < len(beginnings) <= number * size
    for node in range(number * size):
        seen = blocks.keys[node // size][blocks.visible[node // size, node % size]].tolist()
        if node < len(beginnings):
            own = beginnings[node]
            assert sorted(beginnings[i] for i in seen) == [own[: n + 1] for n in range(len(own))]
        else:
            assert seen == [node]


def test_blocks_grow_with_what_stands_before_them() -> None:
    sizes = []
    for length in (10, 1000):
        rng = np.random.default_rng(0)
        same = np.tile(rng.integers(0, 9, length), (64, 1))
        tree = prefix_tree(np.concatenate([same, rng.integers(0, 9, (64, 20))], axis=1), np.full(64, length + 20))
        shape = shape_of(tree)
        assert shape is not None
        sizes.append(shape[1])
    assert sizes[0] < sizes[1] / 2


@pytest.mark.parametrize(
    ("prompts", "length", "answers", "worth"),
    [
        (8, 20, 8, True),
        (64, 40, 1, True),
        (8, 400, 4, True),
        (1, 1000, 64, True),
        (4, 1500, 4, False),
        (2, 3000, 4, False),
    ],
)
def test_long_texts_that_begin_differently_are_not_worth_a_tree(
    prompts: int, length: int, answers: int, worth: bool
) -> None:
    """As measured against a pass with each prompt's cache, with answers of 32 tokens."""
    rng = np.random.default_rng(0)
    begun = np.repeat(rng.integers(0, 500, (prompts, length)), answers, axis=0)
    sequences = np.concatenate([begun, rng.integers(0, 500, (len(begun), 32))], axis=1)
    assert (shape_of(prefix_tree(sequences, np.full(len(begun), length + 32))) is not None) == worth
