"""Log-probabilities of some tokens and their gradient, against the whole softmax in float64."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad

from rlplay.engine.log_softmax import logprobs_at


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_is_that_of_the_whole_softmax(temperature: float, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(7, 11, generator=generator)).to(dtype).requires_grad_()
    places, ids = (torch.randint(high, (40,), generator=generator) for high in (7, 11))
    slopes = torch.randn(40, generator=generator)
    found = logprobs_at(logits, places, ids, temperature)
    exact = logits.detach().double().requires_grad_()
    wanted = (exact / temperature).log_softmax(-1)[places, ids]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=0)
    (gradient,) = torch.autograd.grad(found, logits, slopes)
    (expected,) = torch.autograd.grad(wanted, exact, slopes.double())
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient.double(), expected, atol=1e-5 if dtype == torch.float32 else 0.05, rtol=0)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_derivative_along_a_direction_is_that_of_the_whole_softmax(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits, direction = (5 * torch.randn(7, 11, generator=generator) for _ in range(2))
    places, ids = (torch.randint(high, (40,), generator=generator) for high in (7, 11))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(logits, direction)  # type: ignore[no-untyped-call]
        found = forward_ad.unpack_dual(logprobs_at(dual, places, ids, temperature)).tangent  # type: ignore[no-untyped-call]
    exact = lambda x: (x / temperature).log_softmax(-1)[places, ids]  # noqa: E731
    _, wanted = torch.func.jvp(exact, (logits.double(),), (direction.double(),))
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-5)


def test_only_the_logits_themselves_are_kept() -> None:
    logits, kept = torch.randn(5, 1000, requires_grad=True), list[int]()
    places = torch.arange(5)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.data_ptr() if tensor.numel() == 5000 else 0) or tensor, lambda tensor: tensor
    ):
        logprobs_at(logits, places, places, 1.0)
    assert {pointer for pointer in kept if pointer} == {logits.data_ptr()}
