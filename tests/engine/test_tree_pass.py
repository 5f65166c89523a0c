"""Passes over a tree of beginnings: the same numbers and gradients, from fewer tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface

from rlplay.engine import passes, tree_pass
from rlplay.engine.batch import Prompts, TokenBatch
from rlplay.engine.driver import Driver
from rlplay.engine.model import Kind, LanguageModel
from rlplay.engine.passes import distributions, forward, token_logprobs
from rlplay.trace.records import AnyRecord, Finished, Sampled
from tests.engine import architectures
from tests.engine.teachers.asking import in_float64
from tests.engine.test_update import only
from tests.engine.trees import before_each

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def _alike() -> TokenBatch:
    """Answers of two words to prompts that begin alike: many begin alike, and some are the same."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(3, 5, (24, 7), generator=generator)
    ids[1], ids[9] = ids[0], ids[8]
    prompts = torch.tensor([[9, 9, 5, 6, 7], [5, 6, 7, 8, 3], [9, 5, 6, 7, 8]])
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]])
    lengths = torch.randint(1, 8, (24,), generator=generator)
    lengths[1], lengths[9] = lengths[0], lengths[8]
    return TokenBatch(Prompts([], prompts, mask), torch.arange(24) // 8, ids, lengths)


def _model(architecture: str) -> LanguageModel:
    policy = architectures.make(architecture, 40, bos_token_id=1, eos_token_id=2, pad_token_id=2).eval().double()
    return LanguageModel(policy, policy, None, torch.device("cpu"), frozenset({2}))


def _found(lm: LanguageModel, kind: Kind, again: bool = False) -> tuple[Tensor, list[Tensor]]:
    """Log-probabilities and the gradient of some function of them that weighs every token differently."""
    lm.passes, lm.checkpointing, lm.cacheless, tokens = kind, again, kind, _alike()
    weights = torch.rand(tokens.ids.shape, generator=torch.Generator().manual_seed(1)).double()
    inside = torch.arange(7) < tokens.lengths[:, None]
    logprobs = token_logprobs(lm, lm.policy, tokens, 0.7).where(inside, 0.0)
    gradients = torch.autograd.grad((logprobs * weights).sum(), list(lm.policy.parameters()), allow_unused=True)
    return logprobs.detach(), [gradient for gradient in gradients if gradient is not None]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt-neox", "opt", "mistral", "gemma3", "qwen3"])
def test_numbers_and_gradients_are_those_of_a_pass_over_every_sequence(architecture: str, again: bool) -> None:
    lm = _model(architecture)
    (one, slopes), (other, wanted) = _found(lm, "tree", again), _found(lm, "by_length")
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)
    largest = max(float(slope.abs().max()) for slope in wanted)
    for found, slope in zip(slopes, wanted, strict=True):
        torch.testing.assert_close(found, slope, atol=1e-6 * largest, rtol=0)


def test_answers_that_are_the_same_have_the_same_numbers_bit_for_bit() -> None:
    lm, tokens = _model("llama"), _alike()
    lm.policy.float()
    lm.passes = "tree"
    with torch.no_grad():
        found, whole = token_logprobs(lm, lm.policy, tokens, 1.0), distributions(lm, lm.policy, tokens, 1.0)
    for one, other in ((0, 1), (8, 9)):
        n = int(tokens.lengths[one])
        assert torch.equal(found[one, :n], found[other, :n])
        assert torch.equal(whole[one, :n], whole[other, :n])
    assert not torch.equal(whole[0, 0], whole[8, 0]), "their prompts differ"


def test_every_distinct_beginning_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, tokens, seen = _model("llama"), _alike(), list[int]()
    lm.policy.register_forward_pre_hook(
        lambda _module, _given, named: seen.append(named["input_ids"].shape[1]), with_kwargs=True
    )
    every, before = set(), set()
    for group, ids, length in zip(tokens.group.tolist(), tokens.ids.tolist(), tokens.lengths.tolist(), strict=True):
        prompt = tokens.prompts.ids[group][tokens.prompts.mask[group].bool()].tolist()
        whole = prompt + ids[: length - 1]
        every |= {tuple(whole[: n + 1]) for n in range(len(whole))}
        before |= {tuple(whole[: n + 1]) for n in range(len(prompt) - 1, len(whole))}
    lm.passes = "tree"
    (chunk,) = forward(lm, lm.policy, tokens)
    assert chunk.logits.shape == (len(before), 40)
    assert len(every) <= seen[0] < len(every) + 8, "blocks are filled up"
    assert len(every) < int(tokens.lengths.sum()) / 1.5


