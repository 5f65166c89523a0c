"""Float32 products of matrices by oneDNN, on CPUs where it is faster than what torch calls.

`torch.nn.functional.linear` takes float32 products from MKL, which runs its AVX-512 kernels on Intel's CPUs alone; on
others it stays with AVX2, half as wide. oneDNN, which comes with torch too, looks at what the CPU can do. The precision
is the same: float32 factors, float32 sums. A seed gives other last digits, the same ones each time.

One thread of an AMD EPYC of the fifth generation (Zen 5), torch 2.13, GFLOP/s:

| rows × in → out | MKL | oneDNN | gradient by input | by weight |
| --------------- | --- | ------ | ----------------- | --------- |
| 2048 × 192 → 512 | 116 | 254 | 265 | 218 |
| 2048 × 512 → 192 | 116 | 255 | 260 | 227 |
| 300 × 192 → 512 | 113 | 240 | 243 | 197 |
| 64 × 192 → 512 | 91 | 205 | 172 | 167 |

A call of oneDNN takes 9 µs before it multiplies, and its first of a shape .2 ms more; what it makes ready for a shape
takes megabytes, so few shapes are kept (`compat.py`). A layer takes it only for products of `WORTH` multiplications and
`ROWS` rows or more: on one side of that is what a language model learns from, on the other what it samples side by
side, with another number of rows at every position, and the policies of the small worlds.

oneDNN: https://uxlfoundation.github.io/oneDNN/
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from rlplay.engine.compat import onednn_linear

WORTH = 2**21
"""Multiplications of a product from which on oneDNN is faster, with the gradients and without."""

ROWS = 128
"""Rows from which on it is. What is sampled side by side has fewer, and another number of them at every position."""

_INTEL = "GenuineIntel"
_SHAPE, _TRIES, _AT_ONCE = (2048, 192, 512), 9, 20
"""Rows, inputs and outputs of the products that are timed, how often, and how many at once."""


@cache
def is_faster() -> bool:
    """Whether oneDNN multiplies faster than MKL on this CPU, by what it is and can do: nothing is timed."""
    able = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return able and wide and _INTEL not in _cpu() and onednn_linear() is not None


def _cpu() -> str:
    """What the system says of the CPU, its vendor among it."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return platform.processor()


def multiplied(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`inputs` [..., k] times `weight` [n, k], transposed, plus `bias` [n], contiguous: [..., n], without gradients.

    Only where `onednn_linear` finds the operator.
    """
    operator = onednn_linear()
    assert operator is not None
    return operator(inputs, weight, bias, "none", [], "")


def rates(clock: Callable[[], float] = time.perf_counter) -> tuple[float, float | None]:
    """Floating-point operations per second of a product of the bundled model's width: torch's own, and oneDNN's if it
    can be called. The medians of a few, in turns, by `clock`, with as many threads as torch uses now."""
    rows, width, out = _SHAPE
    a, b = torch.randn(rows, width), torch.randn(out, width)
    ways: list[Callable[[], Tensor]] = [lambda: a @ b.t()]
    ways += [lambda: multiplied(a, b, None)] if onednn_linear() else []
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(_TRIES):
        for way, seconds in zip(ways, taken, strict=True):
            begun = clock()
            for _ in range(_AT_ONCE):
                way()
            seconds.append((clock() - begun) / _AT_ONCE)
    found = [2 * rows * width * out / statistics.median(seconds) for seconds in taken]
    return found[0], found[1] if len(found) > 1 else None
