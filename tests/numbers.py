"""Updates of recorded runs, and the numbers that the Token panel computes with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.records import AnyRecord
from rlplay.trace.update import Update
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.tokens.facts import facts_of


def update_of(records: Iterable[AnyRecord], number: int = 1) -> Update:
    """An update of a run, from the run's records."""
    found = Update(number)
    for record in records:
        if record.update == number:
            found.add(record)
    return found


def numbers_of(update: Update, token: int, settings: Settings | None = None) -> TokenNumbers:
    """Those of a token, counted over the whole batch; with the `settings` also those of its pair."""
    assert update.sampled is not None
    completion = int(np.searchsorted(update.sampled.offsets, token, side="right")) - 1
    first = int(update.sampled.offsets[completion])
    return facts_of(update).answer(completion).numbers(token - first, settings)
