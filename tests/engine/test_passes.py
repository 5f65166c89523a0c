"""Log-probabilities and gradients of the fast passes, against one sequence at a time in float64."""

from __future__ import annotations

import copy
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from rlplay.engine import passes
from rlplay.engine.agreement import settle
from rlplay.engine.batch import Prompts, TokenBatch
from rlplay.engine.model import Kind, LanguageModel
from rlplay.engine.passes import forward, score_tokens, score_with_favourites, token_logprobs
from rlplay.engine.sample import sample
from rlplay.engine.teacher_forcing import observed

VOCABULARY, TEMPERATURE = 61, 0.8


def _model(name: str) -> Any:
    torch.manual_seed(1)
    sizes = {
        "vocab_size": VOCABULARY,
        "initializer_range": 0.3,
        "eos_token_id": 2,
        "bos_token_id": 1,
        "pad_token_id": 2,
    }
    if name == "gpt2":
        return GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, **sizes))
    sizes |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"intermediate_size": 48, "max_position_embeddings": 64}
    return LlamaForCausalLM(LlamaConfig(**sizes)) if name == "llama" else Qwen2ForCausalLM(Qwen2Config(**sizes))


@pytest.fixture(params=["llama", "gpt2", "qwen2"])
def lm(request: pytest.FixtureRequest) -> LanguageModel:
    policy = _model(request.param).eval()
    return LanguageModel(policy, policy, None, torch.device("cpu"), frozenset({2}))


def _tokens() -> TokenBatch:
    generator = torch.Generator().manual_seed(5)
    mask = torch.ones(3, 7, dtype=torch.long)
    mask[0, :4] = 0
    mask[2, :1] = 0
    ids = torch.randint(3, VOCABULARY, (3, 7), generator=generator)
    lengths = torch.tensor([6, 1, 3, 5, 2, 6, 4, 4, 1, 6, 3, 2, 5, 5, 6, 2, 3, 1])
    group = torch.arange(3).repeat_interleave(6)
    return TokenBatch(
        Prompts([], ids, mask), group, torch.randint(3, VOCABULARY, (18, 6), generator=generator), lengths
    )


def _alone(model: Any, tokens: TokenBatch) -> list[Tensor]:
    """Each completion after its prompt, no padding: the log-probability of each of its tokens."""
    every = zip(_distributions(model, tokens), tokens.ids, strict=True)
    return [logprobs.gather(-1, ids[: len(logprobs), None])[:, 0] for logprobs, ids in every]


def _distributions(model: Any, tokens: TokenBatch, temperature: float = TEMPERATURE) -> list[Tensor]:
    """As `_alone`, of every token of the vocabulary [l, V]."""
    result = []
    for g, ids, n in zip(tokens.group.tolist(), tokens.ids, tokens.lengths.tolist(), strict=True):
        prompt = tokens.prompts.ids[g][tokens.prompts.mask[g].bool()]
        logits = model(input_ids=torch.cat([prompt, ids[:n]])[None]).logits[0, len(prompt) - 1 : -1]
        result.append((logits / temperature).log_softmax(-1))
    return result


