"""What the panels read of an update's records, by token."""

from __future__ import annotations

import numpy as np
import pytest

from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update
from rlplay.ui.session.facts import Facts
from tests.numbers import numbers_of
from tests.recorded import synthetic_update


def recorded() -> Update:
    update = Update(3)
    for record in synthetic_update(3, steps=3):
        update.add(record)
    return update


@pytest.mark.parametrize("name", ["advantages", "entropy", "importance_ratio"])
def test_the_spread_of_a_lens_is_that_of_the_sampled_tokens(name: str) -> None:
    update = recorded()
    values = LENSES[name].values(update)
    assert values is not None
    assert update.sampled is not None
    update.sampled.mask[(values == np.nanmin(values)) | (values == np.nanmax(values))] = 0
    own = values[update.sampled.mask == 1]
    assert Facts(update).spread(name) == (np.nanmin(own), np.nanmax(own))
    assert np.nanmin(own) > np.nanmin(values)
    assert np.nanmax(own) < np.nanmax(values)


def test_the_log_ratio_is_the_new_log_probability_less_the_old() -> None:
    update = recorded()
    assert update.sampled is not None
    found = [numbers_of(update, token) for token in range(len(update.sampled.old_logprobs))]
    known = [(token, n) for token, n in enumerate(found) if n.logprob is not None and n.log_ratio is not None]
    assert len({round(n.log_ratio or 0.0, 3) for _, n in known}) > 2
    for token, n in known:
        assert n.logprob is not None
        assert n.ratio is not None
        assert n.log_ratio == pytest.approx(n.logprob - float(update.sampled.old_logprobs[token]))
        assert n.log_ratio == pytest.approx(np.log(n.ratio), abs=1e-4)
