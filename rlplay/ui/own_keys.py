"""The user's own keys, from a file: action and key, one a line. Checked against all bindings before they are taken."""

from __future__ import annotations

import re
from typing import Any

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys

from rlplay import paths
from rlplay.plain_yaml import PlainYamlError, plain_yaml, read_text
from rlplay.spelling import did_you_mean
from rlplay.trace.text import visible
from rlplay.ui.bindings import bindings, is_screen, owners
from rlplay.ui.format.shortcuts import written

KEPT = {"ctrl+q", "ctrl+p", "ctrl+c", "ctrl+z", "tab", "shift+tab", "escape", "enter"}
"""Keys that must stay what they are: to leave, to find everything, to move."""
_MODIFIED = re.compile(r"(?:(?:ctrl|shift|alt)\+)*(.+)")
_NAMED = {key.value for key in Keys} | {f"f{number}" for number in range(1, 25)}


def read(app: type[DOMNode]) -> dict[str, str]:
    """The key of each action in the file, in Textual's names; empty if there is no file.

    Raises ValueError, one line, for an unknown action or key and for a key with two meanings.
    """
    path = paths.own_keys()
    try:
        content = plain_yaml(read_text(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(f"{visible(str(path))} cannot be read: {error.strerror}") from None
    except PlainYamlError as error:
        raise ValueError(f"{visible(str(path))}: {error}") from None
    try:
        return keymap({} if content is None else content, app)
    except ValueError as error:
        raise ValueError(f"{visible(str(path))}: {error}") from None


def keymap(content: Any, app: type[DOMNode]) -> dict[str, str]:
    """The same from the file's content."""
    if not isinstance(content, dict):
        raise ValueError("write one action and its key a line, for example lens: x")
    known = actions(app)
    chosen: dict[str, str] = {}
    for action, key in content.items():
        if action not in known:
            hint = did_you_mean(str(action), sorted(known)) or "; docs/keys.md lists the actions"
            raise ValueError(f"there is no action {visible(repr(action))}{hint}")
        chosen[action] = _key(action, key)
    for owner in owners(app):
        _check(owner, app, chosen)
    return chosen


def actions(app: type[DOMNode]) -> dict[str, str]:
    """The actions whose keys can be chosen, each with its key."""
    return {binding.id: binding.key for owner in owners(app) for _, binding in bindings(owner) if binding.id}


def _key(action: str, key: Any) -> str:
    """Textual's name of a key."""
    text = str(key).strip() if isinstance(key, str | int) and not isinstance(key, bool) else ""
    if not text:
        raise ValueError(f"{action} needs a key in quotes, for example {action}: 'x'")
    name = _named(text) if len(text) == 1 else text.lower()
    base = _MODIFIED.fullmatch(name)
    plain = base is not None and len(base.group(1)) == 1
    if not (plain or name in _NAMED or (len(text) == 1 and text.isprintable()) or (base and base.group(1) in _NAMED)):
        raise ValueError(f"{action}: there is no key {visible(repr(text))}; write it as x, X, f5, ctrl+x or ?")
    if name in KEPT:
        raise ValueError(f"{action}: {name} cannot be given away; choose another key")
    return name


def _named(character: str) -> str:
    """A character's key: Textual names it when a binding is made, whose keys are separated by commas."""
    return "comma" if character == "," else next(iter(Binding.make_bindings([Binding(character, "")]))).key


def _check(owner: type[DOMNode], app: type[DOMNode], chosen: dict[str, str]) -> None:
    """A panel's keys are pressed beside those of the app, a dialogue's alone."""
    beside = [] if owner is app or is_screen(owner) else list(bindings(app))
    taken: dict[str, str] = {}
    for key, binding in [*bindings(owner), *beside]:
        what = binding.id or f"“{binding.description}”"
        now = key if binding.id is None else chosen.get(binding.id, key)
        if taken.setdefault(now, what) != what and {taken[now], what} & set(chosen):
            where = "" if owner is app else f" in {owner.__name__}"
            raise ValueError(f"{written(now)} is the key of both {taken[now]} and {what}{where}; give one another key")
