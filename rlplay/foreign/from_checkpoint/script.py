"""Whether a Python file trains as soon as it is loaded, as a training script does that holds its reward, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.text import brief_path

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def check_loads_quietly(entry: str) -> None:
    """Raises ForeignRunError, one line, if the file of FILE.py:FUNCTION calls something's `train()` when it is loaded.

    The file is parsed and not run. One that cannot be parsed is left to its loader, which says why.
    """
    file = Path(entry.rpartition(":")[0]).expanduser()
    if file.suffix != ".py" or not file.is_file():
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if (line := next(_training(tree.body), None)) is not None:
        raise ForeignRunError(
            f"{brief_path(str(file))}:{line} trains as soon as the file is loaded: move the reward into a file of "
            'its own, or the training under if __name__ == "__main__":'
        )


def _training(statements: list[ast.stmt]) -> Iterator[int]:
    """The lines of calls of a method `train` that run when the statements do."""
    waiting: list[ast.AST] = [each for each in statements if not _is_guarded(each)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "train":
            yield node.lineno
        waiting += [each for each in ast.iter_child_nodes(node) if not isinstance(each, _INNER)]


def _is_guarded(statement: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, or defines something."""
    if isinstance(statement, _INNER):
        return True
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
