"""What a map of 64 × 64 tokens costs the screen: all of it after another colour, and one row.

    python -m tests.benchmarks.bench_paint

CPU milliseconds, medians of 51: drawing every line of the panel anew and handing it to Textual as styled cells.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable

from textual.geometry import Region

from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update
from rlplay.ui.answers.answer_order import order
from tests.recorded import synthetic_update
from tests.ui.stage import playground, settled

WHOLE, ROW = 0.020, 0.003
"""The limits, in CPU seconds."""
SIZE = (400, 80)
"""A screen on which 64 rows of 64 tokens are all in sight."""


def cost(work: Callable[[int], object]) -> float:
    """Median CPU seconds."""
    taken = []
    for number in range(51):
        began = time.process_time()
        work(number)
        taken.append(time.process_time() - began)
    return statistics.median(taken)


async def costs() -> tuple[int, float, float]:
    """Rows in sight, and the cost of all of them and of one."""
    app, source = playground()
    async with app.run_test(size=SIZE) as pilot:
        source.records(synthetic_update(1, prompts=8, generations=8, length=64))
        await settled(pilot)
        shown = app.play.session.shown
        assert isinstance(shown, Update)
        tokens, listed, lenses = (
            app.panels.tokens,
            order(shown, app.play.sort),
            [LENSES["probability"], LENSES["entropy"]],
        )
        inside = Region(0, 0, tokens.scrollable_content_region.width, tokens.scrollable_content_region.height)

        def whole(number: int) -> None:
            tokens.show(shown, listed, lenses[number % 2], False, False)
            tokens.render_lines(inside)

        def row(number: int) -> None:
            tokens.redraw(number % inside.height)
            tokens.render_lines(Region(0, number % inside.height, inside.width, 1))

        return inside.height, cost(whole), cost(row)


def main() -> None:
    """Print every figure."""
    rows, whole, row = asyncio.run(costs())
    print(f"all {rows} rows in sight, another colour   {whole * 1000:6.1f} ms  {whole / WHOLE:5.2f} of the limit")
    print(f"one row                              {row * 1000:6.1f} ms  {row / ROW:5.2f} of the limit")


if __name__ == "__main__":
    main()
