"""Several processes that train one run together: what one of them does alone, and what they tell each other.

All of them play the same run. Each samples and backpropagates a share of the completions, and everybody gets all of
the results, so that what is computed from a whole batch is computed as in one process. Only the first one scores
answers and writes files. Alone, a process is the first of one, and nothing here costs it anything.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from rlplay.engine.stopwatch import spent_on
from rlplay.processes import STORE

Found = TypeVar("Found")
Moment = TypeVar("Moment")

_PATIENCE = timedelta(days=7)
"""A reward function may take this long; a process that has ended is noticed at once."""

_TRANSFER = timedelta(minutes=5)
"""The sum of gradients may take this long once all processes have theirs."""

_NCCL_GIVES_UP = 2 * _TRANSFER
"""Then NCCL's own watchdog ends the process, should a wait with `_TRANSFER` not return."""

_AT_ONCE = 2**22
"""Numbers of small gradients that are added up in one exchange: each costs time of its own."""

_BETWEEN_GPUS = "nccl"
"""What adds up gradients on GPUs; everything else goes by gloo, which notices who has ended."""

_joined = False
_lost = ""  # what told that another process has ended
_gpus: dist.ProcessGroup | None = None  # the same processes, for tensors on GPUs


class LostProcess(RuntimeError):
    """Another process of the run has ended, so the run cannot go on."""


def join(environment: Mapping[str, str], device: str) -> None:
    """Meet the run's other processes, as the variables of `rlplay run --processes` or of torchrun say.

    `device` is the job's. Each process takes a CUDA GPU of its own if there are any, else the CPU. Raises ValueError,
    one line, if they cannot be met, or if this machine has fewer GPUs than processes.
    """
    global _joined, _gpus  # noqa: PLW0603 - a process joins once, for all of its life
    # Its functions' defaults are the group that is there when they are defined, so the group would last. Its threads
    # would then outlive Python, which ended one process in six with SIGABRT.
    import torch.distributed.nn.functional
    from accelerate import PartialState

    gpus, local = 0 if device == "cpu" else torch.cuda.device_count(), int(environment.get("LOCAL_WORLD_SIZE", "1"))
    if 0 < gpus < local:
        raise ValueError(f"{local} processes need {local} GPUs, and there are {gpus}; use fewer, or --device cpu")
    if gpus and device not in ("auto", "cuda"):
        raise ValueError(f"each of several processes takes a GPU of its own; use --device cuda, not {device}")
    store = environment.get(STORE)
    rank, world = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    try:
        PartialState(
            cpu=not gpus, backend="gloo", timeout=_PATIENCE, rank=rank, world_size=world,
            init_method=f"file://{store}" if store else "env://",
        )  # fmt: skip
        if gpus:
            _gpus = dist.new_group(backend=_BETWEEN_GPUS, timeout=_NCCL_GIVES_UP)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"process {rank} of {world} cannot meet the others: {error}") from error
    _joined = True
    atexit.register(_leave)


def _leave() -> None:
    # NCCL would wait for who has ended. torch 2.6 cannot tell it so: there it gives up by itself.
    if _lost and (abort := getattr(_gpus, "abort", None)):
        abort()
    dist.destroy_process_group()


def count() -> int:
    """How many processes train this run."""
    return dist.get_world_size() if _joined else 1


def on_this_machine() -> int:
    """How many of them run on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if _joined else 1


def is_first() -> bool:
    """Whether this is the process that scores answers, writes files and talks."""
    return count() == 1 or dist.get_rank() == 0


def mine(rows: Tensor) -> Tensor:
    """This process's share of `rows` [R]: a run of neighbours; those of all processes in order are `rows`."""
    return rows if count() == 1 else torch.tensor_split(rows, count())[dist.get_rank()]


def each(compute: Callable[[], Found]) -> list[Found]:
    """What `compute` gives in each of the processes, in their order, told to all; tensors are on this one's device.

    If it raises in one, the same error is raised in all. Raises LostProcess if another process has ended.
    """
    if count() == 1:
        return [compute()]
    from accelerate.utils import gather_object

    try:
        told: Any = (compute(), None)
    except Exception as error:
        own: Exception | None = error
        told = (None, _portable(error))
    else:
        own = None
    pairs = [_unpacked(answer) for answer in _together(lambda: gather_object([_packed(told)]))]
    failures = [error for _, error in pairs if error is not None]
    if failures:
        raise own if own is not None else failures[0]
    return [found for found, _ in pairs]


