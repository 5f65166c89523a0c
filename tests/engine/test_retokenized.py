"""Turns that are tokenized again: against the whole conversation as the chat template and the tokenizer write it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlplay.algorithms.apply import resolve
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.driver import Driver
from rlplay.engine.episodes import messages, turns
from rlplay.engine.model import LanguageModel, load_model
from rlplay.engine.passes import score_tokens
from rlplay.engine.retokenized import retokenize
from rlplay.engine.sample import sample
from rlplay.engine.state import Halt
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks import load_task
from rlplay.tasks.task import Example, Task, chat
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Stepped
from rlplay.trusted import follow

MARKS = ["<pad>", "<|user|>", "<|assistant|>", "<|end|>"]
THINKING = ["<think>", "</think>"]
PLAIN = (
    "{% for m in messages %}{{ '<|assistant|>' if m.role == 'assistant' else '<|user|>' }}{{ m.content }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
STRIPPING = PLAIN.replace(
    "{{ m.content }}",
    "{{ m.content if loop.last or m.role != 'assistant' else m.content.split('</think>')[-1] }}",
)
ENVIRONMENT = """
def answer(example, turns):
    return None if len(turns) > 2 else "cab"

def longer(completions, **columns):
    return [float(sum(len(m["content"]) for m in c if m["role"] == "assistant") % 5) for c in completions]
