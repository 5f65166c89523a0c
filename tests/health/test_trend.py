"""Whether the reward rises: a line through hand-made histories, against numpy's, and what is said about it."""

import dataclasses

import msgspec
import numpy as np
import pytest

from rlplay.health.collapse_checks import collapsed
from rlplay.health.finding import Evidence
from rlplay.health.flat_checks import flat, risen
from rlplay.health.health_of_run import Health
from rlplay.health.trend import WINDOW, solved, trend, without_outliers
from rlplay.health.trend import risen as has_risen
from rlplay.trace.records import Finished, Scored
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from tests.health.evidence import curves, evidence
from tests.recorded import SETTINGS, synthetic_update

CHOSEN = SETTINGS
NOISE = np.random.default_rng(0).normal(0, 0.02, 40)
RECORDS = synthetic_update(1)
T95 = 2.101  # Student's t with WINDOW - 2 degrees of freedom, 97.5 %


def run(rewards, best=1.0, settings=CHOSEN, **metrics) -> Evidence:
    """A run with these mean rewards, in whose last update answers earn 0 or `best`."""
    health, update = Health(Run()), Update(len(rewards))
    finished = next(record for record in RECORDS if isinstance(record, Finished))
    for number, reward in enumerate(rewards, start=1):
        numbers = {"reward": float(reward), **metrics}
        health.run.history.add(msgspec.structs.replace(finished, update=number, metrics=numbers))
    for record in RECORDS:
        if isinstance(record, Scored):
            earned = np.where(np.arange(len(record.rewards)) % 2, best, 0).astype(np.float32)
            record = msgspec.structs.replace(record, rewards=earned)  # noqa: PLW2901
        update.add(record)
    health.add(update)
    found = health.evidence(len(rewards), msgspec.structs.asdict(settings))
    assert found is not None
    return found


def line(rewards):
    return trend(run(rewards).series("reward"))


def diagnosed(rewards, best=1.0, settings=CHOSEN, **metrics):
    found = flat(run(rewards, best, settings, **metrics))
    return "" if found is None else f"{found.evidence} {found.change}"


def test_the_slope_and_its_error_are_those_of_numpy():
    rewards = 0.3 + 0.004 * np.arange(40) + NOISE
    found = line(rewards[:37])
    x = np.arange(37 - WINDOW + 1, 38, dtype=np.float64)
    (slope, _), covariance = np.polyfit(x, rewards[37 - WINDOW : 37], 1, cov=True)
    assert found.slope == pytest.approx(slope, rel=1e-9)
    assert found.margin == pytest.approx(T95 * np.sqrt(covariance[0, 0]), rel=1e-3)
    assert found.text.startswith("+0.00")


def test_the_interval_holds_the_true_slope_in_95_of_100_runs():
    rng, held = np.random.default_rng(1), 0
    for _ in range(2000):
        points = 0.4 + 0.003 * np.arange(WINDOW) + rng.normal(0, 0.05, WINDOW)
        found = trend(list(enumerate(points)))
        held += abs(found.slope - 0.003) <= found.margin
    assert 0.935 < held / 2000 < 0.965


def test_a_flat_reward_is_reported_with_its_numbers():
    words = diagnosed(0.4 + NOISE)
    found = line(0.4 + NOISE)
    assert words.startswith(f"Its trend is not distinguishable from flat: {found.text}.")
    assert f"over the last {WINDOW} (95 %)" in words
    assert diagnosed(0.4 + 0.01 * np.arange(40) + NOISE) == "", "it rises"
    assert diagnosed(0.9 - 0.01 * np.arange(40) + NOISE).startswith("It falls: −0.0")


def test_it_is_silent_before_it_can_know():
    assert diagnosed((0.4 + NOISE)[: WINDOW - 1]) == ""
    assert risen(run((0.4 + NOISE)[: WINDOW - 1])) == ""
    whole = run(0.4 + NOISE)
    unfinished = dataclasses.replace(whole, digests=[dataclasses.replace(whole.now, finished=False)])
    assert flat(unfinished) is None
    assert diagnosed(0.4 + NOISE, settings=msgspec.structs.replace(CHOSEN, loss_type="sigmoid")) == "", (
        "pairs are learned from instead"
    )


