"""NCCL on the stand-in: sums between processes by way of gloo, in the device's memory only once somebody has waited."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Sum:
    """A sum under way."""

    def __init__(self, tensor: Tensor, summed: Tensor, work: Any) -> None:
        self._tensor, self._summed, self._work = tensor, summed, work
        tensor.fill_(torch.nan)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for all processes; raises RuntimeError if one does not come in time."""
        self._work.wait() if timeout is None else self._work.wait(timeout)
        self._tensor.copy_(self._summed)
        return True


class Group:
    """The group of all processes that `dist.new_group(backend="nccl")` makes: what rlplay asks of it."""

    def __init__(self, gloo: dist.ProcessGroup) -> None:
        self._gloo = gloo

    def allreduce(self, tensors: list[Tensor], options: Any = None) -> Sum:
        """Begin the sum of a tensor; all tensors are on this process's GPU."""
        (tensor,) = tensors
        if tensor.device != torch.device("cuda", torch.cuda.current_device()):
            raise ValueError(f"NCCL sums what is on the current GPU, not what is on {tensor.device}")
        summed = tensor.detach().cpu()
        return Sum(tensor.detach(), summed, self._gloo.allreduce([summed]))

    def abort(self) -> None:
        """NCCL gives up; gloo needs no such call."""


def install() -> None:
    """Let `dist.new_group` make such groups."""
    plain: Callable[..., Any] = dist.new_group

    def new_group(*given: Any, backend: str | None = None, **named: Any) -> Any:
        made = plain(*given, backend="gloo" if backend == "nccl" else backend, **named)
        return Group(made) if backend == "nccl" else made

    dist.new_group = new_group
