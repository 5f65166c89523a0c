"""Each lens, against its formula in float64, token by token; none has values before the phase that computes them."""

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.trace.lenses import LENSES, Lens, automatic
from rlplay.trace.records import Credited, Sampled, spans
from rlplay.trace.update import PHASES, Update
from tests.apart import update_apart
from tests.recorded import synthetic_update

RECORDS = synthetic_update(1, steps=3)
VALUES = np.linspace(-1, 1, int(RECORDS[0].offsets[-1]), dtype=np.float32)
SHARES = VALUES / 100


def updated(last: type | None = None, **credited) -> Update:
    """The update up to the record of a kind; without a kind, whole."""
    update = Update(1)
    for record in RECORDS:
        if isinstance(record, Credited):
            record = msgspec.structs.replace(  # noqa: PLW2901
                record, **{"values": VALUES, "implicit_rewards": -VALUES, "ref_logprobs": VALUES - 2, **credited}
            )
        update.add(record)
        update.shares = None if update.finished is None else SHARES
        if last is not None and isinstance(record, last):
            break
    return update


def test_the_values_of_a_lens_are_those_of_its_formula() -> None:
    update = updated()
    sampled, credited = update.sampled, update.credited
    old = sampled.old_logprobs.astype(np.float64)
    log_ratio = old - credited.ref_logprobs
    wanted = {
        "probability": np.exp(old), "prob_delta": np.exp(update.finished.logprobs.astype(np.float64)) - np.exp(old),
        "ref_kl": np.exp(-log_ratio) + log_ratio - 1, "log_ratio": log_ratio,
        "entropy": sampled.entropy, "implicit_reward": -VALUES, "share": SHARES,
    }  # fmt: skip
    wanted |= {name: getattr(credited, name) for name in ("advantages", "token_rewards", "values", "returns")}
    last, index = update.steps[-1], spans(sampled.offsets, update.steps[-1].rows)
    for name in ("importance_ratio", "clip_state"):
        wanted[name] = np.full(len(old), np.nan)
        wanted[name][index] = getattr(last, name)
    wanted["credit"] = np.zeros(len(old))
    for step in update.steps:
        index = spans(sampled.offsets, step.rows)
        wanted["credit"][index] -= step.dloss_dlogp.astype(np.float64) * sampled.mask[index].sum()
    wanted["cumulative_logprob"] = np.concatenate([
        np.cumsum(old[a:b]) for a, b in zip(sampled.offsets, sampled.offsets[1:], strict=False)
    ])  # fmt: skip
    assert set(wanted) == {name for name, lens in LENSES.items() if not lens.special}
    for name, values in wanted.items():
        np.testing.assert_allclose(LENSES[name].values(update), values, rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_policy_beside_its_sampler_and_its_teacher_token_by_token() -> None:
    update = update_apart(6)
    sampled, credited = update.sampled, update.credited
    gap = sampled.old_logprobs.astype(np.float64) - sampled.sampling_logprobs
    ratio = np.exp(gap)
    wanted = {
        "sampler_difference": gap, "sampler_ratio": ratio, "mismatch_kl": ratio - 1 - gap,
        "staleness": np.repeat(5 - sampled.versions, np.diff(sampled.offsets)), "correction": np.minimum(ratio, 1.5),
        "teacher_difference": sampled.old_logprobs.astype(np.float64) - credited.teacher_logprobs,
    }  # fmt: skip
    wanted["distillation"] = np.expm1(-wanted["teacher_difference"]) + wanted["teacher_difference"]
    assert set(wanted) == {name for name, lens in LENSES.items() if lens.special}
    for name, values in wanted.items():
        np.testing.assert_allclose(LENSES[name].values(update), values, rtol=1e-3, atol=1e-5, err_msg=name)
    assert set(wanted["staleness"]) == {0, 1, 2, 3, 4}
    assert all(LENSES[name].values(updated()) is None for name in wanted)


def test_where_the_ratio_starts_from_the_sampler_the_first_steps_say_what_the_policy_thought() -> None:
    whole = update_apart(6, steps=4)
    update, sampled = Update(6), whole.sampled
    update.add(msgspec.structs.replace(sampled, old_logprobs=sampled.sampling_logprobs))
    assert LENSES["sampler_difference"].values(update) is None, "no pass of the policy yet"
    for step in whole.steps:
        update.add(step)
    expected = np.full(update.tokens, np.nan)
    for step in whole.steps[:2]:  # two minibatches
        index = spans(sampled.offsets, step.rows)
        expected[index] = step.logprobs - sampled.sampling_logprobs[index]
    np.testing.assert_allclose(LENSES["sampler_difference"].values(update), expected, atol=1e-6)


def test_what_an_environment_wrote_has_no_sampler() -> None:
    update = update_apart(6)
    update.sampled.mask[2] = 0
    assert np.isnan(LENSES["sampler_difference"].values(update)).nonzero()[0].tolist() == [2]


@pytest.mark.parametrize("lens", LENSES.values(), ids=lambda lens: lens.name)
def test_a_lens_has_values_from_its_phase_on(lens: Lens) -> None:
    before = {"credit": Sampled, "update": Credited, "after": type(RECORDS[-2])}.get(lens.phase)
    assert lens.values(Update(1)) is None
    if before is not None:
        assert lens.values(updated(before)) is None
    assert lens.two_sided == (lens.low == -lens.high or (lens.low, lens.high) in ((0.5, 1.5), (0.0, 2.0)))


def test_what_nobody_computed_has_no_values() -> None:
    update = updated(ref_logprobs=None)
    assert LENSES["ref_kl"].values(update) is None
    assert LENSES["log_ratio"].values(update) is None
    unknown = Update(1)
    unknown.add(msgspec.structs.replace(RECORDS[0], old_logprobs=np.full_like(RECORDS[0].old_logprobs, np.nan)))
    assert LENSES["probability"].values(unknown) is None
    assert LENSES["cumulative_logprob"].values(unknown) is None
    partly = np.where(np.arange(len(VALUES)) == 3, np.nan, RECORDS[0].old_logprobs).astype(np.float32)
    unknown.add(msgspec.structs.replace(RECORDS[0], old_logprobs=partly))
    assert np.isnan(LENSES["probability"].values(unknown)).nonzero()[0].tolist() == [3]


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_the_scale_of_a_sum_over_the_passes_on_a_batch_grows_with_their_number(passes: int) -> None:
    settings = resolve({"algorithm": "grpo", "num_iterations": passes})
    once = resolve({"algorithm": "grpo", "num_iterations": 1})
    for name, lens in LENSES.items():
        factor = passes if name == "credit" else 1
        first, found = lens.of(once), lens.of(settings)
        assert (found.low, found.high) == (factor * first.low, factor * first.high)


def test_td_errors_stay_in_view_where_action_values_are_learned() -> None:
    for algorithm, last in (("grpo", "prob_delta"), ("q-learning", "advantages")):
        shown = [automatic(phase, resolve({"algorithm": algorithm})) for phase in PHASES]
        assert shown == ["probability", "probability", "advantages", "credit", last]