def first(compute: Callable[[], Found]) -> Found:
    """What `compute` gives in the first process, told to all; it runs there only. Raises as `each` does."""
    return each(lambda: compute() if is_first() else None)[0]  # type: ignore[return-value]


def together(compute: Callable[[], Found]) -> Found:
    """What `compute` gives in this process, once all have it. Raises as `each` does."""
    found: list[Found] = []
    each(lambda: found.append(compute()))
    return found[0]


def anywhere(*flags: bool) -> list[bool]:
    """Which of the flags are set in at least one process."""
    if count() == 1:
        return list(flags)
    seen = torch.tensor(flags, dtype=torch.uint8)
    _together(lambda: dist.all_reduce(seen, op=dist.ReduceOp.MAX))
    return [bool(flag) for flag in seen]


def in_step(own: Generator[Moment, None, Found], idle: Moment) -> Generator[Moment, None, Found]:
    """`own`, with as many moments as in the process that has the most; `idle` if this one has none at all.

    If it raises in one process, the same error is raised in all.
    """
    if count() == 1:
        return (yield from own)
    moment, found, over, failed = idle, None, False, None
    while True:
        try:
            if not over:
                moment = next(own)
        except StopIteration as finished:
            over, found = True, finished.value
        except Exception as error:
            failed = error
        going, broken = anywhere(not over, failed is not None)
        if broken:
            _raise_together(failed)
        if not going:
            return found  # type: ignore[return-value]
        yield moment


def add_gradients(parameters: Iterable[Tensor]) -> None:
    """Make every parameter's gradient the sum of those in all processes; one without any stays without.

    Raises as `each` does.
    """
    if count() == 1:
        return
    every = list(parameters)
    if _gpus is not None:
        torch.cuda.synchronize()  # NCCL's time begins when all of them have their gradients
    # NCCL does not notice who has ended: gloo looks right before, and right after.
    for parameter, used in zip(every, anywhere(*(p.grad is not None for p in every)), strict=True):
        if used and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    together(lambda: _add([p.grad for p in every if p.grad is not None]))


@spent_on("exchange")
def _add(gradients: list[Tensor]) -> None:
    for bunch in _bunches(gradients):
        whole = torch.cat([gradient.flatten() for gradient in bunch]) if len(bunch) > 1 else bunch[0]
        dist.all_reduce(whole, group=_gpus, async_op=True).wait(_TRANSFER)
        if len(bunch) > 1:
            for gradient, part in zip(bunch, torch.split(whole, [each.numel() for each in bunch]), strict=True):
                gradient.copy_(part.view_as(gradient))


def _bunches(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of one dtype, at most `_AT_ONCE` numbers in all, or a larger one by itself."""
    bunch: list[Tensor] = []
    for gradient in gradients:
        size = sum(each.numel() for each in bunch) + gradient.numel()
        if bunch and (size > _AT_ONCE or gradient.dtype != bunch[0].dtype):
            yield bunch
            bunch = []
        bunch.append(gradient)
    if bunch:
        yield bunch


def by_rows(rows: int, compute: Callable[[Tensor], list[Tensor]]) -> list[Tensor]:
    """Tensors [rows, …] that `compute` gives for some rows, int64 on the CPU: each process computes a share, all get
    all."""
    own = mine(torch.arange(rows))
    if count() == 1:
        return compute(own)
    parts = [part for part in each(lambda: compute(own) if len(own) else []) if part]
    return [torch.cat(both) for both in zip(*parts, strict=True)]


def _raise_together(error: Exception | None) -> None:
    """Raise what went wrong in the first process in which something did; `error` is this one's."""

    def fail() -> None:
        if error is not None:
            raise error

    each(fail)


@spent_on("exchange")
def _together(collective: Callable[[], Found]) -> Found:
    global _lost  # noqa: PLW0603 - who has ended does not come back
    try:
        if _lost:
            raise RuntimeError(_lost)
        return collective()
    except RuntimeError as error:
        _lost = str(error)
        raise LostProcess(f"another of the {count()} processes has ended") from error


def _portable(error: Exception) -> Exception:
    """The error, or what it says where another process could not read it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _packed(told: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(told, buffer)
    return buffer.getvalue()


def _unpacked(told: bytes) -> Any:
    # Pickle reads what only this run's own processes have written.
    gpus = torch.cuda.device_count()
    here = {f"cuda:{gpu}": f"cuda:{torch.cuda.current_device()}" for gpu in range(gpus)}
    return torch.load(io.BytesIO(told), map_location=here, weights_only=False)
