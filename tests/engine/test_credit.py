"""What credit assignment makes of prices on length and of a KL, beside the reward."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.engine.credit_phase import token_rewards
from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord, Credited, Sampled, Stepped
from tests.engine.test_more_axes import records_of
from tests.engine.test_process import batch_of

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


@pytest.mark.parametrize("buffer", [4, 5, 100])
def test_a_buffer_is_at_most_all_of_an_answers_room(buffer: int) -> None:
    settings = resolve({"algorithm": "grpo", "overlong_buffer": buffer, "max_completion_length": 4})
    batch = batch_of([(n, {}, 10.0) for n in (1, 2, 3, 4)])
    assert token_rewards(batch, settings, 0.0).sum(-1).tolist() == [9.75, 9.5, 9.25, 9.0]


@pytest.mark.parametrize(
    ("given", "exact", "anchor"),
    [
        ({"kl_estimator": "full", "beta": 0.1}, True, True),
        ({"kl_estimator": "full", "beta": 0.0}, True, False),
        ({"kl_estimator": "full", "beta": 0.1, "kl_placement": "reward"}, True, False),
        ({"kl_estimator": "full", "beta": 0.0, "observe": "light"}, False, False),
        ({"kl_estimator": "k3", "beta": 0.1}, False, False),
    ],
)
def test_whole_distributions_are_kept_where_the_loss_needs_them(
    start: Start, given: dict[str, Any], exact: bool, anchor: bool
) -> None:
    driver, _ = start(**given)
    driver.advance("phase", 3, lambda: False)
    batch = driver._state.batch
    assert batch is not None
    assert (batch.exact_kl is not None, batch.anchor is not None) == (exact, anchor)
    driver.close()


@pytest.mark.parametrize("moved", [False, True])
def test_the_references_candidates_are_those_of_the_policy_scored_by_the_reference(start: Start, moved: bool) -> None:
    driver, records = start()
    lm = driver._state.lm
    with torch.no_grad():
        for parameter in lm.policy.parameters():
            parameter.mul_(1.2 if moved else 1.0)
    driver.advance("phase", 3, lambda: False)
    driver.close()
    (sampled,), (credited,) = records_of(Sampled, records), records_of(Credited, records)
    tops, owns = [], []
    for i, (a, b) in enumerate(itertools.pairwise(sampled.offsets)):
        prompt = sampled.prompt_ids[slice(*sampled.prompt_offsets[sampled.group[i] :][:2])]
        ids = torch.from_numpy(np.concatenate([prompt, sampled.token_ids[a:b]])).long()[None]
        with torch.no_grad():
            whole = lm.reference(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        tops.append(whole.gather(-1, torch.from_numpy(sampled.top_ids[a:b]).long()))
        owns.append(whole.gather(-1, ids[0, len(prompt) :, None])[:, 0])
    np.testing.assert_allclose(credited.ref_top_logprobs, torch.cat(tops), atol=1e-5)
    np.testing.assert_allclose(credited.ref_logprobs, torch.cat(owns), atol=1e-5)
    assert (np.abs(credited.ref_top_logprobs - sampled.top_logprobs).max() > 0.01) == moved


@pytest.mark.parametrize("anchor", ["ref", "old"])
def test_the_exact_kl_of_a_policy_away_from_the_reference_is_to_the_anchor(start: Start, anchor: str) -> None:
    """At the second step of an update that began away from the reference, so that all three policies differ."""
    driver, records = start(kl_estimator="full", kl_anchor=anchor, beta=0.5, learning_rate=1e-2, num_iterations=2)
    lm = driver._state.lm
    with torch.no_grad():
        for parameter in lm.policy.parameters():
            parameter.mul_(1.2)
    old = copy.deepcopy(lm.policy)
    driver.advance("step", 1, lambda: False)
    now = copy.deepcopy(lm.policy)
    driver.advance("step", 1, lambda: False)
    driver.close()
    (sampled,), (first, second) = records_of(Sampled, records), records_of(Stepped, records)
    pairs = ((old, now), (old, old)) if anchor == "old" else ((now, lm.reference), (old, lm.reference))
    for step, pair in zip((second, first), pairs, strict=True):
        expected = []
        for i, (a, b) in enumerate(itertools.pairwise(sampled.offsets)):
            prompt = sampled.prompt_ids[slice(*sampled.prompt_offsets[sampled.group[i] :][:2])]
            ids = torch.from_numpy(np.concatenate([prompt, sampled.token_ids[a:b]])).long()[None]
            with torch.no_grad():
                p, q = (model(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1) for model in pair)
            expected.append(torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(-1))
        np.testing.assert_allclose(step.kl, torch.cat(expected), atol=2e-5)
    assert second.kl.max() > 1e-3
