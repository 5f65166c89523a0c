"""A recorded run as a film of the terminal: the replay's own screen after each update, as asciinema plays it.

Format: asciicast v2 (docs.asciinema.org/manual/asciicast/v2): a header, then one line for each change of the screen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from rlplay.export.atomic_output import ExportError, atomic_output
from rlplay.trace.runfile import RunReader
from rlplay.ui.app import RlplayApp
from rlplay.ui.lesson.teaching import Plan
from rlplay.ui.screenshot.cells import Cell, CellStyle, Grid, capture
from rlplay.ui.session.sources import ReplaySource

SIZE = (120, 35)
"""Columns and lines of the film."""
STANDS, RESTS = 0.8, 3.0
"""Seconds that a frame stands, and the last one."""
LONGEST = 200
"""Frames of the longest film; of a longer run every so many updates are shown."""
_WAIT = 0.01
"""Seconds between two looks at whether the replay is there."""


def export_cast(run: Path, out: Path) -> None:
    """Write the run file `run` as a film to `out`.

    Raises RunFileError if the run cannot be read, ExportError if it has no update to show or `out` cannot be written.
    """
    with RunReader(run) as reader:
        numbers, title = reader.detailed(), reader.started.title
    if not numbers:
        raise ExportError(f"{run} has no update with tokens; let it train one, then export it")
    chosen = numbers[:: -(-len(numbers) // LONGEST)]
    frames = asyncio.run(_frames(run, sorted({*chosen, numbers[-1]})))
    with atomic_output(out) as partial:
        partial.write_text("".join(line + "\n" for line in film(frames, title)), encoding="utf-8")


def film(frames: list[Grid], title: str) -> Iterator[str]:
    """The lines of an asciicast with these screens, one after the other."""
    yield json.dumps({"version": 2, "width": SIZE[0], "height": SIZE[1], "title": title})
    before: Grid = []
    for number, grid in enumerate(frames):
        yield json.dumps(
            [round(number * STANDS, 3), "o", ("" if before else "\x1b[?25l\x1b[2J") + changed(before, grid)]
        )
        before = grid
    yield json.dumps([round((len(frames) - 1) * STANDS + RESTS, 3), "o", "\x1b[0m"])


def changed(before: Grid, grid: Grid) -> str:
    """What a terminal that shows `before` has to be sent to show `grid`."""
    lines = enumerate(grid, start=1)
    return "".join(f"\x1b[{row};1H{_line(line)}" for row, line in lines if before[row - 1 : row] != [line])


def _line(cells: list[Cell]) -> str:
    parts: list[str] = []
    style: CellStyle | None = None
    for cell in cells:
        if cell.style != style:
            style = cell.style
            parts.append(_sgr(style))
        parts.append(cell.text)
    return "".join(parts)


def _sgr(style: CellStyle) -> str:
    on = [code for code, has in ((1, style.bold), (3, style.italic), (4, style.underline), (9, style.strike)) if has]
    inks = [f"{code};2;{int(ink[1:3], 16)};{int(ink[3:5], 16)};{int(ink[5:7], 16)}"
            for code, ink in ((38, style.ink), (48, style.ground))]  # fmt: skip
    return f"\x1b[0m\x1b[{';'.join([*map(str, on), *inks])}m"


async def _frames(run: Path, numbers: list[int]) -> list[Grid]:
    """The screen of a replay that plays from the start, after each of these updates."""
    app = RlplayApp(ReplaySource(run), plan=Plan(keeps_theme=False))
    session = app.play.session
    frames: list[Grid] = []
    async with app.run_test(size=SIZE) as pilot:

        async def at(number: int) -> None:
            while session.status is None or session.status.update != number or session.asked:
                await pilot.pause(_WAIT)

        await at(numbers[-1])
        await app.play.perform("rewind")
        await at(0)
        for number in range(1, numbers[-1] + 1):
            await app.play.perform("update")
            await at(number)
            if number in numbers:
                app.refresher.everything()
                await pilot.pause()
                frames.append(capture(app))
    return frames
