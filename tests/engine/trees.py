"""What passes over a tree of beginnings read, for tests that count completions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor

from rlplay.engine import tree_pass
from rlplay.engine.batch import TokenBatch
from rlplay.engine.tree_pass import TreePass


def before_each(monkeypatch: pytest.MonkeyPatch, seen: Callable[[int], object]) -> None:
    """Let every such pass begin with a call of `seen`, with the number of its completions."""
    of = tree_pass.of

    def watched(tokens: TokenBatch, like: Tensor) -> TreePass | None:
        seen(len(tokens.ids))
        return of(tokens, like)

    monkeypatch.setattr(tree_pass, "of", watched)
