"""The turns of a conversation within an answer: the model's, and what was written between them, with their roles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlplay.trace.records import Array, Sampled

SHORT = 6
"""Mean tokens of a turn up to which an episode is read as one text, such as guesses of a number."""
_ROLE = re.compile(r"<\|im_start\|>(\w+)|<\|start_header_id\|>(\w+)<\||<start_of_turn>(\w+)|<\|(\w+)\|>")
"""How chat templates write who speaks: ChatML, Llama, Gemma, and one mark for each role."""
_ROLES = ("system", "user", "tool", "ipython", "environment", "observation")
_MODEL = ("assistant", "model")
_CALL = re.compile(r"<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]")
"""How models write that they call a tool: Qwen and Hermes, Llama, Mistral."""


_MARKS = re.compile(
    r"<\|im_start\|>\w+|<\|start_header_id\|>\w+<\|end_header_id\|>|<start_of_turn>\w+|<end_of_turn>"
    r"|<\|[^<>|\s]{1,40}\|>|</?s>|\[/?INST\]"
)
"""The marks of chat templates, each with the role that it names."""


class Turn(NamedTuple):
    """Tokens of an answer, from `start` on, counted from its first; `role` is who wrote them."""

    start: int
    role: str


def turns(sampled: Sampled, completion: int) -> list[Turn]:
    """The turns of a completion in order; one of the model alone if nothing was written between."""
    begin, end = (int(x) for x in sampled.offsets[completion : completion + 2])
    if begin == end:
        return []
    mask = sampled.mask[begin:end]
    starts = [0, *(np.flatnonzero(np.diff(mask)) + 1).tolist()]
    return [
        Turn(start, _role("".join(sampled.texts[begin + start : begin + stop]), bool(mask[start])))
        for start, stop in zip(starts, [*starts[1:], end - begin], strict=True)
    ]


def earlier_turns(prompt: str) -> bool:
    """Whether a prompt holds a turn of the model's, besides the one that it opens; by the marks in its text."""
    roles = ["".join(filter(None, found.groups())) for found in _ROLE.finditer(prompt)]
    return any(role in _MODEL for role in roles[:-1])


def turns_of_others(texts: Sequence[str]) -> list[slice]:
    """The tokens of an answer from a mark that names a user, a tool or an environment to the next mark of a role."""
    if not any("<" in text for text in texts):
        return []
    whole = "".join(texts)
    marks = [(found.start(), "".join(filter(None, found.groups()))) for found in _ROLE.finditer(whole)]
    marks = [(at, role) for at, role in marks if role in (*_ROLES, *_MODEL)]
    ends = np.cumsum([len(text) for text in texts])
    borders = [*np.searchsorted(ends, [at for at, _ in marks], side="right").tolist(), len(texts)]
    return [slice(borders[n], borders[n + 1]) for n, (_, role) in enumerate(marks) if role in _ROLES]


def have_turns(sampled: Sampled) -> bool:
    """Whether something else was written between the model's words in an answer."""
    return len(_borders(sampled)) > 0


def _borders(sampled: Sampled) -> Array:
    """The tokens with which a turn begins within an answer."""
    changes = np.flatnonzero(np.diff(sampled.mask.astype(np.int8))) + 1
    return changes[~np.isin(changes, sampled.offsets)]


def are_conversations(sampled: Sampled) -> bool:
    """Whether the answers have several turns, long enough to be set apart."""
    inside = _borders(sampled)
    return len(inside) > 0 and len(sampled.mask) > SHORT * (len(inside) + len(sampled.group))


def marks_and_text(text: str) -> list[tuple[str, bool]]:
    """`text` in parts, each with whether it is a mark of a chat template."""
    parts, at = [], 0
    for found in _MARKS.finditer(text):
        parts += [(text[at : found.start()], False), (found.group(), True)]
        at = found.end()
    return [part for part in [*parts, (text[at:], False)] if part[0]]


def _role(text: str, model: bool) -> str:
    if model:
        return "model · tool call" if _CALL.search(text) else "model"
    named = ("".join(filter(None, found.groups())) for found in _ROLE.finditer(text))
    return next((role for role in named if role in _ROLES), "environment")
