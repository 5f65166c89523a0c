"""The calculator: its parser against Python's own arithmetic, what it refuses, and the episodes around it."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from rlplay.tasks.calculation import DECIMALS, DEEPEST, LARGEST, LONGEST, MOST_DIGITS, CalculationError, calculate
from rlplay.tasks.calculator import MOST_CALLS, answer, calculator, call_in, product_calls, solved, sum_calls
from rlplay.tasks.task import Example, chat


def expression(rng: random.Random, depth: int) -> str:
    """A random expression with blanks here and there."""
    if depth == 0 or rng.random() < 0.2:
        number = str(rng.randint(0, 99))
        return number if rng.random() < 0.8 else f"{number}.{rng.randint(0, 99)}"
    blank = " " * (rng.random() < 0.3)
    match rng.randrange(6):
        case 0:
            return f"-{expression(rng, depth - 1)}"
        case 1:
            return f"({blank}{expression(rng, depth - 1)}{blank})"
        case k:
            return f"{expression(rng, depth - 1)}{blank}{'+-*/'[k - 2]}{blank}{expression(rng, depth - 1)}"


def in_python(text: str) -> Fraction:
    """The value by Python's own parser: every number becomes a Fraction, so that its arithmetic is exact."""
    import ast

    class Exact(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.AST:
            written = ast.Constant(ast.get_source_segment(text, node))
            return ast.Call(ast.Name("Fraction", ast.Load()), [written], [])

    tree = ast.fix_missing_locations(Exact().visit(ast.parse(text, mode="eval")))
    value: Fraction = eval(compile(tree, "test", "eval"), {"Fraction": Fraction, "__builtins__": {}})
    return value


def outcome(text: str) -> str:
    """The result, or the reason why there is none."""
    try:
        return calculate(text)
    except CalculationError as error:
        return str(error)


TOO_LONG = f"the expression is longer than {LONGEST} characters"


def test_it_agrees_with_python_on_random_expressions() -> None:
    rng, whole, rounded, refused = random.Random(0), 0, 0, 0
    for _ in range(4000):
        text = expression(rng, rng.randint(0, 4))
        found = outcome(text)
        try:
            expected = in_python(text)
        except ZeroDivisionError:
            assert found in ("division by 0", TOO_LONG)
            refused += 1
            continue
        if found in ("a number on the way is too large", TOO_LONG):
            continue
        assert Fraction(found) == round(expected, DECIMALS), text
        whole += expected.denominator == 1
        rounded += expected.denominator > 1
    assert min(whole, rounded) > 500
    assert refused > 5


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("23*17", "391"),
        ("2+3*4", "14"),
        ("(2+3)*4", "20"),
        ("10-4-3", "3"),
        ("12/4/3", "1"),
        ("--2", "2"),
        ("2*-3", "-6"),
        (" 7 + 5 ", "12"),
        ("1/3", "0.3333"),
        ("-1/8", "-0.125"),
        ("0-1/99999", "0"),
        ("0.1+0.2", "0.3"),
        ("007", "7"),
    ],
)
def test_what_it_computes(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a number is missing at character 1"),
        ("3+", "a number is missing at character 3"),
        ("3 4", "character 3 does not belong"),
        ("(3", "a closing bracket is missing at character 3"),
        ("3)", "character 2 does not belong"),
        ("x", "a number is missing at character 1"),
        ("__import__('os')", "a number is missing at character 1"),
        ("2**3", "a number is missing at character 3"),
        ("1e9", "character 2 does not belong"),
        ("1.", "character 2 does not belong"),
        ("+3", "a number is missing at character 1"),
        ("\u0663+1", "a number is missing at character 1"),
        ("1\n+1", "character 2 does not belong"),
        ("5/(2-2)", "division by 0"),
        ("1+" * 40 + "1", f"longer than {LONGEST} characters"),
        ("(" * (DEEPEST + 1), f"more than {DEEPEST} brackets"),
        ("-" * (DEEPEST + 1) + "1", f"more than {DEEPEST} brackets"),
        ("9" * (MOST_DIGITS + 1), f"more than {MOST_DIGITS} digits"),
        ("*".join(["99999"] * 4), "too large"),
        ("/".join(["1", "99999", "99999", "99999", "99999"]), "too large"),
    ],
)
def test_what_it_refuses(text: str, reason: str) -> None:
    with pytest.raises(CalculationError) as raised:
        calculate(text)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_bounds_themselves_are_allowed() -> None:
    assert calculate("(" * (DEEPEST - 1) + "1" + ")" * (DEEPEST - 1)) == "1"
    assert calculate("9" * MOST_DIGITS) == "9" * MOST_DIGITS
    assert calculate(f"1000000*{LARGEST // 10**6}") == str(LARGEST)
    assert calculate("1+" * (LONGEST // 2 - 1) + "11") == str(LONGEST // 2 - 1 + 11)


def test_no_text_raises_anything_else() -> None:
    rng = random.Random(1)
    found = {
        outcome("".join(rng.choice("0123456789+-*/(). x\n\0") for _ in range(rng.randrange(120)))) for _ in range(5000)
    }
    assert TOO_LONG in found
    assert sum(each.lstrip("-").replace(".", "").isdigit() for each in found) > 10


def test_a_call_gets_its_result_and_anything_else_ends_the_episode() -> None:
    example = Example(chat("What is 23*17? You may call calc."), {"answer": 391, "sign": "*"})
    assert answer(example, ["calc(23*17)"]) == "391"
    assert answer(example, ["I use calc((1+2)*3). calc(4)"]) == "9"
    assert answer(example, ["calc(23*"]) == "Error: a number is missing at character 4."
    assert answer(example, ["calc()"]) == "Error: a number is missing at character 1."
    assert answer(example, ["calc(1/0)"]) == "Error: division by 0."
    assert answer(example, ["The answer is 391."]) is None
    assert answer(example, ["calc(1)"] * MOST_CALLS) == "1"
    assert answer(example, ["calc(1)"] * (MOST_CALLS + 1)) is None
    assert call_in("calc 3") is None


def test_the_result_of_the_tool_does_not_count_as_an_answer() -> None:
    def episode(*turns: str) -> list[dict[str, str]]:
        return [{"role": "user" if k % 2 else "assistant", "content": turn} for k, turn in enumerate(turns)]

    completions = [
        episode("calc(2+2)", "4", "The answer is 4."),
        episode("calc(2+2)", "4", "The answer is 5."),
        episode("calc(0+4)", "4"),
        episode("4"),
        episode("calc(1)", "1", "calc(2)", "2", "calc(3)", "3", "calc(4)"),
    ]
    columns = {"answer": [4] * 5, "sign": ["*", "*", "+", "+", "+"]}
    assert solved([], completions, **columns) == [1.0, 0.0, 0.0, 1.0, 0.0]
    assert product_calls([], completions, **columns) == [1.0, 1.0, None, None, None]
    assert sum_calls([], completions, **columns) == [None, None, 1.0, 0.0, 4.0]


def test_held_out_operands_are_never_trained_on() -> None:
    task = calculator()
    assert sum(example.columns["sign"] == "*" for example in task.train) == len(task.train) / 2
    assert all(eval(_asked(e)) == e.columns["answer"] for e in [*task.train, *task.held_out])


def _asked(example: Example) -> str:
    assert not isinstance(example.prompt, str)
    return example.prompt[0]["content"].split()[2].rstrip("?")
