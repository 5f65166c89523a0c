"""The table of the claims on random seeds: what it counts, and that a play is one. `tests.claims` plays the lessons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlplay.scenario.claim import parse_expect
from rlplay.scenario.loader import bundled
from tests import claims
from tests.claims import Play, claims_of, table, weakest

HIGH = parse_expect({"text": "High", "metric": "reward", "above": 0.5})
LOW = parse_expect({"text": "Low", "metric": "kl", "below": 1})
SAME = parse_expect({"text": "Same", "metric": "loss", "equals": 0})


def made(seed: int, high: float | None, low: float, name: str = "soup") -> Play:
    return Play(name, seed, [high is not None and high > 0.5, low < 1, True], [high, low, 0.0], 2.0)


def test_the_weakest_claim_fails_most_often() -> None:
    found = weakest([HIGH, LOW, SAME], [made(1, 0.9, 0.1), made(2, 0.8, 1.2), made(3, 0.7, 0.2)])
    assert (found.claim, found.held) == (LOW, 2)
    assert found.values == [0.1, 1.2, 0.2]


def test_of_claims_that_hold_alike_the_weakest_comes_nearest_to_its_bound_in_standard_deviations() -> None:
    plays = [made(1, 0.9, 0.1), made(2, 0.6, 0.2), made(3, 0.7, 0.3)]
    assert weakest([HIGH, LOW, SAME], plays).claim == HIGH, "0.1 of 0.12 is nearer than 0.7 of 0.08"
    same = [made(1, 0.51, 0.1), made(2, 0.51, 0.2)]
    assert weakest([HIGH, LOW, SAME], same).claim == LOW, "what does not vary is never near"


def test_a_value_that_is_missing_fails_its_claim_alone() -> None:
    found = weakest([HIGH, LOW, SAME], [made(1, None, 0.1), made(2, 0.6, 0.2)])
    assert (found.claim, found.held, found.values) == (HIGH, 1, [0.6])


def test_the_table_has_a_row_for_each_lesson_and_counts_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "claims_of", lambda _name: [HIGH, LOW, SAME])
    plays = [*(made(seed, 0.9, 0.1) for seed in range(9)), made(9, 0.9, 1.2)]
    plays += [*(made(seed, 0.9, 0.1, "beta") for seed in range(8)), *(made(seed, 0.4, 0.1, "beta") for seed in (8, 9))]
    page = table(["soup", "beta"], plays, "A machine.")
    assert "1 of 2 lessons hold on at least nine seeds in ten." in page
    assert "17 of 20 plays hold." in page
    assert "Seeds: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9. A machine." in page
    assert "| soup | 3 | 9 of 10 | Low | < 1 | 0.1 … 1.2 | 2 |" in page
    assert "| beta | 3 | 8 of 10 | High | > 0.5 | 0.4 … 0.9 | 2 |" in page


def test_a_lesson_that_was_played_on_other_seeds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "claims_of", lambda _name: [HIGH, LOW, SAME])
    plays = [
        made(seed, 0.9, 0.1, name) for name in ("soup", "beta", "dpo") for seed in ((3, 1) if name != "dpo" else (5,))
    ]
    page = table(["soup", "beta", "dpo"], plays, "A machine.")
    assert "Seeds: 1, 3. A machine." in page
    assert "as they had been changed for some of these: dpo on 5." in page
    assert "5 of 5 plays hold." in page


@pytest.mark.parametrize("name", bundled())
def test_the_claims_of_a_lesson_are_found(name: str) -> None:
    assert claims_of(name)


def test_seeds_are_drawn_and_differ() -> None:
    drawn = claims._drawn()
    assert len(set(drawn)) == claims.DRAWN
    assert drawn != claims._drawn()


def test_a_play_that_was_kept_is_not_played_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep, out = tmp_path / "plays.jsonl", tmp_path / "claims.md"
    asked = ["coins", "--seeds", "11", "--processes", "1", "--keep", str(keep), "--out", str(out)]
    done = subprocess.run([sys.executable, "-m", "tests.claims", *asked], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("seeds 11\ncoins 11 ")
    (kept,) = claims._kept(keep)
    assert (kept.name, kept.seed, kept.held) == ("coins", 11, True)
    assert len(kept.values) == len(claims_of("coins"))
    assert "| coins |" in out.read_text(encoding="utf-8")
    assert claims.main(asked) == 0
    assert capsys.readouterr().out == "seeds 11\n"
