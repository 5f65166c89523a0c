"""A whole update on micro models: what is recorded is the models' own, whatever the padding and the parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlplay.engine.model import LanguageModel
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Stepped
from tests.engine.conftest import ARCHITECTURES

Start = Callable[..., Any]
MOVING = {"temperature": 0.7, "num_iterations": 2, "learning_rate": 1e-2}


def only(kind: Any, records: list[AnyRecord]) -> list[Any]:
    """The finished records of one kind."""
    return [r for r in records if isinstance(r, kind) and getattr(r, "done", True)]


def one_by_one(model: Any, sampled: Sampled) -> Iterator[Tensor]:
    """Log-probabilities [n, V] before each token of each answer: no padding, no cache, in the model's precision."""
    for g, a, b in zip(sampled.group, sampled.offsets[:-1], sampled.offsets[1:], strict=True):
        prompt = sampled.prompt_ids[sampled.prompt_offsets[g] : sampled.prompt_offsets[g + 1]]
        ids = torch.from_numpy(np.concatenate([prompt, sampled.token_ids[a:b]])).long()
        logits = model(input_ids=ids[None]).logits[0, len(prompt) - 1 : -1]
        yield (logits / sampled.temperature).log_softmax(-1)


def of_tokens(model: Any, sampled: Sampled) -> Tensor:
    """The log-probability of each token."""
    rows = zip(one_by_one(model, sampled), np.split(sampled.token_ids, sampled.offsets[1:-1]), strict=True)
    return torch.cat([whole.gather(-1, torch.from_numpy(ids).long()[:, None])[:, 0] for whole, ids in rows])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_recorded_probabilities_are_those_of_the_models(start: Start, architecture: str) -> None:
    driver, records = start(architecture=architecture, algorithm="grpo", beta=0.1, **MOVING)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (sampled,), (credited,), (finished,) = (only(kind, records) for kind in (Sampled, Credited, Finished))
    assert len(set(np.diff(sampled.prompt_offsets))) > 1
    assert len(set(np.diff(sampled.offsets))) > 2
    assert 0 < sampled.truncated.sum() < len(sampled.truncated)
    policy, reference = (copy.deepcopy(m).double() for m in (driver._state.lm.policy, driver._state.lm.reference))
    with torch.no_grad():
        before, after = of_tokens(reference, sampled), of_tokens(policy, sampled)
        entropy = torch.cat([-(whole.exp() * whole).sum(-1) for whole in one_by_one(reference, sampled)])
    np.testing.assert_allclose(sampled.old_logprobs, before, atol=1e-5)
    np.testing.assert_allclose(sampled.entropy, entropy, atol=1e-5)
    np.testing.assert_allclose(credited.ref_logprobs, before, atol=1e-5)
    np.testing.assert_allclose(finished.logprobs, after, atol=2e-5)
    assert float((after - before).abs().max()) > 0.1


@pytest.mark.parametrize(
    ("algorithm", "architecture"),
    [("grpo", "llama"), ("grpo", "gpt2"), ("grpo", "qwen2"), ("gspo", "llama"), ("gmpo", "llama"), ("a2c", "llama")],
)
def test_the_recorded_pull_on_the_tokens_is_the_whole_gradient(start: Start, algorithm: str, architecture: str) -> None:
    given = {"kl_placement": "loss", "beta": 0.1, "vf_coef": 0.0, "num_minibatches": 1}
    driver, records = start(architecture=architecture, algorithm=algorithm, **MOVING | given)
    driver.advance("update", 1, lambda: False)
    policy = copy.deepcopy(driver._state.lm.policy).double()
    driver.advance("step", 1, lambda: False)
    driver.close()
    sampled, step = only(Sampled, records)[-1], only(Stepped, records)[-1]
    assert (sampled.update, step.update, step.step) == (2, 2, 0)
    of_tokens(policy, sampled).backward(torch.from_numpy(step.dloss_dlogp).double())
    gradients = [p.grad for p in policy.parameters() if p.grad is not None]
    norm = float(torch.stack([g.norm() for g in gradients]).norm())
    assert step.metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("algorithm", ["grpo", "dapo", "gspo", "rlhf-ppo", "clip-cov", "kl-cov"])
def test_a_batch_in_parts_takes_the_same_steps(start: Start, algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {}
    for at_once in (10**9, 1):
        monkeypatch.setattr("rlplay.engine.passes.LOGITS_AT_ONCE", at_once)
        driver, records = start(run=f"{at_once}.rlplay", algorithm=algorithm, top_entropy_quantile=0.5,
                                entropy_coef=0.01, **MOVING | {"num_minibatches": 2})  # fmt: skip
        driver.advance("update", 1, lambda: False)
        driver.close()
        steps[at_once] = only(Stepped, records)
    assert len(steps[1]) == 4
    for whole, parts in zip(*steps.values(), strict=True):
        np.testing.assert_allclose(whole.dloss_dlogp, parts.dloss_dlogp, atol=1e-5)
        np.testing.assert_allclose(whole.logprobs, parts.logprobs, atol=5e-4)  # Adam enlarges rounding
        assert whole.metrics == pytest.approx(parts.metrics, rel=1e-3, abs=1e-5)


def test_it_does_not_matter_which_token_pads(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for pad in (None, "end", "word"):
        driver, records = start(run=f"{pad}.rlplay", algorithm="grpo", beta=0.1, **MOVING)
        ends = driver._state.lm.end_ids
        ids = {None: driver._state.lm.pad_id, "end": min(ends), "word": min(set(range(20)) - ends)}
        monkeypatch.setattr(LanguageModel, "pad_id", ids[pad])
        driver.advance("update", 2, lambda: False)
        driver.close()
        monkeypatch.undo()
        found.append([(r.token_ids, r.old_logprobs) for r in only(Sampled, records)])
        found[-1] += [(r.dloss_dlogp, r.logprobs) for r in only(Stepped, records)]
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine[0], theirs[0])
            np.testing.assert_array_equal(mine[1], theirs[1])
