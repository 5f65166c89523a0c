"""The mutants that are listed as equivalent are mutants of the code as it is, each with a reason."""

from __future__ import annotations

import ast
import tomllib
from typing import Any

import pytest

from tests.mutate import EQUIVALENT, mutants, probed

LISTED = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
ROOT = EQUIVALENT.parents[1]


@pytest.mark.parametrize("name", LISTED)
def test_every_equivalent_mutant_is_one_of_its_file(name: str) -> None:
    known = {mutant.key for mutant in mutants(ast.parse((ROOT / name).read_text(encoding="utf-8")))}
    keys = [(each["function"], each["was"], each["becomes"]) for each in LISTED[name]]
    assert [key for key in keys if key not in known] == []
    assert len(set(keys)) == len(keys)
    assert all(each["why"].endswith(".") for each in LISTED[name])


def test_a_mutant_is_the_module_with_one_change() -> None:
    source = "class A:\n    def f(self, x):\n        if x > 1:\n            return x + 2\n        raise ValueError(3)\n"
    whole = ast.parse(source)
    found = {(each.function, each.becomes, ast.unparse(each.tree())) for each in mutants(whole)}
    plain = ast.unparse(whole)
    assert {function for function, _, _ in found} == {"A.f"}
    assert {text for _, _, text in found} == {
        plain.replace("if x > 1", f"if {test}") for test in ("x >= 1", "x > 2", "x > 0", "not x > 1")
    } | {plain.replace("return x + 2", f"return {value}") for value in ("x", "x - 2", "x + 3", "x + 1")}
    assert ast.unparse(whole) == plain


def test_a_probed_function_notes_the_lines_of_the_statements_that_run() -> None:
    source = "def f(x):\n    '''Says it.'''\n    for i in range(x):\n        if i > 1:\n            y = (lambda: 1)()\n"
    source += "        else:\n            y = 2 if i else 3\n    return [y for y in range(2)]\n"
    for x, lines in ((0, {2, 3, 8}), (1, {2, 3, 4, 7, 8}), (3, {2, 3, 4, 5, 7, 8})):
        names: dict[str, Any] = {"__ran__": set()}
        exec(compile(probed(ast.parse(source)), "f", "exec"), names)
        assert names["f"](x) == [0, 1]
        assert names["__ran__"] == lines
