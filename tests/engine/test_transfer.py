"""Tensors copied together are what they were, whatever their types, shapes and strides."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rlplay.engine import transfer
from rlplay.engine.transfer import to_device, to_host

CPU = torch.device("cpu")
TYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.bfloat16]


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    values = torch.randint(0, 2, (*shape, 3), generator=torch.Generator().manual_seed(draw(st.integers(0, 9))))
    values = values.to(draw(st.sampled_from(TYPES)))
    return values[..., draw(st.integers(0, 2))] if draw(st.booleans()) else values.transpose(0, -1)


@given(st.lists(tensors(), max_size=5))
def test_bytes_that_travel_together_are_the_same_tensors(values: list[Tensor]) -> None:
    moved = transfer._together(values, CPU)
    assert [each.dtype for each in moved] == [each.dtype for each in values]
    assert all(torch.equal(one, other) for one, other in zip(moved, values, strict=True))


def test_numbers_that_are_no_numbers_keep_their_bits() -> None:
    odd = torch.tensor([torch.nan, -0.0, torch.inf, 1e-45])
    flags, moved = transfer._together([torch.tensor([True, False, True]), odd], CPU)
    assert flags.tolist() == [True, False, True]
    assert torch.equal(moved.view(torch.int32), odd.view(torch.int32))


def test_what_is_there_is_not_copied() -> None:
    values = [torch.zeros(2), torch.ones(3, requires_grad=True)]
    assert [each.data_ptr() for each in to_host(values)] == [each.data_ptr() for each in values]
    assert not to_host(values)[1].requires_grad
    assert to_device(values, CPU) == values
