"""A judge: a model behind an address that reads a prompt with an answer, and replies with a score."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from rlplay.tasks.remote.asking import ask
from rlplay.tasks.remote.served_file import Ask, Served, as_text
from rlplay.tasks.task import Completion, Message

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w]|\.\d)")
_LONGEST_REPLY = 500
"""Characters of a reply that are shown beside the answer."""


def judge(place: str, name: str, served: Served) -> Ask:
    """The scores of a judge, None where it gave none; what it replied is a column beside the answers."""

    async def score(
        prompts: list[str | list[Message]],
        completions: list[Completion],
        log_metric: Callable[[str, float], None],
        log_extra: Callable[[str, list[Any]], None],
        **columns: Any,
    ) -> list[float | None]:
        texts = [(as_text(p), as_text(c)) for p, c in zip(prompts, completions, strict=True)]
        bodies = [
            _body(served, row(columns, i) | {"prompt": prompt, "answer": answer})
            for i, (prompt, answer) in enumerate(texts)
        ]
        asked = await ask(place, served, "chat/completions", bodies)
        said, scores = list[str](), list[float | None]()
        for number, reply in enumerate(asked.found):
            text = "" if reply is None else _text(reply)
            found = score_in(text, served)
            if found is None and reply is not None:
                low, high = served.range
                asked.failures[number] = f"its reply has no one score from {low:g} to {high:g}: {text[:80]!r}"
            said.append(asked.failures[number] if number in asked.failures else text[:_LONGEST_REPLY])
            scores.append(found)
        asked.check(place, served.address)
        asked.log(name, served, log_metric)
        log_extra(f"{name} said", said)
        return scores

    return score


def score_in(reply: str, served: Served) -> float | None:
    """The score in a reply: the one number of its last line, or a field of its JSON; None if it is not in the range.

    Of "7/10" the first number counts, and reasoning before </think> does not.
    """
    text = reply.rpartition("</think>")[2].strip()
    low, high = served.range
    found: float | None
    if served.field:
        found = _in_json(text, served.field)
    else:
        line = text.splitlines()[-1].replace(f"/{high:g}", " ") if text else ""
        numbers = _NUMBER.findall(line)
        found = float(numbers[0]) if len(numbers) == 1 else None
    return found if found is not None and low <= found <= high else None


def _in_json(text: str, field: str) -> float | None:
    """The number in a field of the object from the first brace to the last."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[begin : end + 1])
        value = found[field]
        return None if isinstance(value, bool) else float(value)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _body(served: Served, values: dict[str, Any]) -> dict[str, Any]:
    prompt = filled(served.prompt, values)
    system = [{"role": "system", "content": served.system}] if served.system else []
    messages = [*system, {"role": "user", "content": prompt}]
    return {"model": served.model, "messages": messages, "temperature": 0, **served.options}


def row(columns: dict[str, Any], number: int) -> dict[str, Any]:
    """The columns of the data of one prompt; what else a reward function is given is no list."""
    return {name: values[number] for name, values in columns.items() if isinstance(values, list)}


def filled(template: str, values: dict[str, Any]) -> str:
    """The template with the values for {their names}; other braces stay, and values are not looked into."""
    return re.sub(r"\{(\w+)\}", lambda found: str(values.get(found[1], found[0])), template)


def _text(reply: dict[str, Any]) -> str:
    """What a chat model replied, as whole characters."""
    message = reply["choices"][0].get("message") if isinstance(reply["choices"][0], dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    return str(content or "").encode("utf-8", "replace").decode()
