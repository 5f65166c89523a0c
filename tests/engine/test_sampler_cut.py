"""What a sampler makes of the logits before it draws, as transformers does, and what it says of that."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.model import LanguageModel
from rlplay.engine.sample import sample
from rlplay.engine.slate import Cut, cut, penalized, said_by
from rlplay.trace.records import Finished, Sampled, Stepped
from tests.engine.architectures import make
from tests.engine.test_more_axes import records_of
from tests.engine.test_passes import VOCABULARY
from tests.engine.test_sampler import Start, never, sampled_of

CUTS = [
    Cut(min_p=0.2),
    Cut(repetition_penalty=1.4),
    Cut(repetition_penalty=0.7, top_p=0.8),
    Cut(top_p=0.9, top_k=7, min_p=0.05, repetition_penalty=1.3),
]


def theirs(how: Cut, temperature: float) -> LogitsProcessorList:
    """The processors of transformers, in the order in which `generate` has them."""
    given: list[Any] = []
    if how.repetition_penalty != 1:
        given.append(RepetitionPenaltyLogitsProcessor(how.repetition_penalty))
    given.append(TemperatureLogitsWarper(temperature))
    if how.top_k:
        given.append(TopKLogitsWarper(how.top_k))
    if how.top_p < 1:
        given.append(TopPLogitsWarper(how.top_p))
    if how.min_p:
        given.append(MinPLogitsWarper(how.min_p))
    return LogitsProcessorList(given)


@pytest.mark.parametrize("how", CUTS)
def test_what_is_left_is_what_the_processors_of_transformers_leave(how: Cut) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 40, generator=generator) * 2
    ids = torch.randint(0, 40, (64, 9), generator=generator)
    said = said_by(ids, torch.ones_like(ids), 40)[:, :-1]
    ours = cut((penalized(logits, said, how.repetition_penalty) / 0.7).log_softmax(-1), how).log_softmax(-1)
    torch.testing.assert_close(ours, theirs(how, 0.7)(ids, logits.clone()).log_softmax(-1), atol=1e-5, rtol=1e-5)


@pytest.fixture(params=["cached", "fixed", "recomputing"])
def lm(request: pytest.FixtureRequest) -> LanguageModel:
    policy = make("llama", VOCABULARY, eos_token_id=2, pad_token_id=2).eval()
    found = LanguageModel(policy, policy, None, torch.device("cpu"), frozenset({2}))
    found.cached, found.fixed = request.param != "recomputing", request.param == "fixed"
    return found


def prompts() -> Prompts:
    """Two that are the same, a shorter one, and one of a single token."""
    ids = torch.tensor([[3, 4, 5, 6], [3, 4, 5, 6], [2, 2, 7, 3], [2, 2, 2, 9]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
    return Prompts([], ids, mask)


def drawn(lm: LanguageModel, how: Cut, **given: Any) -> Batch:
    every: dict[str, Any] = {"generations": 5, "length": 8, "temperature": 0.8, "keep": 3, "seed": 1, "update": 1}
    moments = sample(lm, prompts(), **every | {"cut": how} | given)
    while True:
        try:
            next(moments)
        except StopIteration as done:
            batch: Batch = done.value
            return batch


@torch.no_grad()
def before(lm: LanguageModel, batch: Batch, row: int, length: int) -> tuple[Tensor, Tensor]:
    """The text before a token, [1, T] without padding, and the logits after it, [1, V]."""
    given, mask = batch.prompts.ids[batch.group[row]], batch.prompts.mask[batch.group[row]]
    text = torch.cat([given[mask.bool()], batch.ids[row, :length]])[None]
    return text, lm.policy(input_ids=text, use_cache=False).logits[:, -1]


@pytest.mark.parametrize("how", [CUTS[0], *(pytest.param(how, marks=pytest.mark.slow) for how in CUTS[1:3]), CUTS[3]])
def test_a_counted_cut_is_what_the_sampler_reports(lm: LanguageModel, how: Cut) -> None:
    """Whatever keeps the cache, and where answers that begin alike share it."""
    batch = drawn(lm, Cut(how.top_p, how.top_k, how.min_p, how.repetition_penalty, counted=True))
    plain = drawn(lm, how)
    assert torch.equal(batch.ids, plain.ids)
    assert torch.equal(batch.old_logprobs, plain.old_logprobs)
    assert plain.sampling_logprobs is None
    assert batch.sampling_logprobs is not None
    assert batch.sampling_top_logprobs is not None
    for row in range(len(batch.group)):
        for at in range(int(batch.lengths[row])):
            text, logits = before(lm, batch, row, at)
            raw = (logits / 0.8).log_softmax(-1)[0]
            left = theirs(how, 0.8)(text, logits.clone()).log_softmax(-1)[0]
            token, top = batch.ids[row, at], batch.top_ids[row, at]
            assert float(batch.old_logprobs[row, at]) == pytest.approx(float(raw[token]), abs=2e-5)
            assert float(batch.sampling_logprobs[row, at]) == pytest.approx(float(left[token]), abs=5e-5)
            torch.testing.assert_close(batch.sampling_top_logprobs[row, at], left[top], atol=5e-5, rtol=1e-5)


def test_the_likeliest_answer_is_that_of_generate_with_a_penalty(lm: LanguageModel) -> None:
    batch, given = drawn(lm, Cut(repetition_penalty=1.5), generations=1, greedy=True), prompts()
    plain = drawn(lm, Cut(), generations=1, greedy=True)
    assert not torch.equal(batch.ids, plain.ids), "else the penalty would change nothing"
    wanted = lm.policy.generate(
        input_ids=given.ids, attention_mask=given.mask, do_sample=False, repetition_penalty=1.5, max_new_tokens=8,
        eos_token_id=2, pad_token_id=2,
    )[:, 4:]  # fmt: skip
    for row, n in enumerate(batch.lengths.tolist()):
        assert batch.ids[row, :n].tolist() == wanted[row, :n].tolist()


def test_tokens_are_drawn_from_what_is_left(lm: LanguageModel) -> None:
    """χ² of the first two tokens over all pairs that are likely enough, at a level that one seed in 10⁴ exceeds."""
    how = Cut(top_p=0.9, min_p=0.02, repetition_penalty=1.3)
    batch = drawn(lm, how, generations=3000, length=2, temperature=0.6)
    rows = (batch.group == 2).nonzero().flatten()
    pairs = [tuple(batch.ids[row, : int(batch.lengths[row])].tolist()) for row in rows]
    text, logits = before(lm, batch, int(rows[0]), 0)
    first = theirs(how, 0.6)(text, logits.clone()).softmax(-1)[0]
    expected: dict[tuple[int, ...], float] = {}
    for token in first.nonzero().flatten().tolist():
        if token == 2:
            expected[(2,)] = float(first[2])
            continue
        longer = torch.cat([text, torch.tensor([[token]])], dim=1)
        with torch.no_grad():
            logits = lm.policy(input_ids=longer, use_cache=False).logits[:, -1]
        second = theirs(how, 0.6)(longer, logits.clone()).softmax(-1)[0]
        expected |= {
            (token, other): float(first[token] * second[other]) for other in second.nonzero().flatten().tolist()
        }
    assert set(pairs) <= expected.keys()
    counts = [(pairs.count(pair), share * len(pairs)) for pair, share in expected.items()]
    likely = [each for each in counts if each[1] >= 5]
    rest = [sum(values) for values in zip(*(each for each in counts if each[1] < 5), strict=True)]
    cells = [*likely, *([rest] if rest else [])]
    assert len(cells) > 5
    statistic = sum((seen - wanted) ** 2 / wanted for seen, wanted in cells)
    degrees = len(cells) - 1
    assert statistic < degrees + 3.72 * np.sqrt(2 * degrees) + 10, (statistic, degrees)


@pytest.mark.parametrize("old", ["trainer", "sampler"])
def test_a_counted_cut_takes_no_pass_and_begins_where_it_is_asked_to(
    start: Start, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRL's vLLM reports the log-probabilities after the cut; here the policy's are known from the same logits."""
    monkeypatch.setattr("rlplay.engine.mismatch._score_again", None)
    driver, records = start(top_p=0.7, logprobs_mode="processed_logprobs", old_logprobs_of=old, learning_rate=3e-3)
    driver.advance("update", 2, never)
    driver.close()
    for sampled, step in zip(sampled_of(records), records_of(Stepped, records), strict=True):
        assert sampled.sampling_logprobs is not None
        assert sampled.versions is None
        if old == "trainer":
            np.testing.assert_allclose(step.importance_ratio, 1, atol=1e-4)
            assert (sampled.sampling_logprobs >= sampled.old_logprobs - 1e-6).all(), "what is left is likelier"
            assert (sampled.sampling_logprobs > sampled.old_logprobs + 1e-3).any()
        else:
            np.testing.assert_array_equal(sampled.sampling_logprobs, sampled.old_logprobs)
            kept = step.importance_ratio
            assert (kept < 1 + 1e-4).all()
            assert kept.min() < 0.99
            assert 0.69 < np.median(kept) <= 1, "the ratio is biased by the probability that was kept (trl#6789)"
    assert {"mismatch_kl"} <= records_of(Finished, records)[0].metrics.keys()


