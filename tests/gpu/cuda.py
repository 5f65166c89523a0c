"""`torch.cuda` on the stand-in: what Python asks of it, in torch's own names.

A call that fails on a GPU fails here, such as a wait within a capture. After a failed capture the side stream stays the
current one and `empty_cache` raises, which torch 2.13 does at worst.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

MEMORY = 24 * 2**30
"""Bytes that a device says it has."""

_SEEDS = ("manual_seed", "manual_seed_all")  # random numbers are the CPU's, which torch seeds itself
_stand_in: Any = None
_stream_numbers = itertools.count(1000)  # a default stream has its device's number
_capture_lost = False


class Failures:
    """What tests let fail."""

    def __init__(self) -> None:
        self.at_end: BaseException | None = None
        """What the end of the next captures raises."""
        self.memory_in_capture = -1
        """The allocation after so many within each capture fails; never if it is negative."""
        self.captures = 0
        """Captures begun so far."""


failures = Failures()


def call(name: str, *arguments: Any) -> Any:
    """A function of the library. Raises RuntimeError with what one that returns a text says went wrong."""
    said = getattr(_stand_in, f"stand_in_{name}")(*arguments)
    if isinstance(said, bytes):
        raise RuntimeError(said.decode())
    return said


def waited(why: str) -> None:
    """Called whenever the host waits; `counting.py` replaces it."""


class Stream:
    """As `torch.cuda.Stream`. Kernels run at once whatever their stream; copies to pinned memory do not."""

    def __init__(self, device: Any = None, priority: int = 0, number: int | None = None, **_others: Any) -> None:
        self.device = torch.device("cuda", _index(device))
        self.cuda_stream = self.stream_id = next(_stream_numbers) if number is None else number

    def wait_stream(self, other: Stream) -> None:
        """Go on only after what the other one has been given."""
        self.wait_event(other.record_event())

    def wait_event(self, event: Event) -> None:
        """Go on only after an event."""
        if event.at is not None:
            _stand_in.stand_in_go_after(self.stream_id, *event.at)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event after what the stream has been given."""
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Wait for it."""
        waited("stream.synchronize")
        call("finish", self.stream_id, _stand_in.stand_in_record(self.stream_id))

    def query(self) -> bool:
        """Whether it has nothing left to do."""
        return bool(_stand_in.stand_in_is_done(self.stream_id, _stand_in.stand_in_record(self.stream_id)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def __enter__(self) -> Stream:
        self._before = _current_stream(self.device)
        _stand_in.stand_in_set_stream(self.device.index, self.stream_id)
        return self

    def __exit__(self, *_raised: object) -> None:
        _stand_in.stand_in_set_stream(self.device.index, self._before.stream_id)


class Event:
    """As `torch.cuda.Event`: over once somebody has waited for it or what came later, or has asked twice."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._timing, self._seconds, self._asked = enable_timing, 0.0, False
        self.at: tuple[int, int] | None = None
        """Its stream and its number there, once it is recorded."""

    def record(self, stream: Stream | None = None) -> None:
        """Record it after what the stream has been given."""
        stream = stream or _current_stream()
        self.at, self._asked = (stream.stream_id, _stand_in.stand_in_record(stream.stream_id)), False
        self._seconds = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for it."""
        (stream or _current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether it is over; not at the first time of asking, unless somebody has waited."""
        if self.at is not None and self._asked:
            call("finish", *self.at)
        self._asked = True
        return self._over()

    def synchronize(self) -> None:
        """Wait for it."""
        if not self._over():
            waited("event.synchronize")
            call("finish", *self.at or (0, 0))

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds between this event and another."""
        if not (self._timing and other._timing) or self.at is None or other.at is None:
            raise ValueError("Both events must be created with argument 'enable_timing=True' and recorded.")
        if not (self._over() and other._over()):
            raise RuntimeError("CUDA error: device not ready")
        return 1000 * (other._seconds - self._seconds)

    def _over(self) -> bool:
        return self.at is None or bool(_stand_in.stand_in_is_done(*self.at))


class Graph:
    """As `torch.cuda.CUDAGraph`."""

    replayed: Any = None
    """Called with a graph that is replayed; `counting.py` sets it."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._made = self._captured = False
        self.reset()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", **_others: Any) -> None:
        """Capture from now on."""
        failures.captures += 1
        call("graph_begin", self._graph, capture_error_mode == "thread_local")
        if failures.memory_in_capture >= 0:
            call("fail_allocation", failures.memory_in_capture)

    def capture_end(self) -> None:
        """Capture no longer."""
        _stand_in.stand_in_graph_end()
        self._captured = True

    def replay(self) -> None:
        """Run what was captured."""
        if not self._captured:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if Graph.replayed is not None:
            Graph.replayed(self)
        call("graph_replay", self._graph)

    def reset(self) -> None:
        """Forget what was captured."""
        self.__del__()
        self._graph, self._captured, self._made = _stand_in.stand_in_graph(), False, True

    def pool(self) -> tuple[int, int]:
        """A name for its memory."""
        return 0, id(self)

    def kernels(self) -> dict[str, int]:
        """Its kernels by operator, which `torch.cuda.CUDAGraph` does not tell."""
        return counts(_stand_in.stand_in_graph_kernels(self._graph))

    def __del__(self) -> None:
        if self._made and _stand_in is not None:  # it is None while Python ends
            _stand_in.stand_in_graph_delete(self._graph)


