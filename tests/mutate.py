"""Mutants of the code that computes numbers, and whether the tests notice each.

`python -m tests.mutate FILE 20 TESTS …` changes one operator, number or condition of the file's functions at a time,
in 20 places spread evenly over the file, and runs the tests until one fails. All is imported once: a mutant is a fork
whose functions have other code. It meets only the tests that run the changed statement, first those that killed other
mutants, then the quick ones. What survives is printed as `tests/equivalent_mutants.toml` lists mutants that no test can
kill: add it there with the reason, or write the test that is missing.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import IO, Any

import pytest
from _pytest.runner import runtestprotocol

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PAIRS = (
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or), (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
)  # fmt: skip
SWAPS: dict[type, type] = {ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Mult}
SWAPS |= dict(_PAIRS) | {second: first for first, second in _PAIRS}
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "sum": "mean", "low": "high"}
NAMES |= {second: first for first, second in NAMES.items()}

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
"""Mutants that compute what the original computes, by file, with the reason."""

_SLOWER = 3
_START = 30
"""A mutant is stopped after so many seconds and so many times what the original took: its loop does not end."""


@dataclass(frozen=True)
class Mutant:
    """One change of a statement in a function, in this `line`; `tree` makes the module with it."""

    function: str
    was: str
    becomes: str
    line: int
    tree: Callable[[], ast.Module]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells a mutant from the others of its file, wherever the function stands in it."""
        return self.function, self.was, self.becomes


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


def mutants(whole: ast.Module) -> Iterator[Mutant]:
    """All mutants of what a module's functions do, but for what they assert and raise."""

    def visit(parent: ast.AST, names: tuple[str, ...], inside: bool, around: ast.stmt | None) -> Iterator[Mutant]:
        for name, value in ast.iter_fields(parent):
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or isinstance(node, ast.Assert | ast.Raise | ast.arguments):
                    continue
                if name in ("annotation", "returns", "decorator_list", "pattern"):
                    continue
                if isinstance(node, ast.keyword) and node.arg == "strict":  # an assertion, too
                    continue
                here = node if isinstance(node, ast.stmt) else around
                for other in others(node) if inside and here is not None else ():
                    instead = [*value[:index], other, *value[index + 1 :]] if value is not node else other
                    yield _mutant(".".join(names), here, parent, (name, value, instead), other)
                own = not inside and isinstance(node, (*_FUNCTIONS, ast.ClassDef))
                deeper = inside or isinstance(node, (*_FUNCTIONS, ast.Lambda))
                yield from visit(node, (*names, node.name) if own else names, deeper, here)

    def _mutant(
        function: str, statement: ast.stmt, parent: ast.AST, change: tuple[str, Any, Any], other: ast.AST
    ) -> Mutant:
        name, value, instead = change
        replaced = isinstance(other, ast.stmt)
        was = _line(statement)
        setattr(parent, name, instead)
        becomes = _line(other if replaced else statement)
        setattr(parent, name, value)

        def tree() -> ast.Module:
            setattr(parent, name, instead)
            found = ast.fix_missing_locations(deepcopy(whole))
            setattr(parent, name, value)
            return found

        return Mutant(function, was, becomes, statement.lineno, tree)

    return visit(whole, (), False, None)


def _line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def probed(whole: ast.Module) -> ast.Module:
    """The module with a note of every statement in a function that runs: its line goes to the module's `__ran__`."""
    tree = deepcopy(whole)
    for function in [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]:
        blocks = [getattr(node, name, []) for node in _own(function) for name in ("body", "orelse", "finalbody")]
        for block in blocks:
            if isinstance(block, list):  # that of a lambda or of a conditional expression is an expression
                notes = [ast.parse(f"__ran__.add({each.lineno})").body[0] for each in block]
                block[:] = [each for both in zip(notes, block, strict=True) for each in both]
    return ast.fix_missing_locations(tree)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """A function and what is in it, without the functions and lambdas in it."""
    waiting: list[ast.AST] = [function]
    while waiting:
        yield (node := waiting.pop())
        waiting += [each for each in ast.iter_child_nodes(node) if not isinstance(each, (*_FUNCTIONS, ast.Lambda))]


def equivalents(path: Path) -> set[tuple[str, str, str]]:
    """The mutants of a file that are listed as equivalent, by their keys."""
    listed = tomllib.loads(EQUIVALENT.read_text()).get(path.relative_to(Path.cwd()).as_posix(), [])
    return {(each["function"], each["was"], each["becomes"]) for each in listed}


