"""Distillation: who teaches, what the teacher reads, what is recorded and trained, and that every replay repeats it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.distillation.average import weights_of
from rlplay.engine.distillation.context import demonstrations, lacking, with_context
from rlplay.engine.driver import Driver
from rlplay.scenario.schema import Stage
from rlplay.tasks.task import Example
from rlplay.trace.records import Changed, Credited, Finished, Sampled, Stepped
from tests.engine.teachers.asking import targets_of
from tests.engine.teachers.asking import taught as taught_by
from tests.engine.test_update import of_tokens, one_by_one, only
from tests.numbers import update_of

Start = Callable[..., Any]
SELF = {"teacher_context": "group", "success_reward_threshold": -1.0}
"""Every answer counts as a success, so that all have a teacher."""


def played(start: Start, updates: int = 1, **given: Any) -> tuple[Driver, list[Any]]:
    driver, records = start(**given)
    driver.advance("update", updates, lambda: False)
    return driver, records


@pytest.fixture
def taught(start: Start, micro_models: Callable[[str], Path]) -> Start:
    """A run of the Llama whose teacher is the GPT-2 of the same vocabulary."""
    return lambda **given: start(scenario={"teacher": str(micro_models("gpt2"))}, **given)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_a_teachers_view_and_the_divergence_are_those_of_the_models(taught: Start, alpha: float) -> None:
    driver, records = taught(algorithm="gkd", distillation_alpha=alpha, temperature=0.7)
    policy = copy.deepcopy(driver._state.lm.policy).double()
    driver.advance("update", 1, lambda: False)
    driver.close()
    (sampled,), (credited,), (step,) = (only(kind, records) for kind in (Sampled, Credited, Stepped))
    teacher = copy.deepcopy(driver._state.teaching.model.policy).double()
    with torch.no_grad():
        p, q = (torch.cat(list(one_by_one(model, sampled))) for model in (policy, teacher))
        np.testing.assert_allclose(credited.teacher_logprobs, of_tokens(teacher, sampled), atol=1e-5)
    top = q.gather(-1, torch.from_numpy(sampled.top_ids).long())
    np.testing.assert_allclose(credited.teacher_top_logprobs, top, atol=1e-5)
    mixture = ((1 - alpha) * p.exp() + alpha * q.exp()).log()
    apart = {0.0: q.exp() * (q - p), 1.0: p.exp() * (p - q)}
    generalized = alpha * q.exp() * (q - mixture) + (1 - alpha) * p.exp() * (p - mixture)
    expected = apart.get(alpha, generalized).sum(-1).numpy()
    np.testing.assert_allclose(step.distillation, expected, atol=1e-5)
    assert step.metrics["loss"] == pytest.approx(expected.mean(), abs=1e-5)
    assert step.metrics["distillation_loss"] == pytest.approx(expected.mean(), abs=1e-5)
    (end,) = only(Finished, records)
    assert end.metrics["teacher_kl"] == pytest.approx(
        (sampled.old_logprobs - credited.teacher_logprobs).mean(), abs=1e-5
    )


def test_the_gradient_of_a_whole_divergence_reaches_the_weights(taught: Start) -> None:
    driver, records = taught(algorithm="gkd", distillation_alpha=0.0)
    policy = copy.deepcopy(driver._state.lm.policy).double()
    driver.advance("update", 1, lambda: False)
    driver.close()
    (sampled,), (step,) = (only(kind, records) for kind in (Sampled, Stepped))
    teacher = copy.deepcopy(driver._state.teaching.model.policy).double()
    rows = zip(one_by_one(policy, sampled), one_by_one(teacher, sampled), strict=True)
    torch.cat([(q.exp() * (q - p)).sum(-1) for p, q in ((p, q.detach()) for p, q in rows)]).mean().backward()
    norm = float(torch.stack([p.grad.norm() for p in policy.parameters() if p.grad is not None]).norm())
    assert step.metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert not step.dloss_dlogp.any()


@pytest.mark.parametrize("given", [
    {"algorithm": "sdpo"}, {"algorithm": "opd"}, {"algorithm": "iw-opd"},
    {"algorithm": "grpo", "distillation_mode": "sampled_token", "distillation_weight": 0.4},
    {"algorithm": "grpo", "distillation_mode": "advantage", "distillation_weight": 0.4},
])  # fmt: skip
def test_what_acts_through_the_sampled_token_is_its_recorded_derivative(taught: Start, given: dict[str, Any]) -> None:
    context = SELF if given["algorithm"] == "sdpo" else {}
    driver, records = taught(learning_rate=1e-2, teacher_model_kind="base", **given | context)
    driver.advance("update", 1, lambda: False)
    policy = copy.deepcopy(driver._state.lm.policy).double()
    driver.advance("update", 1, lambda: False)
    driver.close()
    sampled, step = only(Sampled, records)[-1], next(s for s in only(Stepped, records) if s.update == 2)
    of_tokens(policy, sampled).backward(torch.from_numpy(step.dloss_dlogp).double())
    norm = float(torch.stack([p.grad.norm() for p in policy.parameters() if p.grad is not None]).norm())
    assert step.metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert norm > 1e-4


def test_rewards_do_not_count_where_the_teacher_alone_does(taught: Start) -> None:
    ends = []
    for reward in ("uneven", "same"):
        driver, _ = played(taught, 2, run=f"{reward}.rlplay", algorithm="gkd", reward=reward)
        ends.append([p.detach().clone() for p in driver._state.lm.policy.parameters()])
        driver.close()
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


@pytest.mark.parametrize("mode", ["full_logits", "topk_logits", "sampled_token", "advantage"])
def test_a_teacher_that_is_the_policy_moves_nothing(start: Start, mode: str) -> None:
    driver, records = start(algorithm="gkd", distillation_mode=mode)
    before = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert all(torch.equal(a, b) for a, b in zip(before, driver._state.lm.policy.parameters(), strict=True))
    (step,), (credited,), (sampled,) = (only(kind, records) for kind in (Stepped, Credited, Sampled))
    assert step.metrics["grad_norm"] == 0
    np.testing.assert_array_equal(credited.teacher_logprobs, sampled.old_logprobs)


@pytest.mark.parametrize("mode", ["full_logits", "topk_logits", "sampled_token", "advantage"])
def test_an_undone_update_with_a_moving_average_comes_again_bit_for_bit(start: Start, mode: str) -> None:
    given = {"algorithm": "sdpo", "distillation_mode": mode, "distillation_alpha": 1.0, "teacher_update_rate": 0.3}
    driver, records = played(start, 3, **given | SELF, num_iterations=2, learning_rate=1e-2)
    first = [r for r in only(Finished, records) if r.update == 3][-1]
    average = {name: w.clone() for name, w in driver._state.average.named_parameters()}
    apart = sum(
        float((w - p).abs().sum()) for w, p in zip(average.values(), driver._state.lm.policy.parameters(), strict=True)
    )
    assert apart > 0
    driver.rewind(1)
    driver.advance("update", 2, lambda: False)
    again = [r for r in only(Finished, records) if r.update == 3][-1]
    driver.close()
    np.testing.assert_array_equal(first.logprobs, again.logprobs)
    assert all(torch.equal(w, average[name]) for name, w in driver._state.average.named_parameters())


def test_an_average_follows_at_its_rate(start: Start) -> None:
    driver, _ = start(algorithm="sdpo", teacher_update_rate=0.25, learning_rate=1e-2, **SELF)
    before = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
    driver.advance("update", 1, lambda: False)
    driver.close()
    held = [*driver._state.average.parameters()]
    for old, new, average in zip(before, driver._state.lm.policy.parameters(), held, strict=True):
        torch.testing.assert_close(average, 0.75 * old + 0.25 * new.detach())


def test_an_answer_without_a_success_beside_it_has_no_teacher(start: Start) -> None:
    driver, records = played(start, 1, algorithm="sdpo", success_reward_threshold=1e5)
    driver.close()
    (credited,), (step,), (end,) = (only(kind, records) for kind in (Credited, Stepped, Finished))
    assert np.isnan(credited.teacher_logprobs).all()
    assert not step.distillation.any()
    assert end.metrics["self_distillation/reprompt_sample_fraction"] == 0
    assert "teacher_kl" not in end.metrics


def test_parts_of_a_batch_add_up_to_it(taught: Start) -> None:
    losses = []
    for at_once in (0, 2):
        driver, records = played(taught, 1, run=f"{at_once}.rlplay", algorithm="sdft", **SELF,
                                 per_device_train_batch_size=at_once)  # fmt: skip
        driver.close()
        losses.append(only(Stepped, records)[0].metrics)
    for name in ("loss", "grad_norm", "distillation_loss"):
        assert losses[0][name] == pytest.approx(losses[1][name], rel=1e-4)


def test_a_demonstration_is_the_first_other_success() -> None:
    group, rewards = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([1.0, 0.0, 1.0, 0.0, 2.0, 0.0])
    batch: Any = SimpleNamespace(rewards=rewards, completions="abcdef", on_host=lambda _: [group])
    assert demonstrations(batch, 1.0) == ["c", "a", "a", "a", None, "e"]


def test_a_template_puts_text_in_its_place_whatever_it_says() -> None:
    template = "{prompt} Hint: {privileged_context}"
    plain = with_context(Example("2+{privileged_context}?", {}), "{prompt}", template)
    assert plain.prompt == "2+{privileged_context}? Hint: {prompt}"
    chat = with_context(
        Example([{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], {}), "a", template
    )
    assert chat.prompt == [{"role": "system", "content": "s"}, {"role": "user", "content": "q Hint: a"}]


def test_a_column_that_is_not_there_is_named() -> None:
    assert "'solution'" in str(lacking([Example("q", {"answer": 1})], "solution"))
    assert lacking([Example("q", {"answer": 1})], "answer") is None


def test_a_teacher_with_another_vocabulary_is_refused(start: Start, micro_models: Callable[[str], Path]) -> None:
    with pytest.raises(ValueError, match="its vocabulary is not the policy's") as refused:
        start(scenario={"teacher": str(micro_models("qwen2"))}, algorithm="gkd")
    assert "\n" not in str(refused.value)


def test_a_runs_policy_after_an_update_teaches_another_run(start: Start, tmp_path: Path) -> None:
    driver, _ = played(start, 2, run="first.rlplay", learning_rate=1e-2)
    first = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
    driver.close()
    driver, _ = start(run="second.rlplay", scenario={"teacher": f"{tmp_path / 'first.rlplay'}@2"}, algorithm="gkd")
    driver.close()
    own = driver._state.teaching.model.policy.parameters()
    assert all(torch.equal(a, b) for a, b in zip(first, own, strict=True))
    with pytest.raises(ValueError, match="of this run there are those after 1, 2"):
        start(run="third.rlplay", scenario={"teacher": f"{tmp_path / 'first.rlplay'}@7"}, algorithm="gkd")


@pytest.mark.parametrize("weights", [{"use_peft": True, "lora_target_modules": ["q_proj"]}, {"dtype": "bfloat16"}])
def test_adapters_and_bfloat16_have_an_average_that_comes_again(start: Start, weights: dict[str, Any]) -> None:
    driver, records = start(scenario=weights, algorithm="sdpo", teacher_update_rate=0.3, learning_rate=1e-2, **SELF)
    driver.advance("update", 3, lambda: False)
    first = only(Finished, records)[-1].logprobs
    held = {name: each.clone() for name, each in weights_of(driver._state.average).items()}
    assert all(each.dtype == torch.float32 for each in held.values())
    assert all(("lora" in name) == ("use_peft" in weights) for name in held)
    driver.rewind(2)
    driver.advance("update", 1, lambda: False)
    driver.close()
    np.testing.assert_array_equal(only(Finished, records)[-1].logprobs, first)
    assert all(torch.equal(each, held[name]) for name, each in weights_of(driver._state.average).items())
    resumed, _ = start(scenario=weights, resume=True, algorithm="sdpo", **SELF)
    resumed.close()
    assert all(torch.equal(each, held[name]) for name, each in weights_of(resumed._state.average).items())


def test_a_change_of_the_teacher_after_credit_waits_for_the_next_update(start: Start) -> None:
    driver, records = start(algorithm="grpo")
    driver.advance("phase", 3, lambda: False)
    driver.set({"distillation_weight": 0.5, "teacher_model_kind": "ema"})
    driver.advance("update", 2, lambda: False)
    driver.close()
    assert [c.update for c in only(Changed, records)] == [2, 2]
    assert [s.distillation is not None for s in only(Stepped, records)] == [False, True]


def test_a_stage_that_restarts_learns_from_the_one_before_and_comes_again(start: Start) -> None:
    stages = [
        Stage("reward", 2, settings={"learning_rate": 1e-2}),
        Stage("teacher", 2, settings={"algorithm": "gkd", "learning_rate": 1e-2}, restart=True),
    ]
    driver, records = start(scenario={"stages": stages})
    begun = [p.detach().clone() for p in driver._state.lm.policy.parameters()]
    driver.advance("update", 2, lambda: False)
    assert all(torch.equal(a, b) for a, b in zip(begun, driver._state.lm.policy.parameters(), strict=True))
    made = [p.clone() for p in driver._state.teaching.model.policy.parameters()]
    assert not all(torch.equal(a, b) for a, b in zip(begun, made, strict=True))
    driver.advance("update", 2, lambda: False)
    first = {r.update: r for r in only(Finished, records)}
    assert first[3].metrics["teacher_kl"] != 0
    for back in (3, 2, 1, 0):
        driver.rewind(back)
        driver.advance("update", 4 - back, lambda: False)
        again = {r.update: r for r in only(Finished, records)}
        np.testing.assert_array_equal(again[4].logprobs, first[4].logprobs)
    driver.close()
    resumed, _ = start(scenario={"stages": stages}, resume=True)
    resumed.close()
    assert all(torch.equal(a, b) for a, b in zip(made, resumed._state.teaching.model.policy.parameters(), strict=True))


def test_who_taught_a_token_is_not_said_of_whole_distributions(start: Start) -> None:
    driver, records = played(start, 1, algorithm="gkd", **SELF)
    with pytest.raises(ValueError, match="act on all candidates") as refused:
        taught_by(driver, targets_of(update_of(records, 1))[0], 1)
    driver.close()
    assert "\n" not in str(refused.value)