class Capture:
    """As `torch.cuda.graph`. What fails within it is hidden by its own error, as on a GPU."""

    def __init__(
        self,
        cuda_graph: Graph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        **_others: Any,
    ) -> None:
        self._graph, self._stream, self._mode = cuda_graph, stream or Stream(), capture_error_mode

    def __enter__(self) -> None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self._stream.__enter__()
        self._graph.capture_begin(capture_error_mode=self._mode)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        global _capture_lost  # noqa: PLW0603 - a process has one allocator
        self._graph.capture_end()
        if error is not None or failures.at_end is not None:
            _capture_lost = True
            self._graph.reset()
            raise failures.at_end or RuntimeError("CUDA error: operation failed due to a previous error during capture")
        self._stream.__exit__()


def counts(lines: bytes) -> dict[str, int]:
    """A table of the library's."""
    return {name: int(times) for name, times in (line.split("\t") for line in lines.decode().splitlines())}


def reset() -> None:
    """Let nothing fail any more, and forget that a capture did."""
    global _capture_lost  # noqa: PLW0603
    failures.__init__()  # type: ignore[misc]
    _capture_lost = False
    _stand_in.stand_in_fail_allocation(-1)
    for device in range(8):
        _stand_in.stand_in_set_limit(device, 0)
        _stand_in.stand_in_set_stream(device, device)
    _stand_in.stand_in_set_device(0)


def install(library: ctypes.CDLL, devices: int = 1) -> None:
    """Put the stand-in behind `torch.cuda`, with so many devices."""
    global _stand_in  # noqa: PLW0603 - a process has one GPU's driver
    _stand_in = library
    library.stand_in_set_devices(devices)
    for name, value in _names(devices).items():
        setattr(torch.cuda, name, value)
    torch.backends.cuda.is_built = lambda: True
    torch.serialization.register_package(0, lambda storage: None, _loaded)  # before torch's own, which is 20
    plain = torch.Tensor.__deepcopy__
    torch.Tensor.__deepcopy__ = lambda tensor, memo: _deepcopy(tensor, memo, plain)  # type: ignore[method-assign]
    reset()


def _names(devices: int) -> dict[str, Any]:
    name, capability = "stand-in for a GPU", (8, 0)
    properties = SimpleNamespace(
        name=name, total_memory=MEMORY, major=capability[0], minor=capability[1], multi_processor_count=1
    )
    # Torch wants a function of its own under each name.
    nothing = {name: lambda *_arguments, **_named: None for name in ("_lazy_init", "init", *_SEEDS)}
    return nothing | {
        "_is_in_bad_fork": lambda: False,
        "is_available": lambda: True, "is_initialized": lambda: True, "device_count": lambda: devices,
        "current_device": lambda: _index(None),
        "set_device": lambda device: _stand_in.stand_in_set_device(_index(device)),
        "get_device_name": lambda device=None: name, "get_device_capability": lambda device=None: capability,
        "get_device_properties": lambda device=None: properties,
        "is_bf16_supported": lambda *_arguments, **_named: True,
        "mem_get_info": lambda device=None: (MEMORY - memory_allocated(device), MEMORY),
        "memory_allocated": memory_allocated, "memory_reserved": memory_allocated,
        "max_memory_allocated": lambda device=None: _stand_in.stand_in_peak(_index(device)),
        "reset_peak_memory_stats": lambda device=None: _stand_in.stand_in_reset_peak(_index(device)),
        "empty_cache": _empty_cache, "synchronize": _synchronize,
        "is_current_stream_capturing": lambda: bool(_stand_in.stand_in_capturing()),
        "Stream": Stream, "Event": Event, "CUDAGraph": Graph, "graph": Capture, "stream": _stream, "device": Device,
        "graph_pool_handle": lambda: (1, 0), "current_stream": _current_stream,
        "default_stream": lambda device=None: Stream(device, number=_index(device)),
        "set_stream": lambda stream: _stand_in.stand_in_set_stream(stream.device.index, stream.stream_id),
    }  # fmt: skip


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on a device."""
    return int(_stand_in.stand_in_used(_index(device)))


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    found = None if device is None else torch.device(device).index
    return int(_stand_in.stand_in_device()) if found is None else found


def _current_stream(device: Any = None) -> Stream:
    index = _index(device)
    return Stream(index, number=_stand_in.stand_in_stream(index))


@contextmanager
def _stream(stream: Stream | None) -> Iterator[None]:
    if stream is None:
        yield
    else:
        with stream:
            yield


class Device:
    """As `torch.cuda.device`, which torch asks whether something is one."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        self._before = _stand_in.stand_in_device()
        _stand_in.stand_in_set_device(self.idx)

    def __exit__(self, *_raised: object) -> None:
        _stand_in.stand_in_set_device(self._before)


def _synchronize(device: Any = None) -> None:
    call("synchronize", _index(device))


def _empty_cache() -> None:
    if _capture_lost:
        raise RuntimeError("captures_underway.empty() INTERNAL ASSERT FAILED")


def _loaded(storage: Any, location: str) -> Any:
    """What `torch.load` makes of a storage, which torch's build for CPUs cannot have on a GPU without a tensor."""
    if not location.startswith("cuda"):
        return None
    return torch.empty(0, dtype=torch.uint8).set_(storage).to(location).untyped_storage()


def _deepcopy(tensor: Any, memo: dict[int, Any], plain: Any) -> Any:
    """As torch's, which asks CUDA's own allocator for a storage."""
    if type(tensor) is not torch.Tensor or tensor.device.type != "cuda":
        return plain(tensor, memo)
    if id(tensor) not in memo:
        made = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        made.__dict__.update(tensor.__dict__)
        memo[id(tensor)] = made
    return memo[id(tensor)]
