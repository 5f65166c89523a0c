"""Episodes of several turns: what an environment says, as tokens that are read and not sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TypeVar

import torch
from torch import Tensor

from rlplay.containment import OwnError
from rlplay.engine.batch import Batch
from rlplay.engine.model import LanguageModel
from rlplay.engine.state import Halt
from rlplay.engine.tool_calls import parsed
from rlplay.tasks.own_rewards import accepted
from rlplay.tasks.task import Environment, Example, Message, Reply
from rlplay.tasks.tools import Tools
from rlplay.trace.records import Array

Found = TypeVar("Found")
_LONGEST_REPLY = 100_000
"""Characters of a reply that are read: more than an answer has room for."""


class Episodes:
    """The episodes of a batch that is being sampled: whose turn it is, and what the environment has left to say."""

    def __init__(self, lm: LanguageModel, environment: Environment | Tools, batch: Batch, chances: Array) -> None:
        """`chances` [N, L] in [0, 1) are the environment's randomness, one number per turn that may come.

        Raises Halt if an environment with tools cannot be reset.
        """
        self._lm = lm
        self._environment = environment
        self._batch = batch
        self._chances = chances
        self._left: dict[int, list[int]] = {}  # tokens that the environment has not said yet, by completion
        self._last: set[int] = set()  # completions that are over once these are said
        self._turns: dict[int, list[str]] = {}
        self._begun: dict[int, int] = {}  # place of the first token of the turn under way
        self._written: dict[tuple[int, str, str, int], list[int]] = {}  # worlds say the same few things again and again
        if isinstance(environment, Tools):
            examples = [batch.prompts.examples[g] for g in batch.group.tolist()]
            batch.answering = [_halting(lambda e=each: environment.begin(e)) for each in examples]  # type: ignore[misc]

    def with_environment(self, rows: Tensor, tokens: Tensor, position: int) -> Tensor:
        """`tokens` [R] of the completions `rows` at `position`, with the environment's where it is speaking."""
        tokens = tokens.clone()
        for i, row in enumerate(rows.tolist()):
            if self._left.get(row):
                tokens[i] = self._left[row].pop(0)
                self._batch.environment[row, position] = True
                self._begun[row] = position + 1
        return tokens

    def over(self, rows: Tensor, ended: Tensor) -> Tensor:
        """Which of the completions `rows` are over: the model's turn has `ended` [R] and nothing answers it, or the
        environment has said its last word.

        Raises Halt if the environment fails or the chat template cannot go on after an answer.
        """
        over = ended.clone()
        for i in ended.nonzero().squeeze(-1).tolist():
            row = int(rows[i])
            self._left[row] = self._answer(row)
            over[i] = not self._left[row]
        if self._last:
            spoken = [row in self._last and not self._left[row] for row in rows.tolist()]
            over |= torch.tensor(spoken, device=over.device)
        return over

    def _answer(self, row: int) -> list[int]:
        """The tokens that follow the turn which a completion ends with; none ends the episode."""
        batch, length = self._batch, int(self._batch.lengths[row])
        example = batch.prompts.examples[int(batch.group[row])]
        ids = batch.ids[row, self._begun.get(row, 0) : length].tolist()
        if isinstance(self._environment, Tools):
            turn, replies = self._called(row, ids)
        else:
            turn, replies = self._replied(example, row, ids)
        if not replies:
            return []
        replies = [{**reply, "content": reply["content"][:_LONGEST_REPLY]} for reply in replies]
        batch.replies.setdefault(row, []).append(replies)
        said = int(batch.group[row]), turn["content"], repr((turn, replies)), ids[-1]
        if said not in self._written:
            self._written[said] = self._tokens(example, turn, replies, self._lm.piece(ids[-1]))
        return list(self._written[said])

    def _called(self, row: int, ids: list[int]) -> tuple[Message, list[Message]]:
        """The turn `ids`, and the results of the tools that it calls."""
        batch = self._batch
        turn, calls = parsed(self._lm, ids, _before(batch, row, self._begun.get(row, 0)))
        return turn, _halting(lambda: batch.answering[row].replies(calls))

    def _replied(self, example: Example, row: int, ids: list[int]) -> tuple[Message, list[Message]]:
        """The turn `ids`, and the environment's reply as a message of the user; none ends the episode."""
        assert not isinstance(self._environment, Tools)
        turns = self._turns.setdefault(row, [])
        turns.append(self._lm.decode(ids))
        given = {"example": example, "turns": list(turns), "chances": self._chances[row]}
        turn = {"role": "assistant", "content": turns[-1]}
        reply = _halting(lambda: self._environment(**accepted(self._environment, given)))  # type: ignore[arg-type, operator]
        if reply is None:
            return turn, []
        reply = Reply(reply) if isinstance(reply, str) else reply
        self._batch.states.setdefault(row, []).append(reply.state)
        if reply.over:
            self._last.add(row)
        return turn, [{"role": "user", "content": reply.text}]

    def _tokens(self, example: Example, turn: Message, replies: list[Message], end: str) -> list[int]:
        """The replies as the chat template writes them after a turn closed by `end`, up to the model's next word."""
        if isinstance(example.prompt, str):
            raise Halt("an environment needs chat messages as prompts: plain text has no turns")
        closed = self._lm.templated([*example.prompt, turn])
        closed = closed[: closed.rfind(end) + len(end)]
        whole = self._lm.templated([*example.prompt, turn, *replies], add_generation_prompt=True)
        if not whole.startswith(closed):
            raise Halt(
                "the model's chat template rewrites earlier turns, so an episode can't be continued token by token"
            )
        return list(self._lm.tokenizer(whole[len(closed) :], add_special_tokens=False)["input_ids"])


def asked(examples: list[Example], environment: Environment | Tools | None) -> list[Example]:
    """The prompts as an environment with tools gives them. Raises Halt if it cannot be reset."""
    if not isinstance(environment, Tools):
        return examples
    return [_halting(lambda e=each: environment.asked(e)) for each in examples]  # type: ignore[misc]


def _halting(ask: Callable[[], Found]) -> Found:
    """What the user's environment gives. Raises Halt if it fails."""
    try:
        return ask()
    except Exception as error:
        what = str(error) if isinstance(error, OwnError) else f"{type(error).__name__}: {error}"
        raise Halt(f"the environment failed: {what}; mend it, then go on") from error


def _before(batch: Batch, row: int, begun: int) -> list[int]:
    """The ids before place `begun` of a completion, those of its prompt included."""
    group = int(batch.group[row])
    prompt = batch.prompts.ids[group][batch.prompts.mask[group].bool()].tolist()
    return [*prompt, *batch.ids[row, :begun].tolist()]


def messages(lm: LanguageModel, batch: Batch, row: int) -> list[Message]:
    """A completion as chat messages: the model's turns, and between them the replies of environment or tools."""
    length = int(batch.lengths[row])
    ids, sampled = batch.ids[row, :length].tolist(), batch.mask[row, :length].tolist()
    replies = batch.replies.get(row, [])
    said: list[Message] = []
    for k, (start, end) in enumerate(_turns(sampled)):
        if batch.answering:
            said.append(parsed(lm, ids[start:end], _before(batch, row, start))[0])
        else:
            said.append({"role": "assistant", "content": lm.decode(ids[start:end])})
        said += [message for several in replies[k : k + 1] for message in several]
    return said


def _turns(sampled: list[bool]) -> Iterator[tuple[int, int]]:
    """Where the model's turns begin and end: its runs of `sampled` tokens."""
    start = 0
    for own, run in groupby(sampled):
        end = start + len(list(run))
        if own:
            yield start, end
        start = end
