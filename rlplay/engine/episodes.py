"""Episodes of several turns: what an environment says, as tokens that are read and not sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from rlplay.containment import OwnError
from rlplay.engine.batch import Batch
from rlplay.engine.begun import Begun
from rlplay.engine.chat_turns import turn_and_rest
from rlplay.engine.model import LanguageModel
from rlplay.engine.state import Halt
from rlplay.engine.tool_calls import parsed
from rlplay.engine.transfer import to_device, to_host
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
        self._left: dict[int, list[int]] = {}  # tokens that the environment has not said yet, by completion
        self._last: set[int] = set()  # completions that are over once these are said
        self._turns: dict[int, list[str]] = {}
        self._begun: dict[int, int] = {}  # place of the first token of the turn under way
        self._written: dict[tuple[int, str, str, int], list[int]] = {}  # worlds say the same few things again and again
        self._group: list[int] = to_host([batch.group])[0].tolist()
        self._rows: tuple[Tensor | None, list[int]] = None, []  # completions still sampled, and the same on the host
        self._room: dict[int, int] = {}  # tokens of a completion, where it has not room for as many as the others
        batch.chances = dict(enumerate(chances))
        if isinstance(environment, Tools):
            examples = [batch.prompts.examples[g] for g in self._group]
            batch.answering = [_halting(lambda e=each: environment.begin(e)) for each in examples]  # type: ignore[misc]
        if batch.prompts.begun is not None:
            for row, group in enumerate(self._group):
                self._go_on(row, batch.prompts.begun[group], group not in self._group[:row])

    def _go_on(self, row: int, begun: Begun, first: bool) -> None:
        """Let a completion go on from what has happened; of those that go on from the same, the `first` tries it.

        Tools are called again, as an environment of theirs has a state. Raises Halt if something else is answered.
        """
        batch, example = self._batch, self._batch.prompts.examples[self._group[row]]
        self._room[row] = begun.room
        self._turns[row] = list(begun.turns)
        batch.replies[row] = [list(said) for said in begun.replies]
        batch.states[row] = list(begun.states)
        batch.chances[row] = np.concatenate([begun.chances, batch.chances[row]])
        if isinstance(self._environment, Tools):
            said = [_halting(lambda c=calls: batch.answering[row].replies(c)) for calls in begun.calls]  # type: ignore[misc]
        elif begun.turns and first:
            reply = self._asked(example, row)
            said = [*batch.replies[row][:-1], [] if reply is None else [_from_user(reply)]]
        else:
            return
        if [_shortened(each) for each in said] != batch.replies[row]:
            raise Halt(
                "the environment answered the same turns in another way when an episode was continued from there: it "
                "must depend on nothing but what it is given; mend it, or choose other returns"
            )

    def with_environment(self, rows: Tensor, tokens: Tensor, position: int) -> Tensor:
        """`tokens` [R] of the completions `rows` at `position`, with the environment's where it is speaking."""
        speaking = [(i, row) for i, row in enumerate(self._known(rows)) if self._left.get(row)]
        if not speaking:
            return tokens
        self._begun |= {row: position + 1 for _, row in speaking}
        said = [self._left[row].pop(0) for _, row in speaking]
        numbers = [torch.tensor(each) for each in (*zip(*speaking, strict=True), said)]
        places, completions, words = to_device(numbers, tokens.device)
        self._batch.environment[completions, position] = True
        return tokens.index_put((places,), words)

    def over(self, rows: Tensor, ended: Tensor, position: int) -> Tensor:
        """Which of the completions `rows` are over after `position`: the model's turn has `ended` [R] and nothing
        answers it, the environment has said its last word, or there is no more room.

        Raises Halt if the environment fails or the chat template cannot go on after an answer.
        """
        here = to_host([ended])[0].tolist()
        if not any(here) and not self._last and not self._room:
            return ended
        over, completions = list(here), self._known(rows)
        ids, lengths = to_host([self._batch.ids, self._batch.lengths]) if any(here) else (None, None)
        for i, row in enumerate(completions):
            if here[i] and ids is not None and lengths is not None:
                self._left[row] = self._answer(row, ids[row, : int(lengths[row])].tolist())
                over[i] = not self._left[row]
            over[i] |= row in self._last and not self._left[row]
            over[i] |= position + 1 == self._room.get(row)
        return to_device([torch.tensor(over)], ended.device)[0]

    def _known(self, rows: Tensor) -> list[int]:
        """The completions `rows` as the host knows them: read again where they are others than before."""
        if self._rows[0] is not rows:
            self._rows = rows, to_host([rows])[0].tolist()
        return self._rows[1]

    def _answer(self, row: int, written: list[int]) -> list[int]:
        """The tokens that follow the turn with which the ids `written` of a completion end; none ends the episode."""
        batch, begun, group = self._batch, self._begun.get(row, 0), self._group[row]
        example, ids = batch.prompts.examples[group], written[begun:]
        if isinstance(self._environment, Tools):
            turn, replies = self._called(row, ids, _before(batch, group, written[:begun]))
        else:
            turn, replies = self._replied(example, row, ids)
        if not replies:
            return []
        replies = _shortened(replies)
        batch.replies.setdefault(row, []).append(replies)
        said = group, turn["content"], repr((turn, replies)), ids[-1]
        if said not in self._written:
            self._written[said] = self._tokens(example, turn, replies, self._lm.piece(ids[-1]))
        return list(self._written[said])

    def _called(self, row: int, ids: list[int], before: list[int]) -> tuple[Message, list[Message]]:
        """The turn `ids` after the ids `before`, and the results of the tools that it calls."""
        batch = self._batch
        turn, calls = parsed(self._lm, ids, before)
        return turn, _halting(lambda: batch.answering[row].replies(calls))

    def _replied(self, example: Example, row: int, ids: list[int]) -> tuple[Message, list[Message]]:
        """The turn `ids`, and the environment's reply as a message of the user; none ends the episode."""
        self._turns.setdefault(row, []).append(self._lm.decode(ids))
        turn, reply = {"role": "assistant", "content": self._turns[row][-1]}, self._asked(example, row)
        if reply is None:
            return turn, []
        self._batch.states.setdefault(row, []).append(reply.state)
        if reply.over:
            self._last.add(row)
        return turn, [_from_user(reply)]

    def _asked(self, example: Example, row: int) -> Reply | None:
        """What the environment replies to the turns of a completion."""
        given = {"example": example, "turns": list(self._turns[row]), "chances": self._batch.chances[row]}
        reply = _halting(lambda: self._environment(**accepted(self._environment, given)))  # type: ignore[arg-type, operator]
        return Reply(reply) if isinstance(reply, str) else reply

    def _tokens(self, example: Example, turn: Message, replies: list[Message], end: str) -> list[int]:
        """The replies as the chat template writes them after a turn closed by `end`, up to the model's next word."""
        if isinstance(example.prompt, str):
            raise Halt("an environment needs chat messages as prompts: plain text has no turns")
        closed = self._lm.templated([*example.prompt, turn])
        closed = closed[: closed.rfind(end) + len(end)]
        whole = self._lm.templated([*example.prompt, turn, *replies], add_generation_prompt=True)
        rest: str | None = whole[len(closed) :] if whole.startswith(closed) else None
        if rest is None and self._lm.retokenizes:
            found = turn_and_rest(self._lm, example.prompt, turn, replies, end)
            rest = found and found[1]
        if rest is None:
            raise Halt(
                "the model's chat template rewrites earlier turns, so an episode can't be continued token by token; "
                "with retokenize_turns on, training alone sees them rewritten"
            )
        return list(self._lm.tokenizer(rest, add_special_tokens=False)["input_ids"])


