"""What other installed packages add, by their entry points: tasks, statistics of tokens, metrics, algorithms.

A package that cannot be used is left out and named in one line; it never stops rlplay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from rlplay.trace.text import quote

GROUPS = {"rlplay.tasks": "task", "rlplay.lenses": "lens", "rlplay.metrics": "metric", "rlplay.algorithms": "algorithm"}
"""The groups of entry points, each with what one of them is called."""
_HEAVY = ("torch", "transformers", "accelerate")

Kind = TypeVar("Kind")
_problems: dict[tuple[str, str], str] = {}


@cache
def names(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; of two with one name, the first counts. Nothing is imported."""
    chosen = dict[str, EntryPoint]()
    for entry in _installed():
        if entry.group != group:
            continue
        if chosen.setdefault(entry.name, entry) is not entry:
            refuse(group, entry.name, f"{_package(chosen[entry.name])} and {_package(entry)} both bring it")
    return chosen


@cache
def _installed() -> list[EntryPoint]:
    """All entry points in rlplay's groups; looking through every installed package once takes long enough."""
    try:
        found = entry_points()
        return [entry for group in GROUPS for entry in found.select(group=group)]
    except Exception:  # damaged metadata of any package
        return []


def load(group: str, name: str, light: bool) -> Any:
    """What an entry point names, imported; `light` ones, which the screen also loads, may not import torch.

    Raises ValueError, one line with the package, if that fails.
    """
    entry = names(group)[name]
    try:
        with _without_heavy_imports(light):
            return entry.load()
    except (Exception, SystemExit) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        refuse(group, name, what)
        raise ValueError(_line(group, name, what)) from error


def additions(group: str, kind: type[Kind], taken: Mapping[str, Any]) -> dict[str, Kind]:
    """The entry points of a group that are of this kind and whose names are not `taken`; others are refused."""
    found = dict[str, Kind]()
    for name in names(group):
        try:
            value = load(group, name, light=True)
        except ValueError:
            continue
        if not isinstance(value, kind):
            refuse(group, name, f"it is of the type {type(value).__name__}, not {kind.__name__}")
        elif name in taken:
            refuse(group, name, "rlplay has one of this name itself")
        elif getattr(value, "name", name) != name:
            refuse(group, name, f"it calls itself {quote(getattr(value, 'name', ''))}")
        else:
            found[name] = value
    return found


def refuse(group: str, name: str, why: str) -> None:
    """Note why an entry point is left out."""
    _problems.setdefault((group, name), why)


def report() -> Iterator[str]:
    """A line for each entry point that was found, with its package, and why it is left out if it is."""
    for group, called in GROUPS.items():
        for name, entry in names(group).items():
            yield (
                _line(group, name, _problems[group, name])
                if (group, name) in _problems
                else (f"{called} {name} from {_package(entry)}")
            )


def _line(group: str, name: str, what: str) -> str:
    return f"{GROUPS[group]} {name} from {_package(names(group)[name])} CANNOT BE USED: {what}"


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


class _Wall(MetaPathFinder):
    """Refuses the libraries that the screen must not load."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if name.partition(".")[0] in _HEAVY:
            raise ImportError(f"it imports {name}, which the screen does without; import it inside a function")
        return None


@contextmanager
def _without_heavy_imports(light: bool) -> Iterator[None]:
    wall = _Wall()
    if light:
        sys.meta_path.insert(0, wall)
    try:
        yield
    finally:
        if light:
            sys.meta_path.remove(wall)
