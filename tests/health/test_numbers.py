"""Numbers that are none, and gradients that are far out: what is named, and at which size."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.health.broken_numbers import Pull, Unfit, hardest, of_one_token, unfit, without_tokens
from rlplay.health.digest import TokenPlace
from rlplay.health.examine import findings
from rlplay.health.finding import NoTick
from rlplay.health.finite_checks import finite, not_finite
from rlplay.health.spike_checks import lasting, spike, steady
from rlplay.trace.records import Credited, Sampled, Scored, Stepped, spans
from rlplay.trace.update import Update
from tests.health.evidence import curves, evidence
from tests.recorded import synthetic_update

NAN = math.nan
FINE = [0.5] * 6


def test_of_an_own_run_any_metric_counts() -> None:
    found = not_finite(evidence(broken=[(), (), (), (), (), ("a", "b", "c", "d")]))
    assert found is not None
    assert (found.title, found.evidence) == ("A number is not finite", "Update 6: a, b, c are NaN or infinite.")
    assert not_finite(evidence(broken=[("a",), (), (), (), (), ()])) is None
    foreign = evidence(broken=[(), (), (), (), (), ("a",)], source="TRL")
    assert not_finite(foreign) is None, "what another trainer logs may be NaN where there is no such number"


@pytest.mark.parametrize(
    ("metrics", "title"),
    [
        ({"reward": [*FINE, math.inf], "loss": [*FINE, NAN], "grad_norm": [*FINE, NAN]}, "A reward is not a number"),
        ({"loss": [*FINE, NAN], "grad_norm": [*FINE, NAN]}, "The loss is not a number"),
        ({"loss": [*FINE, 0.0], "grad_norm": [*FINE, NAN]}, "The gradient is not a number"),
        ({"grad_norm": [*FINE[:5], NAN, NAN], "loss": [*FINE, NAN]}, "The gradient is not a number"),
        ({"weights/step": [*FINE, NAN], "grad_norm": [*FINE, 3.0]}, "The weights are not numbers"),
        ({"entropy": [*FINE, NAN], "loss": [*FINE, NAN]}, "The weights are not numbers"),
        ({"entropy": [NAN] * 2, "loss": [NAN] * 2}, "The model's numbers are not finite from the start"),
        ({"kl": [*FINE, math.inf], "loss": [*FINE, NAN]}, "The KL to the reference is not a number"),
        ({"sampling/sampling_logp_difference/mean": [NAN], "loss": [NAN]},
         "The sampler's log-probabilities are not numbers"),
        ({"actor/grad_norm": [*FINE, NAN]}, "The gradient is not a number"),
    ],
)  # fmt: skip
def test_the_first_metric_that_broke_is_named(metrics: dict[str, list[float]], title: str) -> None:
    updates = max(map(len, metrics.values()))
    found = not_finite(curves(updates, metrics, source="TRL"))
    assert found is not None
    assert found.title == title


def test_one_infinite_gradient_that_was_left_out_is_no_finding() -> None:
    assert not_finite(curves(7, {"grad_norm": [math.inf, *FINE]}, source="TRL")) is None
    assert not_finite(curves(7, {"grad_norm": [*FINE[:3], math.inf, *FINE[:3]]}, source="TRL")) is None
    twice = not_finite(curves(7, {"grad_norm": [*FINE[:3], NAN, NAN, 1.0, 1.0]}, source="TRL"))
    assert twice is not None
    assert twice.evidence == "Update 4: grad_norm is NaN or infinite. The last finite gradient norm was 0.5."


def broken(**unfit: Unfit) -> list[dict[str, Any]]:
    return [{}] * 5 + [unfit]


@pytest.mark.parametrize(
    ("found", "title", "words"),
    [
        ({"reward": Unfit(0.5, True, 3), "advantage": Unfit(1, False, 0)}, "A reward is not a number", "the reward is"),
        ({"advantage": Unfit(0.25, False, 3)}, "An advantage is not a number", "for 25.0 % of the sampled tokens"),
        ({"ratio": Unfit(0.1, True, 3)}, "A ratio is not a number", "the ratio is"),
        ({"policy": Unfit(1, False, 0), "ratio": Unfit(1, False, 0)}, "The weights are not numbers", "the policy's"),
        ({"sampler": Unfit(1, False, 0)}, "The sampler's log-probabilities are not numbers", "the sampler's"),
        ({"derivative": Unfit(1, False, 0)}, "The loss is not a number", "loss is NaN or infinite"),
    ],
)
def test_the_tokens_say_what_broke_before_the_loss(found: dict[str, Unfit], title: str, words: str) -> None:
    places = {"broken " + name: TokenPlace(6, 1, 2) for name in found}
    run = evidence(unfit=broken(**found), broken=[()] * 5 + [("loss",)], places=places, source="TRL")
    finding = not_finite(run)
    assert finding is not None
    assert finding.title == title
    assert words in finding.evidence
    if title != "The loss is not a number":
        assert finding.place == TokenPlace(6, 1, 2)


def test_what_is_never_on_record_did_not_break() -> None:
    everywhere = [{"policy": Unfit(0.1, False, 0)}] * 6
    found = not_finite(evidence(unfit=everywhere, broken=[()] * 5 + [("loss",)], source="TRL"))
    assert found is not None
    assert found.title == "The loss is not a number"


def test_answers_without_tokens_are_the_cause_of_a_loss_that_is_none() -> None:
    found = not_finite(evidence(without_tokens=3, broken=[()] * 5 + [("loss",)], source="TRL"))
    assert found is not None
    assert found.cause.startswith("3 of 16 answers have no token")


def test_answers_of_the_token_0_alone() -> None:
    zeros = [("!", 0)] * 4 + [("!", 12), ("!", 16)]
    found = not_finite(evidence(all_zero=zeros))
    assert found is not None
    assert "16 of 16 answers of update 6 are nothing but ! (id 0)." in found.evidence
    assert not_finite(evidence(all_zero=[("!", 7)] * 6)) is None
    assert not_finite(evidence(all_zero=[("!", 16)] * 6)) is None, "as it always was"


def test_what_a_tick_about_numbers_has_seen() -> None:
    run = evidence(series={"loss": FINE, "kl": FINE})
    assert finite(run) == "none of the 2 metrics of update 6 is NaN or inf, none of the numbers of 96 answers"
    assert finite(curves(6, {"kl": FINE})) == "none of the 1 metrics of update 6 is NaN or inf"
    assert finite(evidence(finished=False)) == ""
    assert isinstance(finite(curves(6, {"kl": FINE, "loss": FINE[:5]})), NoTick)


def batch(**changed: Any) -> Update:
    """A synthetic update; `changed` are fields of its records, each function applied to the array that it replaces."""
    update = Update(1)
    for record in synthetic_update(1, prompts=2, generations=2, steps=1):
        own = {
            name: change(getattr(record, name))
            for name, change in changed.items()
            if hasattr(record, name) and isinstance(record, Sampled | Scored | Credited | Stepped)
        }
        update.add(msgspec.structs.replace(record, **own))
    return update


def at(place: int, value: float) -> Any:
    def put(array: Any) -> Any:
        out = np.array(array)
        out[place] = value
        return out

    return put


def of_step(place: int) -> int:
    """The token of the batch that is at a place of its step's arrays."""
    update = batch()
    assert update.sampled is not None
    return int(spans(update.sampled.offsets, update.steps[0].rows)[place])