def test_long_answers_of_few_words_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask has a number for every token and key, however small the vocabulary is."""
    lm, tokens = _model("llama"), _alike()
    lm.passes = "tree"
    assert len(list(forward(lm, lm.policy, tokens))) == 1
    wide = TokenBatch(tokens.prompts, tokens.group, tokens.ids.repeat(1, 6), tokens.lengths + 35)
    monkeypatch.setattr(passes, "_MASKED", 24 * 42 * 40)
    parts = list(forward(lm, lm.policy, wide))
    assert sorted(row for part in parts for row in part.rows.tolist()) == list(range(24))
    assert len(parts) == 2


def test_an_update_lays_its_batch_out_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the reference, the optimizer step and the look after it."""
    driver, _ = start(algorithm="grpo", beta=0.1, num_iterations=1, num_minibatches=1)
    driver.advance("update", 1, lambda: False)
    laid_out, trees, count = tree_pass._laid_out, list[int](), list[int]()
    before_each(monkeypatch, count.append)
    monkeypatch.setattr(tree_pass, "_laid_out", lambda *given: trees.append(1) or laid_out(*given))
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert len(count) == 3
    assert len(trees) == 1


def test_a_pass_that_fails_leaves_attention_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, before = _model("llama"), AttentionInterface()["sdpa"]
    lm.passes = "tree"

    def fails(*_given: Any, **_named: Any) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(tree_pass, "_fetched", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        list(forward(lm, lm.policy, _alike()))
    assert AttentionInterface()["sdpa"] is before


@pytest.mark.parametrize("algorithm", ["grpo", "ppo", "trpo", "dpo", "kto", "reward-model", "reinforce++"])
@pytest.mark.usefixtures("opinionated")
def test_updates_are_the_same_in_passes_of_both_kinds(start: Start, algorithm: str) -> None:
    found = {}
    for kind in ("tree", "shared"):
        driver, records = start(run=f"{kind}.rlplay", algorithm=algorithm)
        lm = driver._state.lm
        lm.passes = kind
        in_float64(driver)
        before = {name: p.detach().clone() for name, p in lm.policy.named_parameters()}
        driver.advance("update", 1, lambda: False)
        driver.close()
        steps = [p.detach() - before[name] for name, p in lm.policy.named_parameters()]
        found[kind] = records, torch.cat([step.flatten() for step in steps])
    (one, step), (other, wanted) = found["tree"], found["shared"]
    assert [list(r.token_ids) for r in only(Sampled, one)] == [list(r.token_ids) for r in only(Sampled, other)]
    assert float((step - wanted).norm()) <= 1e-4 * float(wanted.norm())
    for mine, theirs in zip(only(Finished, one), only(Finished, other), strict=True):
        assert mine.metrics == pytest.approx(theirs.metrics, rel=1e-4, abs=1e-6)


def test_attention_that_a_tree_cannot_give_is_refused() -> None:
    lm = _model("llama")
    tree = tree_pass.of(_alike(), lm.policy.get_input_embeddings().weight)
    assert tree is not None
    states = torch.zeros(1, 4, tree.ids.shape[1], 8)
    with tree_pass._attending(tree):
        attention = AttentionInterface()["sdpa"]
        found, _ = attention(None, states, states, states, None)
        assert found.shape == (1, tree.ids.shape[1], 4, 8)
        for fewer, given in (
            (states, {"softcap": 30.0}), (states, {"position_bias": states}), (states[:, :, :-1], {}),
            (states.repeat(2, 1, 1, 1), {}),
        ):  # fmt: skip
            with pytest.raises(NotImplementedError, match="attention in a tree"):
                attention(None, fewer, fewer, fewer, None, **given)


@pytest.mark.parametrize("again", [False, True])
def test_texts_that_make_no_good_tree_are_read_in_another_way(monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    lm = _model("llama")
    lm.passes, lm.cacheless = "tree", "tree"
    tokens = _alike()
    wanted = token_logprobs(lm, lm.policy, tokens, 1.0)
    lm.checkpointing = again
    monkeypatch.setattr(tree_pass, "shape_of", lambda _tree: None)
    monkeypatch.setattr(tree_pass, "run", None)
    tokens.prompts.trees.clear()
    found = token_logprobs(lm, lm.policy, tokens, 1.0)
    inside = torch.arange(found.shape[1]) < tokens.lengths[:, None]
    torch.testing.assert_close(found[inside], wanted[inside], atol=1e-5, rtol=1e-5)
