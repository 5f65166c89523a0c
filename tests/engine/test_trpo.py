"""TRPO on micro models: its Fisher matrix against two other ways to compute it, its limit in every step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from rlplay.engine import passes, trpo
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.driver import Driver
from rlplay.engine.model import Kind, LanguageModel
from rlplay.engine.sample import sample
from rlplay.engine.state import Halt
from rlplay.tasks.task import Example
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled, Searched, Stepped
from rlplay.trace.runfile import RunReader

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
VOCABULARY, TEMPERATURE = 3, 0.8
PROMPTS = [[0, 1], [1, 1, 0]]
NOT_TAKEN = "step_fraction", "kl_old_exact", "surrogate_gain"
"""What is 0 where no step was taken."""


def never() -> bool:
    return False


def _model(name: str) -> Any:
    torch.manual_seed(0)
    if name == "gpt2":
        config = GPT2Config(vocab_size=VOCABULARY, n_embd=8, n_layer=1, n_head=2, n_positions=16, initializer_range=0.5)
        return GPT2LMHeadModel(config).eval()
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=16, initializer_range=0.5, **sizes)
    return LlamaForCausalLM(config).eval()


@pytest.fixture(params=["llama", "gpt2"])
def lm(request: pytest.FixtureRequest) -> LanguageModel:
    """A model of three tokens in float64."""
    policy = _model(request.param).double()
    tokenizer = SimpleNamespace(pad_token_id=0)
    return LanguageModel(policy, policy, tokenizer, torch.device("cpu"), frozenset({2}))


def _answers(lm: LanguageModel) -> Batch:
    prompts = Prompts.padded(lm, [Example("", {})] * 2, PROMPTS)
    stream = sample(lm, prompts, generations=2, length=4, temperature=TEMPERATURE, keep=1, seed=1, update=1)
    while True:
        try:
            next(stream)
        except StopIteration as done:
            batch: Batch = done.value
            return batch


def _log_probabilities(model: Any, batch: Batch) -> list[Tensor]:
    """log p of every token of the vocabulary before each sampled token; one answer at a time, no padding, no cache."""
    result = []
    for n, group in enumerate(batch.group.tolist()):
        ids = batch.ids[n, : batch.lengths[n]]
        logits = model(input_ids=torch.cat([torch.tensor(PROMPTS[group]), ids])[None]).logits[0]
        result += list((logits[len(PROMPTS[group]) - 1 : -1] / TEMPERATURE).log_softmax(-1))
    return result


@pytest.mark.parametrize(("kind", "at_once"), [("tree", 10**6), ("tree", 30), ("shared", 10**6),
                                                  ("padded", 30), ("by_length", 10**6)])  # fmt: skip
def test_the_fisher_product_is_the_second_derivative_of_the_kl_and_the_mean_square_of_the_scores(
    lm: LanguageModel, kind: Kind, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "LOGITS_AT_ONCE", 8 * at_once)
    batch, lm.passes = _answers(lm), kind
    assert len(set(batch.lengths.tolist())) > 1
    parameters = [p for p in lm.policy.parameters() if p.requires_grad]
    vector = torch.randn(sum(p.numel() for p in parameters), dtype=torch.double)
    product = trpo.Fisher(lm, parameters, batch).product(vector)

    with sdpa_kernel(SDPBackend.MATH):
        logprobs = _log_probabilities(lm.policy, batch)
    divergence = sum((q.detach().exp() * (q.detach() - q)).sum() for q in logprobs) / len(logprobs)
    slopes = torch.autograd.grad(divergence, parameters, create_graph=True, retain_graph=True)
    along = (torch.cat([slope.flatten() for slope in slopes]) * vector).sum()
    twice = torch.autograd.grad(along, parameters, retain_graph=True)
    second = torch.cat([g.flatten() for g in twice])
    # Llama's norm is computed in float32, whatever the model's precision.
    near = float(second.abs().max()) * (1e-9 if lm.policy.config.model_type == "gpt2" else 1e-4)
    torch.testing.assert_close(product, second, atol=near, rtol=0)

    squares = torch.zeros_like(product)
    for q in logprobs:
        for token in range(VOCABULARY):
            gradients = torch.autograd.grad(q[token], parameters, retain_graph=True)
            score = torch.cat([g.flatten() for g in gradients])
            squares += q[token].detach().exp() * score * score.dot(vector) / len(logprobs)
    torch.testing.assert_close(product, squares, atol=near, rtol=0)


def test_the_critics_error_moves_the_value_head_and_never_the_policy(start: Start) -> None:
    """The same answers, values and advantages, and then one more weight on the value loss or none."""
    weights = {}
    for vf_coef in (0.0, 5.0):
        driver, _ = start(f"{vf_coef}.rlplay", algorithm="trpo", learning_rate=1e-2)
        driver.advance("update", 1, never)  # before, the head is 0 and would pull on nothing
        driver.set({"vf_coef": vf_coef})
        driver.advance("update", 1, never)
        driver.close()
        state = driver._state
        policy = torch.cat([p.detach().flatten() for p in state.lm.policy.parameters()])
        weights[vf_coef] = policy, state.value_head.weight.detach().clone()
    assert torch.equal(weights[0.0][0], weights[5.0][0])
    assert not torch.equal(weights[0.0][1], weights[5.0][1])


def test_a_model_that_cannot_be_differentiated_twice_is_refused_in_one_line(lm: LanguageModel) -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(context: Any, gradient: Tensor) -> Tensor:
            return gradient * 1

    batch = _answers(lm)
    head = lm.policy.get_output_embeddings()
    head.register_forward_hook(lambda module, inputs, output: Once.apply(output))
    parameters = [p for p in lm.policy.parameters() if p.requires_grad]
    fisher = trpo.Fisher(lm, parameters, batch)
    with pytest.raises(Halt, match="needs second derivatives"):
        fisher.product(torch.ones(sum(p.numel() for p in parameters), dtype=torch.double))


@pytest.mark.parametrize(("kind", "at_once"), [("tree", 10**6), ("tree", 30), ("shared", 10**6),
                                                  ("padded", 30), ("by_length", 10**6)])  # fmt: skip
def test_a_policy_is_compared_with_the_old_one_over_whole_distributions(
    lm: LanguageModel, kind: Kind, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of different lengths that passes of every kind lay out in chunks of their own."""
    batch, old = _answers(lm), copy.deepcopy(lm.policy)
    batch.lengths = torch.tensor([4, 4, 2, 1])
    batch.ids, batch.environment = batch.ids.new_ones(4, 4), torch.zeros(4, 4).bool()
    with torch.no_grad():
        for parameter in lm.policy.parameters():
            parameter.mul_(1.2)
        before, after = (_log_probabilities(model, batch) for model in (old, lm.policy))
    ids = torch.cat([row[:n] for row, n in zip(batch.ids, batch.lengths, strict=True)]).tolist()
    generator = torch.Generator().manual_seed(0)
    batch.old_logprobs, batch.advantages, weights = (torch.rand(4, 4, generator=generator).double() for _ in range(3))
    batch.old_logprobs = -batch.old_logprobs
    divergence = sum(float((p.exp() * (p - q)).sum()) for p, q in zip(before, after, strict=True)) / len(ids)
    flat = [values[batch.mask].tolist() for values in (batch.old_logprobs, batch.advantages, weights)]
    gain = sum(
        weight * advantage * float((q[i] - sampled).exp() - (p[i] - sampled).exp())
        for p, q, i, sampled, advantage, weight in zip(before, after, ids, *flat, strict=True)
    )
    monkeypatch.setattr(passes, "LOGITS_AT_ONCE", at_once)
    lm.passes = kind
    assert trpo.compared(batch, lm, old, weights) == pytest.approx((divergence, gain), rel=1e-4)