def test_where_the_numbers_of_tokens_stop() -> None:
    assert unfit(batch()) == {}
    found = unfit(batch(advantages=at(5, NAN), importance_ratio=at(7, math.inf)))
    tokens = batch().tokens
    assert found == {"advantage": Unfit(1 / tokens, False, 5), "ratio": Unfit(1 / tokens, True, of_step(7))}
    sampled = batch().sampled
    assert sampled is not None
    first = int(sampled.offsets[1])
    rewards = unfit(batch(rewards=at(1, -math.inf)))["reward"]
    assert (rewards.infinite, rewards.token) == (True, first)


def test_answers_of_which_nothing_was_sampled() -> None:
    sampled = batch().sampled
    assert sampled is not None
    assert (without_tokens(sampled), of_one_token(sampled)[1]) == (0, 0)
    mask = sampled.mask.copy()
    mask[sampled.offsets[1] : sampled.offsets[2]] = 0
    assert without_tokens(msgspec.structs.replace(sampled, mask=mask)) == 1
    offsets = sampled.offsets.copy()
    offsets[1] = 0
    assert without_tokens(msgspec.structs.replace(sampled, offsets=offsets)) == 1
    assert of_one_token(msgspec.structs.replace(sampled, token_ids=np.zeros_like(sampled.token_ids)))[1] == 4