def within(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions in it, in order."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from within(each)


def install(mutant: ast.Module, path: Path, text: str) -> bool:
    """Give the functions of a file, wherever they are known, the mutant's code; False if it does not fit them."""
    trees = ast.parse(text), mutant
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


@dataclass
class Met:
    """What a process found in the tests that it ran: which failed, how long each took, which statements each ran."""

    failed: int | None = None
    seconds: dict[int, float] = field(default_factory=dict)
    lines: dict[int, set[int]] = field(default_factory=dict)


class Bench:
    """A plugin: instead of running the tests that pytest has collected, it lets mutants meet them."""

    def __init__(self, path: Path, count: int) -> None:
        self.path, self.count, self.text = path, count, path.read_text()
        self.module = importlib.import_module(".".join(path.relative_to(Path.cwd()).with_suffix("").parts))
        self.kills = Counter[int]()

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
        whole, fates, items = ast.parse(self.text), Counter[str](), session.items
        original = self.met(probed(whole), items, list(range(len(items))), 0)
        assert original is not None, "the tests did not end"
        assert original.failed is None, f"{items[original.failed].nodeid} fails without a mutant"
        every, known = list(mutants(whole)), equivalents(self.path)
        for n in range(count := min(self.count, len(every))):
            mutant = every[n * len(every) // count]
            fates[fate := "equivalent" if mutant.key in known else self.fate(mutant, items, original)] += 1
            if fate in ("survives", "does not fit"):
                parts = zip(("function", "was", "becomes", "why"), (*mutant.key, ""), strict=True)
                print(f"# {fate}: line {mutant.line}\n[[{json.dumps(self.name)}]]")
                print(*(f"{part} = {json.dumps(text, ensure_ascii=False)}" for part, text in parts), "", sep="\n")
                sys.stdout.flush()
        print(f"{self.path.name}: {count} of {len(every)} mutants: {dict(fates)}", flush=True)
        return True

    @property
    def name(self) -> str:
        """The file's, as the list of equivalent mutants has it."""
        return self.path.relative_to(Path.cwd()).as_posix()

    def fate(self, mutant: Mutant, items: list[Any], original: Met) -> str:
        """What becomes of a mutant."""
        reaching = [i for i, lines in original.lines.items() if mutant.line in lines]
        reaching.sort(key=lambda i: (-self.kills[i], original.seconds[i]))
        limit = _START + int(_SLOWER * sum(original.seconds[i] for i in reaching))
        try:
            met = self.met(mutant.tree(), items, reaching, limit)
        except ValueError:
            return "does not fit"
        if met is None:
            return "killed by the clock"
        if met.failed is None:
            return "survives"
        self.kills[met.failed] += 1
        return "killed"

    def met(self, tree: ast.Module, items: list[Any], order: list[int], limit: int) -> Met | None:
        """What the tests make of a module, in a process of its own; None if they do not end.

        Raises ValueError if its functions cannot be given the module's code.
        """
        with tempfile.TemporaryFile("a+") as file:
            if not (pid := os.fork()):
                try:
                    self._run(tree, [(i, items[i]) for i in order], limit, file)
                finally:
                    os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            file.seek(0)
            told = [json.loads(line) for line in file if line.endswith("\n")]
        if ["misfit"] in told:
            raise ValueError("the mutant does not fit")
        found, begun = Met(), [what[1] for what in told if what[0] == "begun"]
        for what in told:
            if what[0] == "ended":
                _, index, seconds, failed, ran = what
                found.seconds[index], found.lines[index] = seconds, set(ran)
                found.failed = index if failed else found.failed
        if found.failed is None and len(found.seconds) < len(order):  # it ended, or was ended, in the middle of a test
            if status == -signal.SIGALRM:
                return None
            found.failed = begun[-1] if begun else order[0]
        return found

    def _run(self, tree: ast.Module, chosen: list[tuple[int, Any]], limit: int, file: IO[str]) -> None:
        """Run the tests until one fails and write down what happens, a line of JSON each."""

        def tell(*what: Any) -> None:
            print(json.dumps(what), file=file, flush=True)

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        if not install(tree, self.path, self.text):
            tell("misfit")
            return
        signal.alarm(limit)
        ran = vars(self.module)["__ran__"] = set[int]()
        for (index, item), after in zip(chosen, [*(item for _, item in chosen[1:]), None], strict=True):
            tell("begun", index)
            begun = time.monotonic()
            failed = any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))
            tell("ended", index, time.monotonic() - begun, failed, sorted(ran))
            ran.clear()
            if failed:
                return


def main(words: list[str]) -> int:
    """Let mutants of a file meet some tests."""
    path, count, tests = Path(words[0]).resolve(), int(words[1]), words[2:]
    with tempfile.TemporaryDirectory() as folder:
        options = ["-s", "-p", "no:cacheprovider", f"--basetemp={folder}/pytest"]
        return int(pytest.main([*options, *tests], plugins=[Bench(path, count)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
