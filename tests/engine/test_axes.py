"""Properties of the axes that hold whatever the numbers are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlplay.algorithms import baselines, masks, returns, scales, surrogates
from rlplay.algorithms.aggregation import token_weights
from rlplay.algorithms.apply import resolve
from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.credit import advantages as advantages_of
from rlplay.algorithms.divergences import ESTIMATORS
from rlplay.algorithms.ratios import geometric
from rlplay.algorithms.statistics import group_mean, group_statistics, group_std
from rlplay.algorithms.streams import best_of
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.tensors import Tensors

ROWS, WIDTH = 6, 5
T = Tensors(torch.zeros(1, dtype=torch.double))


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Random values [6, 5] in float64 and a mask of random lengths, at least 1."""
    seed = draw(st.integers(0, 10_000))
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, WIDTH + 1, (ROWS, 1), generator=generator)
    return torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.double), torch.arange(WIDTH) < lengths


def estimate(name: str, logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """The KL to the reference at every token."""
    return ESTIMATORS[name].compute(T, ref_logprobs - logprobs)


@given(batches(), st.floats(0, 1))
def test_gae_with_lambda_one_is_the_return_less_the_value_and_with_zero_the_td_error(
    batch: tuple[Tensor, Tensor], gamma: float
) -> None:
    rewards, mask = batch
    values = rewards.flip(0).cos()
    whole = returns.gae(T, rewards, values, mask, gamma, 1.0)
    torch.testing.assert_close(whole, (returns.to_go(T, rewards, mask, gamma) - values) * mask)
    following = torch.cat([values[:, 1:] * mask[:, 1:], torch.zeros(ROWS, 1, dtype=torch.double)], dim=1)
    one = returns.gae(T, rewards, values, mask, gamma, 0.0)
    torch.testing.assert_close(one, (rewards + gamma * following - values) * mask)


@given(batches())
def test_with_lambda_one_the_critic_learns_the_discounted_rewards(batch: tuple[Tensor, Tensor]) -> None:
    rewards, mask = batch[0] * batch[1], batch[1]
    knobs = resolve({"algorithm": "a2c", "lam": 1.0, "gamma": 0.9})
    found, baseline, _ = advantages_of(T, rewards, torch.arange(ROWS), mask, knobs, values=rewards.cos())
    torch.testing.assert_close(found, returns.to_go(T, rewards, mask, 0.9))
    torch.testing.assert_close(baseline, rewards.cos() * mask)


@given(batches(), st.integers(0, 2**WIDTH - 1))
def test_the_advantages_of_reasoning_steps_add_up_to_the_outcome_less_the_first_value(
    batch: tuple[Tensor, Tensor], cuts: int
) -> None:
    rewards, mask = batch
    last = mask & ~torch.cat([mask[:, 1:], torch.zeros(ROWS, 1, dtype=torch.bool)], dim=1)
    ends = (torch.tensor([cuts >> t & 1 for t in range(WIDTH)], dtype=torch.bool) & mask) | last
    begins = torch.cat([torch.ones(ROWS, 1, dtype=torch.bool), ends[:, :-1]], dim=1)
    step = begins.cumsum(-1) - 1
    values = rewards.sin().gather(1, step)
    vine = returns.vine(T, rewards, values, ends, mask, 1.0)
    torch.testing.assert_close((vine * begins).sum(-1), (rewards * mask).sum(-1) - values[:, 0])
    inside = mask & ~begins
    torch.testing.assert_close(vine[inside], vine.roll(1, 1)[inside])


def test_without_a_sampled_token_a_mean_is_0() -> None:
    none = torch.zeros(2, 3, dtype=torch.bool)
    assert T.mean_over(torch.ones(2, 3), none).tolist() == [[0.0], [0.0]]
    assert NumpyArrays.mean_over(np.ones((2, 3)), none.numpy()).tolist() == [[0.0], [0.0]]


def test_the_return_of_an_answer_of_one_token_is_its_reward() -> None:
    rewards, values = torch.tensor([[2.0], [-1.0]]), torch.tensor([[0.5], [0.25]])
    once = torch.ones(2, 1, dtype=torch.bool)
    assert returns.to_go(T, rewards, once, 0.9).tolist() == [[2.0], [-1.0]]
    assert returns.gae(T, rewards, values, once, 0.9, 0.8).tolist() == [[1.5], [-1.25]]
    assert returns.vine(T, rewards, values, once, once, 0.9).tolist() == [[1.5], [-1.25]]


@given(batches())
def test_tokens_of_an_environment_are_skipped(batch: tuple[Tensor, Tensor]) -> None:
    rewards, _ = batch
    values = rewards.sin()
    gap = torch.ones(ROWS, WIDTH, dtype=torch.bool)
    gap[:, 2] = False
    ends = torch.tensor([[False, True, False, False, True]]).expand(ROWS, WIDTH)
    worth = torch.where(torch.arange(WIDTH) < 2, values[:, :1], values[:, 3:4])
    kept = [0, 1, 3, 4]
    dense = torch.ones(ROWS, 4, dtype=torch.bool)
    for with_gap, without in (
        (returns.to_go(T, rewards, gap, 0.9), returns.to_go(T, rewards[:, kept], dense, 0.9)),
        (
            returns.gae(T, rewards, values, gap, 0.9, 0.8),
            returns.gae(T, rewards[:, kept], values[:, kept], dense, 0.9, 0.8),
        ),
        (
            returns.vine(T, rewards, worth, ends, gap, 0.9),
            returns.vine(T, rewards[:, kept], worth[:, kept], ends[:, kept], dense, 0.9),
        ),
        (returns.broadcast(T, rewards, gap), returns.broadcast(T, rewards[:, kept], dense)),
    ):
        torch.testing.assert_close(with_gap[:, kept], without)
        assert bool((with_gap[:, 2] == 0).all())


@given(batches(), st.floats(-100, 100))
def test_a_shift_of_all_rewards_leaves_group_advantages_alone(batch: tuple[Tensor, Tensor], shift: float) -> None:
    outcomes, group = batch[0][:, 0], torch.tensor([0, 0, 0, 1, 1, 1])

    def advantages(r: Tensor) -> Tensor:
        return scales.group(T, (r - group_mean(T, r, group))[:, None], r, group)

    torch.testing.assert_close(advantages(outcomes), advantages(outcomes + shift), atol=1e-8, rtol=1e-8)


@given(batches())
def test_a_permutation_of_the_completions_permutes_the_statistics(batch: tuple[Tensor, Tensor]) -> None:
    outcomes, group = batch[0][:, 0], torch.tensor([0, 0, 1, 1, 2, 2])
    order = torch.tensor([3, 5, 0, 4, 1, 2])
    torch.testing.assert_close(group_mean(T, outcomes, group)[order], group_mean(T, outcomes[order], group[order]))
    torch.testing.assert_close(group_std(T, outcomes, group)[order], group_std(T, outcomes[order], group[order]))


@pytest.mark.parametrize(("values", "mean"), [([3.0], 3.0), ([math.nan], 0.0), ([math.nan, 3.0], 3.0)])
def test_a_single_value_and_none_have_a_spread_of_0(values: list[float], mean: float) -> None:
    given = torch.tensor(values, dtype=torch.double)
    means, spreads = group_statistics(T, given, torch.zeros(len(values), dtype=torch.long), 2)
    assert (means.tolist(), spreads.tolist()) == ([mean, 0.0], [0.0, 0.0])


def test_an_answer_without_siblings_is_its_own_baseline() -> None:
    outcomes = torch.tensor([3.0, 1.0, 2.0], dtype=torch.double)
    assert baselines.leave_one_out(T, outcomes, torch.tensor([0, 1, 1])).tolist() == [3.0, 2.0, 1.0]


def test_of_the_best_answers_of_a_group_only_a_single_one_is_ahead() -> None:
    outcomes = torch.tensor([5.0, 3.0, 2.0, 4.0, 4.0, 1.0, 7.0, 2.0, 2.0], dtype=torch.double)
    group = torch.tensor([0, 0, 0, 1, 1, 1, 2, 3, 3])
    ahead = outcomes - baselines.best_other(T, outcomes, group)
    assert ahead.tolist() == [2.0, 0, 0, 0, 0, 0, 0, 0, 0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 7), st.floats(0.01, 3))
