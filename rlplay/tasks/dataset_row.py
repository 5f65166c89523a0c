"""A row of the user's dataset as an example: its prompt, its answers if it has any, its other columns.

The columns are those of TRL's dataset formats: `prompt`, with `chosen` and `rejected` for preferences or `completion`
for imitation; each is text or chat messages. `chosen` and `rejected` may hold whole conversations, with or without a
`prompt`: the prompt is then their common beginning. For imitation, a row may instead have `messages`, of which the last
one of the assistant is imitated, or `text`, which is imitated as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from rlplay.tasks.task import Example, Message
from rlplay.trace.text import brief, quote, whole

_ANSWERS = ("chosen", "rejected", "completion")
_DEEPEST = 100
_RECORDED = (type(None), bool, float, bytes, datetime, date, time, timedelta, Decimal)
"""The types of a column besides text, whole numbers, lists and mappings: a run file can store them."""


def renamed(row: Any, columns: Mapping[str, str]) -> Any:
    """The row with its columns under other names: `columns` maps rlplay's name to the dataset's.

    Raises ValueError with a message that continues "row 3 …" if it lacks one of them.
    """
    if not isinstance(row, dict) or not columns:
        return row
    if missing := [name for name in columns.values() if name not in row]:
        raise ValueError(f"has no {quote(missing[0])} column, which 'columns' names; it has {_names(row)}")
    others = {name: value for name, value in row.items() if name not in columns.values()}
    return others | {name: row[theirs] for name, theirs in columns.items()}


def _names(row: dict[Any, Any]) -> str:
    return ", ".join(brief(str(name)) for name in row) or "none"


def read_row(row: Any) -> Example:
    """The example in a row. Raises ValueError with a message that continues "row 3 …"."""
    if not isinstance(row, dict):
        raise ValueError("is not a mapping of columns")
    for name, value in row.items():
        check_recordable(f"a column {quote(name)}", [name, value])
    if row.get("prompt") is None and all(row.get(name) is None for name in _ANSWERS):
        row = _split(row)
    answers = {name: _answer(name, row[name]) for name in _ANSWERS if row.get(name) is not None}
    if "completion" in answers and "chosen" in answers:
        raise ValueError("has both 'completion' and 'chosen'; one of them is the answer to imitate")
    if "rejected" in answers and "chosen" not in answers:
        raise ValueError("has 'rejected' but no 'chosen'")
    before = [messages for messages, _ in answers.values() if messages]
    prompt = _prompt(row, before[0] if before else None)
    if any(messages != before[0] for messages in before) or (before and len(before) < len(answers)):
        raise ValueError("has a different conversation before 'chosen' than before 'rejected'")
    texts = {name: text for name, (_, text) in answers.items()}
    return Example(
        prompt=prompt,
        columns={str(key): value for key, value in row.items() if key != "prompt"},
        chosen=texts.get("chosen", texts.get("completion")),
        rejected=texts.get("rejected"),
    )


def _split(row: dict[Any, Any]) -> dict[Any, Any]:
    """The row with `messages` or `text`, if it has them, as a prompt and its completion."""
    others = {name: value for name, value in row.items() if name not in ("prompt", "messages", "text")}
    if row.get("messages") is not None:
        messages = _messages(row["messages"])
        if messages and messages[-1]["role"] != "assistant":
            return others | {"prompt": messages}
        if len(messages) < 2:
            raise ValueError("has 'messages' that are not a conversation of messages with role and content")
        return others | {"prompt": messages[:-1], "completion": messages[-1]["content"]}
    return others | {"prompt": "", "completion": row["text"]} if isinstance(row.get("text"), str) else row


def check_recordable(what: str, value: Any, depth: int = 0) -> None:
    """Raises ValueError if a run file cannot store a value and read it back unchanged."""
    if isinstance(value, str):
        if not whole(value):
            raise ValueError(f"has {what} with half a character (a lone surrogate), which is not text")
    elif depth > _DEEPEST:
        raise ValueError(f"has {what} that is nested more than {_DEEPEST} levels deep")
    elif isinstance(value, (list, dict)):
        for each in value if isinstance(value, list) else (part for item in value.items() for part in item):
            check_recordable(what, each, depth + 1)
    elif type(value) is int:
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"has {what} with a number of more than 64 bits")
    elif type(value) not in _RECORDED:
        raise ValueError(f"has {what} of the type {type(value).__name__}, which cannot be recorded; write it as text")


def _prompt(row: dict[Any, Any], before: list[Message] | None) -> str | list[Message]:
    """The prompt of a row: from its column, or from the beginning of its conversations."""
    given = row.get("prompt")
    if given is None:
        if before is None:
            raise ValueError(
                f"has no 'prompt' column; it has {_names(row)}; --columns prompt=NAME says which one it is"
            )
        return before
    prompt = given if isinstance(given, str) else _messages(given)
    if not prompt and not isinstance(given, str):
        raise ValueError("has a prompt that is neither text nor messages with role and content")
    asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if before is not None and before != asked:
        raise ValueError("has a prompt that its conversations do not begin with")
    return prompt if before is None else before


def _answer(name: str, value: Any) -> tuple[list[Message], str]:
    """The conversation before an answer (often empty) and the text of the answer."""
    messages = [] if isinstance(value, str) else _messages(value)
    if messages and messages[-1]["role"] == "assistant":
        value = messages.pop()["content"]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"has a {quote(name)} that is neither text nor messages that end with the assistant's")
    return messages, value


def _messages(value: Any) -> list[Message]:
    """The chat messages in `value`; empty if it holds anything else."""
    try:
        messages = msgspec.convert(value, list[dict[str, str]])
    except msgspec.ValidationError:
        return []
    return [] if any(not {"role", "content"} <= set(message) for message in messages) else messages
