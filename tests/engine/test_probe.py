"""Probing: the numbers are those of a plain Hugging Face model, and the run does not notice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlplay.engine.driver import Driver
from rlplay.engine.interval import confidence, student, wilson
from rlplay.engine.probe import AT_ONCE
from rlplay.engine.state import Halt
from rlplay.link.messages import EVENTS
from rlplay.trace.codec import RECORDS
from rlplay.trace.questions import Continue, Continued, Estimate, Estimated, Peek, Peeked, Prefix
from rlplay.trace.records import AnyRecord

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
ASKED = "What is 2+2?"


def never() -> bool:
    return False


def ask(driver: Driver, question: Any) -> Any:
    """The last answer."""
    *_, answer = driver.probe(question, never)
    assert EVENTS.decode(EVENTS.encode(answer)) == answer
    return answer


def plain_logits(folder: Path, prompt: str, answer: list[int], chat: bool = True) -> torch.Tensor:
    """Transformers alone: logits before every token of the answer and after the last, float64."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    text = prompt
    if chat:
        messages = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([ids + answer])).logits[0].double()
    assert isinstance(logits, torch.Tensor)
    return logits[len(ids) - 1 :]


@pytest.mark.parametrize("chat", [True, False])
def test_distributions_are_those_of_a_plain_forward_pass(start: Start, micro_model: Path, chat: bool) -> None:
    driver, _ = start(temperature=0.7, candidates=9)
    answer = [70, 71, 72]
    peeked = ask(driver, Peek(Prefix("2+2=4 and more", answer, plain=not chat)))
    assert isinstance(peeked, Peeked)
    expected = (plain_logits(micro_model, "2+2=4 and more", answer, chat) / 0.7).softmax(-1).numpy()
    best = np.argsort(-expected[-1])[:9]
    assert peeked.top_ids == best.tolist()
    np.testing.assert_allclose(peeked.top, expected[-1][best], atol=1e-6)
    np.testing.assert_allclose(peeked.probabilities, expected[[0, 1, 2], answer], atol=1e-6)
    assert peeked.ref_top == peeked.top, "nothing is trained yet"
    assert peeked.kl == 0
    assert peeked.entropy == pytest.approx(-(expected[-1] * np.log(expected[-1])).sum(), abs=1e-5)
    assert "=" in peeked.unrewarded
    assert len(peeked.prompt_texts) > 5
    assert len(peeked.texts) == 3


def test_after_training_policy_and_reference_part(start: Start, micro_model: Path, tmp_path: Path) -> None:
    driver, _ = start(learning_rate=2e-2)
    driver.advance("update", 2, never)
    driver._state.lm.policy.save_pretrained(tmp_path / "trained")
    AutoTokenizer.from_pretrained(micro_model).save_pretrained(tmp_path / "trained")
    peeked = ask(driver, Peek(Prefix(ASKED, [70])))
    own = plain_logits(tmp_path / "trained", ASKED, [70]).log_softmax(-1).numpy()[-1]
    other = plain_logits(micro_model, ASKED, [70]).log_softmax(-1).numpy()[-1]
    np.testing.assert_allclose(peeked.top, np.exp(own[peeked.top_ids]), atol=1e-5)
    np.testing.assert_allclose(peeked.ref_top, np.exp(other[peeked.top_ids]), atol=1e-5)
    assert peeked.kl == pytest.approx((np.exp(own) * (own - other)).sum(), rel=1e-3)
    assert peeked.kl > 0.01
    assert peeked.update == 2
    assert set(np.maximum(own, other).argsort()[-len(peeked.top_ids) :]) == set(peeked.top_ids)
    assert peeked.top == sorted(peeked.top, reverse=True)
    assert peeked.unrewarded == "", "a prompt of the run comes with its columns"


def test_steps_of_an_update_that_has_not_ended_are_counted(start: Start) -> None:
    driver, _ = start(num_minibatches=2, learning_rate=2e-2)
    driver.advance("update", 1, never)
    before = ask(driver, Peek(Prefix(ASKED)))
    driver.advance("step", 1, never)
    peeked = ask(driver, Peek(Prefix(ASKED)))
    assert [(each.update, each.steps) for each in (before, peeked)] == [(1, 0), (1, 1)]
    assert peeked.kl != before.kl, "the weights have moved"


