"""Tensors between the device and the host's memory, many in one copy.

Before a copy to the host is there, the host waits for all that the device was given: ten copies of a few numbers are
ten waits. What is copied are bytes, so that tensors of several types go together and no number changes. A CPU's
tensors stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

_CPU = torch.device("cpu")


def to_host(values: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors on the CPU, without gradients; the host waits once for all of them."""
    return _on([value.detach() for value in values], _CPU)


def to_device(values: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """The same tensors on the device, in memory of their own unless they are there; the host does not wait for CUDA."""
    return _on(values, device)


def _on(values: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    elsewhere = [value for value in values if value.device.type != device.type]
    moved = iter(_together(elsewhere, device))
    return [value if value.device.type == device.type else next(moved) for value in values]


def _together(values: list[Tensor], device: torch.device) -> list[Tensor]:
    """Tensors of one other device on `device`, in their order."""
    if not values:
        return []
    # The largest elements first, so that each tensor begins at a multiple of its own element's size.
    order = sorted(range(len(values)), key=lambda i: -values[i].element_size())
    parts = [_bytes(values[i]) for i in order]
    ends = list(accumulate(len(part) for part in parts))
    there = _copied(torch.cat(parts), device)
    moved = dict[int, Tensor]()
    for i, part, end in zip(order, parts, ends, strict=True):
        mine = there[end - len(part) : end].view(values[i].dtype).view(values[i].shape)
        moved[i] = mine.clone() if device.type == "cpu" else mine  # torch.save refuses memory with several types
    return [moved[i] for i in range(len(values))]


def _bytes(value: Tensor) -> Tensor:
    dense = value.contiguous()  # of one element or none it keeps strides that `view` refuses
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)


def _copied(packed: Tensor, device: torch.device) -> Tensor:
    """A copy of some bytes; from and to CUDA by way of pinned memory, which needs no copy in between."""
    if device.type == "cuda":
        return packed.pin_memory().to(device, non_blocking=True)
    if packed.device.type != "cuda":
        return packed.to(device)
    copy = packed.to(device, non_blocking=True)  # into pinned memory, and there once the stream has come so far
    torch.cuda.current_stream(packed.device).synchronize()
    return copy
