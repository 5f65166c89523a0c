"""The numbers that the Token panel computes with."""

from __future__ import annotations

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.update import Update
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.tokens.facts import facts_of


def numbers_of(update: Update, token: int, settings: Settings | None = None) -> TokenNumbers:
    """Those of a token, counted over the whole batch; with the `settings` also those of its pair."""
    assert update.sampled is not None
    completion = int(np.searchsorted(update.sampled.offsets, token, side="right")) - 1
    first = int(update.sampled.offsets[completion])
    return facts_of(update).answer(completion).numbers(token - first, settings)
