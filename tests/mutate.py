"""Mutants of the code that computes numbers, and whether the tests notice each.

`python -m tests.mutate FILE 20 TESTS …` changes one operator, number or condition of the file's functions at a time,
in 20 places spread evenly over the file, and runs the tests until one fails. All is imported once: a mutant is a fork
whose functions have other code. What survives is printed: it is equivalent to the original, or a test is missing.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

_PAIRS = (
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or), (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
)  # fmt: skip
SWAPS: dict[type, type] = {ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Mult}
SWAPS |= dict(_PAIRS) | {second: first for first, second in _PAIRS}
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "sum": "mean", "low": "high"}
NAMES |= {second: first for first, second in NAMES.items()}
FATES = ("survives", "killed", "does not fit")


def others(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in place of an expression or statement by mistake."""
    match node:
        case ast.BinOp(left, op, right):
            yield from (left, ast.BinOp(left, SWAPS[type(op)](), right))
        case ast.BoolOp(op, values):
            yield ast.BoolOp(SWAPS[type(op)](), values)
        case ast.Compare(left, [op, *more], right):
            yield ast.Compare(left, [SWAPS[type(op)](), *more], right)
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            yield operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.If(test, body, orelse) if not isinstance(body[0], ast.Raise):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Name(name, context) if name in NAMES:
            yield ast.Name(NAMES[name], context)
        case ast.Attribute(value, name, context) if name in NAMES:
            yield ast.Attribute(value, NAMES[name], context)
        case ast.keyword(name, value) if name in NAMES:
            yield ast.keyword(NAMES[name], value)


def mutants(whole: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """All mutants of what a module's functions do, but for what they assert and raise: the change, and the module."""

    def visit(parent: ast.AST, inside: bool) -> Iterator[tuple[str, ast.Module]]:
        for name, value in ast.iter_fields(parent):
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or isinstance(node, ast.Assert | ast.Raise | ast.arguments):
                    continue
                if name in ("annotation", "returns", "decorator_list", "pattern"):
                    continue
                for other in others(node) if inside else ():
                    setattr(parent, name, [*value[:index], other, *value[index + 1 :]] if value is not node else other)
                    tree = ast.fix_missing_locations(deepcopy(whole))
                    setattr(parent, name, value)
                    before, after = (ast.unparse(each).split("\n")[0] for each in (node, other))
                    yield f"line {getattr(node, 'lineno', '?')}: {before} → {after}", tree
                yield from visit(node, inside or isinstance(node, ast.FunctionDef | ast.Lambda))

    return visit(whole, False)


def within(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions in it, in order."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from within(each)


def install(mutant: ast.Module, path: Path) -> bool:
    """Give the functions of a file, wherever they are known, the mutant's code; False if it does not fit them."""
    trees = ast.parse(path.read_text()), mutant
    old, new = (list(within(compile(tree, str(path), "exec"))) for tree in trees)
    if [code.co_qualname for code in old] == [code.co_qualname for code in new]:
        instead = dict(zip(old, new, strict=True))
    else:  # a comprehension, a function of its own, is gone: the functions around it are told by their names
        known, found = ({code.co_qualname: code for code in each} for each in (old, new))
        instead = {known[name]: found[name] for name in known.keys() & found.keys() if not name.endswith(">")}
        if all(code == other for code, other in instead.items()):
            return False
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__ in instead:
            try:
                function.__code__ = instead[function.__code__]
            except ValueError:  # it no longer reads a variable of the function around it
                return False
    return True


class Bench:
    """A plugin: instead of running the tests that pytest has collected, it lets mutants meet them."""

    def __init__(self, path: Path, count: int) -> None:
        self.path, self.count = path, count
        self.seconds = 0  # that a mutant may take, or 0; without a limit those of a loop's end would never be done

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Let property tests try the same examples each time, and stop at the first that fails: nobody reads it."""
        from hypothesis import Phase, settings  # not before pytest can rewrite its assertions

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Print the mutants that survive, and how many met which fate."""
        gc.unfreeze()
        whole, fates = ast.parse(self.path.read_text()), Counter[str]()
        begun = time.monotonic()
        assert self.fate(whole, session.items) == "survives", "the tests fail without a mutant"
        self.seconds = 30 + 3 * int(time.monotonic() - begun)
        every = list(mutants(whole))
        for n in range(count := min(self.count, len(every))):
            change, mutant = every[n * len(every) // count]
            fates[fate := self.fate(mutant, session.items)] += 1
            if fate != "killed":
                print(f"{fate}: {change}", flush=True)
        print(f"{self.path.name}: {count} of {len(every)} mutants: {dict(fates)}", flush=True)
        return True

    def fate(self, mutant: ast.Module, items: list[Any]) -> str:
        """What becomes of a mutant, in a process of its own."""
        if pid := os.fork():
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return FATES[status] if 0 <= status < len(FATES) else "killed"  # by a signal
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(self.seconds)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            pairs = zip(items, [*items[1:], None], strict=True)
            reports = (each for item, after in pairs for each in runtestprotocol(item, log=False, nextitem=after))
            status = any(report.failed for report in reports) if install(mutant, self.path) else 2
        finally:
            os._exit(status)


def main(words: list[str]) -> int:
    """Let mutants of a file meet some tests."""
    path, count, tests = Path(words[0]).resolve(), int(words[1]), words[2:]
    importlib.import_module(".".join(path.relative_to(Path.cwd()).with_suffix("").parts))
    with tempfile.TemporaryDirectory() as folder:
        options = ["-s", "-p", "no:cacheprovider", f"--basetemp={folder}/pytest"]
        return int(pytest.main([*options, *tests], plugins=[Bench(path, count)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
