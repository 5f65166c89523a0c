"""Episodes with an environment: whose tokens are whose, what is learned from, and what a reward function is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.batch import Prompts
from rlplay.engine.driver import Driver
from rlplay.engine.episodes import messages
from rlplay.engine.model import load_model
from rlplay.engine.passes import score_tokens
from rlplay.engine.sample import sample
from rlplay.engine.state import Halt
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks import load_task
from rlplay.tasks.guess import GUESSES, PROMPT, answer, guessed, quick
from rlplay.tasks.task import Example, chat
from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled, Scored, Stepped


def played(examples: list[Example], environment: Any, length: int = 60) -> tuple[Any, Any]:
    """The pocket model and four episodes of each example."""
    lm = load_model("pocket", torch.device("cpu"))
    sampling = sample(
        lm, Prompts.of(lm, examples), generations=4, length=length, temperature=1.0, keep=3, seed=1, update=1,
        environment=environment,
    )  # fmt: skip
    while True:
        try:
            next(sampling)
        except StopIteration as finished:
            return lm, finished.value


def test_an_episode_is_what_the_chat_template_makes_of_its_messages() -> None:
    examples = load_task("guess").train[:4]
    lm, batch = played(examples, answer)
    several = 0
    for row in range(16):
        example = examples[int(batch.group[row])]
        conversation = messages(lm, batch, row)
        turns = [m["content"] for m in conversation if m["role"] == "assistant"]
        if bool(batch.truncated[row]):
            continue
        several += len(turns) > 1
        assert [m["role"] for m in conversation] == ["assistant", "user"] * (len(turns) - 1) + ["assistant"]
        for k in range(1, len(turns)):
            assert conversation[2 * k - 1]["content"] == answer(example, turns[:k])
        assert answer(example, turns) is None
        whole = lm.tokenizer.apply_chat_template([*example.prompt, *conversation], tokenize=False)
        ids = lm.prompt_ids(example) + batch.ids[row, : batch.lengths[row]].tolist()
        assert lm.tokenizer.decode(ids) == whole
        own = batch.ids[row][batch.mask[row]].tolist()
        assert lm.decode(own) == "".join(turns)
    assert several > 3


def test_the_log_probabilities_of_an_episode_are_those_of_a_pass_over_it() -> None:
    lm, batch = played(load_task("guess").train[:4], answer)
    logprobs, _ = score_tokens(lm, lm.policy, batch.tokens(), batch.top_ids, 1.0)
    torch.testing.assert_close(
        logprobs[batch.completion_mask], batch.old_logprobs[batch.completion_mask], atol=1e-4, rtol=1e-4
    )


def test_only_the_models_own_words_are_learned_from(tmp_path: Path) -> None:
    scenario = Scenario(
        name="guess", title="", question="", task="guess", eval_every=1, eval_prompts=4, max_updates=2,
        settings={"algorithm": "ppo", "num_prompts": 4, "num_generations": 4, "max_completion_length": 60,
                  "reward_weights": {"quick": 1.0}, "num_iterations": 2, "beta": 0.1, "kl_placement": "loss"},
    )  # fmt: skip
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(tmp_path / "run.rlplay"), device="cpu", threads=1), records.append)
    driver.load(lambda what, fraction: None)
    driver.advance("update", 1, lambda: False)
    driver.close()
    sampled = next(r for r in records if isinstance(r, Sampled) and r.done)
    credited = next(r for r in records if isinstance(r, Credited))
    scored = next(r for r in records if isinstance(r, Scored))
    own = sampled.mask == 1
    assert 0 < own.sum() < len(own)
    for values in (credited.advantages, credited.token_rewards, credited.returns):
        assert not values[~own].any()
    for a, b, reward in zip(sampled.offsets[:-1], sampled.offsets[1:], scored.rewards, strict=True):
        last = a + np.flatnonzero(own[a:b])[-1]
        assert credited.token_rewards[last] == pytest.approx(reward)
        assert credited.token_rewards[a:b].sum() == pytest.approx(reward)
    for step in (r for r in records if isinstance(r, Stepped)):
        mine = np.concatenate([own[sampled.offsets[i] : sampled.offsets[i + 1]] for i in step.rows])
        assert not step.dloss_dlogp[~mine].any()
        assert step.dloss_dlogp[mine].any()
    finished = next(r for r in records if isinstance(r, Finished))
    assert finished.metrics["num_tokens"] == own.sum()
    assert finished.metrics["entropy"] == pytest.approx(sampled.entropy[own].mean(), rel=1e-5)
    assert finished.metrics["entropy"] != pytest.approx(sampled.entropy.mean(), rel=1e-2)


def test_a_failing_environment_halts_the_run_with_its_message() -> None:
    def broken(example: Example, turns: list[str]) -> str | None:
        raise KeyError("secret")

    with pytest.raises(Halt, match="environment failed: KeyError: 'secret'"):
        played([Example(chat(PROMPT), {})], broken)


def test_plain_text_has_no_turns() -> None:
    with pytest.raises(Halt, match="chat messages"):
        played([Example("I have a number", {})], lambda example, turns: "Higher.", length=200)


def test_the_environment_of_the_guessing_game() -> None:
    example = Example(chat(PROMPT), {"secret": 7})
    assert [answer(example, [word]) for word in ("3", "9", "7", "well")] == ["Higher.", "Lower.", None, "Say a number."]
    assert answer(example, ["1"] * GUESSES) is None

    def episode(*turns: str) -> list[dict[str, str]]:
        return [{"role": "assistant", "content": turn} for turn in turns]

    completions = [episode("7"), episode("3", "7"), episode("3", "4"), episode("none")]
    assert guessed([], completions, [7] * 4) == [1.0, 1.0, 0.0, 0.0]
    assert quick([], completions, [7] * 4) == pytest.approx([1.0, 0.8, 0.0, 0.0])