def test_the_greedy_tail_is_the_one_that_transformers_generates(start: Start, micro_model: Path) -> None:
    driver, _ = start()
    answer = [70, 71]
    (tail,) = ask(driver, Continue(Prefix(ASKED, answer), greedy=True)).tails
    model, tokenizer = AutoModelForCausalLM.from_pretrained(micro_model), AutoTokenizer.from_pretrained(micro_model)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": ASKED}], tokenize=False, add_generation_prompt=True
    )
    ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"] + answer])
    longest = 10 - len(answer)
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=longest)
    assert tail.token_ids == out[0, ids.shape[1] :].tolist()
    assert tail.truncated == (tail.token_ids[-1] not in model.generation_config.eos_token_id)
    assert tail.reward == pytest.approx(sum(answer + tail.token_ids) % 7 / 7)


def test_tails_repeat_and_others_can_be_drawn(start: Start) -> None:
    driver, _ = start(learning_rate=2e-2)
    prefix = Prefix(ASKED, [70])
    first = ask(driver, Continue(prefix, count=6))
    assert isinstance(first, Continued)
    assert len({tuple(tail.token_ids) for tail in first.tails}) > 1
    assert ask(driver, Continue(prefix, count=6)) == first
    assert ask(driver, Continue(prefix, count=6, draw=1)).tails != first.tails
    assert ask(driver, Continue(prefix, "reference", count=6)).tails == first.tails, "the same model, the same numbers"
    driver.advance("update", 2, never)
    own, other = (ask(driver, Continue(prefix, writer, count=6)).tails for writer in ("policy", "reference"))
    assert own != other
    assert len(ask(driver, Continue(prefix, count=1000)).tails) == 12, "as many as the run samples at once"


def test_tails_begin_as_often_with_a_token_as_it_is_likely(start: Start) -> None:
    driver, _ = start(num_generations=200, max_completion_length=2)
    prefix = Prefix(ASKED, [70])
    peeked = ask(driver, Peek(prefix))
    firsts = [tail.token_ids[0] for tail in ask(driver, Continue(prefix, count=600)).tails]
    assert len(firsts) == 600
    for token, share in zip(peeked.top_ids, peeked.top, strict=True):
        assert firsts.count(token) / 600 == pytest.approx(share, abs=4 * (share * (1 - share) / 600) ** 0.5)


def test_a_value_is_the_mean_reward_of_what_follows(start: Start) -> None:
    driver, _ = start()
    prefix = Prefix(ASKED, [70])
    seen = list(driver.probe(Estimate(prefix, count=100), never))
    assert all(isinstance(one, Estimated) for one in seen)
    assert [one.count for one in seen] == [*range(12, 100, 12), 100]
    assert [one.done for one in seen] == [False] * 8 + [True]
    others = [ask(driver, Continue(prefix, count=12, draw=draw)).tails for draw in range(8)]
    value = seen[-1]
    assert value.interval == "Student t"
    assert abs(value.mean - np.mean([tail.reward for tails in others for tail in tails])) < value.high - value.low
    assert value.high - value.low < seen[0].high - seen[0].low


def test_rewards_that_nobody_gave_are_counted_apart(start: Start) -> None:
    driver, _ = start(reward="choosy")
    value = ask(driver, Estimate(Prefix(ASKED, [70]), count=60))
    assert 0 < value.unscored < 60
    assert value.count == 60 - value.unscored


def test_rewards_of_0_and_1_have_wilsons_interval(start: Start) -> None:
    driver, _ = start(reward="seldom", num_prompts=20)
    seen = list(driver.probe(Estimate(Prefix(ASKED), count=100), never))
    assert [one.count for one in seen] == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE, 100]
    assert seen[-1].interval == "Wilson"
    assert seen[-1].low == pytest.approx(wilson(round(seen[-1].mean * 100), 100)[0])


def test_a_value_can_be_interrupted_and_keeps_what_it_has(start: Start) -> None:
    driver, _ = start()
    asked = count()
    seen = list(driver.probe(Estimate(Prefix(ASKED), count=10_000), lambda: next(asked) > 40))
    assert seen[-1].done
    assert 0 < seen[-1].count < 100
    assert next(iter(driver.probe(Continue(Prefix(ASKED)), lambda: True))).tails == []


