"""Learning-rate schedules, weight decay and cut sampling against those of transformers and torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, Trainer, get_scheduler
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from rlplay.algorithms.schedules import Schedule, share
from rlplay.algorithms.settings import Settings
from rlplay.engine.driver import Driver
from rlplay.engine.optimize import ratio_guard
from rlplay.engine.slate import Choice, Cut, Slate, cut
from rlplay.engine.state import new_optimizer
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Stepped
from tests.engine.conftest import ARCHITECTURES
from tests.engine.test_more_axes import records_of

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


@pytest.mark.parametrize("schedule", get_args(Schedule))
@pytest.mark.parametrize(("steps", "warmup"), [(12, 0), (12, 5), (3, 12), (1, 0)])
def test_a_schedule_is_that_of_transformers(schedule: Schedule, steps: int, warmup: int) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    theirs = get_scheduler(schedule, optimizer, num_warmup_steps=warmup, num_training_steps=steps)
    for step in range(steps):
        assert 0.5 * share(schedule, step, steps, warmup) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        theirs.step()
    if warmup < steps and schedule in ("linear", "cosine"):
        assert share(schedule, steps, steps, warmup) == share(schedule, steps + 7, steps, warmup) == 0


def rates(records: list[AnyRecord]) -> list[float]:
    return [step.metrics["learning_rate"] for step in records_of(Stepped, records)]


def test_every_optimizer_step_has_its_rate_and_the_update_the_last(start: Start) -> None:
    driver, records = start(lr_scheduler_type="cosine", warmup_steps=3, num_iterations=2, num_minibatches=2)
    driver.advance("update", 4, lambda: False)
    driver.close()
    found = rates(list(records))
    assert found == pytest.approx([1e-3 * share("cosine", step, 16, 3) for step in range(16)], abs=1e-15)
    assert [f.metrics["learning_rate"] for f in records_of(Finished, list(records))] == found[3::4]


def test_a_schedule_goes_on_exactly_after_a_rewind_and_a_resume(start: Start) -> None:
    given: dict[str, Any] = {"lr_scheduler_type": "linear", "warmup_steps": 2, "weight_decay": 0.1, "num_iterations": 2}
    driver, records = start(**given)
    driver.advance("update", 3, lambda: False)
    straight = records_of(Finished, list(records))[2].logprobs
    before = rates(list(records))
    driver.rewind(1)
    records.clear()
    driver.advance("update", 2, lambda: False)
    assert rates(list(records)) == before[2:]
    assert (records_of(Finished, list(records))[1].logprobs == straight).all()
    driver.rewind(2)
    driver.close()
    driver, records = start(resume=True, **given)
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert rates(list(records)) == before[4:]
    assert (records_of(Finished, list(records))[0].logprobs == straight).all()


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "opt"])
def test_what_decays_is_what_decays_in_transformers(architecture: str, micro_models: Callable[[str], Path]) -> None:
    model = AutoModelForCausalLM.from_pretrained(micro_models(architecture))
    named = dict(model.named_parameters())
    theirs = set(Trainer.get_decay_parameter_names(None, model)) & set(named)
    optimizer = new_optimizer(named, Settings())
    decaying = {id(p) for group in optimizer.param_groups if group["decays"] for p in group["params"]}
    assert {name for name, p in named.items() if id(p) in decaying} == theirs
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(named)


def test_decay_takes_its_share_of_the_matrices_beside_adams_step(start: Start) -> None:
    weights = []
    for decay in (0.0, 0.5):
        driver, _ = start(run=f"{decay}.rlplay", weight_decay=decay)
        begun = {name: p.detach().clone() for name, p in driver._state.parameters.items()}
        driver.advance("update", 1, lambda: False)
        weights.append({name: p.detach().clone() for name, p in driver._state.parameters.items()})
        driver.close()
    for name, first in begun.items():
        wanted = weights[0][name].double()
        # Adam's first step goes by the learning rate at most, whatever the gradient: no decay is in it.
        assert float((wanted - first.double()).abs().max()) < 1.001e-3
        if first.ndim > 1 and name.startswith("policy."):
            wanted = wanted - 1e-3 * 0.5 * first.double()
        torch.testing.assert_close(weights[1][name].double(), wanted, rtol=0, atol=1e-7)


def test_sampling_and_training_are_compared_before_the_first_step_alone(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tolerance, notices in ((1e-3, 0), (-1.0, 2)):  # no two probabilities are as near as that
        known = SimpleNamespace(ratio=tolerance)
        monkeypatch.setattr("rlplay.engine.optimize.precision", lambda lm, known=known: known)
        driver, records = start(run=f"{notices}.rlplay", num_iterations=2, num_minibatches=2, learning_rate=1e-2)
        driver.advance("update", 2, lambda: False)
        driver.close()
        found = [r.text for r in records if isinstance(r, Notice) and "sampling and training disagree" in r.text]
        assert len(found) == notices
    (said,) = ratio_guard(3, torch.tensor([[1.0, 0.7484], [1.125, 1.0]]), 0.2)
    assert said.text.startswith("ratio is off by 0.25 before the first optimizer step of update 3")
    assert not list(ratio_guard(3, torch.tensor([[0.75, 1.0]]), 0.25))


@pytest.mark.parametrize(("top_p", "top_k"), [(1.0, 0), (0.9, 0), (0.3, 0), (1.0, 3), (0.7, 5), (0.01, 0), (1.0, 500)])
def test_a_cut_leaves_what_the_warpers_of_transformers_leave(top_p: float, top_k: int) -> None:
    logprobs = torch.randn(64, 40, generator=torch.Generator().manual_seed(0)).mul(2).log_softmax(-1)
    theirs = logprobs
    ids = torch.zeros(64, 1, dtype=torch.long)
    if top_k:
        theirs = TopKLogitsWarper(top_k)(ids, theirs)
    if top_p < 1:
        theirs = TopPLogitsWarper(top_p)(ids, theirs)
    assert (cut(logprobs, Cut(top_p, top_k)).isfinite() == theirs.isfinite()).all()


@pytest.mark.parametrize(("others", "top_k"), [(0.0, 0), (0.01, 3)])
def test_a_number_takes_the_token_in_whose_share_it_lies_and_never_one_that_was_cut(others: float, top_k: int) -> None:
    shares = torch.tensor([[others, 0.25, others, 0.125, others, others, 0.125, others]] * 6).log()
    draws = torch.tensor([0.0, 0.49, 0.51, 0.74, 0.76, float(np.nextafter(np.float32(1), np.float32(0)))])
    slate = Slate((6, 1, 1), frozenset(), Choice(1.0, cut=Cut(top_k=top_k)), torch.device("cpu")).begin(draws[:, None])
    assert slate.choose(shares, slate.every).tokens.tolist() == [1, 1, 3, 3, 6, 6]


def test_only_likely_tokens_are_sampled_and_their_probabilities_are_those_of_all(start: Start) -> None:
    driver, records = start(top_k=2, top_p=0.9)
    driver.advance("update", 1, lambda: False)
    driver.close()
    sampled = next(r for r in records_of(Sampled, list(records)) if r.done)
    place = np.array([list(top).index(i) for top, i in zip(sampled.top_ids, sampled.token_ids, strict=True)])
    assert set(place) == {0, 1}
    found = sampled.top_logprobs[np.arange(len(place)), place]
    assert (found == sampled.old_logprobs).all()
    assert (np.exp(sampled.top_logprobs[:, :2]).sum(-1) < 0.999).any(), "else the cut would change nothing"
    ratio = records_of(Stepped, list(records))[0].importance_ratio
    np.testing.assert_allclose(ratio, 1, atol=1e-4)
