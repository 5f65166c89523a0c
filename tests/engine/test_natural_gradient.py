"""Conjugate gradient against a direct solution; the line search on functions of any shape."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rlplay.engine.natural_gradient import SHRINK, TOLERANCE, conjugate_gradient, length_to, line_search

SIZE = 8


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor, float]:
    """A positive semi-definite F [8, 8] of any rank, a right-hand side and a damping that makes it solvable."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    rank = draw(st.integers(0, SIZE))
    root = torch.randn(SIZE, rank, generator=generator, dtype=torch.double)
    return root @ root.T, torch.randn(SIZE, generator=generator, dtype=torch.double), draw(st.floats(0.01, 10))


@given(problems(), st.floats(1e-6, 1))
def test_conjugate_gradient_finds_the_direct_solution_and_says_how_far_it_is(
    problem: tuple[Tensor, Tensor, float], limit: float
) -> None:
    fisher, gradient, damping = problem
    damped = fisher + damping * torch.eye(SIZE, dtype=torch.double)
    found = list(conjugate_gradient(lambda v: fisher @ v, gradient, 4 * SIZE, damping))
    assert [f.iteration for f in found] == list(range(1, len(found) + 1))
    for f in found:
        residual = (gradient - damped @ f.x).norm() / gradient.norm()
        assert f.residual == pytest.approx(float(residual), abs=1e-9)
        assert f.curvature == pytest.approx(float(f.x @ fisher @ f.x), rel=1e-6, abs=1e-9)
        assert f.slope == pytest.approx(float(f.x @ gradient), rel=1e-9)
    assert found[-1].residual <= TOLERANCE
    exact = torch.linalg.solve(damped, gradient)
    torch.testing.assert_close(found[-1].x, exact, atol=1e-3 * float(exact.norm()), rtol=0)
    bend = float(exact @ fisher @ exact)
    if bend > 1e-6:
        step = length_to(limit, found[-1].curvature) * found[-1].x
        assert float(step @ fisher @ step) / 2 == pytest.approx(limit, rel=1e-3)


def test_conjugate_gradient_stops_at_its_iterations_and_at_once_where_there_is_nothing_to_solve() -> None:
    torch.manual_seed(0)
    root = torch.randn(SIZE, SIZE, dtype=torch.double)
    gradient = torch.randn(SIZE, dtype=torch.double)
    assert len(list(conjugate_gradient(lambda v: root @ root.T @ v, gradient, 3, 0.0))) == 3
    assert list(conjugate_gradient(lambda v: v, gradient * 0, 3, 0.0)) == []
    for bend in (0.0, -1.0, float("nan")):  # no step along a direction that does not bend has a best length
        assert list(conjugate_gradient(lambda v, bend=bend: bend * v, gradient, 3, 0.0)) == []
    assert length_to(0.1, 0.0) == 0.0


def test_in_float32_the_residual_is_that_of_a_search_in_float64() -> None:
    """300,000 parameters: a dot product of so many float32 numbers is off in the fifth digit, and the errors add up."""
    size, rank, damping = 300_000, 12, 0.1
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(size, rank, generator=generator, dtype=torch.double)
    root = root * torch.rand(size, 1, generator=generator, dtype=torch.double) ** 4
    root = root / root.norm(dim=0) * torch.logspace(0.5, -0.5, rank, dtype=torch.double)
    gradient = (root / root.norm(dim=0)).sum(1).float()

    def fisher(v: Tensor) -> Tensor:
        return (root @ (root.T @ v.double())).to(v.dtype)

    own, exact = (list(conjugate_gradient(fisher, g, 8, damping)) for g in (gradient, gradient.double()))
    x, residual, towards = torch.zeros(size, dtype=torch.double), gradient.double(), gradient.double()
    for mine, same in zip(own, exact, strict=True):  # Hestenes and Stiefel, once more
        pushed, square = fisher(towards) + damping * towards, residual @ residual
        x = x + square / (towards @ pushed) * towards
        residual = residual - square / (towards @ pushed) * pushed
        towards = residual + residual @ residual / square * towards
        wanted = float(residual.norm() / gradient.double().norm())
        assert same.residual == pytest.approx(wanted, rel=1e-9)
        assert mine.residual == pytest.approx(wanted, rel=2e-5)
        assert mine.curvature == pytest.approx(float(x @ fisher(x)), rel=2e-5)


def test_the_curvature_in_float32_is_exact_even_where_rounding_has_bent_the_directions() -> None:
    """The residual is orthogonal to x on paper; after 20 iterations on a badly conditioned F it is so no more."""
    size, generator = 50, torch.Generator().manual_seed(0)
    turned, _ = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.double))
    fisher = (turned * torch.logspace(0, -3, size, dtype=torch.double)) @ turned.T
    gradient = torch.randn(size, generator=generator)
    for found in conjugate_gradient(lambda v: fisher.float() @ v, gradient, 50, 1e-6):
        x = found.x.double()
        assert found.curvature == pytest.approx(float(x @ fisher @ x), rel=1e-5)


MEASURES = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(st.tuples(MEASURES, MEASURES), min_size=1, max_size=12), st.floats(0, 1), st.integers(1, 12))
def test_the_line_search_never_exceeds_the_limit_and_takes_the_longest_step_that_gains(
    measured: list[tuple[float, float]], limit: float, steps: int
) -> None:
    tried: list[float] = []

    def measure(fraction: float) -> tuple[float, float]:
        tried.append(fraction)
        return measured[(len(tried) - 1) % len(measured)]

    trials = list(line_search(measure, limit, steps))
    assert tried == [SHRINK**i for i in range(len(trials))]
    assert 1 <= len(trials) <= steps
    good = [kl <= limit and gain > 0 for kl, gain in (measured[i % len(measured)] for i in range(steps))]
    assert [t.accepted for t in trials] == good[: len(trials)]
    assert trials[-1].accepted == any(good)
    assert not any(t.accepted for t in trials[:-1])
    if trials[-1].accepted:
        assert trials[-1].kl <= limit


@given(problems(), st.floats(1e-4, 1), st.integers(0, 10_000))
def test_a_step_of_any_categorical_policy_keeps_its_limit(
    problem: tuple[Tensor, Tensor, float], limit: float, seed: int
) -> None:
    """The whole of it on a softmax: logits are the parameters, so that F and the KL are exact and known."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(SIZE, generator=generator, dtype=torch.double)
    old, advantages = logits.log_softmax(-1), torch.randn(SIZE, generator=generator, dtype=torch.double)
    p = old.exp()
    fisher, gradient = torch.diag(p) - torch.outer(p, p), p * (advantages - (p * advantages).sum())
    (*_, found) = conjugate_gradient(lambda v: fisher @ v, gradient, SIZE, problem[2])
    step = length_to(limit, found.curvature) * found.x

    def measure(fraction: float) -> tuple[float, float]:
        new = (logits + fraction * step).log_softmax(-1)
        return float((p * (old - new)).sum()), float(((new.exp() - p) * advantages).sum())

    *_, last = line_search(measure, limit, 60)
    assert last.accepted
    new = (logits + last.fraction * step).log_softmax(-1)
    assert float((p * (old - new)).sum()) <= limit
    assert float((new.exp() * advantages).sum()) > float((p * advantages).sum())
