"""Every token's share against autograd of that token alone, with Adam's formula written a second time.

Nothing here shares code with `rlplay.engine.teachers`: each sequence is read by itself, each token has a backward pass
of its own, and the weights of the second update are those that these gradients lead to.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from rlplay.engine.driver import Driver
from rlplay.trace.records import AnyRecord
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update
from tests.engine.teachers.asking import Start, in_float64, never, targets_of, taught
from tests.numbers import update_of

B1, B2, EPS = 0.9, 0.999, 1e-8


class Model:
    """GPT-2 in float64, its weights as one vector."""

    def __init__(self, folder: Path) -> None:
        self.net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
        self.named = dict(self.net.named_parameters())

    def flat(self, file: dict[str, Tensor], prefix: str) -> Tensor:
        return torch.cat([file[f"{prefix}{name}"].flatten().double() for name in self.named])

    def put(self, theta: Tensor) -> None:
        with torch.no_grad():
            for p, part in zip(self.named.values(), theta.split([p.numel() for p in self.named.values()]), strict=True):
                p.copy_(part.view_as(p))

    def logprobs(self, prompt: list[int], answer: list[int], temperature: float) -> Tensor:
        logits = self.net(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        return (logits / temperature).log_softmax(-1)[torch.arange(len(answer)), answer]

    def gradient(self, value: Tensor) -> Tensor:
        found = torch.autograd.grad(value, list(self.named.values()), retain_graph=True)
        return torch.cat([each.flatten() for each in found])


class ByHand:
    """Two updates, from the snapshot before them: the move of a target in the second, token by token."""

    def __init__(self, model: Model, before: Path, updates: list[Update], target: Target, cut: float) -> None:
        file = load_file(before)
        theta, m, v = (model.flat(file, prefix) for prefix in ("policy.", "exp_avg/policy.", "exp_avg_sq/policy."))
        t = int(file["step/policy.transformer.wte.weight"])
        self.first_order, steps = 0.0, []
        for update in updates:
            for step in update.steps:
                model.put(theta)
                temperature = update.sampled.temperature  # type: ignore[union-attr]
                q = model.logprobs(target.prompt_ids, target.answer_ids, temperature)[target.places].sum()
                slope = model.gradient(q)
                tokens, by_kl = _gradients(model, update, step)
                g = sum([*tokens.values(), by_kl], torch.zeros_like(theta))
                c = min(1.0, cut / (float(g.norm()) + 1e-6))
                t, m, v = t + 1, B1 * m + (1 - B1) * c * g, B2 * v + (1 - B2) * (c * g) ** 2
                shape = 1 / ((v / (1 - B2**t)).sqrt() + EPS)
                move = -step.metrics["learning_rate"] * shape * m / (1 - B1**t)
                steps.append((update.number, t, step.metrics["learning_rate"], shape * slope, c, tokens | {-1: by_kl}))
                self.first_order += float(slope @ move) if update is updates[-1] else 0.0
                theta = theta + move
        parts = [self._shares(update, steps, updates[-1].number) for update in updates]
        self.shares, self.kl = [each[:-1] for each in parts], [each[-1] for each in parts]

    @staticmethod
    def _shares(update: Update, steps: list[Any], number: int) -> Any:
        found = np.zeros(len(update.sampled.token_ids) + 1)  # type: ignore[union-attr]
        for mine, s, _, _, c, tokens in steps:
            if mine != update.number:
                continue
            for then, t, rate, by_p, _, _ in steps:
                if then == number and t >= s:
                    k = -rate * (1 - B1) * B1 ** (t - s) / (1 - B1**t)
                    for place, gradient in tokens.items():
                        found[place] += k * c * float(gradient @ by_p)
        return found


def _gradients(model: Model, update: Update, step: Any) -> tuple[dict[int, Tensor], Tensor]:
    """The credit of each token times ∇ℓᵢ, by the token's place; and what the KL in the loss adds over all of them."""
    sampled, done, found = update.sampled, 0, dict[int, Tensor]()
    assert sampled is not None
    spans, kept = list(pairwise(sampled.offsets)), step.dkl_dlogp
    by_kl = torch.zeros(sum(p.numel() for p in model.named.values()), dtype=torch.float64)
    for row in step.rows:
        (a, b), (p, q) = spans[row], list(pairwise(sampled.prompt_offsets))[sampled.group[row]]
        logprobs = model.logprobs(
            sampled.prompt_ids[p:q].tolist(), sampled.token_ids[a:b].tolist(), sampled.temperature
        )
        for place in range(a, b):
            if pull := float(step.dloss_dlogp[done + place - a]):
                held = 0.0 if kept is None else float(kept[done + place - a])
                gradient = model.gradient(logprobs[place - a])
                found[place], by_kl = (pull - held) * gradient, by_kl + held * gradient
        done += b - a
    return found, by_kl


CASES: list[dict[str, Any]] = [
    {"algorithm": "grpo", "beta": 0.1, "max_grad_norm": 0.5},
    {"algorithm": "gspo", "num_iterations": 2, "num_minibatches": 2, "lr_scheduler_type": "linear"},
    {"algorithm": "dpo"},
    {"algorithm": "aot"},
    {"algorithm": "wpo", "num_iterations": 2},
]


@pytest.mark.parametrize("given", CASES, ids=lambda given: given["algorithm"])
@pytest.mark.usefixtures("opinionated")
def test_shares_are_those_of_each_token_alone(
    start: Start, micro_models: Callable[[str], Path], given: dict[str, Any]
) -> None:
    small = {"num_prompts": 2, "num_generations": 3, "max_completion_length": 5, "max_grad_norm": 0.3}
    driver, records = start(architecture="gpt2", **small | given)
    in_float64(driver)
    driver.advance("update", 3, never)
    target, cut = _target(driver, records), float(given.get("max_grad_norm", 0.3))
    updates = [update_of(records, number) for number in (2, 3)]
    hand = ByHand(Model(micro_models("gpt2")), driver._store.path(1), updates, target, cut)
    found, earlier = taught(driver, target, 3), taught(driver, target, 3, by=2)
    scale = np.abs(hand.shares[1]).max()
    np.testing.assert_allclose(found.shares, hand.shares[1], atol=1e-6 * scale)
    np.testing.assert_allclose(earlier.shares, hand.shares[0], atol=1e-6 * np.abs(hand.shares[0]).max())
    assert found.first_order == pytest.approx(hand.first_order, rel=1e-5)
    assert scale > 1e-4
    assert [(since, update) for since, update, _ in found.earlier_by] == [(1, 2), (0, 1)]
    assert found.earlier_by[0][2] == pytest.approx(hand.shares[0].sum() + hand.kl[0], rel=1e-5)
    assert found.rest.get("KL", 0.0) == pytest.approx(hand.kl[1], rel=1e-4)
    assert bool(hand.kl[1]) == ("beta" in given)
    assert sum(part for *_, part in found.earlier_by) == pytest.approx(found.earlier, rel=1e-9)
    assert (earlier.batch, earlier.earlier, earlier.measured) == (found.batch, found.earlier, found.measured)


def _target(driver: Driver, records: list[AnyRecord]) -> Target:
    return targets_of(update_of(records, 3))[3]