def test_the_token_that_pulled_hardest() -> None:
    update = batch(dloss_dlogp=at(9, 100.0))
    found = hardest(update)
    assert found is not None
    assert update.credited is not None
    assert (found.token, found.advantage) == (of_step(9), pytest.approx(update.credited.advantages[of_step(9)]))
    assert 0.9 < found.share < 1
    assert hardest(batch(dloss_dlogp=np.zeros_like)) is None


NORMS = [0.5, 0.4, 0.6, 0.5, 0.7, 0.45, 0.5, 0.55, 0.6, 0.5, 0.4, 0.5]


def test_a_gradient_that_is_many_times_the_usual() -> None:
    found = spike(curves(13, {"grad_norm": [*NORMS, 40.0]}, max_grad_norm=1.0))
    assert found is not None
    assert found.evidence.startswith(
        "The gradient norm of update 13 is 40, 77.4 times what two thirds of the others stay below, 0.517."
    )
    assert "max_grad_norm scales it to 1." in found.evidence
    assert found.place is None
    assert found.cause.startswith("Not known")


@pytest.mark.parametrize(
    ("norms", "seen"),
    [
        ([*NORMS, 3.0], False),  # less than six times
        ([*NORMS, 4.3], True),
        ([*NORMS[:10], 40.0], False),  # too few
        ([40.0, *NORMS, *NORMS], False),  # long ago
        ([12.6, 2.7, 0.8, 0.05, *[0.02, 0.025] * 5], False),  # the loss falls quickly
        ([*NORMS[:6], 40.0, *NORMS[:6]], True),
        ([1e-3, 0.9, 2e-3, 0.01, 1.2, 0.1] * 3 + [15.0], False),  # they always differ so much
        ([0.0, NAN] + [0.5] * 12 + [4.0], True),
        ([0.0] * 20 + [4.0], False),
    ],
)
def test_how_far_out_a_gradient_has_to_be(norms: list[float], seen: bool) -> None:
    run = curves(len(norms), {"grad_norm": norms})
    assert (spike(run) is not None) == seen
    if not seen and len([x for x in norms if x > 0]) >= 12:
        assert "8 would show" in steady(run)


SPIKED = {
    "grad_norm": [*NORMS[:8], 40.0, *NORMS * 2],
    "reward": [0.1 * n for n in range(8)] + [-9.0] + [0.9, 0.8] * 2 + [0.5, 0.61] * 10,
}


def test_a_gradient_after_which_nothing_rises_comes_first_however_long_ago() -> None:
    run = curves(33, SPIKED)
    lost = curves(33, SPIKED | {"reward": [0.1 * n for n in range(8)] + [-9.0] + [0.3, 0.32] * 12})
    assert [each.name for each in findings(lost)] == ["spike"]
    found = lasting(lost)
    assert found is not None
    assert "In the 5 updates before it the median reward was 0.5, in the last 10 it is 0.31." in found.evidence
    assert found.change.startswith("Go back to before update 9.")
    assert lasting(run) is None
    assert not isinstance(steady(curves(33, {"grad_norm": [*NORMS, *NORMS, *NORMS[:9]]})), NoTick)
    assert isinstance(steady(run), NoTick)
    away = curves(33, SPIKED | {"kl": [0.1] * 9 + [2.0] * 24})
    found = lasting(away)
    assert found is not None
    assert "the median KL to the reference was 0.1, in the last 10 it is 2." in found.evidence


@pytest.mark.parametrize(
    ("advantage", "logprob", "ratio", "words"),
    [
        (40.0, -1.0, 1.0, "deviation near 0"),
        (1.0, -1.0, 50.0, "far from the one that sampled it"),
        (1.0, -12.0, 1.0, "nearly impossible"),
        (1.0, -1.0, 1.0, "No number of that token"),
    ],
)
def test_the_token_of_a_large_gradient_says_why(advantage: float, logprob: float, ratio: float, words: str) -> None:
    pull = Pull(3, " seven", 0.8, advantage, logprob, ratio)
    run = evidence(13, {"grad_norm": [*NORMS, 40.0]}, pull=pull, places={"pulled": TokenPlace(13, 2, 4)})
    found = spike(run)
    assert found is not None
    assert words in found.cause
    assert "“ seven”, token 5 of answer 3, has the largest derivative, 80.0 % of all" in found.evidence
    assert found.place == TokenPlace(13, 2, 4)


def test_answers_that_a_step_does_not_include_are_not_broken() -> None:
    update = Update(1)
    for record in synthetic_update(1, steps=2):
        update.add(record)
    assert len(update.steps[0].rows) < update.completions
    assert unfit(update) == {}
