"""Tables on the command line."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rlplay.trace.text import visible

_BOUNDLESS = 10_000


def table(rows: Sequence[Sequence[str]], right_aligned: Sequence[str] = ()) -> list[str]:
    """The rows as lines. The first row names the columns; those named in `right_aligned` are right-aligned."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    for name in rows[0]:
        grid.add_column(justify="right" if name in right_aligned else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(visible(cell)) for cell in row))
    written = io.StringIO()
    Console(file=written, width=_BOUNDLESS, color_system=None, legacy_windows=False).print(grid)
    return [line.rstrip() for line in written.getvalue().splitlines()]
