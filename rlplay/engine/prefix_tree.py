"""The tree of all beginnings of some sequences: what a pass has to compute if it computes each of them once.

A token's log-probability depends on what stands before it alone, and answers to one prompt often begin alike, as do
prompts: with their chat template. The nodes of the tree are numbered as a walk down its branches meets them, so that a
node's ancestors come before it. All of it is numpy on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PrefixTree:
    """M nodes, each a beginning of one of the R sequences: `ids` and `depths` (from 0) [M] of their last tokens.

    `paths` [R, D] is the node at each depth of a sequence, `lengths` [R] how many it has (beyond them, paths mean
    nothing); node i is on the path of the sequence `owners[i]`.
    """

    ids: Ints
    depths: Ints
    owners: Ints
    paths: Ints
    lengths: Ints


def prefix_tree(sequences: Ints, lengths: Ints) -> PrefixTree:
    """The tree of `sequences` [R, D] of ids from 0; `lengths` [R], at least 1, say how many of each are read."""
    inside = np.arange(sequences.shape[1]) < lengths[:, None]
    padded = np.where(inside, sequences, -1)
    rows = [row.tobytes() for row in padded]
    order = np.array(sorted(range(len(rows)), key=rows.__getitem__))
    arranged, inside = padded[order], inside[order]
    # Neighbours in this order have more in common than any others: what a sequence does not share with the one before
    # it, no earlier one has.
    fresh = inside.copy()
    fresh[1:] &= np.cumsum(arranged[1:] != arranged[:-1], axis=1) > 0
    owners, depths = np.nonzero(fresh)
    paths = np.full(fresh.shape, -1)
    paths[owners, depths] = np.arange(len(owners))
    paths = np.maximum.accumulate(paths, axis=0)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return PrefixTree(arranged[owners, depths], depths, order[owners], paths[back], lengths)


@dataclass(frozen=True)
class Blocks:
    """Nodes in blocks of Q neighbours, with the keys that a block's attention reads: its nodes and their ancestors.

    `keys` [B, K] are nodes, `visible` bool [B, Q, K] says which of them a node sees: itself and its ancestors. The last
    block is filled up with nodes that see themselves alone.
    """

    keys: Ints
    visible: NDArray[np.bool_]


_TOKEN, _KEY = 1000, 12
"""What one more token in a pass costs, and one more key that is fetched for a block: in products of a query and a key.

The first is 6 times the width of a layer, here that of the bundled model. The second is measured on a CPU.
"""
_SIZES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256)


def blocks_of(tree: PrefixTree) -> Blocks:
    """The blocks of the size that costs least by count: large ones compare more, small ones fetch more keys."""
    count = len(tree.ids)
    number, size, keys = min((_tried(tree, size) for size in _SIZES), key=_cost)
    nodes = np.arange(number * size).reshape(number, size)
    real = nodes < count
    nodes[~real] = 0
    first = nodes[:, 0]
    above = np.arange(keys - size)
    ancestors = tree.paths[tree.owners[first][:, None], np.minimum(above, tree.paths.shape[1] - 1)]
    known = above < tree.depths[first][:, None]
    found = np.concatenate([np.where(known, ancestors, 0), nodes], axis=1)
    depths = np.where(np.concatenate([known, real], axis=1), tree.depths[found], tree.paths.shape[1])[:, None]
    own, paths = tree.depths[nodes][:, :, None], tree.paths[tree.owners[nodes]]
    at = np.take_along_axis(paths, np.broadcast_to(np.minimum(depths, own), (number, size, keys)), axis=2)
    visible = (at == found[:, None]) & (depths <= own)
    visible[~real] = False
    visible[:, np.arange(size), keys - size + np.arange(size)] = True
    found[:, keys - size :][~real] = np.arange(count, number * size)
    return Blocks(found, visible)


def _tried(tree: PrefixTree, size: int) -> tuple[int, int, int]:
    """Number of blocks, their nodes, and keys, where they have about `size` nodes; keys are a multiple of 8."""
    number = -(-len(tree.ids) // size)
    size = -(-len(tree.ids) // number)
    number = -(-len(tree.ids) // size)
    above = int(tree.depths[np.arange(number) * size].max())
    return number, size, -(-(above + size) // 8) * 8


def _cost(tried: tuple[int, int, int]) -> int:
    number, size, keys = tried
    return number * (size * _TOKEN + size * keys + keys * _KEY)
