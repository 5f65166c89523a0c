"""What a curve panel costs on the UI thread, and how that grows with the length of the run.

    python -m tests.benchmarks.bench_plot

CPU milliseconds, medians of nine, as shares of the 15th of a second that a frame has.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from rlplay.ui.plot.curve import Curve
from rlplay.ui.plot.drawn_curves import curves
from rlplay.ui.plot.picture import Size

FRAME = 1 / 15


def panel(updates: int) -> float:
    """Median CPU seconds of one panel of two curves and a band."""
    x = list(range(1, updates + 1))
    wave = np.sin(np.array(x) / 9) + 1
    series = [Curve(x, wave, "$curve-a", band=(wave - 0.2, wave + 0.2)), Curve(x, wave[::-1], "$curve-b", "dashed")]
    times = []
    for _ in range(9):
        began = time.process_time()
        curves(series, [(updates // 2, "◆")], Size(36, 10))
        times.append(time.process_time() - began)
    return statistics.median(times)


def main() -> None:
    """Print a line for each length of run."""
    short = panel(100)
    for updates in (100, 1_000, 10_000):
        cost = panel(updates)
        share, growth = cost / FRAME, cost / short
        print(f"{updates:6} updates {cost * 1000:6.1f} ms  {share:5.2f} of a frame  {growth:5.2f} x 100 updates")


if __name__ == "__main__":
    main()