def test_an_answer_is_paid_the_best_of_every_choice_that_it_is_in(ranks: list[int], k: int, unit: float) -> None:
    outcomes = np.array([rank * unit for rank in ranks])
    found = best_of(outcomes, np.zeros(len(ranks), dtype=np.int64), k)
    every = list(itertools.combinations(range(len(ranks)), min(k, len(ranks))))
    wanted = [np.mean([max(outcomes[list(c)]) for c in every if i in c]) for i in range(len(ranks))]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    for rank in set(ranks):  # equal rewards stay equal, and then have no signal
        assert len({float(found[i]) for i in range(len(ranks)) if ranks[i] == rank}) == 1


@pytest.mark.parametrize(("right", "k"), [(1, 2), (3, 4), (6, 2), (7, 4)])
def test_pass_at_k_of_right_and_wrong_answers_is_the_papers_solution(right: int, k: int) -> None:
    """Chen et al. 2025, arXiv:2508.10751, equations 11 to 15."""
    size, wrong = 8, 8 - right
    settings = resolve({"algorithm": "pass-at-k", "pass_at_k": k})
    stream = torch.zeros(size, 1, dtype=torch.double)
    outcomes = np.array([1.0] * right + [0.0] * wrong)
    stream[:, 0] = torch.from_numpy(best_of(outcomes, np.zeros(size, dtype=np.int64), k))
    mask = torch.ones(size, 1, dtype=torch.bool)
    _, _, found = advantages_of(T, stream, torch.zeros(size, dtype=torch.long), mask, settings)
    mean = 1 - math.comb(wrong, k) / math.comb(size, k)
    sigma = math.sqrt(mean * (1 - mean))
    fails = math.comb(wrong - 1, k - 1) / math.comb(size - 1, k - 1)
    wanted = [(1 - mean) / sigma] * right + [(1 - mean - fails) / sigma] * wrong if sigma else [0.0] * size
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-12)


