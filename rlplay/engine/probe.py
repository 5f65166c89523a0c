"""Questions about any beginning of an answer: what could come next, how it could go on, what that is worth.

Nothing here changes a run: no weights, no settings, and random numbers from streams of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts, candidates
from rlplay.engine.interval import confidence
from rlplay.engine.model import LanguageModel
from rlplay.engine.reward_calls import Completions
from rlplay.engine.sample import ESTIMATES, TAILS, sample
from rlplay.engine.score import graded, totals, weighted, weights_of
from rlplay.engine.slate import Cut
from rlplay.engine.state import State
from rlplay.engine.weights_after import steps_since
from rlplay.tasks.task import Example, chat, heading
from rlplay.trace.questions import (
    AnyProbed,
    Continue,
    Continued,
    Estimate,
    Estimated,
    Peek,
    Peeked,
    Prefix,
    Tail,
    Writer,
)
from rlplay.trace.records import Array

AT_ONCE = 32
"""Answers sampled together for a value, at most: few enough that the estimate is seen to settle."""

Interrupted = Callable[[], bool]


def probe(
    question: Peek | Continue | Estimate, state: State, seed: int, interrupted: Interrupted
) -> Iterator[AnyProbed]:
    """The answers to a question by the `state` as it is: one, of an `Estimate` one after each batch of samples.

    `interrupted` is asked at every decoded position; a value then ends with the samples it has.
    Raises ValueError, one line, if it cannot be answered, and Halt if a reward function fails.
    """
    beginning = Beginning.of(question.prefix, state)
    match question:
        case Peek():
            yield peek(question.prefix, beginning, _at(question.temperature, state))
        case Continue():
            yield go_on(question, beginning, state, seed, interrupted)
        case Estimate():
            yield from estimate(question, beginning, state, seed, interrupted)


def _at(temperature: float | None, state: State) -> State:
    """The state as it would sample at another temperature. Raises ValueError, one line, if that is none."""
    if temperature is None:
        return state
    if not temperature > 0:
        raise ValueError(f"a temperature is above 0; got {temperature}")
    return dataclasses.replace(state, settings=msgspec.structs.replace(state.settings, temperature=temperature))


@dataclasses.dataclass(frozen=True)
class Beginning:
    """A prefix made out: the example it belongs to, its tokens, and why answers to it earn no reward, if so."""

    example: Example
    prompt_ids: list[int]
    answer: list[int]
    unrewarded: str

    @classmethod
    def of(cls, prefix: Prefix, state: State) -> Beginning:
        """Raises ValueError, one line, if the prompt has no tokens or cannot be written as the model reads it."""
        example, known = _example(prefix, state)
        if not isinstance(example.prompt, str) and state.lm.tokenizer.chat_template is None:
            raise ValueError("this model has no chat template; ask it with plain text")
        ids = state.lm.prompt_ids(example)
        if not ids:
            raise ValueError("the prompt is empty; type some text")
        if any(not 0 <= token < state.lm.vocabulary for token in prefix.answer):
            raise ValueError(f"a token id is outside the model's vocabulary of {state.lm.vocabulary}")
        if prefix.text and state.task.environment is not None:
            raise ValueError("an environment wrote a part of this answer, and which is not on record")
        spelled = state.lm.tokenizer(prefix.text, add_special_tokens=False)["input_ids"] if prefix.text else []
        return cls(example, ids, [*prefix.answer, *spelled], _why_unrewarded(state, known))

    @property
    def ids(self) -> list[int]:
        """Prompt and answer so far."""
        return [*self.prompt_ids, *self.answer]

    def room(self, state: State) -> int:
        """Tokens that the answer may still get. Raises ValueError, one line, if there are none."""
        longest = state.settings.max_completion_length
        if self.answer and self.answer[-1] in state.lm.end_ids:
            raise ValueError("the answer has ended; go back to an earlier token")
        if len(self.answer) >= longest:
            raise ValueError(f"the answer is as long as max_completion_length={longest} allows")
        return min(longest - len(self.answer), state.lm.context - len(self.ids))


def _example(prefix: Prefix, state: State) -> tuple[Example, bool]:
    """The run's example with this prompt, else one made of the words; and whether its columns are known."""
    for example in (*state.task.train, *state.task.held_out):
        if heading(example) == prefix.prompt and prefix.columns in (None, example.columns):
            return example, True
    prompt = prefix.prompt if prefix.plain else chat(prefix.prompt)
    return Example(prompt, prefix.columns or {}), prefix.columns is not None


def _why_unrewarded(state: State, known: bool) -> str:
    if state.task.environment is not None:
        return "an episode with an environment can't be continued mid-way"
    if not weights_of(state):
        return "this run has no reward function"
    return "" if known else "it has no columns; = adds them"


def readable(beginning: Beginning, lm: LanguageModel) -> Beginning:
    """The same. Raises ValueError, one line, if it is longer than the model can read."""
    if len(beginning.ids) > lm.context:
        raise ValueError(f"{len(beginning.ids)} tokens are more than the {lm.context} that the model can read")
    return beginning