def _together(lm: LanguageModel, tokens: TokenBatch) -> Tensor:
    return token_logprobs(lm, lm.policy, tokens, TEMPERATURE)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_batched_pass_gives_each_sequence_its_own_numbers(lm: LanguageModel, kind: Kind) -> None:
    lm.passes, tokens = kind, _tokens()
    logprobs = _together(lm, tokens)
    inside = torch.arange(6) < tokens.lengths[:, None]
    weight = next(p for p in lm.policy.parameters() if p.dim() == 2)
    (gradient,) = torch.autograd.grad((logprobs * inside).sum(), weight)

    exact = _model(lm.policy.config.model_type).eval().double()
    alone = _alone(exact, tokens)
    expected = torch.zeros(18, 6, dtype=torch.double)
    for i, row in enumerate(alone):
        expected[i, : len(row)] = row.detach()
    torch.testing.assert_close((logprobs * inside).double(), expected, atol=1e-5, rtol=1e-5)
    (wanted,) = torch.autograd.grad(torch.cat(alone).sum(), next(p for p in exact.parameters() if p.dim() == 2))
    torch.testing.assert_close(gradient.double(), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_value_head_reads_the_last_hidden_state_before_each_token(lm: LanguageModel, kind: Kind) -> None:
    lm.passes, tokens = kind, _tokens()
    with torch.no_grad():
        for chunk in forward(lm, lm.policy, tokens, hidden=True):
            assert chunk.hidden is not None
            for row, hidden in zip(chunk.rows.tolist(), chunk.spread(chunk.hidden), strict=True):
                prompt = tokens.prompts.ids[tokens.group[row]][tokens.prompts.mask[tokens.group[row]].bool()]
                ids = torch.cat([prompt, tokens.ids[row, : tokens.lengths[row]]])[None]
                alone = lm.policy(input_ids=ids, output_hidden_states=True).hidden_states[-1][0, len(prompt) - 1 : -1]
                torch.testing.assert_close(hidden[: len(alone)], alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_no_chunk_has_more_logits_than_fit(lm: LanguageModel, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    lm.passes, tokens, most = kind, _tokens(), 4 * 6 * VOCABULARY
    monkeypatch.setattr(passes, "LOGITS_AT_ONCE", most)
    chunks = list(forward(lm, lm.policy, tokens))
    largest = max(chunk.logits.numel() for chunk in chunks)
    assert largest <= most if kind == "tree" else largest == most
    assert sorted(torch.cat([chunk.rows for chunk in chunks]).tolist()) == list(range(18))
    prompts = [set(tokens.prompts.mask.sum(-1)[tokens.group[chunk.rows]].tolist()) for chunk in chunks]
    assert (max(map(len, prompts)) == 1) == (kind == "by_length")


@pytest.mark.parametrize("kind", get_args(Kind))
def test_more_padding_before_the_prompts_changes_nothing(lm: LanguageModel, kind: Kind) -> None:
    lm.passes, tokens = kind, _tokens()
    inside = torch.arange(6) < tokens.lengths[:, None]
    found = [_together(lm, tokens)[inside]]
    for extra in (1, 5):
        ids, mask = tokens.prompts.ids, tokens.prompts.mask
        prompts = Prompts(
            [], torch.nn.functional.pad(ids, (extra, 0), value=9), torch.nn.functional.pad(mask, (extra, 0))
        )
        found.append(_together(lm, TokenBatch(prompts, tokens.group, tokens.ids, tokens.lengths))[inside])
        torch.testing.assert_close(found[0], found[-1], atol=1e-5, rtol=1e-5)


def test_sharing_is_found_to_work_and_a_model_that_cannot_is_found_out(lm: LanguageModel) -> None:
    settle(lm)
    assert (lm.passes, lm.cached, lm.cacheless) == ("tree", True, "tree")

    class Forgetful:
        """Answers as its model does, but loses the cache it is handed, and knows masks of tokens alone."""

        def __init__(self, model: Any) -> None:
            self.model = model

        def __getattr__(self, name: str) -> Any:
            return getattr(self.model, name)

        def __call__(self, past_key_values: Any = None, attention_mask: Any = None, **inputs: Any) -> Any:
            if attention_mask is not None and attention_mask.dim() != 2:
                raise ValueError("which token is masked?")
            if past_key_values is not None:
                attention_mask = attention_mask[:, -inputs["input_ids"].shape[1] :]
            return self.model(attention_mask=attention_mask, **inputs)

    lm.policy = Forgetful(lm.policy)
    settle(lm)
    assert (lm.passes, lm.cached) == ("padded", False)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_likeliest_token_is_that_of_each_sequence_alone(lm: LanguageModel, kind: Kind) -> None:
    lm.passes, tokens = kind, _tokens()
    top = torch.randint(VOCABULARY, (*tokens.ids.shape, 3), generator=torch.Generator().manual_seed(2))
    plain = score_tokens(lm, lm.policy, tokens, top, TEMPERATURE)
    *same, favourites, best = score_with_favourites(lm, lm.policy, tokens, top, TEMPERATURE)
    for one, other in zip(plain, same, strict=True):
        assert torch.equal(one, other)
    with torch.no_grad():
        every = _distributions(copy.deepcopy(lm.policy).double(), tokens)
    for row, logprobs in enumerate(every):
        found, n = favourites[row][: len(logprobs)], len(logprobs)
        assert torch.equal(found, logprobs.argmax(-1))
        torch.testing.assert_close(best[row, :n].double(), logprobs.amax(-1), atol=1e-5, rtol=0)


def _sampled(lm: LanguageModel, **changes: Any) -> Any:
    return _rest(_sampling(lm, **changes))


def _sampling(lm: LanguageModel, **changes: Any) -> Any:
    given = {"generations": 6, "length": 6, "temperature": TEMPERATURE, "keep": 4, "seed": 3, "update": 1} | changes
    return sample(lm, _tokens().prompts, **given)


def _rest(stream: Any) -> Any:
    while True:
        try:
            next(stream)
        except StopIteration as done:
            return done.value


def test_sampled_logprobs_are_those_of_the_full_pass_and_sampling_repeats_itself(lm: LanguageModel) -> None:
    batch, again = _sampled(lm), _sampled(lm)
    assert torch.equal(batch.ids, again.ids)
    assert torch.equal(batch.old_logprobs, again.old_logprobs)
    assert not torch.equal(batch.ids, _sampled(lm, update=2).ids)
    full = _together(lm, batch.tokens())
    torch.testing.assert_close(batch.old_logprobs[batch.mask], full[batch.mask], atol=1e-5, rtol=1e-5)
    top = batch.top_logprobs[batch.mask]
    assert bool((top[:, :-1] >= top[:, 1:]).all())


def test_answers_whoever_wrote_them_are_read_at_temperature_1(lm: LanguageModel) -> None:
    batch = observed(lm, _sampled(lm), 3)
    with torch.no_grad():
        every = _distributions(copy.deepcopy(lm.policy).double(), batch.tokens(), 1.0)
    assert batch.temperature == 1
    for row, logprobs in enumerate(every):
        n, best = len(logprobs), logprobs.topk(3, dim=-1)
        own = logprobs.gather(-1, batch.ids[row, :n, None])[:, 0]
        entropy = -(logprobs.exp() * logprobs).sum(-1)
        for found, wanted in ((batch.old_logprobs, own), (batch.entropy, entropy), (batch.top_logprobs, best.values)):
            torch.testing.assert_close(found[row, :n].double(), wanted, atol=1e-5, rtol=1e-5)
        assert torch.equal(batch.top_ids[row, :n], best.indices)


def test_finished_completions_end_with_the_end_token_and_only_unfinished_ones_are_truncated(lm: LanguageModel) -> None:
    lm.end_ids = frozenset(range(0, VOCABULARY, 5))
    batch = _sampled(lm, length=4)
    assert 0 < int(batch.truncated.sum()) < len(batch.lengths)
    for ids, n, cut in zip(batch.ids.tolist(), batch.lengths.tolist(), batch.truncated.tolist(), strict=True):
        assert not any(i in lm.end_ids for i in ids[: n - 1])
        assert cut == (ids[n - 1] not in lm.end_ids)
        assert not cut or n == 4


def test_only_distinct_beginnings_that_go_on_are_computed(lm: LanguageModel) -> None:
    lm.end_ids, lm.agreed = frozenset(range(0, VOCABULARY, 5)), 10_000
    computed: list[int] = []
    hook = lm.policy.register_forward_pre_hook(
        lambda _model, _given, named: computed.append(len(named["input_ids"])), with_kwargs=True
    )
    batch = _sampled(lm, length=9, temperature=0.3)
    hook.remove()
    answers = list(zip(batch.group.tolist(), batch.ids.tolist(), batch.lengths.tolist(), strict=True))
    going = [[(group, *ids[:position]) for group, ids, n in answers if n > position] for position in range(1, 9)]
    distinct = [len(set(beginnings)) for beginnings in going if beginnings]
    assert len(set(distinct)) > 1
    assert distinct[0] < len(going[0])
    if lm.cached:
        assert computed == [len(batch.prompts.ids), *distinct]


def test_tokens_come_out_as_often_as_their_probability_says(lm: LanguageModel) -> None:
    batch = _sampled(lm, generations=3000, length=1, keep=VOCABULARY)
    row = batch.top_ids[0, 0]
    probability = torch.zeros(VOCABULARY).scatter(0, row, batch.top_logprobs[0, 0].exp())
    counts = torch.bincount(batch.ids[:3000, 0], minlength=VOCABULARY)
    expected = probability * 3000
    likely = expected > 5
    chi2 = float(((counts - expected)[likely] ** 2 / expected[likely]).sum())
    assert chi2 < int(likely.sum()) + 4 * (2 * int(likely.sum())) ** 0.5
