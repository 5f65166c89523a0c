"""A run in which every text field is hostile.

The fields are found in the types: a new text field of a record, an event or a scenario is poisoned by itself.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from rlplay.scenario.schema import Scenario, Stage
from rlplay.trace.records import AnyRecord, Started
from rlplay.trace.runfile import RunWriter
from tests.hostile import HOSTILE
from tests.recorded import SETTINGS, synthetic_evaluated, synthetic_search, synthetic_started, synthetic_update


class Poison:
    """A word for every text field: its marker, by which it is found again, and the hostile string."""

    def __init__(self, *names: str) -> None:
        self.strings = [HOSTILE[name] for name in names]
        self.fields: dict[str, str] = {}  # marker by the field's name

    def word(self, field: str) -> str:
        """The word for a field such as `Sampled.prompts`."""
        marker = self.fields.setdefault(field, f"q{len(self.fields):02x}z")
        string = self.strings[int(marker[1:3], 16) % len(self.strings)]
        if field.startswith(ENCODED):
            string = string.encode(errors="replace").decode()
        return f"{marker}{string}{marker}"

    def into(self, thing: Any) -> Any:
        """A copy of a struct in which every text says its word; known names of a mapping stay beside the word."""
        kind = type(thing)
        changes = {
            field: self._value(f"{kind.__name__}.{field}", hint, getattr(thing, field))
            for field, hint in hints(kind).items()
            if f"{kind.__name__}.{field}" not in OF_ITS_OWN
        }
        return msgspec.structs.replace(thing, **changes)

    def _value(self, name: str, hint: Any, value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            return value if type(value).__name__ in OF_ITS_OWN else self.into(value)
        if isinstance(value, str) and value and hint_of(hint, str):
            return self.word(name)
        if isinstance(value, list):
            return [self._value(name, part_of(hint), each) for each in value]
        if isinstance(value, dict):
            return self._mapping(name, hint, value)
        return value

    def _mapping(self, name: str, hint: Any, held: dict[Any, Any]) -> dict[Any, Any]:
        keys, values = mapping_of(hint)
        filled = {key: self._value(name, values, value) for key, value in held.items()}
        if keys is not str:
            return filled
        if name.endswith(".settings"):  # their names and values are fixed; those of rewards are not
            return held | {"reward_weights": {self.word(f"{name}: reward_weights"): 1.0}}
        more = next(iter(filled.values())) if filled else self.word(f"{name}: value")
        return filled | {self.word(f"{name}: name"): more}


OF_ITS_OWN = {
    "Prefix": "the question that an answer belongs to",
    "Started.scenario_text": "YAML, made from a poisoned scenario",
    "Scenario.script": "a list of verbs, poisoned as such",
    "Changed.name": "the name of a setting",
    "Changed.also": "settings by their names",
    "Changed.phase": "one of five words, by which records are put in order",
    "Staged.phase": "one of five words, by which records are put in order",
}
"""Text fields that are more than text."""
ENCODED = ("Scenario.", "Stage.", "code: ")
"""Fields of what is kept as YAML or msgpack, which have no lone surrogates."""


@cache
def hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a struct and what they hold."""
    known = get_type_hints(kind)
    return {field: known[field] for field in kind.__struct_fields__}


def hint_of(hint: Any, kind: type) -> bool:
    """Whether it allows any value of a kind, such as any text."""
    if get_origin(hint) in (types.UnionType, typing.Union):
        return any(hint_of(part, kind) for part in get_args(hint))
    return hint is kind or hint is Any


def part_of(hint: Any) -> Any:
    """What a list holds."""
    for part in alternatives(hint):
        if get_origin(part) in (list, tuple):
            return get_args(part)[0]
    return Any


def mapping_of(hint: Any) -> tuple[Any, Any]:
    """What a mapping holds."""
    for part in alternatives(hint):
        if get_origin(part) is dict:
            return get_args(part)
    return str, Any


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The parts of a union, or the only one."""
    return get_args(hint) if get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


def made(hint: Any) -> Any:  # noqa: PLR0911 - one for each kind
    """Some value that fits: a struct with all of its fields, one entry in what holds several."""
    simple: dict[Any, Any] = {str: "x", int: 1, float: 0.5, bool: False, Any: "x"}
    if hint in simple:
        return simple[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return parts[0]
    if origin in (types.UnionType, typing.Union):
        return made(parts[0])
    if origin is list:
        return [made(parts[0])]
    if origin is dict:
        return {made(parts[0]): made(parts[1])}
    if origin is tuple:
        return tuple(map(made, parts))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint(**{field: made(kind) for field, kind in hints(hint).items()})
    assert origin is np.ndarray, f"no value is known for {hint}"
    return np.zeros(1, dtype=np.float32)


def members(union: Any) -> Iterator[type[msgspec.Struct]]:
    """The structs of a union of them."""
    yield from get_args(union)


def scenario(poison: Poison) -> Scenario:
    """One with a word in every text field."""
    stages = [Stage("x", 3), Stage("y", 3)]
    return poison.into(msgspec.structs.replace(made(Scenario), settings={}, stages=stages, script=[], prompts=["x"]))


def lesson(poison: Poison) -> list[dict[str, Any]]:
    """A script that says, asks and claims."""
    word = poison.word
    return [
        {"say": word("script: say")},
        {"ask": {"question": word("script: question"), "choices": [word("script: a"), word("script: b")],
                 "answer": word("script: b"), "because": word("script: because")}},
        {"expect": {"text": word("script: claim"), "metric": "reward", "above": 5.0}},
        {"expect": {"text": "x", "probability": word("script: probability"), "above": 0.5}},
        {"say": word("script: last")},
    ]  # fmt: skip


def records(poison: Poison) -> list[AnyRecord]:
    """A run with at least one record of each kind, every text in it poisoned."""
    text = msgspec.yaml.encode(scenario(poison)).decode()
    first = [synthetic_started(scenario_text=text), *synthetic_update(1), *synthetic_search(2), *synthetic_update(2)]
    last = [synthetic_evaluated(2), *synthetic_update(3, generations=2)]
    there = {type(record) for record in first + last}
    others = [_fitting(made(kind)) for kind in members(AnyRecord) if kind not in there]
    return [poison.into(record) for record in first + others + last]


def _fitting(record: AnyRecord) -> AnyRecord:
    """A made-up record that can be taken for one of the run."""
    given = {"phase": "sample", "settings": msgspec.to_builtins(SETTINGS), "name": "lr_scheduler_type", "also": {}}
    return msgspec.structs.replace(record, **{k: v for k, v in given.items() if k in record.__struct_fields__})


def run_of(poison: Poison, path: Path) -> Path:
    """A run file with hostile words in all of its texts."""
    started, *others = records(poison)
    assert isinstance(started, Started)
    writer = RunWriter.create(path, started)
    for record in others:
        writer.append(record)
    writer.close()
    return path
