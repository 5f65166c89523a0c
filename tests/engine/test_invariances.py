"""What must not change an update: shifted rewards, the order of answers, padding, parts of a batch. Every preset."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.engine.credit_phase import assigned
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.token_shares import share_of
from tests.engine.conftest import FROM_REWARDS
from tests.parity import ours
from tests.parity.case import precision
from tests.parity.fixed import GENERATIONS, MAX_LENGTH, PROMPTS, Fixed, fixed, sampled_elsewhere

seeds = st.integers(0, 10_000)
algorithms = pytest.mark.parametrize("algorithm", FROM_REWARDS)
few = settings(max_examples=5)
HARDER = {"beta": 0.2, "mask_truncated_completions": True, "top_entropy_quantile": 0.6, "entropy_coef": 0.1,
          "off_policy_mask_threshold": 0.05}  # fmt: skip


def harder(algorithm: str) -> dict[str, Any]:
    """What makes an algorithm's loss harder to get right; TRPO refuses an entropy bonus."""
    return HARDER | ({"entropy_coef": 0.0} if algorithm == "trpo" else {})


def run(batch: Fixed, **given: Any) -> dict[str, Tensor]:
    """Advantages, loss, gradient and metrics in float64."""
    with precision(torch.float64):
        return ours.run(batch, **given)


def per_row(batch: Fixed, change: Any) -> Fixed:
    """The batch with `change` made to every tensor and list that has a row per answer."""
    return replace(batch, **{f.name: change(getattr(batch, f.name)) for f in fields(batch)})


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    """Equal up to rounding."""
    assert a.keys() == b.keys()
    for name, value in a.items():
        torch.testing.assert_close(value, b[name], atol=1e-9, rtol=1e-9, msg=lambda text, n=name: f"{n}: {text}")


COMPARED = [name for name in FROM_REWARDS
            if PRESETS[name].axes["baseline"] in ("batch_mean", "group_mean", "leave_one_out", "best_other")
            and PRESETS[name].axes["scale_rewards"] not in ("mean", "pass_rate")]  # fmt: skip
"""Those that compare answers, whatever the rewards are: others divide by a rate of success."""


@pytest.mark.parametrize("algorithm", COMPARED)
@few
@given(seeds, st.lists(st.floats(-50, 50), min_size=PROMPTS, max_size=PROMPTS))
def test_a_reward_that_all_answers_to_a_prompt_share_teaches_nothing(
    algorithm: str, seed: int, gifts: list[float]
) -> None:
    axes = PRESETS[algorithm].axes
    if axes["multi_objective_aggregation"] == "sum_then_normalize" and (
        axes["baseline"] == "batch_mean" or axes["scale_rewards"] == "batch"
    ):
        gifts = gifts[:1] * PROMPTS  # prompts are compared with each other: all of them have to share it
    batch = fixed(torch.float64, seed)
    shared = torch.tensor(gifts, dtype=torch.float64).repeat_interleave(GENERATIONS)[:, None]
    before, after = (run(b, algorithm=algorithm) for b in (batch, replace(batch, rewards=batch.rewards + shared)))
    torch.testing.assert_close(before["advantages"], after["advantages"], atol=1e-6, rtol=1e-6)


@algorithms
@few
@given(seeds, st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(algorithm: str, seed: int, random: Any) -> None:
    batch = sampled_elsewhere(fixed(torch.float64, seed), seed)
    order = torch.tensor(random.sample(range(len(batch.group)), len(batch.group)))

    def shuffled(value: Any) -> Any:
        return value[order] if isinstance(value, Tensor) else [value[i] for i in order]

    one = run(batch, algorithm=algorithm, **harder(algorithm))
    other = run(replace(per_row(batch, shuffled), greedy=batch.greedy), algorithm=algorithm, **harder(algorithm))
    same({name: value[order] if value.dim() else value for name, value in one.items()}, other)


@algorithms
@few
@given(seeds, st.integers(1, 5))
def test_padding_does_not_matter(algorithm: str, seed: int, extra: int) -> None:
    batch = sampled_elsewhere(fixed(torch.float64, seed), seed)

    def widened(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.shape[1:] != (MAX_LENGTH,):
            return value
        padding = torch.full((len(value), extra), 7).to(value.dtype)
        return torch.cat([value, padding if value.dtype != torch.bool else padding.new_zeros(padding.shape)], dim=1)

    one = run(batch, algorithm=algorithm, **harder(algorithm))
    other = run(per_row(batch, widened), algorithm=algorithm, **harder(algorithm))
    same(one, {name: value[:, :MAX_LENGTH] if value.dim() else value for name, value in other.items()})


READ = ("logprobs", "old", "ref", "values", "entropy", "sampling")


@algorithms
@few
@given(seeds)
def test_what_the_policy_thinks_of_an_environments_tokens_does_not_matter(algorithm: str, seed: int) -> None:
    batch = sampled_elsewhere(fixed(torch.float64, seed), seed)
    batch = replace(batch, environment=batch.mask & ~batch.holes)
    changed = {name: getattr(batch, name) - batch.environment * 0.7 for name in READ}
    one, other = (run(b, algorithm=algorithm, **harder(algorithm)) for b in (batch, replace(batch, **changed)))
    same(one, other)
    assert not bool(one["dloss_dlogp"][batch.environment].any())
    assert not bool(one["advantages"][batch.environment].any())


@algorithms
@few
@given(seeds, st.integers(1, 7))
def test_a_batch_in_parts_gives_the_same_loss_and_gradient(algorithm: str, seed: int, size: int) -> None:
    fixture, knobs = fixed(torch.float64, seed), resolve(ours.SIZES | {"algorithm": algorithm} | harder(algorithm))
    with precision(torch.float64):
        batch, rows = ours.as_batch(fixture), torch.arange(len(fixture.group))
        advantages = assigned(batch, knobs, knobs.beta).advantages
        whole = share_of(batch, rows, knobs)
        found = []
        for rows_at_once in (len(rows), size):
            now, loss = fixture.logprobs.clone().requires_grad_(), torch.zeros(())
            for part in rows.split(rows_at_once):
                share = whole.select(part)
                inputs = Inputs(
                    now[part], fixture.old[part], fixture.ref[part], advantages[part], entropy=fixture.entropy[part]
                )
                terms = objective(inputs, share.weights, knobs, knobs.beta, share.keep, share.bonus, knobs.entropy_coef)
                loss = loss + terms.loss
            found.append((loss.detach(), torch.autograd.grad(loss, now)[0]))
    torch.testing.assert_close(found[0], found[1], atol=1e-12, rtol=1e-12)
