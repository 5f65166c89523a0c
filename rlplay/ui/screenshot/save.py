"""Saves the view as SVG, PNG and text next to the run, without overwriting any file."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from rlplay.ui.screenshot.cells import Grid, text_of
from rlplay.ui.screenshot.svg import svg

NO_PICTURE = "For a PNG as well: pip install pillow"


def keep(grid: Grid, run: Path) -> tuple[list[Path], str]:
    """Write the screen as SVG, text and PNG next to the file `run`, or else to the current directory.

    Returns the files, and why there is no PNG if it is missing. Raises OSError if neither folder is writable.
    """
    try:
        run.parent.mkdir(parents=True, exist_ok=True)  # the engine may not have created it yet
        return _keep(grid, run.parent, run.stem)
    except OSError:
        return _keep(grid, Path.cwd(), run.stem)


def _keep(grid: Grid, folder: Path, stem: str) -> tuple[list[Path], str]:
    names = (f"{stem}.view-{number}" for number in count(1))
    name = next(name for name in names if not any(folder.glob(f"{name}.*")))
    kept = [_written(folder / f"{name}.svg", svg(grid, stem)), _written(folder / f"{name}.txt", text_of(grid))]
    try:
        return [*kept, _painted(grid, folder / f"{name}.png")], ""
    except ImportError:
        return kept, NO_PICTURE
    except OSError as error:
        return kept, f"No PNG: {error}"


def _written(path: Path, text: str) -> Path:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    return path


def _painted(grid: Grid, path: Path) -> Path:
    from rlplay.ui.screenshot.png import PngRenderer

    PngRenderer().paint(grid, path)
    return path
