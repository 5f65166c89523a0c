"""Every key binding there is, by the screen or panel that has it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from rlplay.ui.rooms import modules


def classes() -> Iterator[type[DOMNode]]:
    """The panels and dialogues of all rooms, each as often as a module has it."""
    for name in modules():
        for kind in vars(importlib.import_module(name)).values():
            if isinstance(kind, type) and issubclass(kind, DOMNode) and kind.__module__.startswith("rlplay"):
                yield kind


def owners(app: type[DOMNode]) -> list[type[DOMNode]]:
    """The `app`, its panels and its dialogues: all of rlplay's classes that bind keys."""
    return [app, *sorted({kind for kind in classes() if "BINDINGS" in vars(kind)}, key=lambda kind: kind.__name__)]


def bindings(owner: type[DOMNode]) -> Iterator[tuple[str, Binding]]:
    """Each key of an owner with its binding, those of rlplay's base classes included, by Textual's name of the key."""
    found: dict[str, Binding] = {}
    for kind in reversed(owner.__mro__):
        if kind.__module__.startswith("rlplay"):
            for binding in vars(kind).get("BINDINGS", ()):
                if isinstance(binding, Binding):
                    found |= dict.fromkeys(binding.key.split(","), binding)
    yield from found.items()


def is_screen(owner: type[DOMNode]) -> bool:
    """Whether the owner is a dialogue, which hides the keys of the app."""
    return issubclass(owner, Screen)