def _from_user(reply: Reply) -> Message:
    return {"role": "user", "content": reply.text}


def _shortened(replies: Sequence[Message]) -> list[Message]:
    return [{**reply, "content": reply["content"][:_LONGEST_REPLY]} for reply in replies]


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
        raise Halt(f"the environment failed: {what}; fix it, then go on") from error


def _before(batch: Batch, group: int, written: list[int]) -> list[int]:
    """The ids `written` in answer to the prompt `group`, those of the prompt before them."""
    return [*batch.prompts.row(group), *written]


def messages(lm: LanguageModel, batch: Batch, row: int) -> list[Message]:
    """A sampled completion as chat messages: the model's turns, between them the replies of environment or tools."""
    every, lengths, groups = batch.on_host("ids", "lengths", "group")
    length, prompt = int(lengths[row]), batch.prompts.row(int(groups[row])) if batch.answering else None
    ids, sampled = every[row, :length].tolist(), batch.known_masks[0][row, :length].tolist()
    return conversation(lm, ids, sampled, batch.replies.get(row, []), prompt)


def conversation(
    lm: LanguageModel, ids: list[int], sampled: list[bool], replies: list[list[Message]], prompt: list[int] | None
) -> list[Message]:
    """The ids of an episode as messages; `sampled` are the model's. With tools, they need those of the `prompt`."""
    said: list[Message] = []
    for k, (start, end) in enumerate(turns(sampled)):
        if prompt is not None:
            said.append(parsed(lm, ids[start:end], [*prompt, *ids[:start]])[0])
        else:
            said.append({"role": "assistant", "content": lm.decode(ids[start:end])})
        said += [message for several in replies[k : k + 1] for message in several]
    return said


def turns(sampled: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where the model's turns begin, and the tokens behind them: its runs of `sampled` tokens."""
    start = 0
    for own, run in groupby(sampled):
        end = start + len(list(run))
        if own:
            yield start, end
        start = end