def test_only_updates_up_to_the_one_examined_count():
    whole = run(np.concatenate([0.4 + NOISE, 0.4 + 0.05 * np.arange(10)]))
    assert flat(whole) is None
    assert "flat" in flat(dataclasses.replace(whole, last=40)).evidence


def test_a_plateau_above_the_updates_before_is_no_problem():
    stairs = np.concatenate([0.2 + NOISE[:WINDOW], 0.5 + NOISE[WINDOW:]])
    assert diagnosed(stairs) == ""
    assert "flat" in diagnosed(np.concatenate([stairs, 0.5 + NOISE[:WINDOW]])), "no longer"


def test_a_reward_at_its_ceiling_is_reported():
    arrived = np.concatenate([0.2 + 0.04 * np.arange(19), 0.96 + NOISE[:WINDOW] / 4])
    assert diagnosed(arrived) == ""
    now = np.mean(arrived[-WINDOW:])
    assert risen(run(arrived)).startswith(f"at its ceiling: {now:.3g} on average over the last {WINDOW} updates")
    late = np.concatenate([np.full(40, 0.2), np.full(WINDOW, 0.96)])
    assert risen(run(late)).startswith(f"at its ceiling: 0.96 on average over the last {WINDOW} updates")
    stays = np.concatenate([arrived, arrived[-WINDOW:]])
    assert "flat" in diagnosed(stays, best=2.0), "an answer earns twice as much"
    assert "flat: 0 ± 0 per update" in diagnosed([0.1] * 30), "nothing but rounding"
    assert "flat" in diagnosed([0.0] * 30, best=0.0), "all earn the most there is, and that is nothing"
    assert "flat" in diagnosed([0.5] + [0.0] * 30, best=0.0), "what was earned once is not reached"


def test_a_reward_near_its_ceiling_that_stays_there_is_no_problem():
    near = [0.3, 0.5, 0.7] + [0.87, 0.88, 0.86] * 10
    assert flat(evidence(33, {"reward": near})) is None
    assert risen(evidence(33, {"reward": near})).startswith("most prompts are solved: ")
    assert flat(evidence(33, {"reward": [x - 0.1 for x in near]})) is not None
    assert solved(evidence(33, {"reward": [*near[:-1], 1.1]})) == "", "an earlier mean was higher than the best now"
    assert solved(curves(33, {"reward": near})) == ""


@pytest.mark.parametrize(
    ("rewards", "higher"),
    [
        ([0.1, 0.2, *[0.8, 0.85] * 10], True),  # a quick rise, and level since
        ([0.5, 0.4] * 20, False),
        ([0.1 * n for n in range(6)], True),
        ([0.6, 0.7, *[0.8, 0.5] * 20], False),
    ],
)
def test_whether_the_reward_is_higher_than_at_the_start(rewards, higher):
    assert has_risen(curves(len(rewards), {"reward": rewards})) is higher


def test_single_updates_that_stand_out_hide_no_rise_and_are_no_collapse():
    rising = [0.4 + 0.01 * n + 0.02 * (-1) ** n for n in range(30)]
    rising[4], rising[12], rising[27] = 40.0, 40.0, -40.0
    outlying = evidence(30, {"reward": rising})
    assert flat(outlying) is None
    assert risen(outlying).startswith("without single updates that stand out: +0.0")
    assert collapsed(outlying) is None
    assert without_outliers([0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0]) == [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert without_outliers(rising[5:12]) == rising[5:12]
    assert without_outliers([1.0, 99.0]) == [1.0, 99.0]


def test_remedies_follow_what_else_was_measured():
    words = diagnosed(0.4 + NOISE, frac_reward_zero_std=0.7)
    assert "70.0 % of the groups earn equal rewards" in words
    assert "more num_prompts" not in words
    assert "35.0 % of the tokens are clipped" in diagnosed(0.4 + NOISE, **{"clip_ratio/region_mean": 0.35})
    assert "more num_prompts" in diagnosed(0.4 + NOISE, frac_reward_zero_std=0.2, kl_old=0.01)
    assert "Go back to an earlier update" in diagnosed(0.9 - 0.01 * np.arange(40) + NOISE)


def test_a_trend_begins_and_ends_with_means_of_what_was_earned():
    found = trend(list(enumerate([0.0] * 15 + [10.0] * 5)))
    assert found is not None
    assert (found.first, found.last, found.ends) == (0.0, 10.0, 5), "its line would begin at -3.2"