def test_a_group_without_a_success_teaches_maxrl_nothing() -> None:
    raw, outcomes = torch.tensor([[-1.0], [1.0], [-1.0], [1.0]]), torch.tensor([-1.0, 1.0, -2.0, 0.0])
    assert scales.mean(T, raw, outcomes, torch.tensor([0, 0, 1, 1])).tolist() == [[0.0]] * 4
    assert scales.mean(T, raw, outcomes + 1, torch.tensor([0, 0, 1, 1])).tolist() == [[-1.0], [1.0], [0.0], [0.0]]


@given(batches())
def test_whitened_advantages_have_mean_zero_and_variance_one(batch: tuple[Tensor, Tensor]) -> None:
    values, mask = batch
    if int(mask.sum()) > 1:
        white = scales.whiten(T, values, mask)[mask]
        assert float(white.mean()) == pytest.approx(0, abs=1e-9)
        assert float(white.var()) == pytest.approx(1, abs=1e-5)


def test_k1_and_k3_have_the_exact_kl_for_their_mean_and_k2_is_half_the_square() -> None:
    own, ref = torch.tensor([[0.7, 0.2, 0.1], [0.25, 0.25, 0.5]], dtype=torch.double).log()
    exact = float((own.exp() * (own - ref)).sum())
    for name in ("k1", "k3"):
        assert float((own.exp() * estimate(name, own, ref)).sum()) == pytest.approx(exact)
    assert estimate("k2", torch.zeros(3), torch.tensor([0.0, 1.0, -2.0])).tolist() == [0.0, 0.5, 2.0]


@given(batches())
def test_k3_is_never_negative_and_all_estimators_are_zero_where_the_policies_agree(
    batch: tuple[Tensor, Tensor],
) -> None:
    own, ref = -batch[0].abs(), -batch[0].roll(1, 0).abs()
    assert float(estimate("k3", own, ref).min()) >= 0
    assert float(estimate("k3", own.float(), own.float() + 1e-6).min()) >= -1e-12
    for name in ("k1", "k2", "k3"):
        assert bool((estimate(name, own, own) == 0).all())


@given(batches(), st.integers(0, 5))
def test_token_weights_sum_to_what_their_name_says(batch: tuple[Tensor, Tensor], left_out: int) -> None:
    _, mask = batch
    mask[:left_out] = False
    total = int(mask.sum())
    sums = {
        "seq_mean_token_mean": 1 - left_out / ROWS,
        "token_mean": 1.0,
        "constant": total / (ROWS * 9),
        "seq_mean_token_sum": total / ROWS,
    }
    for name, expected in sums.items():
        weights = token_weights(T, name, mask, mask.double(), 9)
        assert float(weights.sum()) == pytest.approx(expected, rel=1e-5)
        assert bool((weights[~mask] == 0).all())


@given(batches(), st.sampled_from([0.1, 0.2]), st.sampled_from([0.2, 0.5]))
def test_clip_state_is_where_the_surrogate_has_no_gradient(
    batch: tuple[Tensor, Tensor], epsilon: float, epsilon_high: float
) -> None:
    advantages = batch[0].roll(2, 1)
    ratio = (batch[0] * 0.4).exp().requires_grad_()
    (gradient,) = torch.autograd.grad(surrogates.ppo(T, ratio, advantages, epsilon, epsilon_high, None).sum(), ratio)
    state = surrogates.ppo_clip_state(T, ratio.detach(), advantages, epsilon, epsilon_high, None)
    assert torch.equal(state != 0, gradient == 0)


