"""Numbers of one optimizer step where an exact value decides: ratios at a bound, weights that stay, order drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.algorithms import masks
from rlplay.algorithms.apply import apply, apply_all, resolve
from rlplay.algorithms.surrogates import SURROGATES
from rlplay.engine.credit_phase import assigned
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.optimize import TrainedMinibatch, checked_norm, minibatches, moves_on
from rlplay.engine.policy_gradient import seen_of, step_metrics, without_gradient
from rlplay.engine.state import Halt
from rlplay.engine.tensors import Tensors
from rlplay.engine.token_shares import share_of
from rlplay.trace.records import Finished, Stepped
from tests.engine.test_more_axes import records_of
from tests.engine.test_process import batch_of
from tests.parity.fixed import GENERATIONS, fixed
from tests.parity.ours import as_batch


@pytest.mark.parametrize("level", ["token", "geometric"])
def test_a_ratio_at_a_bound_is_not_outside_it(level: str) -> None:
    given = {"algorithm": "grpo", "importance_sampling_level": level, "epsilon": 0.25, "epsilon_high": 0.5}
    bounds = torch.tensor([-0.25, 0.5] if level == "geometric" else [0.75, 1.5])
    beyond = torch.tensor([bounds[0].nextafter(torch.tensor(-9.0)), bounds[1].nextafter(torch.tensor(9.0))])
    values = torch.cat([bounds, beyond, torch.tensor([1.0 if level == "token" else 0.0])])[None]
    batch = batch_of([(5, {}, 1.0)])
    batch.advantages = torch.ones(1, 5)
    seen = TrainedMinibatch(
        torch.tensor([0]), values if level == "geometric" else torch.zeros(1, 5), values, torch.zeros(1, 5),
        {"loss": 0.0, "policy_loss": 0.0}, clip_state=torch.tensor([[0, 0, -1, 1, 0]], dtype=torch.int8),
    )  # fmt: skip
    found = step_metrics(batch, seen, resolve(given))
    assert found["ratio_outside"] == pytest.approx(0.4)
    assert (found["clip_ratio/low_mean"], found["clip_ratio/high_mean"]) == pytest.approx((0.2, 0.2))
    assert found["clip_ratio/region_mean"] == pytest.approx(0.4)
    assert found["ratio_max"] == float(values.max())


def test_a_new_surrogate_has_what_its_row_says(monkeypatch: pytest.MonkeyPatch) -> None:
    new = dataclasses.replace(SURROGATES["ppo"], name="new", band=True, cap=True, has_ratio=False, trust_region=False)
    monkeypatch.setitem(SURROGATES, "new", new)
    settings = resolve({"algorithm": "grpo", "surrogate": "new", "epsilon_high": 1.5})
    batch = batch_of([(1, {}, 1.0)])
    batch.advantages, one = torch.ones(1, 1), torch.ones(1, 1)
    seen = TrainedMinibatch(
        torch.tensor([0]), 0 * one, one, 0 * one, {"loss": 0.0, "policy_loss": 0.0}, clip_state=0 * one
    )
    assert {"ratio_outside", "cispo_clip_ratio"} <= step_metrics(batch, seen, settings).keys()
    for other, reason in (
        ({"epsilon_high": 0.5}, "the largest weight"),
        ({"importance_sampling_level": "sequence"}, "no ratio"),
    ):
        with pytest.raises(ValueError, match=f"surrogate=new needs .*{reason}"):
            apply_all(settings, other)
    monkeypatch.setitem(SURROGATES, "new", dataclasses.replace(new, trust_region=True))
    assert apply(settings, "surrogate", "new").kl_placement == "constraint"


def test_a_ratio_counts_as_capped_from_beyond_the_cap_on_where_the_answer_is_good() -> None:
    cap = torch.tensor(2.5)
    ratio = torch.stack([cap, cap.nextafter(torch.tensor(9.0)), torch.tensor(4.0), torch.tensor(1.0)])[None]
    batch = batch_of([(4, {}, 1.0)])
    batch.advantages = torch.tensor([[1.0, 1.0, -1.0, 1.0]])
    losses, clipped = {"loss": 0.0, "policy_loss": 0.0}, torch.zeros(1, 4, dtype=torch.int8)
    seen = TrainedMinibatch(torch.tensor([0]), torch.zeros(1, 4), ratio, torch.zeros(1, 4), losses, clip_state=clipped)
    found = step_metrics(batch, seen, resolve({"algorithm": "cispo", "epsilon_high": 2.5}))
    assert found["cispo_clip_ratio"] == 0.25


def test_every_token_says_why_its_surrogate_does_not_count() -> None:
    given = fixed(torch.double, 2)
    s = resolve({"algorithm": "grpo", "top_entropy_quantile": 0.5, "off_policy_mask_threshold": 0.0,
                 "mask_truncated_completions": True, "num_generations": GENERATIONS})  # fmt: skip
    batch, rows = as_batch(given), torch.arange(len(given.group))
    batch.advantages = assigned(batch, s, 0.0).advantages
    share = share_of(batch, rows, s)
    terms = objective(Inputs(given.logprobs, given.old, None, batch.advantages), share.weights, s, 0.0, share.keep)
    found = seen_of(rows, given.logprobs, terms, share, None, None).left_out
    inside = batch.mask & ~given.truncated[:, None]
    undecided = given.entropy >= given.entropy[inside].quantile(0.5)
    drifted = ~masks.on_policy(Tensors, given.logprobs - given.old, batch.advantages, inside, 0.0)
    wanted = torch.where(~inside, 1, torch.where(~undecided, 2, torch.where(drifted, 3, 0)))
    assert found is not None
    assert found.tolist() == wanted.tolist()
    assert set(wanted[batch.completion_mask].tolist()) == {0, 1, 2, 3}
    assert ((terms.kept > 0) == (wanted == 0)).all()


@pytest.mark.parametrize("cut", [False, True])
def test_a_cut_answer_that_does_not_count_has_no_gradient_whatever_it_earned(cut: bool) -> None:
    batch = batch_of([(2, {}, 1.0), (3, {}, 0.0), (3, {}, 0.5), (1, {}, 0.5)], 2)
    batch.truncated = torch.tensor([False, True, False, True])
    s = resolve({"algorithm": "grpo", "beta": 0.0, "mask_truncated_completions": cut, "num_generations": 2})
    batch.advantages, rows = assigned(batch, s, 0.0).advantages, torch.arange(4)
    state: Any = SimpleNamespace(settings=s, kl_coef=0.0)
    assert without_gradient(batch, rows, share_of(batch, rows, s), state).tolist() == [False, cut, True, True]


@pytest.mark.parametrize(("decays", "gradients", "moves"), [
    ((0.0, 0.0), (0.0, 0.0), False),
    ((0.0, 0.0), (0.0, 1.0), True),
    ((0.0, 0.1), (0.0, 0.0), True),
    ((0.1, 0.1), (1.0, 1.0), True),
])  # fmt: skip
def test_adam_moves_on_by_its_momentum_or_where_weights_decay(
    decays: tuple[float, ...], gradients: tuple[float, ...], moves: bool
) -> None:
    parameters = [torch.nn.Parameter(torch.ones(3)) for _ in decays]
    groups = [{"params": [p], "weight_decay": decay} for p, decay in zip(parameters, decays, strict=True)]
    optimizer = torch.optim.AdamW(groups, lr=0.1)
    assert moves_on(optimizer) == any(decays)
    for given in (gradients, (0.0, 0.0)):
        for parameter, gradient in zip(parameters, given, strict=True):
            parameter.grad = torch.full((3,), gradient)
        before = [p.detach().clone() for p in parameters]
        optimizer.step()
    changed = any(not torch.equal(p, old) for p, old in zip(parameters, before, strict=True))
    assert moves_on(optimizer) == changed == moves


@pytest.mark.parametrize("given", [{"weight_decay": 0.5}, {}])
def test_without_a_signal_the_policy_is_looked_at_again_only_if_something_moves_it(
    start: Callable[..., Any], given: dict[str, Any]
) -> None:
    driver, records = start(reward="same", algorithm="grpo", beta=0.0, learning_rate=0.1, num_iterations=1, **given)
    driver.advance("update", 2, lambda: False)
    driver.close()
    assert [each.metrics["grad_norm"] for each in records_of(Stepped, records)] == [0.0, 0.0]
    assert [each.metrics["kl_old"] > 0 for each in records_of(Finished, records)] == [bool(given)] * 2


def test_the_entropy_of_the_sampled_answers_is_known_until_a_second_step_did_not_compute_it(
    start: Callable[..., Any],
) -> None:
    driver, _ = start(num_iterations=2, entropy_coef=0.0)
    driver.advance("step", 1, lambda: False)
    batch = driver._state.batch
    assert torch.equal(batch.passes.entropy, batch.entropy)
    driver.advance("step", 1, lambda: False)
    assert batch.passes.entropy is None
    driver.close()


def test_a_value_head_that_nothing_reads_any_more_stays_as_it_is(start: Callable[..., Any]) -> None:
    driver, _ = start(algorithm="ppo", learning_rate=1e-2)
    driver.advance("update", 1, lambda: False)
    driver.set({"algorithm": "grpo"})
    driver.advance("update", 1, lambda: False)
    head = driver._state.value_head.weight.detach().clone()
    driver.set({"num_iterations": 2})
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert head.abs().max() > 0
    assert torch.equal(driver._state.value_head.weight, head)


def test_what_is_not_finite_is_counted_and_stops_the_step() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    state: Any = SimpleNamespace(parameters={"p": parameter}, settings=resolve({"algorithm": "grpo"}))
    pulls = torch.tensor([[torch.nan, 1.0, torch.inf, 0.0, 0.0]])
    for loss, gradient, bad in ((1.0, [3.0, 4.0], False), (torch.nan, [3.0, 4.0], True), (1.0, [torch.inf, 0.0], True)):
        parameter.grad = torch.tensor(gradient)
        seen = TrainedMinibatch(torch.tensor([0]), torch.zeros(1, 5), torch.ones(1, 5), pulls, {"loss": loss})
        if not bad:
            assert checked_norm(7, state, seen, 0.0) == 5
            assert parameter.grad.tolist() == gradient
            assert checked_norm(7, state, seen, 1.0) == 5
            assert parameter.grad.norm().item() == pytest.approx(1)
            continue
        with pytest.raises(Halt, match=r"^update 7: loss .*, gradient norm .* \(2 tokens not finite\)"):
            checked_norm(7, state, seen, 0.0)


def test_minibatches_are_not_drawn_with_the_numbers_that_something_else_uses() -> None:
    """The streams of `sample.py`: answers, vines, tails and estimates; labels (5) and the order of given pairs (6)."""
    for update, epoch in ((1, 0), (2, 3)):
        order = torch.cat(minibatches(50, 2, 7, update, epoch)).tolist()
        for stream in (0, 1, 3, 5, 6, 11, 12):
            assert order != np.random.default_rng([7, update, stream, epoch]).permutation(50).tolist()


@pytest.mark.parametrize("parts", [1, 2, 5, 8])
def test_minibatches_are_as_equal_as_they_can_be_and_one_keeps_its_order(parts: int) -> None:
    found = minibatches(5, parts, 0, 1, 0)
    assert sorted(len(part) for part in found) == sorted(len(part) for part in np.array_split(range(5), min(parts, 5)))
    assert sorted(torch.cat(found).tolist()) == list(range(5))
    if parts == 1:
        assert found[0].tolist() == list(range(5))
