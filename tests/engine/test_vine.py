"""Sampled values: against every possible answer, written out; and sampling that can be stopped and repeated."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rlplay.algorithms.apply import resolve
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.model import LanguageModel
from rlplay.engine.sample import VINES, sample, unseen
from rlplay.engine.vine import Vining, vine
from rlplay.tasks.task import Example
from rlplay.trace.records import AnyRecord, Credited, Sampled, Stepped

PIECES = ("x", "\n", "<end>")
END, LENGTH, TEMPERATURE = 2, 4, 0.8
PROMPTS = ([0, 1], [1, 1, 0])


class Pieces:
    """A tokenizer of three tokens: a letter, the end of a line, the end of the answer."""

    pad_token_id = 0

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return "".join(PIECES[i] for i in ids if not (skip_special_tokens and i == END))


def uneven(completion_ids: list[list[int]]) -> list[float]:
    """A different reward for nearly every answer."""
    return [_reward(ids) for ids in completion_ids]


def _reward(ids: Any) -> float:
    return sum(3**t * i for t, i in enumerate(ids)) % 7 / 3 - 1


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = LlamaConfig(vocab_size=3, max_position_embeddings=16, initializer_range=0.5, **sizes)
    return LlamaForCausalLM(config).eval()


@pytest.fixture
def state(model: Any) -> Any:
    lm = LanguageModel(model, model, Pieces(), torch.device("cpu"), frozenset({END}))
    settings = msgspec.structs.replace(
        resolve({"algorithm": "vineppo", "gamma": 0.9, "max_completion_length": LENGTH}), vine_samples=2000
    )
    task = SimpleNamespace(
        rewards={"uneven": uneven}, gold={}, environment=None, train=[Example("", {})], columns=set()
    )
    return SimpleNamespace(
        lm=lm,
        sampling_lm=lm,
        settings=settings,
        task=task,
        environment=None,
        reward_model=None,
        update=1,
        max_updates=2,
    )


def _drained(moments: Any) -> Any:
    while True:
        try:
            next(moments)
        except StopIteration as done:
            return done.value


def _answers(state: Any) -> Batch:
    prompts = Prompts.padded(state.lm, [Example("", {})] * len(PROMPTS), [list(row) for row in PROMPTS])
    return _drained(
        sample(state.lm, prompts, generations=30, length=LENGTH, temperature=TEMPERATURE, keep=1, seed=1, update=1)
    )


def _exact(model: Any, prompt: list[int], begun: list[int], gamma: float) -> float:
    """Σ over all answers that begin so, of their probability times the discounted reward: float64, no sampling."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + begun])).logits[0, -1].double()
    value = 0.0
    for token, chance in enumerate((logits / TEMPERATURE).softmax(-1).tolist()):
        answer = [*begun, token]
        over = token == END or len(answer) == LENGTH
        value += chance * (_reward(answer) if over else gamma * _exact(model, prompt, answer, gamma))
    return value


def test_sampled_values_are_the_expectations_over_every_possible_answer(state: Any, model: Any) -> None:
    batch = _answers(state)
    _drained(vine(batch, state, seed=5))
    assert batch.vine_values is not None
    assert batch.vine_ends is not None
    model.double()
    begun: set[tuple[int, ...]] = set()
    for n, (group, length) in enumerate(zip(batch.group.tolist(), batch.lengths.tolist(), strict=True)):
        ids = batch.ids[n, :length].tolist()
        ends = np.flatnonzero(batch.vine_ends[n].numpy()).tolist()
        assert ends[-1] == length - 1
        for begin, end in pairwise([0, *(end + 1 for end in ends)]):
            exact = _exact(model, PROMPTS[group], ids[:begin], state.settings.gamma)
            sampled = batch.vine_values[n, begin:end].numpy()
            # Four standard errors of a mean of 2000 rewards of spread at most 1.
            np.testing.assert_allclose(sampled, exact, atol=4 / 2000**0.5)
            begun.add((group, *ids[:begin]))
    assert len(begun) > 4
    spread = batch.vine_values[batch.mask]
    assert float(spread.max() - spread.min()) > 0.3


def test_the_same_values_again_for_the_same_seed_and_update_and_others_for_others(state: Any) -> None:
    state.settings = msgspec.structs.replace(state.settings, vine_samples=7)
    found = []
    for update, seed in ((1, 5), (1, 5), (2, 5), (1, 6)):
        batch = _answers(state)
        batch.update = update
        _drained(vine(batch, state, seed))
        assert batch.vine_values is not None
        assert batch.vine_tokens > 0
        found.append(batch.vine_values)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[3])


