"""The names of environments of other libraries: `KIND:NAME?option=value&option=value`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import msgspec

from rlplay.containment import OwnError
from rlplay.plain_yaml import PlainYamlError, plain_yaml
from rlplay.trace.text import quote
from rlplay.trusted import without_password
from rlplay.user_code import imported, in_one_line

_LARGEST = 1_000_000
"""Prompts at most: each is made before the run begins."""


class Kind(msgspec.Struct, frozen=True):
    """A library: the file here that reads it, the package that Python imports, and what the user installs."""

    module: str
    package: str
    extra: str
    names: str  # an example
    size: int  # prompts, unless the user says how many
    speaker: str = ""  # what replies between the model's turns


KINDS = {
    "reasoning-gym": Kind("reasoning_gym", "reasoning_gym", "reasoning-gym", "chain_sum", 500),
    "textarena": Kind("textarena", "textarena", "textarena", "GuessTheNumber-v0", 100, "game"),
    "openenv": Kind("openenv", "openenv", "openenv", "http://127.0.0.1:8000", 20, "environment"),
    "verifiers": Kind("verifiers", "verifiers", "verifiers", "gsm8k-v1", 500),
}
"""The libraries by the word before the colon."""


class Entry(msgspec.Struct, frozen=True):
    """What the user has written: the library, the name there, and the options; `size` and `seed` are for all."""

    text: str
    kind: str
    name: str
    size: int
    seed: int
    options: dict[str, Any]

    @property
    def module(self) -> str:
        """The module of an environment's own package: `owner/my-env@1.2` is installed as `my_env`."""
        return self.name.rpartition("/")[2].partition("@")[0].replace("-", "_").lower()

    def library(self, part: str = "") -> ModuleType:
        """The library's module, or a part of it. Raises OwnError, one line, if it is missing or not trusted."""
        self.check_installed()
        kind = KINDS[self.kind]
        return imported(kind.package, f"{kind.package}.{part}" if part else None)

    def check_installed(self) -> None:
        """Raises OwnError, one line, if the library is missing."""
        kind = KINDS[self.kind]
        if kind.package not in sys.modules and find_spec(kind.package) is None:
            raise OwnError(f"environment {quote(self.text)} needs a library: pip install 'rlplay[{kind.extra}]'")

    def judged(self) -> OwnError:
        """What to say of an environment that would send answers to an address which nobody has named."""
        return OwnError(f"{self.text} asks a judge of its own; rlplay asks those that you name: --reward judge.yaml")

    def failed(self, error: BaseException) -> OwnError:
        """An error of the library's, in one line."""
        return OwnError(f"{self.text}: {in_one_line(error)}")


class LibraryFunction:
    """A function for rewards or replies, called as the user's own are."""

    def __init__(self, entry: Entry, name: str, function: Callable[..., Any]) -> None:
        self.place, self.name = entry.text, name
        self._entry, self._function = entry, function

    def current(self) -> Callable[..., Any]:
        """The function."""
        return self._function

    def failed(self, error: BaseException) -> OwnError:
        """An error that it raised, in one line."""
        return self._entry.failed(error)


def is_of_library(entry: object) -> bool:
    """Whether a name means an environment of another library."""
    return isinstance(entry, str) and entry.partition(":")[0] in KINDS and ":" in entry


def read_entry(text: str) -> Entry:
    """The parts of a name. Raises OwnError, one line, if it names nothing, or an option cannot be read.

    A password in an address is refused, as run files keep the name and screens show it.
    """
    if text != without_password(text):
        raise OwnError(
            f"environment {quote(without_password(text))}: its address holds a password, which run files would keep"
        )
    kind, _, rest = text.partition(":")
    name, _, query = rest.partition("?")
    if not name:
        raise OwnError(f"{kind}: names an environment, as in {kind}:{KINDS[kind].names}")
    pairs = [pair.partition("=") for pair in query.split("&") if query]
    try:
        options = {key: plain_yaml(unquote(value)) for key, _, value in pairs}
    except PlainYamlError:
        options = {"": None}
    if not all(key and equals for key, equals, _ in pairs) or "" in options:
        example = f"{kind}:{KINDS[kind].names}?size=200&seed=3"
        raise OwnError(f"environment {quote(text)}: write options as in {quote(example)}")
    size, seed = options.pop("size", KINDS[kind].size), options.pop("seed", 0)
    for word, number, least in (("size", size, 1), ("seed", seed, 0)):
        if type(number) is not int or not least <= number <= _LARGEST:
            raise OwnError(
                f"environment {quote(text)}: {word} is a whole number from {least} to {_LARGEST:,}; got {quote(number)}"
            )
    return Entry(text, kind, name.rstrip("/") if kind == "openenv" else name, size, seed, options)
