"""Values of settings: how they are checked, read from text and records, and written."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS, OTHER_NAMES
from rlplay.algorithms.own_choices import OWN, absolute_files, names_file
from rlplay.algorithms.settings import CHOICES, HEAVIEST, Settings
from rlplay.algorithms.trl_options import said_of
from rlplay.plain_yaml import PlainYamlError, plain_yaml
from rlplay.spelling import nearest
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.numbers import compact, short_exponent
from rlplay.trace.text import quote

_TYPES = get_type_hints(Settings)
_NAMES = Settings.__struct_fields__


def choices(name: str) -> tuple[str, ...]:
    """The allowed words of a setting that takes one of a few words; empty for all others."""
    if name in OWN:
        return tuple(CHOICES[name])
    kind = _TYPES[name]
    return tuple(get_args(kind)) if get_origin(kind) is Literal else ()


def check(name: str, value: Any) -> Any:
    """`value` as the type of setting `name`: "0.1" becomes 0.1, 1 becomes 1.0.

    Raises ValueError, one line with the setting, the allowed values and the given one.
    """
    if name not in KNOBS:
        raise ValueError(unknown(name))
    try:
        checked = msgspec.convert(_parsed(name, value), _TYPES[name], strict=False)
    except msgspec.ValidationError:
        raise ValueError(_wrong_word(name, value)) from None
    if names_file(name, checked):
        checked = absolute_files({name: checked}, Path.cwd())[name]
    elif choices(name) and checked not in choices(name):
        raise ValueError(_wrong_word(name, value))
    knob = KNOBS[name]
    bounded = isinstance(checked, (int, float)) and knob.low is not None and knob.high is not None
    if bounded and not knob.low <= checked <= knob.high:
        raise ValueError(_refusal(name, value))
    numbers = [each for each in checked.values() if isinstance(each, float)] if name in _MAPPINGS else []
    if wrong := [each for each in numbers if not abs(each) <= HEAVIEST]:
        raise ValueError(
            f"{name} takes numbers from {written(-HEAVIEST)} to {written(HEAVIEST)}; got {compact(wrong[0])}"
        )
    return checked


def unknown(name: str) -> str:
    """The message for an unknown setting: the likely one, or where to find all."""
    called = (knob for knob, names in OTHER_NAMES.items() if name in names)
    near = next(called, None)
    if near is None and (said := said_of(name)):
        return f"unknown setting {quote(name)}; {said}"
    near = near or nearest(name, list(KNOBS))
    return f"unknown setting {quote(name)}; " + (f"did you mean {near!r}?" if near else "'rlplay settings' lists all")


def _wrong_word(name: str, value: Any) -> str:
    said, word = _refusal(name, value), str(value)
    if name == "loss_type" and re.search(r"[,+ ]", word):
        return f"{said}; loss_weights adds up several losses of a pair: {_MAPPINGS['loss_weights']}"
    if choices(name) and (called := word.lower().replace("_", "-")) in PRESETS:
        return f"{said}; it is a combination of settings: algorithm={called}"
    if word.lower() == "none" and Settings.__struct_defaults__[_NAMES.index(name)] == 0:
        return f"{said}; 0, the default, is none"
    near = nearest(word, choices(name))
    return said + (f"; did you mean {near!r}?" if near else "")


def _refusal(name: str, value: Any) -> str:
    return f"{name} is {takes(name)}; got {quote(value)}"


def takes(name: str) -> str:
    """The allowed values of a setting, in words: `a number from 0 to 1, e.g. 0.0004`."""
    kind, knob, default = _TYPES[name], KNOBS[name], Settings.__struct_defaults__[_NAMES.index(name)]
    if words := choices(name):
        return f"one of {', '.join(words)}{', or FILE.py:FUNCTION' if name in OWN else ''}"
    if kind is bool:
        return "on or off"
    if name in _MAPPINGS:
        return _MAPPINGS[name]
    if name == "algorithm":
        return "the name of an algorithm, e.g. grpo"
    assert knob.low is not None
    assert knob.high is not None
    number = "a whole number" if kind in (int, int | None) else "a number"
    example = ", or none" if default is None else f", e.g. {written(default)}" if default else ""
    return f"{number} from {written(knob.low)} to {written(knob.high)}{example}"


_MAPPINGS = {
    "reward_weights": "a weight for each reward by name, e.g. {correct: 1}",
    "loss_weights": "a weight for each loss of a pair, e.g. {sigmoid: 0.8, bco_pair: 0.2, sft: 1}",
    "squares": "a reward for arms or squares, or one of G, O, #, I (ice) and . for a square, e.g. {b3: -1, d4: .}",
}
"""Settings with a value for each of several names, and what they take."""
_SWITCHES = {"on": True, "yes": True, "off": False, "no": False}
"""Other spellings of true and false."""


def _parsed(name: str, value: Any) -> Any:
    if name in _MAPPINGS and isinstance(value, dict):  # YAML takes an arm called 0 for a number
        return {str(key) if type(key) is int else key: each for key, each in value.items()}
    if not isinstance(value, str):
        return value
    if _TYPES[name] in (float | None, int | None) and value.lower() in ("", "none", "null"):
        return None
    if name in _MAPPINGS:
        with contextlib.suppress(PlainYamlError):
            content = plain_yaml(value)
            return _parsed(name, content) if isinstance(content, dict) else content
    number = {int: int, int | None: int, float: float, float | None: float}.get(_TYPES[name])
    if number is not None:
        with contextlib.suppress(ValueError):  # then the message says what it takes
            return number(value.replace("−", "-"))
    return _SWITCHES.get(value.lower(), value) if _TYPES[name] is bool else value


def _quoted(value: Any) -> str:
    """A value in a mapping; a word in quotes if YAML would take it for something else."""
    return written(value) if not isinstance(value, str) or value.isalpha() or value == "." else json.dumps(value)


def shown(value: Any) -> str:
    """A value as the screen shows it: as `written`, but with on and off."""
    return ("off", "on")[value] if isinstance(value, bool) else written(value)


def written(value: Any) -> str:
    """A value as files and commands write it, with all digits: 0.0004, none, true, {correct: 1}."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_quoted(each)}" for name, each in value.items()) + "}"
    if isinstance(value, float):
        return short if float(short := compact(value)) == value else short_exponent(repr(value))
    return str(value)


_WORDS = {name: words for name in _NAMES if (words := choices(name))}


def decoded(recorded: Mapping[str, Any]) -> Settings:
    """Settings as records and messages hold them; what they lack has its default, an algorithm is then "".

    What this version does not know, a setting or one of its words, is left out. A few microseconds, so that nobody has
    to keep the result. Raises msgspec.ValidationError, a ValueError of one line, if a value has another type.
    """
    known: SomeSettings = {"algorithm": "", **recorded}
    for name in known.keys() - _TYPES.keys():
        del known[name]
    for name, words in _WORDS.items():
        if name in known and known[name] not in words and not names_file(name, known[name]):
            del known[name]
    return exact(known)


def exact(recorded: SomeSettings) -> Settings:
    """Recorded settings to train on. Raises msgspec.ValidationError, a ValueError, if they are not this version's."""
    return msgspec.convert(recorded, Settings)


def fitting(said: SomeSettings) -> SomeSettings:
    """Those of the settings that another program has `said` that have the types of rlplay's."""
    found: SomeSettings = {}
    for name, value in said.items():
        with contextlib.suppress(msgspec.ValidationError):
            decoded({name: value})
            found[name] = value
    return found
