"""What the engine records of an update is what TRL 1.16.0 makes of the same tokens, rewards and log-probabilities."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlplay.engine.batch import Prompts, TokenBatch
from rlplay.engine.model import load_model
from rlplay.engine.passes import forward, laid_out
from rlplay.trace.records import Stepped
from rlplay.trace.update import Update
from tests.engine.conftest import ARCHITECTURES, SMALL
from tests.numbers import update_of
from tests.parity.fixed import END, Fixed

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None, reason='TRL is not installed: pip install -e ".[parity]"'
)

TOLERANCE = 1e-5
MOVING = {"num_iterations": 2, "num_minibatches": 1, "learning_rate": 1e-2}
NOT_OURS = {"clip_ratio/low_min", "clip_ratio/high_max", "rewards/reward0/mean", "rewards/reward0/std"}

CASES: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"algorithm": "grpo", "beta": 0.2}, "grpo", {"loss_type": "grpo", "beta": 0.2}),
    ({"algorithm": "dr-grpo", "temperature": 0.7}, "grpo", {"loss_type": "dr_grpo", "scale_rewards": "none"}),
    ({"algorithm": "lite-ppo"}, "grpo", {"loss_type": "dapo", "scale_rewards": "batch"}),
    ({"algorithm": "gspo", "epsilon": 0.02, "epsilon_high": 0.03}, "grpo",
     {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.02, "epsilon_high": 0.03}),
    ({"algorithm": "rloo"}, "rloo", {"beta": 0.05}),
    ({"algorithm": "cispo", "epsilon_high": 1.05}, "grpo", {"loss_type": "cispo", "epsilon_high": 1.05}),
    ({"algorithm": "grpo", "mask_truncated_completions": True, "beta": 0.2, "aggregation": "token_mean"}, "grpo",
     {"loss_type": "dapo", "mask_truncated_completions": True, "beta": 0.2}),
]  # fmt: skip


def _update(start: Callable[..., Any], given: dict[str, Any]) -> Update:
    driver, records = start(**given)
    driver.advance("update", 2, lambda: False)
    driver.close()
    return update_of(records, 2)


def _seen(update: Update, step: Stepped) -> Fixed:
    """The tensors of one optimizer step on the whole batch, padded on the right."""
    sampled, scored, credited = update.sampled, update.scored, update.credited
    assert sampled is not None
    assert scored is not None
    assert credited is not None
    assert credited.ref_logprobs is not None
    spans = list(pairwise(sampled.offsets))
    width = max(b - a for a, b in spans)

    def padded(flat: Any) -> Tensor:
        return torch.tensor(np.array([np.pad(flat[a:b], (0, width - (b - a))) for a, b in spans]))

    truncated = torch.from_numpy(sampled.truncated).bool()
    completions = [sampled.token_ids[a:b].tolist() for a, b in spans]
    for completion, cut in zip(completions, truncated.tolist(), strict=True):
        completion[-1] = END + 1 if cut else END
    nothing = torch.zeros(0)
    return Fixed(
        prompts=[[END + 1]] * len(spans), completions=completions, truncated=truncated,
        mask=padded(np.ones(spans[-1][1], dtype=bool)), group=torch.from_numpy(sampled.group),
        rewards=torch.from_numpy(scored.rewards)[:, None], logprobs=padded(step.logprobs),
        old=padded(sampled.old_logprobs), ref=padded(credited.ref_logprobs), entropy=padded(sampled.entropy),
        stream=nothing, values=nothing, values_now=nothing, greedy=nothing, holes=nothing, ends=nothing,
        environment=nothing,
    )  # fmt: skip


@pytest.mark.parametrize(("given", "kind", "theirs"), CASES, ids=[str(mine) for mine, _, _ in CASES])
def test_what_is_recorded_is_what_trl_computes(
    start: Callable[..., Any], given: dict[str, Any], kind: str, theirs: dict[str, Any]
) -> None:
    from tests.parity import trl_policy

    update = _update(start, given | MOVING)
    assert update.credited is not None
    assert update.finished is not None
    first, second = update.steps
    assert np.abs(second.importance_ratio - first.importance_ratio).max() > 0.01
    for step in (first, second):
        batch = _seen(update, step)
        found = trl_policy.run(kind, batch, max_completion_length=SMALL["max_completion_length"], **theirs)
        inside = batch.mask
        advantages = (found.pop("advantages")[:, None] * inside)[inside]
        np.testing.assert_allclose(update.credited.advantages, advantages, atol=TOLERANCE, rtol=TOLERANCE)
        np.testing.assert_allclose(step.dloss_dlogp, found.pop("dloss_dlogp")[inside], atol=TOLERANCE)
        if given.get("mask_truncated_completions"):
            del found["entropy"]  # ours is of every sampled token, in the loss or not
        for name in found.keys() - NOT_OURS:
            ours = step.metrics[name] if name in step.metrics else update.finished.metrics[name]
            assert ours == pytest.approx(float(found[name]), abs=TOLERANCE, rel=TOLERANCE), name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_trl_reads_the_same_probabilities(micro_models: Callable[[str], Path], architecture: str) -> None:
    from tests.parity import trl_policy

    lm = load_model(str(micro_models(architecture)), torch.device("cpu"))
    generator, width = torch.Generator().manual_seed(0), 6
    # TRL gives no position ids, which a model with learned positions needs where prompts are padded on the left.
    shortest = 7 if architecture == "gpt2" else 2
    before = torch.arange(7) >= 7 - torch.tensor([[7], [shortest], [max(shortest, 4)]])
    prompts = Prompts([], torch.randint(3, 400, (3, 7), generator=generator), before.long())
    ids, group = torch.randint(3, 400, (12, width), generator=generator), torch.arange(3).repeat_interleave(4)
    lengths = torch.randint(1, width + 1, (12,), generator=generator)
    inside = torch.arange(width) < lengths[:, None]
    parts = [
        (chunk.rows, chunk.logprobs(ids[chunk.rows, : chunk.width], 0.7))
        for chunk in forward(lm, lm.policy, TokenBatch(prompts, group, ids, lengths))
    ]
    found = trl_policy.logprobs(
        lm.reference, torch.cat([prompts.ids[group], ids], 1), torch.cat([before[group], inside], 1).long(), width, 0.7
    )
    torch.testing.assert_close(laid_out(parts, width)[inside], found[inside], atol=TOLERANCE, rtol=0)
