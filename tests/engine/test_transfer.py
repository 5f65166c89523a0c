"""Tensors copied together are what they were, whatever their types, shapes and strides."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rlplay.engine import transfer
from rlplay.engine.batch import TokenBatch
from rlplay.engine.optimize import TrainedMinibatch, brought
from rlplay.engine.transfer import to_device, to_host
from tests.engine.test_process import batch_of

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


def test_a_batch_keeps_a_copy_until_the_field_is_another() -> None:
    batch = batch_of([(3, {}, 1.0), (2, {}, 0.0)], 2)
    batch.put(advantages=torch.ones(2, 3))
    assert [each.tolist() for each in batch.on_host("lengths", "advantages")] == [[3, 2], [[1.0] * 3] * 2]
    batch.advantages = torch.zeros(2, 3)
    assert not batch.on_host("advantages")[0].any()
    shorter = replace(batch, lengths=torch.tensor([1, 1]))
    assert shorter.on_host("lengths")[0].tolist() == [1, 1]
    assert [mask.sum().item() for mask in shorter.known_masks] == [2, 2]


def test_tokens_are_cut_for_a_record_as_their_rows_are() -> None:
    batch, values = batch_of([(3, {}, 1.0), (1, {}, 0.0), (2, {}, 0.0)], 3), torch.arange(9.0).view(3, 3)
    batch.environment[0, 1] = True
    assert batch.flat(values).tolist() == [0, 1, 2, 3, 6, 7], "an environment's tokens are a completion's, too"
    assert [mask.sum().item() for mask in batch.known_masks] == [5, 6]
    found = batch.flat_each({"a": values[[2, 0]], "b": None, "c": values[[2, 0]].double()}, torch.tensor([2, 0]))
    assert found["b"] is None
    assert [found[name].tolist() for name in "ac"] == [[6, 7, 0, 1, 2]] * 2
    assert {found[name].dtype.name for name in "ac"} == {"float32"}


def test_a_selection_of_tokens_is_known_as_well() -> None:
    batch = batch_of([(3, {}, 1.0), (1, {}, 0.0), (2, {}, 0.0)], 3)
    tokens = batch.tokens(torch.tensor([2, 0]))
    assert (tokens.known.lengths.tolist(), tokens.lengths.tolist()) == ([2, 3], [2, 3])
    asked = TokenBatch(batch.prompts, batch.group, batch.ids, batch.lengths)
    assert asked.known.lengths.tolist() == [3, 1, 2]


def test_minibatches_are_brought_with_metrics_as_floats() -> None:
    one, loss = torch.ones(1, 2), torch.tensor(0.1)
    part = TrainedMinibatch(torch.tensor([0]), one, one, one.requires_grad_(), {"loss": loss, "rate": 2.0}, kl=-one)
    first, second = brought([part, part])
    assert first.metrics == {"loss": loss.item(), "rate": 2.0}
    assert not first.dloss_dlogp.requires_grad
    assert (first.values, second.kl.tolist() if second.kl is not None else None) == (None, [[-1.0, -1.0]])
