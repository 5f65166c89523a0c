"""Which files a user's Python file imports from its own folder: they run with it, so trust in it includes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.machinery import all_suffixes
from pathlib import Path


def with_imports(file: Path) -> list[Path]:
    """`file`, then the files of its folder that it imports, and those that they import, by name.

    They are found in the text. What the code imports by other means, such as exec or import_module, is not.
    """
    found, waiting = set[Path](), [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [one for name in _names(path) for one in _beside(file.parent, name)]
    return [file, *sorted(found - {file})]


def _names(path: Path) -> Iterator[str]:
    """The top-level modules that a file imports."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # no Python that could run
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _beside(folder: Path, name: str) -> Iterator[Path]:
    """The files of a module in `folder`; of a package, all of them."""
    yield from (path for suffix in all_suffixes() if (path := folder / f"{name}{suffix}").is_file())
    for suffix in all_suffixes() if (folder / name).is_dir() else ():
        yield from (path for path in (folder / name).rglob(f"*{suffix}") if path.is_file())
