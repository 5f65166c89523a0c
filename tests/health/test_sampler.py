"""Who sampled: each check at its threshold, on evidence that is written and on batches that are drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.health.digest import digest
from rlplay.health.finding import Finding, NoTick
from rlplay.health.mismatch_checks import agreement, mismatch
from rlplay.health.remedies.settings_tried import remedies
from rlplay.health.sampler_checks import leaves_out, other_policy, samples
from rlplay.health.sampler_numbers import SamplerGap, Surprise, against_reference, sampler_gap, surprise
from rlplay.trace.records import Array, Credited, Sampled
from rlplay.trace.update import Update
from tests.health.evidence import curves, evidence, seen_at
from tests.recorded import synthetic_update

UPDATES = 6


def policy(seed: int, tokens: int = 600) -> Array:
    """Log-probabilities of 40 tokens in as many places."""
    logits = np.random.default_rng(seed).normal(0, 2, (tokens, 40))
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))


def kept(own: Array, top_p: float) -> Array:
    """What is left of the log-probabilities by the nucleus, normalised."""
    order = np.argsort(-own, axis=1)
    sorted_ = np.exp(np.take_along_axis(own, order, axis=1))
    left = np.take_along_axis(sorted_.cumsum(axis=1) - sorted_ < top_p, np.argsort(order, axis=1), axis=1)
    cut = np.where(left, own, -np.inf)
    return np.asarray(cut - np.log(np.exp(cut).sum(axis=1, keepdims=True)))


def drawn(number: int, sampler: str = "own", apart: bool = False, reference: bool = False) -> Update:
    """An update of 600 tokens that were drawn from some distribution and are scored under the policy of 40 tokens."""
    own, first = policy(number), policy(0)
    scale = {"hot": 0.6, "cold": 1.5}.get(sampler, 1.0)
    given = kept(own, 0.8) if sampler == "top_p" else first if sampler == "first" else own * scale
    given = given - np.log(np.exp(given).sum(axis=1, keepdims=True))
    random = np.random.default_rng([number, 7])
    tokens = np.array([random.choice(40, p=np.exp(row) / np.exp(row).sum()) for row in given])
    at = np.arange(len(own)), tokens
    sampled, scored, credited, *_ = synthetic_update(number, prompts=1, generations=6, length=1)
    assert isinstance(sampled, Sampled)
    assert isinstance(credited, Credited)
    noise = random.normal(0, 0.03, len(own))
    update = Update(number)
    update.add(
        msgspec.structs.replace(
            sampled, offsets=np.arange(7) * 100, token_ids=tokens.astype(np.int32), texts=["a"] * 600,
            mask=np.ones(600, dtype=np.uint8), old_logprobs=own[at].astype(np.float32),
            entropy=-(np.exp(own) * own).sum(axis=1).astype(np.float32),
            sampling_logprobs=(given[at] + noise * (sampler != "top_p")).astype(np.float32) if apart else None,
        )
    )  # fmt: skip
    update.add(scored)
    update.add(
        msgspec.structs.replace(
            credited, advantages=np.zeros(600, dtype=np.float32),
            ref_logprobs=first[at].astype(np.float32) if reference else None,
        )
    )  # fmt: skip
    return update


def of(kind: str, **options: Any) -> Any:
    """The evidence of six such updates."""
    updates = [drawn(n, kind, **options) for n in range(1, UPDATES + 1)]
    fields: dict[str, Any] = {
        "surprise": [surprise(each) for each in updates],
        "gap": [sampler_gap(each) for each in updates],
        "ahead_of_reference": [against_reference(each) for each in updates],
        "apart": bool(options.get("apart")),
        "places": [digested.places for each in updates if (digested := digest(each))],
    }
    return evidence(UPDATES, **fields)


@pytest.mark.parametrize("apart", [True, False])
def test_the_policys_own_samples_are_as_unlikely_as_its_entropy_says(apart: bool) -> None:
    run = of("own", apart=apart, reference=True)
    assert (other_policy(run), leaves_out(run)) == (None, None)
    said = samples(run)
    assert not isinstance(said, NoTick)
    assert said.startswith("−log p ")
    assert "3,600 tokens" in said


@pytest.mark.parametrize(("kind", "word"), [("hot", "hotter"), ("cold", "colder")])
def test_a_sampler_at_another_temperature(kind: str, word: str) -> None:
    finding = other_policy(of(kind))
    assert finding is not None
    assert (finding.name, finding.title) == ("sampler", f"The sampler is {word} than the policy")
    assert "temperature" in finding.settings
    assert finding.place is not None
    assert finding.place.update == UPDATES


def test_a_nucleus_that_the_run_states_makes_answers_likelier_as_it_should() -> None:
    run = of("top_p")
    assert other_policy(run) is not None
    stated = evidence(UPDATES, settings={"top_p": 0.8}, surprise=[each.surprise for each in run.digests])
    assert other_policy(stated) is None
    assert not samples(stated).startswith("−log p")


def test_a_ratio_that_counts_what_the_sampler_cannot_say() -> None:
    run = of("top_p", apart=True)
    finding = leaves_out(run)
    assert finding is not None
    assert finding.name == "left out"
    gaps = [each.gap for each in run.digests[-5:]]
    mean = sum(gap.ratio for gap in gaps) / 5
    assert 0.8 < mean < 0.97
    assert f"{mean:.3f}"[:5] in finding.evidence.replace("±", " ")
    assert leaves_out(of("own", apart=True)) is None
    assert leaves_out(of("first", apart=True)) is None


def test_ratios_below_one_that_were_only_logged() -> None:
    name = "sampling/importance_sampling_ratio/"
    found = leaves_out(curves(6, {f"{name}mean": [0.6] * 6, f"{name}max": [1.0] * 6}))
    assert found is not None
    assert "0.6 on average and 1 at most" in found.evidence
    assert leaves_out(curves(6, {f"{name}mean": [0.6] * 6, f"{name}max": [1.0] * 5 + [1.1]})) is None
    assert leaves_out(curves(6, {f"{name}mean": [0.6] * 5 + [0.99], f"{name}max": [1.0] * 6})) is None
    assert leaves_out(curves(4, {f"{name}mean": [0.6] * 4, f"{name}max": [1.0] * 4})) is None


def test_a_sampler_that_answers_with_the_reference() -> None:
    finding = other_policy(of("first", apart=True, reference=True))
    assert finding is not None
    assert finding.title == "The sampler does not have the new weights"
    assert "are those of the reference" in finding.evidence
    near = SamplerGap(1000, 1.0, 0.1, 400, 400, 9.0, 1.07, 42.0)  # of a run whose sampler was eight updates old
    old = evidence(gap=near, apart=True)
    assert all("are those of the reference" not in found.evidence for found in [other_policy(old)] if found is not None)
    pinned = other_policy(evidence(gap=replace(near, reference_kl=0.01), apart=True))
    assert pinned is not None
    assert "are those of the reference" in pinned.evidence
    alone = other_policy(of("first", reference=True))
    assert alone is not None
    assert "never below 0" in alone.evidence


def surprised(*excess: float, tokens: int = 1000, entropy: float = 0.5) -> list[Surprise]:
    """Updates whose −log p exceeds the entropy by so much, with a deviation of 0.7 nats."""
    return [Surprise(tokens, tokens * (entropy + x), tokens * entropy, tokens * 0.5) for x in excess]


def test_a_sampler_that_was_right_at_first_has_old_weights() -> None:
    grows = other_policy(evidence(8, surprise=surprised(0, 0, 0, 0.1, 0.2, 0.4, 0.6, 0.8)))
    assert grows is not None
    assert grows.title == "The sampler does not have the new weights"
    always = other_policy(evidence(8, surprise=surprised(*[0.4] * 8)))
    assert always is not None
    assert always.title == "The sampler is hotter than the policy"
    later = other_policy(evidence(8, first=5, surprise=surprised(0, 0, 0, 0.1, 0.2, 0.4, 0.6, 0.8)))
    assert later is not None
    assert later.title == grows.title, "a stage begins anew"


@pytest.mark.parametrize(
    ("excess", "entropy", "tokens", "found"),
    [
        (0.16, 0.5, 200, True),  # of five updates, 1,000 tokens: the error is 0.022
        (0.13, 0.5, 200, False),
        (-0.19, 0.5, 200, True),
        (-0.16, 0.5, 200, False),
        (0.9, 0.5, 10, False),  # too few
        (0.04, 0.5, 100_000, False),  # less than a tenth of the entropy
        (0.06, 0.5, 100_000, True),
        (0.015, 0.001, 100_000, False),  # so few nats are rounding
    ],
)
def test_the_thresholds_of_the_surprise(excess: float, entropy: float, tokens: int, found: bool) -> None:
    run = evidence(5, surprise=surprised(*[excess] * 5, tokens=tokens, entropy=entropy))
    assert (other_policy(run) is not None) == found


def test_a_nearly_certain_policy_proves_nothing_by_what_it_does_not_say() -> None:
    certain = Surprise(10_000, 0.0, 5.0, 10_000 * 0.0005**2)
    assert certain.excess / certain.error == pytest.approx(-math.sqrt(5.0))


def test_answers_that_a_trainer_leaves_out_take_their_tokens_along() -> None:
    update = drawn(1)
    assert update.sampled is not None
    old = update.sampled.old_logprobs.copy()
    old[:30] = np.nan
    update.add(msgspec.structs.replace(update.sampled, old_logprobs=old))
    assert surprise(update) is not None
    old[:31] = np.nan
    assert surprise(update) is None
    update.add(msgspec.structs.replace(update.sampled, entropy=np.zeros(600, dtype=np.float32)))
    assert surprise(update) is None


GROWING = [1e-3, 1.2e-3, 9e-4, 1.5e-3, 2e-3, 4e-3, 9e-3, 1e-2]


@pytest.mark.parametrize(
    ("values", "apart", "title"),
    [
        ([1.6e-3] * 8, True, None),  # as healthy runs in bfloat16
        ([2e-3, 1e-3, 3e-3, 1.6e-3] * 5, True, None),
        ([1.6e-3] * 8, False, None),
        ([4e-3] * 8, False, "Sampling and training disagree"),
        ([1e-4] * 6 + [4e-3, 4e-3], False, None),  # two updates prove nothing
        ([1e-1] * 12 + [1e-4] * 6, True, "Sampling and training disagree"),  # it has nothing left to get wrong
        ([9e-3] * 8, True, None),
        ([1.1e-2] * 8, True, "Sampling and training disagree"),
        (GROWING, True, "Sampling and training disagree, ever more"),
        (GROWING[:7], True, None),
        ([x / 10 for x in GROWING], True, None),
    ],
)
def test_a_mismatch_that_is_large_or_grows(values: list[float], apart: bool, title: str | None) -> None:
    run = evidence(len(values), mismatch=values, apart=apart)
    found = mismatch(run)
    assert (found.title if found else None) == title
    if found is not None:
        assert seen_at(found) == (len(values), "mismatch")
    else:
        assert "between sampling and training" in agreement(run)
        wrong = 1e-2 if apart else 3e-3
        assert isinstance(agreement(run), NoTick) == (np.median(values[-5:]) > 0.4 * wrong)


@pytest.mark.parametrize(
    ("name", "scale"),
    [("rollout_corr/k3_kl", 1.0), ("mismatch_kl/mean", 1.0), ("sampling/sampling_logp_difference/mean", 15.0),
     ("training/rollout_probs_diff_mean", 5.0)],
)  # fmt: skip
def test_a_mismatch_that_was_only_logged(name: str, scale: float) -> None:
    steady = curves(8, {name: [1.6e-3 * scale] * 8}, source="verl")
    assert mismatch(steady) is None
    assert "not growing over 8 updates" in samples(steady)
    grows = mismatch(curves(8, {name: [x * scale for x in GROWING]}, source="verl"))
    assert grows is not None
    assert grows.title == "Sampling and training disagree, ever more"
    assert grows.place is None


def test_a_mismatch_that_follows_the_kl_is_that_of_the_first_weights() -> None:
    found = mismatch(curves(8, {"mismatch_kl/mean": GROWING, "kl": [1.4 * x for x in GROWING]}))
    assert found is not None
    assert "the first weights" in found.cause
    other = mismatch(curves(8, {"mismatch_kl/mean": GROWING, "kl": [40 * x for x in GROWING]}))
    assert other is not None
    assert "falls behind" in other.cause


def test_a_sampler_that_is_held_against_itself_has_no_tick() -> None:
    own = evidence(8, mismatch=0.0, source="TRL 1.16.0 GRPOTrainer")
    assert mismatch(own) is None
    assert isinstance(samples(own), NoTick)
    assert isinstance(samples(evidence(8, mismatch=None)), NoTick)
    assert not isinstance(samples(evidence(8, mismatch=1e-12)), NoTick), "rlplay computes both anew"
    assert not isinstance(samples(evidence(8, mismatch=1e-4, apart=True, source="TRL")), NoTick)


def test_a_gap_counts_only_what_the_sampler_has_numbers_for() -> None:
    update = drawn(1, apart=True)
    assert update.sampled is not None
    assert update.sampled.sampling_logprobs is not None
    theirs = update.sampled.sampling_logprobs.copy()
    theirs[5:] = np.nan
    theirs[:5] = update.sampled.old_logprobs[:5] + np.array([0.5, -0.5, 0.01, 0, 0], dtype=np.float32)
    update.add(msgspec.structs.replace(update.sampled, sampling_logprobs=theirs))
    found = sampler_gap(update)
    assert isinstance(found, SamplerGap)
    assert (found.tokens, found.above, found.below) == (5, 1, 1)
    ratios = np.exp([-0.5, 0.5, -0.01, 0, 0])
    assert found.ratio == pytest.approx(ratios.mean(), rel=1e-5)
    assert found.ratio_error == pytest.approx(ratios.std() / math.sqrt(5), rel=1e-4)
    assert found.largest == pytest.approx(0.5, abs=1e-5)


def test_own_settings_are_named_as_the_cause_of_a_mismatch_and_tried_first() -> None:
    def said(**settings: object) -> tuple[Finding, list[dict[str, object]]]:
        run = evidence(mismatch=[0.0, *[0.3] * 5], apart=True, age=4.0, settings=settings)
        problem = mismatch(run)
        assert problem is not None
        return problem, [each.changes for each in remedies(run, problem)]

    agreed = {"sampler_dtype": "same", "sampler_lag": 0, "weight_sync_steps": 1}
    lag, tried = said(sampler_lag=4)
    assert lag.title == "The sampler's weights are 4 updates old"
    assert lag.settings == ("sampler_lag", "weight_sync_steps", "old_logprobs_of", "surrogate")
    assert tried == [agreed]
    rounded, tried = said(sampler_dtype="bfloat16")
    assert rounded.settings == ("sampler_dtype", "importance_sampling_mode")
    assert tried == [agreed, {"importance_sampling_mode": "token_truncate"}]
    coarse, tried = said(sampler_dtype="int8", importance_sampling_mode="token_mask")
    assert coarse.settings == ("sampler_dtype",)
    assert tried == [agreed]
    assert said(weight_sync_steps=0)[0].cause.startswith("weight_sync_steps is 0")
    other, tried = said()
    assert other.settings == ()
    assert tried == [], "somebody else samples, and no setting of training makes the two agree"
    theirs = evidence(mismatch=0.3, apart=True, settings={"sampler_lag": 4}, source="TRL 1.16.0 GRPOTrainer")
    assert mismatch(theirs).settings == ()