def test_a_prompt_of_ones_own_earns_a_reward_once_it_has_columns(start: Start) -> None:
    driver, _ = start()
    assert ask(driver, Continue(Prefix("Sing!"))).tails[0].reward is None
    with pytest.raises(ValueError, match="no columns"):
        ask(driver, Estimate(Prefix("Sing!")))
    assert ask(driver, Estimate(Prefix("Sing!", columns={"answer": 4}), count=12)).count == 12


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Peek(Prefix("", plain=True)), "prompt is empty"),
        (Peek(Prefix(ASKED, [99_999])), "outside the model's vocabulary"),
        (Peek(Prefix(ASKED, [70] * 200)), "more than the 128"),
        (Continue(Prefix(ASKED, [70] * 10)), "max_completion_length=10"),
        (Continue(Prefix(ASKED, [5])), "has ended"),
    ],
)
def test_what_cannot_be_answered_says_why(start: Start, question: Any, words: str) -> None:
    driver, _ = start()
    with pytest.raises(ValueError, match=words):
        ask(driver, question)


def test_an_answer_that_has_ended_says_so(start: Start) -> None:
    driver, _ = start()
    assert ask(driver, Peek(Prefix(ASKED, [5]))).ended


def test_a_reward_function_that_fails_is_named(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    (tmp_path / "uneven.py").write_text("def uneven(**columns):\n    return [0]\n")
    with pytest.raises(Halt, match="'uneven' gave 1 score"):
        ask(driver, Estimate(Prefix(ASKED)))


@pytest.mark.parametrize("algorithm", ["grpo", "ppo"])
def test_a_run_that_is_probed_everywhere_is_bit_for_bit_the_same(start: Start, algorithm: str, tmp_path: Path) -> None:
    driver, records = start(algorithm=algorithm, num_iterations=2)
    driver.advance("update", 2, never)
    other, probed = start("other.rlplay", algorithm=algorithm, num_iterations=2)
    questions = [Peek(Prefix(ASKED, [70])), Continue(Prefix("Sing!"), count=3), Estimate(Prefix(ASKED), count=12)]
    moments = count()

    def look() -> bool:
        for answer in other.probe(questions[next(moments) % 3], never):
            assert not answer.refused
        return False

    other.advance("update", 2, look)
    assert next(moments) > 20
    assert _numbers(records) == _numbers(probed)
    weights = zip(driver._state.parameters.values(), other._state.parameters.values(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)
    assert (tmp_path / "other.rlplay").exists()


def _numbers(records: list[AnyRecord]) -> list[bytes]:
    """Records as bytes, without those of answers half sampled and what the clock wrote."""
    kept = [r for r in records[1:] if getattr(r, "done", True)]
    blank = {"seconds": 0.0, "timings": {}}
    return [
        RECORDS.encode(type(r)(**{**_fields(r), **{k: v for k, v in blank.items() if hasattr(r, k)}})) for r in kept
    ]


def _fields(record: AnyRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


@pytest.mark.parametrize(("freedom", "quantile"), [(7, 2.36462), (15, 2.13145), (30, 2.04227), (255, 1.96931)])
def test_students_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=1e-4)


def test_intervals() -> None:
    assert wilson(3, 20) == pytest.approx((0.0523687, 0.3604189), abs=1e-6)
    assert wilson(0, 16)[0] == 0
    assert wilson(16, 16)[1] == 1
    assert confidence(np.array([0.5] * 50)) == (None, None, "")
    assert confidence(np.array([0.1, 0.2])) == (None, None, "")
    assert confidence(np.zeros(0)) == (None, None, "")
    low, high, name = confidence(np.arange(16) / 4)
    assert name == "Student t"
    assert (low, high) == pytest.approx((1.875 - 0.634257, 1.875 + 0.634257), abs=1e-4)


def test_the_t_interval_covers_what_it_promises() -> None:
    samples = np.random.default_rng(0).normal(1.0, 2.0, (4000, 12))
    inside = [low < 1.0 < high for low, high, _ in map(confidence, samples)]  # type: ignore[operator]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.012)


def test_words_are_spelled_unless_an_environment_may_have_written_some(start: Start) -> None:
    driver, _ = start()
    state = driver._state
    spelled = ask(driver, Peek(Prefix(ASKED, text="It is 4.")))
    assert spelled.prompt_ids == ask(driver, Peek(Prefix(ASKED))).prompt_ids
    assert state.lm.decode(spelled.answer_ids) == "It is 4."
    state.task = msgspec.structs.replace(state.task, environment=lambda example, turns: None)
    with pytest.raises(ValueError, match="an environment wrote a part of this answer"):
        ask(driver, Peek(Prefix(ASKED, text="It is 4.")))
