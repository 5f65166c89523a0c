"""Private names of other people's code: what rlplay uses of them, found in its source."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "rlplay"


def private(name: str) -> bool:
    """Whether a name is private: it begins with an underscore, and is not one of Python's own, such as `__init__`."""
    return name.startswith("_") and bool(name.strip("_")) and not name.endswith("__")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """The source of each module of rlplay."""
    return {
        ".".join(("rlplay", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(ROOT.rglob("*.py"))
    }


@functools.cache
def defined(tree: ast.AST) -> set[str]:
    """The private names that a source defines: functions, classes, variables, and attributes of `self` and `cls`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
    return set(filter(private, found))


def used(tree: ast.AST) -> Iterator[str]:
    """The private names that a source uses of something: attributes, imports, and strings that name an attribute."""
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for each in node.names for part in each.name.split(".")]
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.isidentifier()
            and node not in parts
        ):
            names = [node.value]
        yield from filter(private, names)


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of rlplay that a source imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rlplay"):
            yield from (str(node.module), *(f"{node.module}.{each.name}" for each in node.names))


def ancestors(module: str) -> Iterator[str]:
    """The modules of rlplay whose classes those of a module derive from, over several generations."""
    tree = modules()[module]
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {base.id for each in classes for base in each.bases if isinstance(base, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules() and bases & {each.name for each in node.names}:
            yield node.module
            yield from ancestors(node.module)


def foreign(module: str) -> set[str]:
    """The private names that a module uses and that neither itself, nor what it imports or inherits from, defines."""
    sources = modules()
    own = defined(sources[module])
    for each in {*imported(sources[module]), *ancestors(module)}:
        own |= defined(sources[each]) if each in sources else set()
    return set(used(sources[module])) - own


@functools.cache
def _source(module: str) -> ast.Module:
    try:
        return ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):  # written in C, or made when it was imported
        return ast.Module([], [])


@functools.cache
def members(kind: type) -> frozenset[str]:
    """The private attributes and methods that a class has of its own, those of its instances included."""
    here: ast.AST | None = _source(kind.__module__)
    for part in kind.__qualname__.split("."):
        inside = () if here is None else ast.walk(here)
        here = next((node for node in inside if isinstance(node, ast.ClassDef) and node.name == part), None)
    if not isinstance(here, ast.ClassDef):
        return frozenset()
    found = {
        node.attr
        for node in ast.walk(here)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    for node in here.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(filter(private, found))


def classes(module: str) -> Iterator[type]:
    """The classes that a module of rlplay defines."""
    for kind in list(vars(importlib.import_module(module)).values()):
        if isinstance(kind, type) and kind.__module__ == module:
            yield kind


def overridden(kind: type) -> dict[str, str]:
    """The private names that a class of rlplay, or another one that it is made of, defines again although a class of
    others has them: each with the module that does."""
    theirs = {name for base in kind.__mro__ if not _ours(base) for name in members(base)}
    return {name: base.__module__ for base in kind.__mro__ if _ours(base) for name in members(base) & theirs}


def _ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "rlplay"