@pytest.mark.parametrize(("ratio", "advantage"), [(1.2, 1.0), (0.75, -1.0), (3.0, -1.0)])
def test_a_ratio_at_its_bound_still_has_a_gradient(ratio: float, advantage: float) -> None:
    given, sign = torch.tensor([ratio], dtype=torch.double, requires_grad=True), torch.tensor([advantage])
    (gradient,) = torch.autograd.grad(surrogates.ppo(T, given, sign, 0.25, 0.2, 3.0).sum(), given)
    assert gradient.item() == -advantage
    assert surrogates.ppo_clip_state(T, given.detach(), sign, 0.25, 0.2, 3.0).item() == 0


def test_where_there_is_no_advantage_a_geometric_ratio_is_bounded_below_as_for_a_bad_answer() -> None:
    """It still weighs the KL term there; TRL's GMPOTrainer takes the same side."""
    change = torch.tensor([[-1.0, -0.1, 0.1, 1.0]] * 3)
    advantages = torch.tensor([[1.0], [0.0], [-1.0]]).expand(3, 4)
    wanted = torch.tensor([[-1.0, -0.1, 0.1, 0.3], [-0.2, -0.1, 0.1, 1.0], [-0.2, -0.1, 0.1, 1.0]])
    whole = geometric(Tensors(change), change, torch.ones(3, 4).bool(), advantages, 0.2, 0.3)
    torch.testing.assert_close(whole, wanted.mean(-1, keepdim=True))


def test_an_answer_that_drifted_is_left_out_beyond_the_threshold_and_only_where_it_is_a_bad_one() -> None:
    drifted = torch.tensor([[-0.25, -0.25, -9.0], [-0.5, -0.25, 9.0]], dtype=torch.double)
    mask = torch.tensor([[True, True, False]] * 2)
    for advantage, kept in ((-1.0, [True, False]), (0.0, [True, True]), (1.0, [True, True])):
        found = masks.on_policy(T, drifted, torch.full((2, 3), advantage), mask, 0.25)
        assert (found & mask)[:, :2].tolist() == [[each] * 2 for each in kept]


@pytest.mark.parametrize("change", [[19.0, 19.0, 1.0], [-9.0, -8.0, -7.0], [50.0, -30.0, 0.5], [-60.0, -1.0, 0.0]])
@pytest.mark.parametrize("advantage", [1.5, 0.0, -0.5])
def test_vespos_weight_of_a_ratio_beyond_its_bounds_is_that_at_the_bound(change: list[float], advantage: float) -> None:
    """Token log-ratios are held to ±20, their sum to [log 1e-8, 20]: beyond, e^W would over- or underflow."""
    k, decay = (2.0, 1.2) if advantage >= 0 else (0.7, 0.4)
    log_w = min(max(sum(min(max(c, -20.0), 20.0) for c in change), math.log(1e-8)), 20.0)
    weight = math.exp(decay + k * log_w - decay * math.exp(log_w))
    given = torch.tensor([change], dtype=torch.double)
    logprobs = torch.full_like(given, -0.7)
    mask, advantages = torch.ones(1, 3).bool(), torch.full_like(given, advantage)
    loss = surrogates.vespo(T, logprobs, given, torch.zeros_like(given), mask, advantages, 2.0, 0.7, 1.2, 0.4)
    torch.testing.assert_close(loss, -weight * advantage * logprobs, rtol=1e-12, atol=0)


@settings(max_examples=30)
@given(batches(), st.sampled_from(["grpo", "dr-grpo", "reinforce", "ppo"]), st.sampled_from([0.0, 0.3]))
def test_padding_changes_neither_loss_nor_gradient(batch: tuple[Tensor, Tensor], algorithm: str, beta: float) -> None:
    values, mask = batch
    knobs = resolve({"algorithm": algorithm, "kl_placement": "loss", "beta": beta, "max_completion_length": 16})
    results = []
    for extra in (0, 4):
        pad = torch.full((ROWS, extra), -7.0, dtype=torch.double)
        wide = torch.cat([mask, torch.zeros(ROWS, extra, dtype=torch.bool)], dim=1)
        logprobs = torch.cat([-values.abs(), pad], dim=1).requires_grad_()
        old, ref, advantages = (torch.cat([v, pad], dim=1) for v in (-values.abs() - 0.1, -values.cos(), values.sin()))
        weights = token_weights(T, knobs.aggregation, wide, wide.double(), 16)
        terms = objective(Inputs(logprobs, old, ref, advantages), weights, knobs, beta)
        (gradient,) = torch.autograd.grad(terms.loss, logprobs)
        results.append((terms.loss, gradient[:, :WIDTH][mask]))
    torch.testing.assert_close(results[0], results[1])