"""


def answer(turns: list[str]) -> str | None:
    return None if len(turns) > 2 else "cab"


def reward(completions: list[Any], **_columns: Any) -> list[float]:
    """What was said decides, thinking included."""
    return [float(sum(len(m["content"]) for m in c if m["role"] == "assistant")) for c in completions]


def bpe_model(folder: Path, template: str) -> Path:
    """An untrained model whose tokenizer has three ways to write "abc": a b c, ab c and abc."""
    pieces = ["a", "b", "c", "ab", "abc", "ca"]
    backend = Tokenizer(
        models.BPE(
            vocab={piece: i for i, piece in enumerate(pieces)}, merges=[("a", "b"), ("ab", "c"), ("c", "a")],
            fuse_unk=False,
        )
    )  # fmt: skip
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", eos_token="<|end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS[1:3]})
    tokenizer.add_tokens(THINKING)
    tokenizer.chat_template = template
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        initializer_range=0.3, max_position_embeddings=128,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    ends = tokenizer.convert_tokens_to_ids("<|end|>")
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def a_state(lm: LanguageModel, task: Task, **settings: Any) -> Any:
    chosen = resolve({"retokenize_turns": True, "max_completion_length": 60, **settings})
    lm.run_as(chosen)
    return SimpleNamespace(lm=lm, settings=chosen, task=task, reward_model=None, update=0, max_updates=1)


def sampled(state: Any) -> Batch:
    prompts = Prompts.of(state.lm, state.task.train[:2] or [Example(chat("abcab"), {}), Example(chat("b"), {})])
    sampling = sample(
        state.lm, prompts, generations=30, length=60, temperature=1.0, keep=3, seed=3, update=1,
        environment=state.task.environment,
    )  # fmt: skip
    while True:
        try:
            next(sampling)
        except StopIteration as finished:
            return finished.value


def conversation(batch: Batch) -> list[tuple[list[int], list[bool], list[float]]]:
    """Ids, which are sampled, and what was reported of them, of every completion."""
    reported = batch.old_logprobs if batch.sampling_logprobs is None else batch.sampling_logprobs
    return [
        (batch.ids[n, :length].tolist(), batch.mask[n, :length].tolist(), reported[n, :length].tolist())
        for n, length in enumerate(batch.lengths.tolist())
    ]


@pytest.mark.parametrize("template", [PLAIN, STRIPPING], ids=["plain", "stripping"])
def test_training_sees_the_conversation_as_template_and_tokenizer_write_it(tmp_path: Path, template: str) -> None:
    lm = load_model(str(bpe_model(tmp_path, template)), torch.device("cpu"))
    state = a_state(lm, Task(train=[], environment=answer, rewards={"reward": reward}))
    batch = sampled(state)
    said = [messages(lm, batch, n) for n in range(60)]
    before, truncated = conversation(batch), batch.truncated.tolist()
    old, entropy = batch.old_logprobs.clone(), batch.entropy.clone()
    retokenize(batch, state)
    changed = lost = own_tokens = compared = 0
    for n, (ids, own, reported) in enumerate(conversation(batch)):
        was, was_own, logprobs = before[n]
        if not truncated[n]:
            example = batch.prompts.examples[int(batch.group[n])]
            whole = lm.tokenizer.apply_chat_template([*example.prompt, *said[n]], tokenize=False)
            wanted = lm.tokenizer(whole, add_special_tokens=False)["input_ids"]
            assert lm.prompt_ids(example) + ids == wanted
            compared += len(list(turns(own))) > 1
        assert len(list(turns(own))) == len(list(turns(was_own)))
        known = [(i, p) for i, mine, p in zip(ids, own, reported, strict=True) if mine and not np.isnan(p)]
        left = iter([(i, p) for i, mine, p in zip(was, was_own, logprobs, strict=True) if mine])
        assert all(each in left for each in known), "what was reported of a token stays with it, in order"
        own_tokens += sum(was_own)
        lost += sum(was_own) - len(known)
        changed += ids != was
        if ids == was:
            assert torch.equal(batch.old_logprobs[n, : len(ids)], old[n, : len(ids)])
            assert torch.equal(batch.entropy[n, : len(ids)], entropy[n, : len(ids)])
    assert compared > 10
    assert 10 < changed < 60 + (template == STRIPPING)
    assert batch.retokenized == {
        "retokenized/answers": pytest.approx(changed / 60), "retokenized/tokens": pytest.approx(lost / own_tokens),
    }  # fmt: skip
    assert any(np.isnan(reported).any() for *_, reported in conversation(batch))


def test_log_probabilities_entropy_and_candidates_are_the_policys_of_the_new_tokens(tmp_path: Path) -> None:
    lm = load_model(str(bpe_model(tmp_path, STRIPPING)), torch.device("cpu"))
    state = a_state(lm, Task(train=[], environment=answer, rewards={"reward": reward}))
    batch = sampled(state)
    retokenize(batch, state)
    inside = batch.completion_mask
    logprobs, top = score_tokens(lm, lm.policy, batch.tokens(), batch.top_ids, 1.0)
    torch.testing.assert_close(batch.old_logprobs[inside], logprobs[inside], atol=1e-5, rtol=0)
    torch.testing.assert_close(batch.top_logprobs[inside], top[inside], atol=1e-5, rtol=0)
    assert (batch.top_logprobs[inside].diff(dim=-1) <= 0).all()
    for n in range(0, 60, 7):
        prompt, length = batch.prompts.row(int(batch.group[n])), int(batch.lengths[n])
        with torch.no_grad():
            logits = lm.policy(input_ids=torch.tensor([prompt + batch.ids[n, :length].tolist()])).logits[0]
        whole = logits[len(prompt) - 1 : -1].double().log_softmax(-1)
        wanted = -(whole.exp() * whole).sum(-1).float()
        torch.testing.assert_close(batch.entropy[n, :length], wanted, atol=1e-5, rtol=0)


def test_a_template_that_strips_thinking_stops_a_run_that_trains_on_what_was_sampled(tmp_path: Path) -> None:
    lm = load_model(str(bpe_model(tmp_path, STRIPPING)), torch.device("cpu"))
    state = a_state(lm, Task(train=[], environment=answer), retokenize_turns=False)
    with pytest.raises(Halt, match=r"rewrites earlier turns.*retokenize_turns"):
        sampled(state)


def test_what_a_tokenizer_writes_in_one_way_stays(tmp_path: Path) -> None:
    lm, task = load_model("pocket", torch.device("cpu")), load_task("guess")
    state = a_state(lm, task)
    batch = sampled(state)
    before = batch.ids
    retokenize(batch, state)
    assert batch.ids is before
    assert batch.sampling_logprobs is None
    assert batch.retokenized == {"retokenized/answers": 0.0, "retokenized/tokens": 0.0}


@pytest.mark.parametrize(
    "settings", [{}, {"importance_sampling_mode": "token_truncate"}, {"dynamic_sampling": True}, {"sampler_lag": 1}]
)
def test_a_run_trains_on_the_new_tokens_and_repeats_itself(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "env.py").write_text(ENVIRONMENT)
    follow([str(tmp_path / "env.py")])
    given = {"num_prompts": 3, "num_generations": 4, "max_completion_length": 40, "retokenize_turns": True}
    scenario = Scenario(
        name="x", title="", question="", model=str(bpe_model(tmp_path / "model", STRIPPING)), eval_every=0,
        dataset=str(tmp_path / "data.jsonl"), environment=f"{tmp_path}/env.py:answer", max_updates=3,
        reward=[f"{tmp_path}/env.py:longer"], settings={"algorithm": "grpo", **given, **settings},
    )  # fmt: skip
    (tmp_path / "data.jsonl").write_text(
        "".join(json.dumps({"prompt": chat(p)}) + "\n" for p in ("abc", "ab", "ca", "b"))
    )
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(tmp_path / "run.rlplay"), device="cpu", threads=1), records.append)
    driver.load(lambda what, fraction: None)
    driver.advance("update", 2, lambda: False)
    first = [r for r in records if isinstance(r, Credited)]
    driver.rewind(1)
    driver.advance("update", 1, lambda: False)
    driver.close()
    again = [r for r in records if isinstance(r, Credited)][-1]
    np.testing.assert_array_equal(again.advantages, first[1].advantages)
    done = next(r for r in records if isinstance(r, Sampled) and r.done)
    assert done.sampling_logprobs is not None
    assert np.isnan(done.sampling_logprobs[done.mask == 1]).any()
    assert not np.isnan(done.old_logprobs).any()
    step = next(r for r in records if isinstance(r, Stepped))
    np.testing.assert_allclose(step.importance_ratio[done.mask == 1], 1, atol=1e-4)
    assert np.isfinite(step.dloss_dlogp).all()
    metrics = next(r for r in records if isinstance(r, Finished)).metrics
    assert 0 < metrics["retokenized/tokens"] < metrics["retokenized/answers"] <= 1
    assert not [name for name, value in metrics.items() if np.isnan(value)]
