"""Rows of a table, on every device by its own function."""

from __future__ import annotations

import pytest
import torch

from rlplay.engine.gather import rows_at


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 4)])
def test_rows_and_their_gradient_are_those_of_indexing(shape: tuple[int, ...]) -> None:
    table = torch.randn(shape, dtype=torch.double, requires_grad=True)
    places = torch.tensor([[4, 0, 0], [2, 4, 4]])
    found, wanted = rows_at(table, places), table[places]
    assert torch.equal(found, wanted)
    slopes = torch.randn_like(wanted)
    (one,), (other,) = (torch.autograd.grad(each, table, slopes) for each in (found, wanted))
    torch.testing.assert_close(one, other)
    assert torch.equal(rows_at(torch.arange(5), places), places)
