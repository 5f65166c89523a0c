"""Draws the results of `tests.benchmarks.bench_algorithms`: `python -m screenshots.algorithms RESULTS.json`."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import msgspec
import pyte

from rlplay.algorithms.catalogue import PRESETS
from screenshots.draw import paint
from tests.benchmarks.bench_algorithms import PAIR_UPDATES, UPDATES, Run, short, sparkline

HERE = Path(__file__).parent
_WIDTH, _COLUMNS = 60, 118
_DIM, _FAINT, _GAIN, _TICK, _OFF = (
    "\x1b[38;2;134;142;155m",
    "\x1b[38;2;60;66;80m",
    "\x1b[38;2;63;143;232m",
    "\x1b[1m",
    "\x1b[0m",
)


def row(title: str, runs: list[Run]) -> str:
    """One algorithm: its reward by update, and held-out accuracy before and after as a bar with the seeds' range."""
    before = statistics.mean(run.before for run in runs)
    after = sorted(run.after for run in runs)
    mean = statistics.mean(after)
    low, high = round(after[0] * _WIDTH), round(after[-1] * _WIDTH)
    cells = []
    for x in range(_WIDTH):
        part = _FAINT + "▅" if x < before * _WIDTH else _GAIN + "▅" if x < mean * _WIDTH else " "
        whisker = low <= x < high and x >= mean * _WIDTH
        cells.append(_GAIN + "─" if whisker else part)
    curves = [run.rewards for run in runs if run.rewards]
    curve = sparkline([statistics.mean(values) for values in zip(*curves, strict=True)]).strip("`")
    return f" {title:26} {_DIM}{curve:>13}{_OFF}  {''.join(cells)}{_OFF}  {_TICK}{short(mean)}{_OFF}"


def main(results: Path) -> None:
    """Write algorithms.png beside this file."""
    runs = msgspec.json.decode(results.read_bytes(), type=list[Run])
    shown = [(p.title, [r for r in runs if r.algorithm == name]) for name, p in PRESETS.items()]
    shown = [(title, mine) for title, mine in shown if mine]
    what = f"held-out accuracy before and after {UPDATES} updates ({PAIR_UPDATES} on pairs); mean and best"
    head = f" {_DIM}{'':26} {'reward':>13}  {what}{_OFF}"
    screen = pyte.Screen(_COLUMNS, len(shown) + 3)
    stream = pyte.Stream(screen)
    stream.feed("\r\n".join([head, "", *(row(title, mine) for title, mine in shown)]))
    paint(screen, HERE / "algorithms.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
