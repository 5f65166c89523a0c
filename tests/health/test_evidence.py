"""What the checks look at: the updates since the stage began, and the newest of them."""

from __future__ import annotations

import dataclasses
from math import inf, nan

import pytest

from rlplay.health import examine
from rlplay.health.counts import WinCount
from rlplay.health.examine import findings
from rlplay.health.finding import RECENT
from tests.health.evidence import evidence

RUN = evidence(4, {"loss": [1.0, 2.0, 3.0, 4.0], "learning_rate": [0.1, 0.2]}, first=3, answers=[1, 2, 4, 8])


def test_the_newest_updates_and_values() -> None:
    assert (RUN.now.update, [each.update for each in RUN.recent(2)]) == (6, [5, 6])
    assert RUN.answers == 15
    assert RUN.series("loss") == [(3, 1.0), (4, 2.0), (5, 3.0), (6, 4.0)]
    later = dataclasses.replace(RUN, first=4, last=5)
    assert later.series("loss") == [(4, 2.0), (5, 3.0)]
    assert (RUN.mean("loss", 3), RUN.mean("loss", 1), RUN.mean("loss", 9), RUN.mean("nothing", 3)) == (
        3.0,
        4.0,
        2.5,
        None,
    )


def test_the_learning_rate_is_the_settings_or_the_last_one_logged() -> None:
    assert RUN.learning_rate == f"learning rate {RUN.settings.learning_rate:g}"
    unknown = dataclasses.replace(RUN, on_record=("algorithm",))
    assert unknown.learning_rate == "learning rate 0.2"
    assert dataclasses.replace(unknown, first=5).learning_rate == "learning rate"


@pytest.mark.parametrize(("enough", "pairs"), [(1, 5), (5, 5), (6, 6), (7, 7), (99, 8)])
def test_as_many_updates_as_it_takes_to_have_enough_pairs(enough: int, pairs: int) -> None:
    run = evidence(RECENT + 3, gold={"a": WinCount(0.5, 1)})
    assert run.pooled("gold", "a", enough) == WinCount(0.5 * pairs, pairs)
    assert run.pooled("gold", "b", enough) == run.pooled("longer", "a", enough) == WinCount()
    assert (WinCount().share, WinCount(3, 4).share) == (0.5, 0.75)


def test_numbers_are_known_where_they_are_finite() -> None:
    run = evidence(4, {"loss": [1.0, nan, inf, 4.0], "kl": [1e308] * 4})
    assert run.known("loss") == [(1, 1.0), (4, 4.0)]
    assert run.known("kl") == run.series("kl"), "although their sum is not finite"


def test_what_was_found_is_not_sought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = evidence(30, {"reward": [0.5, 0.4] * 15})
    found = findings(run)
    monkeypatch.setattr(examine, "applicable", lambda _: [])
    assert findings(run) == found
