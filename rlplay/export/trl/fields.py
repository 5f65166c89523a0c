"""Lines of a config in the script: `name=value,` or a comment if the config has no such name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlplay.trace.numbers import short_exponent
from rlplay.trace.text import visible

Field = str


def config_lines(fields: Mapping[str, Any]) -> Iterator[Field]:
    """A line for each field that has a value."""
    return (f"{name}={literal(value)}," for name, value in fields.items() if value is not None)


def note(text: str) -> Field:
    """A comment by rlplay."""
    return f"# rlplay: {plain(text)}"


def plain(text: str) -> str:
    """Foreign text as one line of a comment."""
    return visible(" ".join(text.split()))


def literal(value: Any) -> str:
    """A value as Python writes it, text in double quotes."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float):
        return short_exponent(repr(value))
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    """Text as a Python literal in double quotes; characters that cannot be seen, or that reorder a line, as escapes."""
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in shown)


def absolute(path: str) -> str:
    """The absolute path of a file, so that the script runs anywhere; other names, such as a model's, unchanged."""
    found = Path(path).expanduser()
    return str(found.absolute()) if found.exists() else path


def absolute_entry(entry: str) -> str:
    """`FILE.py:FUNCTION` or `NAME.yaml` with the file's absolute path; `MODULE:FUNCTION` unchanged."""
    if ":" not in entry:
        return absolute(entry)
    file, _, function = entry.rpartition(":")
    return f"{absolute(file)}:{function}"


def parts_of(step: int, wanted: int) -> int:
    """The largest divisor of `step` up to `wanted` (0: all), so that the parts of an optimizer step are equal."""
    most = min(wanted or step, step)
    return next(size for size in range(most, 0, -1) if step % size == 0)


def batch_lines(what: str, step: int, at_once: int, wanted: int) -> Iterator[Field]:
    """The fields for an optimizer step of `step` items, `at_once` of them in one pass; the run asked for `wanted`."""
    yield f"per_device_train_batch_size={at_once},  # {what} at once, of {step} in an optimizer step"
    yield f"gradient_accumulation_steps={step // at_once},"
    if wanted and at_once != min(wanted, step):
        yield note(f"per_device_train_batch_size {wanted} is {at_once} here, because of TRL's equal parts or its loss")
