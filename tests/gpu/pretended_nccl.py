"""In place of NCCL, which needs GPUs: sums of tensors on the stand-in's devices, by gloo on the CPU.

What it has in common with NCCL: a sum begins at once and is there when somebody has waited for it, a tensor has to be
on this process's own device, and who has ended is not noticed.
"""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

NAME = "pretended_nccl"


class Sum(dist.Work):
    """A sum under way."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self._tensor, self._whole = tensor, tensor.cpu()
        self._under_way = dist.all_reduce(self._whole, async_op=True)
        tensor.fill_(torch.nan)

    def wait(self, timeout: timedelta = timedelta()) -> bool:
        """Wait until it is there. Raises DistBackendError after `timeout` if that does not happen."""
        try:
            self._under_way.wait()
        except RuntimeError as error:
            threading.Event().wait(timeout.total_seconds())
            raise dist.DistBackendError("timed out in blocking wait") from error
        self._tensor.copy_(self._whole)
        return True


class Group(dist.ProcessGroup):
    """The processes of the run, for sums alone."""

    def __init__(self, dies: bool, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._dies = dies
        self.sums = 0
        self.aborted = False

    def allreduce(self, tensors: list[Tensor], _options: Any = None) -> Sum:
        """Begin the sum of one tensor."""
        (tensor,) = tensors
        assert tensor.device == torch.device("cuda", dist.get_rank())
        if self._dies:
            os.kill(os.getpid(), signal.SIGKILL)
        self.sums += 1
        return Sum(tensor)

    def abort(self) -> None:
        """Do not wait for the others."""
        self.aborted = True


def register(dies: bool = False) -> None:
    """Let torch know it by its name; a group of it kills its process at the first sum if it `dies`."""
    dist.Backend.register_backend(NAME, lambda _store, rank, size, _limit: Group(dies, rank, size), devices=["cuda"])
