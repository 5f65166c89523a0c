"""What a user's Python file imports from its own folder: which files these are, and how they are imported.

They run with the file, so trust in it includes them. They are imported from source alone: compiled files beside them,
which nobody can read, are never run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

Read = Callable[[Path], bytes]
"""The content of a file that may run; raises ImportError, one line, if it may not."""


def with_imports(file: Path) -> list[Path]:
    """`file`, then the files of its folder that it imports, and those that they import, by name.

    They are found in the text. What the code imports by other means, such as exec or import_module, is not.
    """
    folder, found, waiting = file.resolve().parent, set[Path](), [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [one for name in _names(path) for one in _beside(folder, name)]
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
    """The source files of a module in `folder`; of a package, all of them."""
    if (folder / f"{name}.py").is_file():
        yield folder / f"{name}.py"
    if (folder / name).is_dir():
        yield from (path for path in (folder / name).rglob("*.py") if path.is_file())


def import_from(folder: Path, read: Read) -> None:
    """Let files import from `folder` from now on, with the content that `read` gives.

    A library of the same name comes first.
    """
    if _Modules not in map(type, sys.meta_path):
        # Python's own finder would take a submodule from its folder's cache of compiled files.
        sys.meta_path.insert(0, _Submodules())
        sys.meta_path.append(_Modules())
    _folders.setdefault(str(folder), read)


_folders: dict[str, Read] = {}
_found: dict[str, Read] = {}
"""The modules and packages found in these folders, by their top-level name."""


class _Modules(MetaPathFinder):
    """Finds the modules in the users' folders after all others."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """The module, or None if no folder has it."""
        for folder, read in _folders.items() if path is None else ():
            if (spec := _spec(name, folder, read)) is not None:
                _found[name] = read
                return spec
        return None


class _Submodules(MetaPathFinder):
    """Finds the modules of a package that `_Modules` found, before any other."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """The module, or None if its package is no user's."""
        read = _found.get(name.partition(".")[0])
        if path is None or read is None:
            return None
        return next((spec for folder in path if (spec := _spec(name, folder, read)) is not None), None)


def _spec(name: str, folder: str, read: Read) -> ModuleSpec | None:
    class Source(SourceFileLoader):
        """Compiles what `read` gives, never what a cache beside the file holds."""

        def get_code(self, fullname: str) -> CodeType:
            path = self.get_filename(fullname)
            return self.source_to_code(read(Path(path)), path)

    return FileFinder(folder, (Source, SOURCE_SUFFIXES)).find_spec(name)