def test_a_sampler_apart_may_count_its_cut(start: Start) -> None:
    driver, records = start(sampler_lag=1, min_p=0.1, logprobs_mode="processed_logprobs", learning_rate=3e-3)
    driver.advance("update", 3, never)
    driver.close()
    last: Sampled = sampled_of(records)[-1]
    assert last.sampling_logprobs is not None
    assert last.sampling_top_logprobs is not None
    assert np.isneginf(last.sampling_top_logprobs).any(), "what was cut"
    assert np.isfinite(last.sampling_logprobs).all()
    assert np.isfinite(last.top_logprobs).all()
    assert [int(each.versions[0]) for each in sampled_of(records) if each.versions is not None] == [0, 0, 1]


@pytest.mark.parametrize(("algorithm", "reward"), [("dapo", "some_groups"), ("remax", "uneven"), ("vineppo", "uneven")])
def test_all_that_an_update_learns_from_comes_from_the_sampler(start: Start, algorithm: str, reward: str) -> None:
    driver, records = start(
        algorithm=algorithm, reward=reward, weight_sync_steps=0, learning_rate=3e-3, min_p=0.05, eval_every=1,
        logprobs_mode="processed_logprobs",
    )  # fmt: skip
    driver.advance("update", 1, never)
    counts: dict[str, int] = {}

    def counting(name: str, model: Any) -> None:
        model.register_forward_hook(lambda *_: counts.update({name: counts.get(name, 0) + 1}))

    driver.advance("token", 1, never)
    sampler = driver._state.sampler.using
    assert sampler is not None
    assert sampler is not driver._state.lm
    counting("sampler", sampler.policy)
    counting("policy", driver._state.lm.policy)
    driver.advance("phase", 1, never)
    decoded = counts["sampler"]
    assert counts.get("policy", 0) <= 4, "the policy scores the answers once and samples none"
    assert decoded >= 9
    driver.advance("update", 1, never)
    driver.close()
    assert all(sampled.sampling_logprobs is not None for sampled in sampled_of(records))
    assert list(itertools.chain(*(each.versions.tolist() for each in sampled_of(records) if each.versions is not None)))
