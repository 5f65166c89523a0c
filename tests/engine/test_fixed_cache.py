"""Sampling from a cache of fixed size, without a graph: the same answers and numbers as from a cache that grows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from rlplay.engine import fixed_cache
from rlplay.engine import sample as sampling
from rlplay.engine.agreement import _small_batch, _why_not, _with_gradient, settle
from rlplay.engine.decode import Cached
from rlplay.engine.decoder_choice import choice
from rlplay.engine.fixed_cache import KEPT, Fixed, _Step
from rlplay.engine.model import LanguageModel
from tests.engine.architectures import make
from tests.engine.test_passes import VOCABULARY, _rest, _sampled, _sampling, _together


def small(architecture: str) -> LanguageModel:
    """A model of this kind with random weights."""
    policy = make(architecture, VOCABULARY, eos_token_id=2, pad_token_id=2).eval()
    return LanguageModel(policy, policy, None, torch.device("cpu"), frozenset({2}))


@pytest.fixture(params=["llama", "gpt2", "qwen2"])
def lm(request: pytest.FixtureRequest) -> LanguageModel:
    return small(request.param)


def kinds(model: LanguageModel) -> tuple[LanguageModel, LanguageModel]:
    """The same model with a cache that grows, and with one of fixed size."""
    grows, fixed = copy.copy(model), copy.copy(model)
    fixed.fixed, fixed.fixed_steps = True, {}
    grows.end_ids = fixed.end_ids = frozenset(range(0, VOCABULARY, 5))
    return grows, fixed


def test_answers_are_those_of_a_cache_that_grows_whatever_was_sampled_before(lm: LanguageModel) -> None:
    grows, fixed = kinds(lm)
    for seed in range(3):
        one, other = _sampled(grows, length=9, seed=seed), _sampled(fixed, length=9, seed=seed)
        assert len(set(one.lengths.tolist())) > 2, "rows end one after the other"
        for name in ("ids", "lengths", "truncated", "top_ids"):
            assert torch.equal(getattr(one, name), getattr(other, name))
        for name in ("old_logprobs", "entropy", "top_logprobs"):
            torch.testing.assert_close(getattr(one, name), getattr(other, name), atol=2e-6, rtol=1e-5)
    assert len(fixed.fixed_steps) == 1, "batches of one size share their memory"


def test_weights_that_learn_in_place_are_seen_and_others_get_a_step_of_their_own(lm: LanguageModel) -> None:
    _, fixed = kinds(lm)
    _sampled(fixed)
    with torch.no_grad():
        for parameter in fixed.policy.parameters():
            parameter.mul_(1.1)
    batch = _sampled(fixed)
    full = _together(fixed, batch.tokens())
    torch.testing.assert_close(batch.old_logprobs[batch.mask], full[batch.mask], atol=1e-5, rtol=1e-5)
    assert len(fixed.fixed_steps) == 1
    fixed.policy = copy.deepcopy(fixed.policy)
    _sampled(fixed)
    assert len(fixed.fixed_steps) == 2
    for generations in range(1, KEPT + 2):
        _sampled(fixed, generations=generations)
    assert len(fixed.fixed_steps) == KEPT


def test_finished_rows_may_be_counted_now_and_then(lm: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where each count waits for it."""
    grows, fixed = kinds(lm)
    wanted = _sampled(grows, length=20)
    monkeypatch.setattr(sampling, "_COUNTED", 3)
    found = _sampled(fixed, length=20)
    assert torch.equal(wanted.ids, found.ids)
    assert torch.equal(wanted.lengths, found.lengths)
    torch.testing.assert_close(wanted.old_logprobs, found.old_logprobs, atol=2e-6, rtol=1e-5)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> list[_Step]:
    """A stand-in for CUDA, whose graph computes the step as it is replayed; the list gets each step. No GPU is used."""
    computed, steps, capturing = _Step._compute, list[_Step](), list[bool]()

    def compute(step: _Step) -> None:
        steps.append(step)
        if not capturing:
            computed(step)

    @contextmanager
    def capture(graph: SimpleNamespace, **_given: object) -> Iterator[None]:
        capturing.append(True)
        yield
        capturing.clear()
        graph.replay = lambda captured=steps[-1]: computed(captured)

    stream = SimpleNamespace(wait_stream=lambda _other: None)
    monkeypatch.setattr(fixed_cache, "_captures", lambda _device: True)
    monkeypatch.setattr(_Step, "_compute", compute)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimpleNamespace)
    for name in ("Stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda: stream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    monkeypatch.setattr(torch.cuda, "set_stream", lambda _stream: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (2**30, 2**30))
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(fixed_cache, "_failed", False)
    return steps


def test_capturing_a_graph_leaves_nothing_behind(lm: LanguageModel, cuda: list[_Step]) -> None:
    grows, fixed = kinds(lm)
    wanted = _sampled(grows)
    for _ in range(2):
        found = _sampled(fixed)
        assert torch.equal(wanted.ids, found.ids)
        torch.testing.assert_close(wanted.old_logprobs, found.old_logprobs, atol=2e-6, rtol=1e-5)
    assert len(cuda) == 4, "three to warm up and one that is captured, once"


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("not permitted\nwhen")])
def test_a_capture_that_fails_leaves_the_answers_to_a_cache_that_grows(
    lm: LanguageModel, cuda: list[_Step], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """As torch does, the end of the capture hides what was raised within it."""
    grows, fixed = kinds(lm)
    wanted = _sampled(grows)

    @contextmanager
    def capture(_graph: object, **_given: object) -> Iterator[None]:
        yield
        raise RuntimeError("operation failed due to a previous error during capture") from error

    monkeypatch.setattr(torch.cuda, "graph", capture)
    found = _sampled(fixed)
    assert torch.equal(wanted.ids, found.ids)
    assert torch.equal(wanted.old_logprobs, found.old_logprobs)
    assert (fixed.fixed, fixed.fixed_steps, fixed_cache._failed) == (False, {}, True)
    (said,) = fixed.remarks
    fixed.remarks.clear()
    assert ("memory is short" in said) == isinstance(error, torch.OutOfMemoryError)
    assert "\n" not in said
    _sampled(fixed, length=3)
    assert (len(cuda), fixed.remarks) == (4, []), "nothing more to say"
    fixed.fixed = True
    _sampled(fixed)
    assert (len(cuda), fixed.fixed) == (4, False), "nothing is captured again"


def test_whoever_asks_while_others_are_sampled_gets_memory_of_their_own(lm: LanguageModel) -> None:
    grows, fixed = kinds(lm)
    wanted = _sampled(grows, length=9)
    stream = _sampling(fixed, length=9)
    next(stream)
    _sampled(fixed, length=9, seed=8)
    assert torch.equal(wanted.ids, _rest(stream).ids)
    assert len(fixed.fixed_steps) == 1


@pytest.mark.usefixtures("cuda")
def test_waiting_steps_take_a_share_of_the_memory_at_most(lm: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    _, fixed = kinds(lm)
    _sampled(fixed, generations=3)
    (step,) = fixed.fixed_steps.values()
    share = 2 * step.bytes
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (0, fixed_cache.SHARE * share))
    for generations in (2, 3, 4):
        _sampled(fixed, generations=generations)
    assert len(fixed.fixed_steps) == 1, "four answers' memory and three answers' are more"
    _sampled(fixed, generations=1)
    assert len(fixed.fixed_steps) == 2


@pytest.mark.usefixtures("cuda")
def test_warming_up_needs_no_place_that_sampling_does_not_need(
    lm: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU does not survive an index behind the last place."""
    grows, fixed = kinds(lm)
    monkeypatch.setattr(fixed_cache, "BUCKET", 1)
    assert torch.equal(_sampled(grows, length=1).ids, _sampled(fixed, length=1).ids)


def test_what_broken_weights_left_in_the_cache_is_not_read_after_an_undo(lm: LanguageModel) -> None:
    grows, fixed = kinds(lm)
    fixed.agreed = 10_000
    grows.end_ids = fixed.end_ids = frozenset({2})
    wanted, good = _sampled(grows, length=9), copy.deepcopy(fixed.policy.state_dict())
    with torch.no_grad():
        for parameter in fixed.policy.parameters():
            parameter.fill_(torch.nan)
    assert _sampled(fixed, length=9).old_logprobs.isnan().all()
    fixed.policy.load_state_dict(good)
    found = _sampled(fixed, length=9)
    assert len(fixed.fixed_steps) == 1
    assert torch.equal(wanted.ids, found.ids)


def test_a_step_that_is_wrong_is_left_for_the_cache_that_grows(
    lm: LanguageModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle(lm)
    assert not lm.fixed, "it is of no use to a CPU"
    lm.fixed, lm.agreed = True, 0
    right = _Step._compute

    def wrong(step: _Step) -> None:
        right(step)
        step.logits += torch.arange(VOCABULARY)

    monkeypatch.setattr(_Step, "_compute", wrong)
    batch = _sampled(lm)
    assert (lm.fixed, lm.cached) == (False, True)
    assert not lm.fixed_steps, "its memory is free"
    full = _together(lm, batch.tokens())
    torch.testing.assert_close(batch.old_logprobs[batch.mask], full[batch.mask], atol=1e-5, rtol=1e-5)


WHOLE = "qwen3", "gpt-neox", "phi3"
"""Their caches have keys and values for every place."""


@pytest.mark.parametrize("name", [*WHOLE, "mistral", "gemma3", "lfm2"])
def test_other_caches_are_not_taken_for_it(name: str) -> None:
    model = small(name)
    tokens, whole = _small_batch(model), name in WHOLE
    model.passes = "by_length"
    why_not = _why_not(model, tokens, _with_gradient(model, tokens)[0], 1e-4, Fixed)
    assert (why_not == "") == whole
    assert whole or choice("Small", why_not).endswith(f"of fixed size: {why_not}")


def test_the_log_says_why_a_model_is_not_sampled_from_a_fixed_cache() -> None:
    model = small("mistral")
    tokens = _small_batch(model)
    model.passes = "by_length"
    exact = _with_gradient(model, tokens)[0]
    raised = _why_not(model, tokens, exact, 1e-4, Fixed)
    assert raised == "NotImplementedError: a cache with a DynamicSlidingWindowLayer"
    off = _why_not(model, tokens, exact + 0.25, 1e-4, Cached)
    assert off == "its log-probabilities are up to 0.25 nats off, and 0.0001 are allowed"


def test_weights_without_probabilities_say_nothing_about_the_ways_to_sample(lm: LanguageModel) -> None:
    settle(lm)
    good = copy.deepcopy(lm.policy.state_dict())
    with torch.no_grad():
        for parameter in lm.policy.parameters():
            parameter.fill_(torch.nan)
    assert _sampled(lm, length=9).old_logprobs.isnan().any()
    assert (lm.passes, lm.cached, lm.remarks) == ("tree", True, [])
    lm.policy.load_state_dict(good)
    _sampled(lm, length=9)
    assert lm.agreed > 9, "they are compared once there are some"