@torch.no_grad()
def peek(prefix: Prefix, beginning: Beginning, state: State) -> Peeked:
    """The next-token distributions of policy and reference after a prefix, and what they gave its own tokens."""
    lm, answer = state.lm, readable(beginning, state.lm).answer
    own, other = (_logprobs(model, beginning, state) for model in (lm.policy, lm.reference))
    kept = candidates(lm, state.settings)
    likeliest = torch.maximum(own[-1], other[-1]).topk(kept).indices
    top = likeliest[own[-1, likeliest].argsort(descending=True)]
    places = torch.arange(len(answer), device=lm.device), torch.tensor(answer, device=lm.device, dtype=torch.long)
    return Peeked(
        prefix=prefix,
        update=state.update,
        steps=steps_since(state),
        unrewarded=beginning.unrewarded,
        temperature=state.settings.temperature,
        prompt_ids=beginning.prompt_ids,
        answer_ids=answer,
        prompt_texts=lm.texts(beginning.prompt_ids),
        texts=lm.texts(answer),
        pieces={i: lm.piece(i) for i in {*answer, *top.tolist()}},
        probabilities=own[places].exp().tolist(),
        top_ids=top.tolist(),
        top=own[-1, top].exp().tolist(),
        ref_top=other[-1, top].exp().tolist(),
        entropy=_expected(own[-1], -own[-1]),
        ref_entropy=_expected(other[-1], -other[-1]),
        kl=_expected(own[-1], own[-1] - other[-1]),
        ended=bool(answer) and answer[-1] in lm.end_ids,
    )


def _logprobs(model: object, beginning: Beginning, state: State) -> Tensor:
    """Log-probabilities [tokens of the answer + 1, V] of `model` before each of them and after the last."""
    ids = torch.tensor([beginning.ids], device=state.lm.device)
    out = model(input_ids=ids, use_cache=False, logits_to_keep=len(beginning.answer) + 1)  # type: ignore[operator]
    logprobs: Tensor = (out.logits[0].float() / state.settings.temperature).log_softmax(-1)
    return logprobs


def _expected(logprobs: Tensor, values: Tensor) -> float:
    return float((logprobs.exp() * values.clamp(-1e4, 1e4)).sum())


def go_on(question: Continue, beginning: Beginning, state: State, seed: int, interrupted: Interrupted) -> Continued:
    """Tails after a prefix, each with the reward of the whole answer; none if interrupted.

    At most as many as a batch of the run has completions, which is known to fit.
    """
    count = 1 if question.greedy else max(1, min(question.count, _fitting(state)))
    batch = _sampled(
        beginning, state, question.writer, count, interrupted,
        (seed, TAILS, question.draw), greedy=question.greedy,
    )  # fmt: skip
    tails: list[Tail] = []
    if batch is not None:
        rewards = [None] * count if beginning.unrewarded else _rewards(batch, beginning, state).tolist()
        for row, truncated, reward in zip(_rows(batch), batch.truncated.tolist(), rewards, strict=True):
            # Texts depend on what is before: half a character may be in the prefix.
            texts = state.lm.texts([*beginning.answer, *row])[len(beginning.answer) :]
            tails.append(Tail(row, texts, truncated, None if reward is None or np.isnan(reward) else reward))
    pieces = {i: state.lm.piece(i) for tail in tails for i in tail.token_ids}
    return Continued(question.prefix, question.writer, question.greedy, tails=tails, pieces=pieces)


def estimate(
    question: Estimate, beginning: Beginning, state: State, seed: int, interrupted: Interrupted
) -> Iterator[Estimated]:
    """The Monte-Carlo value of a prefix: the mean reward of answers that go on from it, with a 95 % interval.

    One `Estimated` after each batch; the last is `done`, with `question.count` samples or those there were when
    interrupted. Answers that no reward function scored are counted apart.
    """
    if beginning.unrewarded:
        raise ValueError(beginning.unrewarded)
    rewards = np.zeros(0, dtype=np.float64)
    done, part = False, 0
    while not done:
        count = min(AT_ONCE, _fitting(state), question.count - len(rewards))
        batch = _sampled(beginning, state, question.writer, count, interrupted, (seed, ESTIMATES, part))
        part += 1
        if batch is not None:
            rewards = np.concatenate([rewards, _rewards(batch, beginning, state)])
        done = batch is None or len(rewards) >= question.count
        known = rewards[~np.isnan(rewards)]
        low, high, interval = confidence(known)
        mean = float(known.mean()) if len(known) else None
        yield Estimated(
            question.prefix, question.writer, state.update, "", len(known), len(rewards) - len(known),
            mean, low, high, interval, done,
        )  # fmt: skip


def _fitting(state: State) -> int:
    return state.settings.num_prompts * state.settings.num_generations


def _sampled(
    beginning: Beginning, state: State, writer: Writer, count: int, interrupted: Interrupted,
    stream: tuple[int, int, int], greedy: bool = False,
) -> Batch | None:  # fmt: skip
    """`count` answers that go on from a beginning, by random numbers of (seed, stream, draw); None if interrupted."""
    lm, (seed, number, draw) = state.lm, stream
    lm = lm if writer == "policy" else dataclasses.replace(lm, policy=lm.reference, fixed=False)
    sampling = sample(
        lm, Prompts.padded(lm, [beginning.example], [beginning.ids]), generations=count, length=beginning.room(state),
        temperature=state.settings.temperature, keep=1, seed=seed, update=state.update, again=draw,
        stream=number, greedy=greedy, cut=Cut.of(state.settings),
    )  # fmt: skip
    while not interrupted():
        try:
            next(sampling)
        except StopIteration as finished:
            batch: Batch = finished.value
            return batch
    return None


def _rows(batch: Batch) -> list[list[int]]:
    return [row[:n] for row, n in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]


def _rewards(batch: Batch, beginning: Beginning, state: State) -> Array:
    """Rewards of the whole answers, float64 [N], NaN where no function answered."""
    answers = [[*beginning.answer, *row] for row in _rows(batch)]
    texts = [state.lm.decode(row) for row in answers]
    given, weights = graded(Completions([beginning.example] * len(answers), answers, texts), state)
    return weighted(totals(given), weights).astype(np.float64)
