"""What a task is: prompts with columns, and functions that score completions of them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rlplay.tasks.example import Completion, Example, Message, RewardFunction, Steps
from rlplay.tasks.tools import Tools

__all__ = [
    "Completion", "Environment", "Example", "Message", "Reply", "RewardFunction", "Steps", "Task", "chat",
    "completion_text", "heading", "own_turns", "total",
]  # fmt: skip


def heading(example: Example) -> str:
    """The question of a prompt: its last user message, or the plain text."""
    if isinstance(example.prompt, str):
        return example.prompt
    return next((m["content"] for m in reversed(example.prompt) if m.get("role") == "user"), "")


class Reply(msgspec.Struct, frozen=True):
    """What an environment replies: `text` for the model to read, and whether the episode is `over` with it.

    `state` is the environment's true state, which the model may not see. Reward functions that take `states` get, for
    each completion, the list of them after every turn.
    """

    text: str
    over: bool = False
    state: str = ""


Environment = Callable[..., Reply | str | None]
"""Replies to the model during an episode: `f(example, turns)` with the model's turns so far gives a Reply, a text for
the next user message, or None, which ends the episode without another word.

It must be a pure function, so that an episode can be replayed. An environment with randomness also takes `chances`:
one number in [0, 1) for each turn that an episode may have, a function of seed, update and completion.
"""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Something to learn: prompts to train on, held-out prompts, and scores.

    Training may use `rewards`, each with the weight that a scenario gives it. `gold` scorers are tracked beside the
    reward, and never trained on unless they are given a weight: they show whether a rising reward means what it should.
    With an `environment`, or tools in its place, a completion is an episode: several turns of the model with replies
    between them.

    A task that is small enough names all its `situations`, each with the prompt that ends in it, and the `actions`,
    one token each, that are possible there: the policy is then recorded in every one of them.

    `stage` is what the screen gives its room to, one of `verbs.STAGES`, where a scenario does not say; only that of a
    bundled task counts, because the screen runs no code of others.
    """

    name: str = ""
    summary: str = ""
    train: list[Example]
    held_out: list[Example] = []
    rewards: dict[str, RewardFunction] = {}
    gold: dict[str, RewardFunction] = {}
    environment: Environment | Tools | None = None
    situations: dict[str, Example] = {}
    actions: list[str] = []
    stage: str = "all"
    speaker: str = ""

    @property
    def columns(self) -> set[str]:
        """The names of all columns that any prompt has."""
        return {name for example in (*self.train, *self.held_out) for name in example.columns}


def total(answer: float | Steps) -> float:
    """The score of a whole completion: the sum of its step scores if it has any."""
    return sum(value for _, value in answer) if isinstance(answer, list) else answer


def chat(text: str) -> list[Message]:
    """A conversation of one user message."""
    return [{"role": "user", "content": text}]


def own_turns(completion: Completion) -> list[str]:
    """The model's turns: the completion itself, or its assistant messages.

    Messages of other roles (an environment's replies) are not the model's text.
    """
    if isinstance(completion, str):
        return [completion]
    return [message["content"] for message in completion if message["role"] == "assistant"]


def completion_text(completion: Completion) -> str:
    """The model's text: its turns, one per line."""
    return "\n".join(own_turns(completion))
