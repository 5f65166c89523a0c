"""What a script may give the verbs of the screen that take a mapping."""

from __future__ import annotations

from typing import Any, cast, get_args

from rlplay.spelling import did_you_mean
from rlplay.trace.chosen_answers import Side
from rlplay.trace.text import quote


def check_focus(argument: Any) -> None:
    """Raises ValueError, one line, unless it names a token for the cursor."""
    known = {"completion": int, "token": int, "prompt": str, "candidate": str}
    fits = isinstance(argument, dict) and bool(argument) and set(argument) <= set(known)
    given = cast("dict[str, Any]", argument).items() if fits else ()
    if not fits or any(type(value) is not known[name] or (type(value) is int and value < 0) for name, value in given):
        raise ValueError(
            "focus takes a mapping with completion and token, each a whole number from 0, or with prompt and candidate"
        )


_MAPPINGS: dict[str, dict[str, type]] = {
    "probe": {
        "prompt": str, "columns": dict, "plain": bool, "completion": int, "token": int, "force": str, "then": str,
    },
    "teachers": {
        "completion": int, "prompt": str, "token": int, "candidate": str, "without": str, "answers": str,
    },
}  # fmt: skip
"""What the values are that a verb takes by name."""


def check_mapping(verb: str, argument: Any) -> None:
    """Raises ValueError, one line, unless the verb takes these by name."""
    types = _MAPPINGS[verb]
    if not isinstance(argument, dict):
        raise ValueError(f"{verb} takes a mapping with some of {', '.join(types)}; got {quote(argument)}")
    for name, value in argument.items():
        if name not in types:
            raise ValueError(f"{verb} takes no {quote(name)}{did_you_mean(str(name), list(types))}")
        if type(value) is not types[name]:
            raise ValueError(f"{name} of {verb} takes a value of type {types[name].__name__}; got {quote(value)}")
    if argument.get("then", "value") not in (known := ("samples", "value", "greedy", "course")):
        raise ValueError(f"then of {verb} is one of {', '.join(known)}; got {quote(argument['then'])}")
    if verb == "teachers":
        _check_teachers(argument)


def _check_teachers(argument: dict[str, Any]) -> None:
    sides = get_args(Side)
    if argument.get("without", sides[0]) not in sides:
        raise ValueError(f"without of teachers is one of {', '.join(sides)}; got {quote(argument['without'])}")
    if "without" in argument and not {"prompt", "candidate"} <= set(argument):
        raise ValueError("without of teachers needs prompt and candidate, too")
