"""How a surrogate of the user's own is written: as an equation, else by its result."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.equations import terms
from rlplay.algorithms.own_choices import allow_all
from rlplay.ui.formula import surrogate
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.formula.loss import objective

pytestmark = pytest.mark.usefixtures("trusts_all")

Write = Callable[[str], str]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    """Writes my.py; gives what its functions are called by."""

    def write(source: str) -> str:
        (tmp_path / "my.py").write_text(textwrap.dedent(source))
        return f"{tmp_path / 'my.py'}:"

    return write


def test_a_function_that_breaks_is_shown_as_its_mistake(file: Write) -> None:
    name = file("def soft_clip(xp, ratio):\n    return -ratio\n") + "soft_clip"
    s = resolve({"surrogate": name})
    allow_all(s)
    file("def soft_clip(xp, ratio\n")
    assert "my.py:1: SyntaxError" in terms(s)["S"]
    assert surrogate.value(s, TokenNumbers(logprob=-0.4, advantage=1.0, ratio=1.1)) is None
    assert any("SyntaxError" in "".join(text for text, _ in line)
               for line in objective(s, TokenNumbers(logprob=-0.4, advantage=1.0, ratio=1.1)))  # fmt: skip


@pytest.mark.parametrize(("about", "written"), [("Sums.", "Sums."), ("", "what {name} computes")])
def test_a_function_that_no_equation_can_hold_is_shown_by_its_result(about: str, written: str, file: Write) -> None:
    name = file(f"def f(xp, ratio, advantages):\n    '{about}'\n    return -xp.cumsum(ratio) * advantages\n") + "f"
    s = resolve({"surrogate": name})
    allow_all(s)
    assert terms(s)["S"] == written.format(name=name)
    lines = ["".join(text for text, _ in line) for line in objective(s, of_a_token(3.0, 1.1))]
    assert "= −3.30" in lines
    assert not any("cumsum" in line for line in lines)


def of_a_token(advantage: float, ratio: float) -> TokenNumbers:
    return TokenNumbers(logprob=-0.4, advantage=advantage, ratio=ratio, weight=0.5)


def test_a_result_that_is_not_finite_is_shown_as_a_dot(file: Write) -> None:
    name = file("def f(xp, ratio, advantages):\n    return xp.log(ratio - ratio) + advantages\n")
    s = resolve({"surrogate": name + "f"})
    allow_all(s)
    lines = ["".join(text for text, _ in line) for line in objective(s, of_a_token(1.0, 1.1))]
    assert any(line.startswith("= ·") and line.endswith(" = ·") for line in lines)
    assert lines[-1].endswith(" = ·")
    assert not any(word in line for line in lines for word in ("nan", "inf"))


def test_a_surrogate_without_its_quantities_has_no_number_yet(file: Write) -> None:
    s = resolve({"surrogate": file("def f(xp, logprobs, ref_logprobs):\n    return ref_logprobs - logprobs\n") + "f"})
    allow_all(s)
    assert surrogate.value(s, of_a_token(1.0, 1.1)) is None
    known = {name: np.array([-0.4]) for name in ("logprobs", "old_logprobs", "advantages", "ratio")}
    whole = known | {"ref_logprobs": np.array([-0.9]), "mask": np.array([True])}
    numbers = TokenNumbers(logprob=-0.4, advantage=1.0, ratio=1.0, answer=whole)
    assert surrogate.value(s, numbers) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("source", "equation"),
    [
        ("xp.where((advantages > 0) & (ratio > 1), ratio, 1.0)", "w if A > 0 and w > 1 else 1"),
        ("xp.where(advantages > 0, xp.where(ratio > 1, 1.0, 2.0), ratio)", "(1 if w > 1 else 2) if A > 0 else w"),
        ("xp.where(advantages == 0, 0.0, -ratio)", "0 if A = 0 else −w"),
        ("advantages * xp.exp(xp.log(ratio + 1))", "A·exp(log(w + 1))"),
        ("ratio**2.5 * advantages", "w^2.5·A"),
        ("ratio**-1 * advantages", "w^−1·A"),
        ("abs(ratio - 1) * advantages", "|w − 1|·A"),
    ],
)
def test_an_equation_is_what_its_function_computes(source: str, equation: str, file: Write) -> None:
    name = file(f"def f(xp, ratio, advantages):\n    return {source}\n") + "f"
    s = resolve({"surrogate": name})
    allow_all(s)
    assert terms(s)["S"] == equation


@pytest.mark.parametrize(
    ("source", "equation", "by_hand"),
    [
        ("xp.mean_over(ratio, mask)", "mean of w over the answer", 1.25),
        ("xp.mean_over(ratio, mask & (ratio > 1))", "mean of w over the answer where w > 1", 1.5),
        (
            "xp.sum_over(ratio, (ratio > 1) & mask & (advantages > 0))",
            "Σ of w over the answer where w > 1 and A > 0", 1.5,
        ),
        ("xp.sum_over(ratio, ratio < 2)", "Σ of w where w < 2", 2.5),
        ("ratio / xp.count_over(mask)", "w/n", 0.5),
        ("ratio / xp.count_over(mask & (ratio < 2))", "w/(number of tokens in the answer where w < 2)", 0.5),
        ("xp.where(mask, ratio, 0.0)", "w if mask else 0", 1.0),
    ],
)  # fmt: skip
def test_a_mask_that_drops_tokens_is_part_of_the_equation(
    source: str, equation: str, by_hand: float, file: Write
) -> None:
    s = resolve({"surrogate": file(f"def f(xp, ratio, advantages, mask):\n    return {source} + 0 * ratio\n") + "f"})
    allow_all(s)
    assert terms(s)["S"] == equation
    values = np.array([-0.4, -0.5])
    answer = {"logprobs": values, "old_logprobs": values, "advantages": -values, "ratio": np.array([1.0, 1.5])}
    numbers = TokenNumbers(logprob=-0.4, advantage=0.4, ratio=1.0, answer=answer | {"mask": values < 0})
    assert surrogate.value(s, numbers) == by_hand
    shown = "".join(text for text, _ in surrogate.filled(s, numbers)[-2])
    assert shown.endswith(f"{by_hand:+.2f}"), shown
