"""What a user's Python file imports from its own folder: which files these are, and how they are imported.

They run with the file, so trust in it includes them. They are imported from source alone, also if the code puts its
folder on Python's path: compiled files there, which nobody can read, are never run.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, PathFinder, SourceFileLoader
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
    if not _folders:
        place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(place, _Libraries())
        sys.meta_path.append(_Beside())
    _folders.setdefault(os.path.realpath(folder), read)


_folders: dict[str, Read] = {}
"""The users' folders."""
_roots = [*filter(None, sys.path), str(Path(__file__).parent)]
_libraries = {*map(os.path.abspath, _roots), *map(os.path.realpath, _roots)}
"""Where Python looked for modules before any user's file ran, and rlplay: these may lie in a user's folder."""


class _Libraries(MetaPathFinder):
    """Finds what Python's own finder finds, but what lies in a user's folder only as source."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """The module; None if Python would not find it. Raises ModuleNotFoundError if a user's has no source."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not spec.has_location or spec.origin is None:
            return spec  # a folder without code, whose modules are asked for one by one
        folder = os.path.dirname(spec.origin)
        container = os.path.dirname(folder) if spec.submodule_search_locations is not None else folder
        if (read := _reader(container)) is None:
            return spec
        if (found := _spec(name, container, read)) is None:
            raise ModuleNotFoundError(f"{name} has no source in {container}; compiled files do not run", name=name)
        return found


class _Beside(MetaPathFinder):
    """Finds the modules in the users' folders after all others."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """The module, or None if no folder has it."""
        specs = (_spec(name, folder, read) for folder, read in _folders.items() if path is None)
        return next((spec for spec in specs if spec is not None), None)


def _reader(folder: str) -> Read | None:
    """What reads the files of a folder in or below one of the users', also by a link there; None for a library's."""
    for form in (os.path.abspath, os.path.realpath):
        path = Path(form(folder))
        place = next((each for each in map(str, (path, *path.parents)) if each in _folders or each in _libraries), "")
        if place in _folders:
            return _folders[place]
    return None


def _spec(name: str, folder: str, read: Read) -> ModuleSpec | None:
    class Source(SourceFileLoader):
        """Compiles what `read` gives, never what a cache beside the file holds."""

        def get_code(self, fullname: str) -> CodeType:
            path = self.get_filename(fullname)
            return self.source_to_code(read(Path(path)), path)

    return FileFinder(folder, (Source, SOURCE_SUFFIXES)).find_spec(name)
