"""A prompt with its columns, and the functions that score completions of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

Message = dict[str, Any]
"""A chat message: `role` and `content`, texts both, and what a tool call adds."""
Completion = str | list[Message]
Steps = list[tuple[int, float]]
RewardFunction = Callable[..., Sequence[float | Steps | None]]
"""TRL's signature, `f(prompts, completions, **columns)`: one score per completion, None where it does not apply.

Beyond TRL, a function may score steps: a list of (end, score) per completion, where `end` counts the characters up to
the end of the step. Their sum is the completion's score; `reward_stream` decides whether it arrives step by step.

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
