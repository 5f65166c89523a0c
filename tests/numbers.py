"""The numbers that the Token panel computes with."""

from __future__ import annotations

import numpy as np

from rlplay.trace.update import Update
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.tokens.facts import facts_of


def numbers_of(update: Update, token: int, loss_type: str = "policy_gradient") -> TokenNumbers:
    """Those of a token, counted over the whole batch."""
    assert update.sampled is not None
    completion = int(np.searchsorted(update.sampled.offsets, token, side="right")) - 1
    first = int(update.sampled.offsets[completion])
    return facts_of(update).answer(completion).numbers(token - first, loss_type)