def test_a_value_is_the_mean_of_its_samples_rewards_discounted_from_the_state_on(state: Any) -> None:
    """Exactly so: of each of the answers sampled on from a state, with n tokens more, γⁿ⁻¹·R."""
    samples: list[list[int]] = []

    def watched(completion_ids: list[list[int]]) -> list[float]:
        samples.extend(completion_ids)
        return uneven(completion_ids)

    state.settings = msgspec.structs.replace(state.settings, vine_samples=5, gamma=0.6)
    state.task.rewards["uneven"] = watched
    batch = _answers(state)
    _drained(vine(batch, state, seed=3))
    assert batch.vine_values is not None
    assert batch.vine_ends is not None
    found: dict[tuple[int, tuple[int, tuple[int, ...]]], float] = {}
    for n, (group, length) in enumerate(zip(batch.group.tolist(), batch.lengths.tolist(), strict=True)):
        ends = np.flatnonzero(batch.vine_ends[n].numpy()).tolist()
        for begin in [0, *(end + 1 for end in ends if end + 1 < length)]:
            prefix = tuple(batch.ids[n, :begin].tolist())
            found[begin, (group, prefix)] = float(batch.vine_values[n, begin])
    for i, ((begin, (_, prefix)), value) in enumerate(sorted(found.items())):  # the order in which states are sampled
        mine = samples[5 * i : 5 * i + 5]
        assert all(tuple(answer[:begin]) == prefix for answer in mine)
        discounted = [0.6 ** (len(answer) - begin - 1) * _reward(answer) for answer in mine]
        assert value == pytest.approx(np.mean(discounted), abs=1e-12)
    assert len(samples) == 5 * len(found)


def test_no_answer_is_sampled_past_the_longest_completion(state: Any) -> None:
    seen: list[int] = []

    def watched(completion_ids: list[list[int]]) -> list[float]:
        seen.extend(map(len, completion_ids))
        return [0.0] * len(completion_ids)

    state.settings = msgspec.structs.replace(state.settings, vine_samples=20)
    state.task.rewards["uneven"] = watched
    state.lm.end_ids = frozenset()
    _drained(vine(_answers(state), state, seed=0))
    assert set(seen) == {LENGTH}


def test_an_unseen_sampling_is_the_same_sampling(state: Any) -> None:
    prompts = Prompts.padded(state.lm, [Example("", {})] * 2, [list(row) for row in PROMPTS])
    given = {"generations": 3, "length": 3, "temperature": 1.0, "keep": 1, "seed": 1, "update": 1}
    plain, quiet = (
        _drained(sample(state.lm, prompts, **given)), _drained(unseen(sample(state.lm, prompts, **given), Vining()))
    )  # fmt: skip
    assert torch.equal(plain.ids, quiet.ids)
    other = _drained(sample(state.lm, prompts, **given, stream=VINES))
    assert not torch.equal(plain.ids, other.ids)


def test_values_are_sampled_out_of_sight_and_can_be_stopped(start: Callable[..., Any]) -> None:
    driver, records = start(algorithm="vineppo", vine_samples=2)
    driver.advance("phase", 2, lambda: False)
    before = len(records)
    pauses = 0
    while not isinstance(records[-1], Credited):
        driver.advance("phase", 1, lambda: True)
        assert driver.status().phase in ("credit", "update")
        pauses += 1
    assert pauses > 3
    assert not any(isinstance(record, Sampled) for record in records[before:])
    whole, undisturbed = start("other.rlplay", algorithm="vineppo", vine_samples=2)
    whole.advance("phase", 3, lambda: False)
    np.testing.assert_array_equal(records[-1].values, _last(undisturbed).values)


def test_a_change_while_values_are_sampled_waits_for_the_next_phase(start: Callable[..., Any]) -> None:
    driver, records = start(algorithm="vineppo", vine_samples=2)
    driver.advance("phase", 2, lambda: False)
    driver.advance("phase", 1, lambda: True)
    driver.set({"returns": "broadcast"})
    driver.advance("phase", 1, lambda: False)
    assert _last(records).values is not None
    driver.advance("update", 1, lambda: False)
    driver.advance("update", 1, lambda: False)
    assert _last(records).values is None
    assert any(isinstance(record, Stepped) for record in records)


def _last(records: list[AnyRecord]) -> Credited:
    return [record for record in records if isinstance(record, Credited)][-1]
