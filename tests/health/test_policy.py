"""When the policy moves too far, too little, or into a corner: each check at its threshold, and what it names."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rlplay.health import flat_checks as flat
from rlplay.health import policy_checks as policy
from rlplay.health import rate_checks as rate
from rlplay.health.examine import findings, verdicts
from rlplay.health.finding import Finding
from tests.health.evidence import curves, evidence, seen_at

RISING = [0.1 * n for n in range(1, 31)]
NOISY = [0.5 + (-1) ** n * 0.1 for n in range(40)]
FALLING = RISING[::-1]


def test_the_largest_of_steps_that_are_too_large_is_named() -> None:
    run = evidence(
        shift=[0.1, 0.3, None, 0.5, 0.25, 0.2], series={"kl_old": [1, 2, 3, 4, 5, 6]},
        settings={"num_iterations": 2, "num_minibatches": 2},
    )  # fmt: skip
    found = policy.too_far(run)
    assert found is not None
    assert found.evidence.startswith(
        "3 of the last 5 updates moved more than 20.0 % of the probability; update 4 moved 50.0 %, a KL of 4 nats per "
    )
    assert (found.settings, seen_at(found)) == (("learning_rate",), (4, "moved"))
    assert "optimizer steps" not in found.cause
    assert found.change.startswith("Lower learning_rate")
    many = policy.too_far(evidence(shift=0.3, settings={"num_iterations": 5, "num_minibatches": 2}))
    assert many is not None
    assert "with 10 optimizer steps" in many.cause
    assert "a KL of" not in many.evidence
    assert many.change.startswith("Lower num_iterations, or lower learning_rate")
    assert many.settings == ("num_iterations", "learning_rate")
    assert policy.too_far(evidence(shift=[0.1, 0.3, 0.1, 0.1, 0.1, 0.1])) is None, "once is no pattern"
    assert policy.too_far(evidence(shift=0.3, settings={"loss_type": "sft"})) is None
    assert policy.too_far(evidence(22, shift=[0.3] * 2 + [0.1] * 20)) is None, "too long ago"


def test_steps_that_lead_nowhere() -> None:
    run = evidence(series={"kl_old": [4e-7, 9e-7, float("nan"), 3e-7, 2e-7, 1e-7]})
    found = policy.too_short(run)
    assert found is not None
    assert found.evidence.startswith("The KL of an update was at most 9e-7 nats per token over 5 updates")
    assert (found.settings, seen_at(found)) == (("learning_rate",), (6, "moved"))
    tiny = {"kl_old": [1e-7] * 6}
    assert policy.too_short(evidence(5, tiny)) is not None
    for other in (
        evidence(4, tiny), evidence(series={"kl_old": [1e-7] * 5 + [1e-6]}), evidence(series=tiny, silent=True),
        evidence(series=tiny, finished=False), evidence(series=tiny, settings={"loss_type": "sft"}),
    ):  # fmt: skip
        assert policy.too_short(other) is None


def test_a_learning_rate_of_0_is_named_at_once() -> None:
    found = rate.no_rate(evidence(1, {"learning_rate": [0.0]}, settings={"learning_rate": 0.0}))
    assert found is not None
    assert found.title == "The learning rate is 0"
    assert found.change == "Set learning_rate above 0."
    warming = evidence(2, {"learning_rate": [0.0, 1e-6]}, settings={"learning_rate": 1e-5})
    assert rate.no_rate(warming) is None


def test_a_learning_rate_that_leads_nowhere_is_named_and_one_that_may_rise_yet_is_not() -> None:
    decaying = [1.2e-8 * n / 24 for n in range(23, -1, -1)]
    series = {"learning_rate": decaying, "reward": NOISY[:24], "grad_norm": [1.0, 1.2] * 12, "reward_std": [0.5] * 24}
    run = curves(24, series)
    (found,) = findings(run)
    assert found.title == "The learning rate is far too small"
    assert found.evidence == "It was at most 1.15e-8 in 24 updates."
    assert not {each.title for each in verdicts(run, [found]) if each.ticked} & {"Learning rate", "Weights"}
    for other in (
        {"learning_rate": decaying[::-1]}, {"learning_rate": [x * 3 for x in decaying]}, {"reward": RISING[:24]},
        {"learning_rate": decaying[:4]}, {"weights/step": [1e-5] * 24},
    ):  # fmt: skip
        assert rate.no_rate(curves(24, series | other)) is None
    stated = curves(24, series | {"learning_rate": decaying[::-1]}, learning_rate=1.2e-8)
    assert rate.no_rate(stated) is not None


def test_repetition_is_the_mean_of_three_updates() -> None:
    found = policy.repetition(evidence(repeats=[0.01, 0.0, 0.0, 0.1, 0.3, 0.5]))
    assert found is not None
    assert found.evidence == (
        "In the last 3 updates 30.0 % of an answer's four-token sequences occur earlier in it; in update 1 it was "
        "1.0 %."
    )
    assert (found.settings, seen_at(found)) == (("reward_weights", "beta"), (6, "repeated"))
    assert policy.repetition(evidence(repeats=[0.9, 0.9, 0.9, 0.1, 0.29, 0.5])) is None
    for updates, begin in ((3, "In the last 3 updates"), (1, "In update 1")):
        early = policy.repetition(evidence(updates, repeats=0.4))
        assert early is not None
        assert early.evidence == f"{begin} 40.0 % of an answer's four-token sequences occur earlier in it."


STILL = {"entropy": [2.0, 1.0, 1.0, 0.8, 0.5, 0.39], "reward": [0.5, 0.6, 0.5, 0.6, 0.5, 0.54]}


@pytest.mark.parametrize(
    ("settings", "setting", "change"),
    [
        ({}, "learning_rate", "Lower learning_rate"),
        ({"loss_type": "q_learning"}, "exploration_rate", "Raise exploration_rate"),
        ({"entropy_coef": -0.1}, "entropy_coef", "Set entropy_coef to 0 or above"),
        ({"entropy_coef": 0.1}, "learning_rate", "Lower learning_rate"),
    ],
)
def test_a_policy_that_is_certain_and_earns_no_more(settings: dict[str, Any], setting: str, change: str) -> None:
    found = policy.collapsed(evidence(series=STILL, settings=settings))
    assert found is not None
    assert found.evidence.startswith("Entropy fell from 2 nats at update 1 to 0.39 at 6")
    assert found.change.startswith(f"Go back to an earlier update. {change}")
    assert (found.settings, seen_at(found)) == ((setting,), (6, "longest"))


@pytest.mark.parametrize(
    "changes",
    [
        {"entropy": [2.0, 1.0, 1.0, 0.8, 0.5, 0.4]},
        {"entropy": [2.0, float("nan"), float("nan"), 0.8, 0.5, 0.39]},
        {"entropy": [-2.0, -3.0, -3.0, -3.0, -3.0, -3.0]},
        {"reward": [0.5, 0.5, 0.5]},
        {"reward": RISING},
        {"reward": [0.5, 0.6, 0.5, 0.6, 0.5, 0.56]},
        {"reward": [0.1, 0.96, 0.95, 0.96, 0.95, 0.95]},
    ],
)
def test_a_policy_that_is_not_certain_or_earns_more(changes: dict[str, list[float]]) -> None:
    assert policy.collapsed(evidence(series=STILL | changes)) is None
    assert policy.collapsed(evidence(series=STILL, finished=False)) is None
    five = {"entropy": [2.0, 1.0, 1.0, 0.8, 0.39], "reward": STILL["reward"][:5]}
    assert policy.collapsed(evidence(5, five)) is not None


@pytest.mark.parametrize(
    ("kl", "reward", "evidences"),
    [
        ([9, 9, 9, 0.9, 1.0, 0.9], NOISY, None),
        ([9, 9, 9, 9, 0.9, 1.0, 0.9], NOISY, None),
        (
            [0, 0, 0, 0.9, 1.5, 1.0],
            NOISY,
            "1 nats per token (median of the last 3 updates), and the reward does not rise.",
        ),
        ([0, 0, 0, 0.9, 1.5, 1.0], RISING, None),
        ([0, 0, 0, 0.9, 1.5, 1.0], [0.5], None),
        ([0, 0, 0, 0.9, 1.5, 1.0], [0.1, 0.96, 0.95, 0.96, 0.95, 0.95], None),
        ([0, 0, 0, 4.9, 6.0, 5.0], RISING, "5 nats per token (median of the last 3 updates)."),
        ([], NOISY, None),
    ],
)
def test_far_from_the_reference(kl: list[float], reward: list[float], evidences: str | None) -> None:
    run = evidence(max(6, len(kl)), {"kl": kl, "reward": reward})
    found = policy.away(run)
    assert (None if found is None else found.evidence) == (
        None if evidences is None else f"The KL to the reference is {evidences}"
    )
    if found is not None:
        assert (found.settings, seen_at(found)) == (("beta", "learning_rate"), (6, "longest"))
        assert "beta is 0.05" in found.cause
        unstated = policy.away(dataclasses.replace(run, on_record=()))
        assert unstated is not None
        assert "0.05" not in unstated.cause


def test_a_critic_that_explains_nothing_says_how_little() -> None:
    explained = [*[0.9] * 15, 0.0, -0.5, 0.04, float("nan"), -0.2, 0.05]
    series = {"explained_variance": explained, "reward_std": [0.3] * 21, "reward": (NOISY * 3)[:21]}
    found = policy.critic(evidence(21, series))
    assert found is not None
    assert found.evidence.startswith("Explained variance was at most 0.05 in the last 5 updates")
    assert (found.settings, seen_at(found)) == (("vf_coef",), (21, "longest"))
    assert "vf_coef (0.1 now)" in found.change
    unstated = policy.critic(dataclasses.replace(evidence(21, series), on_record=()))
    assert unstated is not None
    assert unstated.change.startswith("Raise vf_coef, or")
    for other in (
        {"explained_variance": [*explained[:-1], 0.06]}, {"reward_std": [0.0] * 21}, {"reward_std": []},
        {"reward": [0.1] + [0.95] * 20}, {"reward": [0.04 * n for n in range(21)]},
    ):  # fmt: skip
        assert policy.critic(evidence(21, series | other)) is None
    rising = evidence(21, series | {"reward": [0.04 * n for n in range(21)]}, settings={"vf_coef": 0.0})
    assert policy.critic(rising) is not None
    nine = {"explained_variance": [0.0] * 9, "reward_std": [0.3] * 9, "reward": NOISY[:9]}
    assert policy.critic(evidence(9, nine)) is None, "a critic takes some updates to learn"
    assert policy.critic(evidence(9, nine, settings={"vf_coef": 0.0})) is not None
    assert policy.critic(evidence(7, {"explained_variance": [0.0] * 7, "reward_std": [0.3] * 7})) is None


def flat_of(updates: int = 20, **series: list[float]) -> Finding | None:
    return flat.flat(evidence(updates, {"reward": NOISY} | series))


def test_a_reward_that_does_not_rise() -> None:
    found = flat_of()
    assert found is not None
    assert (found.title, found.settings, seen_at(found)) == (
        "The reward does not rise", ("num_prompts",), (20, "example"),
    )  # fmt: skip
    assert found.evidence.startswith("Its trend is not distinguishable from flat: ")
    falls = flat_of(reward=FALLING)
    assert falls is not None
    assert (falls.title, falls.settings) == ("The reward falls", ("learning_rate",))
    assert falls.evidence.startswith("It falls: −0.1")
    for none in (flat_of(19), flat_of(reward=RISING), flat_of(reward=[0.1, *[0.95] * 19])):
        assert none is None
    assert flat.flat(evidence(20, {"reward": NOISY}, finished=False)) is None
    assert flat.flat(evidence(20, {"reward": NOISY}, settings={"loss_type": "sft"})) is None
    bare = flat.flat(evidence(20, {"reward": NOISY}, examples=()))
    assert bare is not None
    assert bare.place is None


@pytest.mark.parametrize(
    ("before", "now", "higher"),
    [
        ([0.2, 0.3] * 10, [0.5, 0.6] * 10, True),
        ([0.5, 0.6] * 10, [0.2, 0.3] * 10, False),
        ([0.2, 0.3] * 2, [0.5, 0.6] * 10, False),
        ([0.0, 1.0] * 10, [0.1, 1.1] * 10, False),
        ([0.0, 1.0] * 10, [0.31, 1.31] * 10, False),
        ([0.0, 1.0] * 10, [0.33, 1.33] * 10, True),
        ([0.0, 1.0, 0.0, 1.0, 0.5], [0.5, 1.5] * 10, False),
        ([0.0, 1.0, 0.0, 1.0, 0.5], [0.6, 1.6] * 10, True),
        ([0.0] * 20, [0.0] * 15 + [0.1] * 5, True),
        ([0.5] * 20, [0.5] * 20, False),
    ],
)
def test_a_reward_that_has_risen_before_is_flat_at_a_height(
    before: list[float], now: list[float], higher: bool
) -> None:
    found = flat.flat(evidence(len(before) + 20, {"reward": [*before, *now]}, best=3.0))
    assert (found is None) == higher


@pytest.mark.parametrize(
    ("series", "settings", "named"),
    [
        ({"frac_reward_zero_std": [0.5] * 20}, {}, ("num_generations",)),
        ({"frac_reward_zero_std": [0.5] * 20}, {"baseline": "none"}, ("num_prompts",)),
        ({"frac_reward_zero_std": [0.49] * 20}, {}, ("num_prompts",)),
        ({"clip_ratio/region_mean": [0.31] * 20}, {}, ("num_iterations",)),
        ({"clip_ratio/region_mean": [0.29] * 20}, {}, ("num_prompts",)),
        ({"kl": [0.05] * 20}, {}, ("beta",)),
        ({"kl": [0.04] * 20}, {}, ("num_prompts",)),
        ({"kl": [0.05] * 20}, {"beta": 0.0}, ("num_prompts",)),
        (
            {"kl": [0.1] * 20, "clip_ratio/region_mean": [0.4] * 20, "frac_reward_zero_std": [0.6] * 20},
            {},
            ("num_generations", "num_iterations", "beta"),
        ),
    ],
)
def test_what_to_try_where_the_reward_is_flat(
    series: dict[str, list[float]], settings: dict[str, Any], named: tuple[str, ...]
) -> None:
    found = flat.flat(evidence(20, {"reward": NOISY} | series, settings=settings))
    assert found is not None
    assert found.settings == named
    if "kl" in series and named[-1] == "beta":
        assert f"β·KL is {series['kl'][0] * 0.05:g}:" in found.change