def test_another_mistake_in_a_backward_pass_is_not_taken_for_a_missing_derivative(
    lm: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: Any, **_named: Any) -> None:
        raise RuntimeError("out of memory")

    batch, parameters = _answers(lm), [p for p in lm.policy.parameters() if p.requires_grad]
    fisher = trpo.Fisher(lm, parameters, batch)
    monkeypatch.setattr(torch.autograd, "grad", fails)
    with pytest.raises(RuntimeError, match=r"^out of memory$") as raised:
        fisher.product(torch.ones(sum(p.numel() for p in parameters), dtype=torch.double))
    assert not isinstance(raised.value, Halt)


def _of(kind: type, records: list[AnyRecord]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


@pytest.mark.parametrize(
    "given",
    [
        {"max_kl": 0.01, "top_entropy_quantile": 0.5},
        {"max_kl": 0.5, "cg_damping": 0.0, "cg_iterations": 3, "temperature": 0.6},
    ],
)
def test_every_accepted_step_keeps_the_limit_and_gains(start: Start, given: dict[str, Any]) -> None:
    driver, records = start(algorithm="trpo", **given)
    lm, accepted = driver._state.lm, 0
    for update in range(1, 4):
        driver.advance("phase", 3, never)
        batch = driver._moments.gi_yieldfrom.gi_frame.f_locals["batch"]  # type: ignore[attr-defined]
        before = _exact(lm.policy, batch)
        weights = [p.detach().clone() for p in lm.policy.parameters()]
        driver.advance("phase", 1, never)
        after = _exact(lm.policy, batch)
        step, *_ = [r for r in _of(Stepped, records) if r.update == update]
        trials = [r for r in _of(Searched, records) if r.update == update and r.kind == "line"]
        divergence = torch.stack([(p.exp() * (p - q)).sum() for (p, _), (q, _) in zip(before, after, strict=True)])
        assert float(divergence.mean()) <= given["max_kl"] * (1 + 1e-4)
        assert step.metrics["kl_old_exact"] == pytest.approx(float(divergence.mean()), rel=1e-3, abs=1e-7)
        assert step.metrics["step_fraction"] == (trials[-1].step if trials[-1].accepted else 0)
        advantages = batch.advantages[batch.mask].double()
        gained = torch.stack(
            [q[i].exp() / p[i].exp() - 1 for (p, i), (q, _) in zip(before, after, strict=True)]
        ) * advantages  # fmt: skip
        entropy = batch.entropy[batch.mask]
        counted = entropy >= entropy.quantile(1 - given.get("top_entropy_quantile", 1.0))
        gain = float((gained * counted).mean())
        assert step.metrics["surrogate_gain"] == pytest.approx(gain, rel=1e-2, abs=1e-6)
        moved = any(not torch.equal(a, b) for a, b in zip(weights, lm.policy.parameters(), strict=True))
        assert moved == trials[-1].accepted
        accepted += trials[-1].accepted
        driver.advance("update", 1, never)
    assert accepted >= 2


def _exact(model: Any, batch: Batch) -> list[tuple[Tensor, int]]:
    """For each sampled token the log-probabilities before it and its id: float64, one answer at a time."""
    exact = type(model)(model.config).double().eval()
    exact.load_state_dict(model.state_dict())
    result = []
    with torch.no_grad():
        for n, group in enumerate(batch.group.tolist()):
            prompt = batch.prompts.ids[group][batch.prompts.mask[group].bool()]
            ids = batch.ids[n, : batch.lengths[n]]
            logits = exact(input_ids=torch.cat([prompt, ids])[None]).logits[0, len(prompt) - 1 : -1]
            rows = (logits / batch.temperature).log_softmax(-1)
            result += list(zip(rows, ids.tolist(), strict=True))
    return result


def test_a_short_step_does_what_the_search_expects_of_it(start: Start) -> None:
    driver, records = start(algorithm="trpo", max_kl=1e-4, cg_iterations=15)
    driver.advance("update", 1, never)
    found, trial = ([r for r in _of(Searched, records) if r.kind == kind][-1] for kind in ("cg", "line"))
    assert trial.step >= 0.8  # the limit is met to second order: the whole step may lie just beyond it
    assert trial.kl == pytest.approx(1e-4 * trial.step**2, rel=0.1)
    assert trial.gain == pytest.approx(found.gain * trial.step, rel=0.1)
    gains = [r.gain for r in _of(Searched, records) if r.kind == "cg"]
    assert gains[-1] > 1.2 * gains[0]  # the first is the plain gradient's


def test_what_a_step_is_expected_to_gain_grows_with_the_rewards_however_large_they_are(start: Start) -> None:
    gains, settings = [], {"algorithm": "trpo", "cg_iterations": 1, "cg_damping": 0.0, "scale_rewards": "none"}
    for scale in (1.0, 1000.0):
        driver, records = start(f"{scale}.rlplay", **settings)
        plain = driver._state.task.rewards["uneven"]
        driver._state.task.rewards["uneven"] = lambda s=scale, f=plain, **columns: [s * each for each in f(**columns)]
        driver.advance("update", 1, never)
        driver.close()
        gains.append(next(r.gain for r in _of(Searched, records)))
    assert _of(Stepped, records)[0].metrics["grad_norm"] > 10
    assert gains[1] == pytest.approx(1000 * gains[0], rel=1e-4)


def test_the_search_is_stepped_through_recorded_and_found_again(start: Start, tmp_path: Path) -> None:
    driver, records = start(algorithm="trpo", cg_iterations=4)
    driver.advance("phase", 3, never)
    driver.advance("token", 2, never)
    assert [(r.kind, r.iteration) for r in _of(Searched, records)] == [("cg", 1), ("cg", 2)]
    assert driver.status().phase == "update"
    driver.advance("step", 1, never)
    assert isinstance(records[-1], Stepped)
    assert driver.status().phase == "after"
    step = records[-1]
    assert (step.epochs, step.minibatches) == (1, 1)
    assert np.abs(step.importance_ratio - 1).max() < 1e-4
    driver.advance("update", 1, never)
    searched = _of(Searched, records)
    assert [r.kind for r in searched[:4]] == ["cg"] * 4
    assert searched[4].kind == "line"
    assert not any(r.accepted for r in searched[:-1])
    assert set(_of(Finished, records)[0].metrics) >= {"kl_old_exact", "step_fraction", "cg_residual", "surrogate_gain"}
    driver.close()
    with RunReader(tmp_path / "run.rlplay") as reader:
        update = reader.load(1)
        assert update.searched == searched
        assert update.phase == "after"


def test_adam_fits_the_value_head_and_leaves_the_policy_alone(start: Start) -> None:
    driver, _ = start(algorithm="trpo")
    driver.advance("update", 1, never)
    state = driver._state
    names = {name for name, p in state.parameters.items() if state.optimizer.state.get(p)}
    assert names == {"value.weight", "value.bias"}
    assert state.value_head.weight.detach().abs().max() > 0


def test_a_search_without_success_leaves_the_policy_and_says_so(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trpo, "compared", lambda *given: (float("inf"), 1.0))
    driver, records = start(algorithm="trpo", line_search_steps=3)
    before = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
    driver.advance("update", 1, never)
    assert all(torch.equal(a, b) for a, b in zip(before, driver._state.lm.policy.parameters(), strict=True))
    (notice,) = _of(Notice, records)
    assert "left the policy as it was: none of 3 steps" in notice.text
    (step,), directions = _of(Stepped, records), [r for r in _of(Searched, records) if r.kind == "cg"]
    assert [step.metrics[name] for name in NOT_TAKEN] == [0.0] * 3
    assert step.metrics["cg_residual"] == directions[-1].residual > 0


def test_equal_rewards_leave_nothing_to_search_for(start: Start) -> None:
    driver, records = start(algorithm="trpo", returns="broadcast", baseline="group_mean")
    driver._state.task.rewards["uneven"] = lambda completion_ids, **columns: [1.0] * len(completion_ids)
    driver.advance("update", 1, never)
    assert _of(Searched, records) == []
    (notice,) = _of(Notice, records)
    assert "the surrogate has no gradient" in notice.text
    (step,) = _of(Stepped, records)
    assert [step.metrics[name] for name in (*NOT_TAKEN, "cg_residual")] == [0.0] * 4
    assert len(_of(Sampled, records)) > 0


def test_going_back_in_the_middle_of_a_search_gives_it_up(start: Start) -> None:
    driver, records = start(algorithm="trpo", max_kl=0.3, cg_damping=0.0, cg_iterations=3)
    driver.advance("update", 1, never)
    driver.advance("phase", 3, never)
    while not (isinstance(records[-1], Searched) and records[-1].kind == "line"):
        driver.advance("token", 1, never)
    driver.rewind(1)
    records.clear()
    driver.advance("update", 1, never)
    other, undisturbed = start("other.rlplay", algorithm="trpo", max_kl=0.3, cg_damping=0.0, cg_iterations=3)
    other.advance("update", 2, never)
    expected = [r for r in _of(Searched, undisturbed) if r.update == 2]
    assert _of(Searched, records) == expected
