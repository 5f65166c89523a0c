"""Fine-tuning with steps that are too large, a warm-up without an end, and a part of a reward that drowns others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlplay.health import flat_checks as flat
from rlplay.health import imitation_checks as imitation
from rlplay.health import rate_checks as rate
from rlplay.health import reward_part_checks as part
from rlplay.health.counts import WinCount
from rlplay.health.examine import findings, verdict
from rlplay.health.finding import NoTick
from rlplay.health.given_rows import GIVEN_CHECKS
from rlplay.health.normal import normal
from rlplay.health.part_numbers import PartNumbers
from tests.health.evidence import curves, evidence

JUMPED = [0.31, 7.2, 5.0, 3.0, 2.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.55, 0.55, 0.5, 0.5, 0.5, 0.5]
NOISY = [0.5 + (-1) ** n * 0.1 for n in range(40)]
TAUGHT = "TRL 1.16.0 SFTTrainer"


def test_a_loss_that_jumps_and_stays_above_its_start_is_no_fall() -> None:
    run = curves(16, {"loss": JUMPED, "learning_rate": [0.03] * 16}, TAUGHT)
    found = findings(run)
    assert [(each.name, each.settings) for each in found] == [("step too large", ("learning_rate",))]
    assert "The loss was 0.31 before the first step, 7.2 at update 2, and is 0.5 on average" in found[0].evidence
    assert isinstance(imitation.falls(run), NoTick)
    back = curves(16, {"loss": [*JUMPED[:8], *[0.2] * 8]}, TAUGHT)
    assert imitation.jumped(back) is None
    lucky = curves(16, {"loss": [0.1, *[0.4, 0.2] * 7, 0.3]}, TAUGHT)
    assert imitation.jumped(lucky) is None, "a first batch that was easy"
    assert not isinstance(imitation.falls(back), NoTick)


@pytest.mark.parametrize(("last", "ticked"), [(0.7, False), (0.6, True)])
def test_a_held_out_loss_of_pairs_above_log_2_shows_nothing_learned(last: float, ticked: bool) -> None:
    losses = {"eval_loss": [0.71, 0.705, last], "rewards/accuracies": [0.5] * 3}
    check = next(each for each in GIVEN_CHECKS if each.title == "Held-out loss")
    assert verdict(check, curves(3, losses, "TRL 1.16.0 DPOTrainer")).ticked is ticked


def test_a_warm_up_longer_than_the_run_is_the_cause_whether_or_not_its_end_is_known() -> None:
    rates = [5e-10 * n for n in range(40)]
    series = {"learning_rate": rates, "reward": NOISY, "reward_std": [0.3] * 40}
    for run in (curves(40, series, learning_rate=1e-6), curves(40, series)):
        found = rate.no_rate(run)
        assert found is not None
        assert (found.name, found.title) == ("step too small", "The learning rate only warms up")
        assert not [each for each in normal(run) if "learning rate" in each.title], "nothing that reassures"
    stated = rate.no_rate(curves(40, series, learning_rate=1e-6))
    assert stated is not None
    assert "it reaches 1e-6 at about update 2,000" in stated.evidence
    fast = series | {"learning_rate": [1e-7 * n for n in range(40)]}
    assert rate.no_rate(curves(40, fast)) is None


def test_what_rate_is_usual_depends_on_how_much_is_trained() -> None:
    series = {"reward": NOISY[:30], "learning_rate": [5e-6] * 30}
    whole = flat.flat(curves(30, series | {"weights/trained": [1.0] * 30}))
    adapter = flat.flat(curves(30, series | {"weights/trained": [0.05] * 30}))
    assert whole is not None
    assert "learning rate was" not in whole.change
    assert adapter is not None
    assert "at most 5e-6; 1e-5 to 2e-4 is usual where 5.0 % of the weights are trained" in adapter.change


PARTS = PartNumbers(
    ("correct", "length"), 16, ((1.0, 0.0), (0.0, 2500.0)), (0.0, 0.0), (1.0, 100.0), (2, 3),
    right=(3.0, 0.0), mixed=12.0, won=(WinCount(10, 10), WinCount(5, 10)),
)  # fmt: skip


def test_a_part_that_pays_right_answers_and_is_lost_beside_another_is_named() -> None:
    found = part.drowned(evidence(parts=PARTS))
    assert found is not None
    assert (found.name, found.title) == ("drowned", "“length” drowns “correct”")
    assert "is 50 times as large as its" in found.evidence
    alike = replace(PARTS, products=((1.0, 0.0), (0.0, 25.0)))
    other = replace(PARTS, right=(0.5, 0.0))
    both = replace(PARTS, right=(3.0, 150.0))
    few = replace(PARTS, won=(WinCount(1, 1), WinCount(1, 1)))
    for parts in (alike, other, both, few):
        assert part.drowned(evidence(parts=parts)) is None


def test_steps_without_a_reward_of_their_own_are_further_steps_on_a_batch() -> None:
    clipped = {"clip_ratio/region_mean": [0.0] * 20, "grad_norm": [1.0] * 20}
    titles = [each.title for each in normal(curves(20, clipped | {"reward": NOISY[:20]}))]
    assert "A clip ratio of 0" in titles
    assert "A clip ratio of 0" not in [each.title for each in normal(curves(20, clipped | {"reward": NOISY[:10]}))]
