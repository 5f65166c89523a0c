"""What a task is: prompts with columns, and functions that score completions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

Message = dict[str, str]
Completion = str | list[Message]
Steps = list[tuple[int, float]]
RewardFunction = Callable[..., Sequence[float | Steps | None]]
"""TRL's signature, `f(prompts, completions, **columns)`: one score per completion, None where it does not apply.

Beyond TRL, a function may score steps: a list of (end, score) per completion, `end` counting characters up to which
the step goes. Their sum is the completion's score; `reward_stream` decides whether it arrives step by step.

`columns` holds, for every key of `Example.columns`, a list as long as `completions`.
"""


class Example(msgspec.Struct, frozen=True):
    """One prompt. A `str` is plain text; a list is chat messages with `role` and `content`.

    `columns` is what the reward functions need to know about the prompt, such as the right answer. `chosen` is an
    answer to imitate, `rejected` one that a labeller found worse.
    """

    prompt: str | list[Message]
    columns: dict[str, Any]
    chosen: str | None = None
    rejected: str | None = None


def heading(example: Example) -> str:
    """What the user asks in a prompt: its last user message, or the plain text."""
    if isinstance(example.prompt, str):
        return example.prompt
    return next((m["content"] for m in reversed(example.prompt) if m.get("role") == "user"), "")


Environment = Callable[[Example, list[str]], str | None]
"""What answers the model in the middle of an episode: from the example and the model's turns so far to the words of
the next user message; None ends the episode. A pure function, so that an episode can be played again."""


class Task(msgspec.Struct, frozen=True):
    """Something to learn: prompts to train on, prompts kept aside, and the scores to choose from.

    `rewards` may be trained on, each with the weight a scenario gives it. `gold` scorers are tracked beside
    the reward and never trained on: they tell whether a rising reward means what it should. With an `environment`, a
    completion is an episode: several turns of the model, and the environment's answers between them.
    """

    name: str
    summary: str
    train: list[Example]
    held_out: list[Example]
    rewards: dict[str, RewardFunction]
    gold: dict[str, RewardFunction]
    environment: Environment | None = None


def total(answer: float | Steps) -> float:
    """The score of a whole completion: its steps' sum, if steps were scored."""
    return sum(value for _, value in answer) if isinstance(answer, list) else answer


def chat(text: str) -> list[Message]:
    """A conversation of one user message."""
    return [{"role": "user", "content": text}]


def completion_text(completion: Completion) -> str:
    """What the model said: the completion itself, or the text of its assistant messages, one per line.

    Messages of other roles (an environment's replies inside an episode) are not the model's words.
    """
    if isinstance(completion, str):
        return completion
    return "\n".join(message["content"] for message in completion if message["role"] == "assistant")
