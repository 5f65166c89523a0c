"""Episodes of several turns: what an environment says, as tokens that are read and not sampled."""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.model import LanguageModel
from rlplay.engine.state import Halt
from rlplay.tasks.own_rewards import accepted
from rlplay.tasks.task import Environment, Example, Message, Reply
from rlplay.trace.records import Array
from rlplay.user_code import OwnError


class Episodes:
    """The episodes of a batch that is being sampled: whose turn it is, and what the environment has left to say."""

    def __init__(self, lm: LanguageModel, environment: Environment, batch: Batch, chances: Array) -> None:
        """`chances` [N, L] in [0, 1) are the environment's randomness, one number per turn that may come."""
        self._lm = lm
        self._environment = environment
        self._batch = batch
        self._chances = chances
        self._left: dict[int, list[int]] = {}  # tokens that the environment has not said yet, by completion
        self._last: set[int] = set()  # completions that are over once these are said
        self._turns: dict[int, list[str]] = {}
        self._begun: dict[int, int] = {}  # place of the first token of the turn under way
        self._written: dict[tuple[int, str, str, int], list[int]] = {}  # worlds say the same few things again and again

    def said(self, rows: Tensor, tokens: Tensor, position: int) -> Tensor:
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
        turns = self._turns.setdefault(row, [])
        turns.append(self._lm.decode(ids))
        given = {"example": example, "turns": list(turns), "chances": self._chances[row]}
        try:
            reply = self._environment(**accepted(self._environment, given))
        except Exception as error:
            what = str(error) if isinstance(error, OwnError) else f"{type(error).__name__}: {error}"
            raise Halt(f"the environment failed: {what}; mend it, then go on") from error
        if reply is None:
            return []
        reply = Reply(reply) if isinstance(reply, str) else reply
        batch.replies.setdefault(row, []).append(reply.text)
        batch.states.setdefault(row, []).append(reply.state)
        if reply.over:
            self._last.add(row)
        said = int(batch.group[row]), turns[-1], reply.text, ids[-1]
        if said not in self._written:
            self._written[said] = self._tokens(example, turns[-1], reply.text, self._lm.piece(ids[-1]))
        return list(self._written[said])

    def _tokens(self, example: Example, turn: str, reply: str, end: str) -> list[int]:
        """The answer as the chat template writes it after a turn closed by `end`, up to the model's next word."""
        if isinstance(example.prompt, str):
            raise Halt("an environment needs chat messages as prompts: plain text has no turns")
        said: list[Message] = [*example.prompt, {"role": "assistant", "content": turn}]
        closed = self._lm.templated(said)
        closed = closed[: closed.rfind(end) + len(end)]
        whole = self._lm.templated([*said, {"role": "user", "content": reply}], add_generation_prompt=True)
        if not whole.startswith(closed):
            raise Halt(
                "the model's chat template rewrites earlier turns, so an episode can't be continued token by token"
            )
        return list(self._lm.tokenizer(whole[len(closed) :], add_special_tokens=False)["input_ids"])


def turns_of(lm: LanguageModel, ids: list[int], sampled: list[bool]) -> list[str]:
    """The model's turns in a completion: its runs of `sampled` tokens, special tokens left out."""
    runs = groupby(zip(ids, sampled, strict=True), key=lambda pair: pair[1])
    return [lm.decode([token for token, _ in run]) for own, run in runs if own]


def messages(lm: LanguageModel, batch: Batch, row: int) -> list[Message]:
    """A completion as chat messages: the model's turns, and between them the environment's as those of the user."""
    length = int(batch.lengths[row])
    turns = turns_of(lm, batch.ids[row, :length].tolist(), batch.mask[row, :length].tolist())
    replies = batch.replies.get(row, [])
    said: list[Message] = []
    for k, turn in enumerate(turns):
        said.append({"role": "assistant", "content": turn})
        said += [{"role": "user", "content": reply} for reply in replies[k : k + 1]]
    return said
