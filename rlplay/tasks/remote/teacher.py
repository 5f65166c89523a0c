"""A teacher: a model behind an address that says how likely it finds an answer, token by token.

`/completions` with `echo` and `logprobs`, as vLLM has it, gives each token of a text with its log-probability. Teacher
and student may cut text into other tokens, so characters tell where the answer begins, and where step scores arrive. A
token that reaches over the border of prompt and answer is not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rlplay.tasks.remote.asking import ask
from rlplay.tasks.remote.judge import filled, row
from rlplay.tasks.remote.served_file import Ask, Served, as_text
from rlplay.tasks.task import Completion, Message, Steps, completion_text

_WIDEST = 4
"""Characters that tokens may leave out where they are parts of characters."""


def teacher(place: str, name: str, served: Served) -> Ask:
    """The mean log-probability of an answer's tokens, or with `steps` each of them; None where there is none."""

    async def likely(
        prompts: list[str | list[Message]],
        completions: list[Completion],
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> list[float | Steps | None]:
        before = [
            filled(served.prompt, row(columns, i) | {"prompt": as_text(prompt)}) for i, prompt in enumerate(prompts)
        ]
        answers = [completion_text(completion) for completion in completions]
        bodies = [_body(served, start + answer) for start, answer in zip(before, answers, strict=True)]
        asked = await ask(place, served, "completions", bodies)
        steps = list[Steps]()
        for number, (reply, start, answer) in enumerate(zip(asked.found, before, answers, strict=True)):
            found = steps_in(reply, start + answer, len(start)) if reply is not None else []
            if found is None or (reply is not None and answer and not found):
                asked.failures[number] = (
                    "not a log-probability of each token of the prompt; it needs echo with logprobs"
                )
            steps.append(found or [])
        asked.check(place, served.address)
        asked.log(name, served, log_metric)
        means = [float(np.mean([value for _, value in each])) if each else None for each in steps]
        log_metric(f"{name}/logprob", float(np.mean([value for each in steps for _, value in each] or [np.nan])))
        return [each or None for each in steps] if served.steps else list(means)

    return likely


def steps_in(reply: dict[str, Any], text: str, begin: int) -> Steps | None:
    """The log-probabilities of the tokens of `text` from its character `begin` on, each with the characters after
    `begin` up to the token's end; None if the reply does not hold them, or its tokens do not spell the text.

    A token without one, as the first of all, is left out; a value that is no finite number is not passed on.
    """
    choice = reply["choices"][0]
    found = choice.get("logprobs") if isinstance(choice, dict) else None
    if not isinstance(found, dict):
        return None
    values, tokens = found.get("token_logprobs"), found.get("tokens")
    if not isinstance(values, list) or not isinstance(tokens, list) or len(values) != len(tokens):
        return None
    if (places := _places([str(token) for token in tokens], text)) is None:
        return None
    own = [
        (until - begin, value)
        for (start, until), value in zip(places, values, strict=True)
        if begin <= start < len(text) and value is not None
    ]
    if not all(type(value) in (int, float) and abs(value) <= sys.float_info.max for _, value in own):
        return None
    return [(until, float(value)) for until, value in own]


def _places(tokens: list[str], text: str) -> list[tuple[int, int]] | None:
    """Where the tokens begin and end in the text; None if they do not spell it.

    What is not in the text, as a token that begins all texts or a part of a character, has no width.
    """
    at, places = 0, list[tuple[int, int]]()
    for token in tokens:
        found = text.find(token, at, at + len(token) + _WIDEST) if token else -1
        places.append((at, at) if found < 0 else (found, found + len(token)))
        at = places[-1][1]
    return places if at >= len(text) - _WIDEST else None


def _body(served: Served, text: str) -> dict[str, Any]:
    return {
        "model": served.model, "prompt": text, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0,
        **served.options,
    }  # fmt: skip
