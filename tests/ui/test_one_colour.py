"""One job for each colour: the accent is the cursor and the border of what has the focus, and yellow warns."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

SCREEN = Path(__file__).parents[2] / "rlplay" / "ui"
BORDER = re.compile(r"(?:&:focus|:focus|:hover|\.-list--visible|border(?:-\w+)?:[^;]*|link-background-hover:)[^;]*$")
CURSORS = {
    "held_out/held_out_screen.py": 1,
    "knobs/knobs_screen.py": 1,
    "lesson/lessons.py": 1,
    "labels/label_screen.py": 1,  # the pair on the screen
    "opening/opening_screen.py": 1,  # the chosen way on
    "parts/typed_list.py": 1,  # the highlighted line of a list
    "reach/reach_plot.py": 1,  # the line that is dragged
    "sliders/slider_track.py": 1,  # the handle that is dragged
    "surrogate/picture.py": 2,  # the bounds that are dragged
    "world/large_squares.py": 1,  # the square under the cursor
}
"""Uses of the accent that are no border, by file: all of them a cursor."""
MARKS = re.compile(r"palette\.mark\b")


def uses(pattern: str) -> Counter[str]:
    """How often the screen uses a colour, by file, without its borders."""
    found: Counter[str] = Counter()
    for path in [*SCREEN.rglob("*.py"), *SCREEN.rglob("*.tcss")]:
        if path.parent.name == "theme":
            continue
        for line in path.read_text().splitlines():
            for use in re.finditer(pattern, line):
                if not BORDER.search(line[: use.start()]):
                    found[str(path.relative_to(SCREEN))] += 1
    return found


def test_the_accent_is_the_cursor_and_the_border_of_what_has_the_focus() -> None:
    assert uses(r"\$accent") == CURSORS


def test_its_other_name_is_not_used_for_anything() -> None:
    assert uses(r"\$primary") == {"plot/picture.py": 1}, "where a docstring explains what a style is"


@pytest.mark.parametrize("path", sorted({str(p.relative_to(SCREEN)) for p in SCREEN.rglob("*.py")}), ids=str)
def test_the_style_of_a_mark_is_for_the_mark_beside_the_cursor(path: str) -> None:
    for line in (SCREEN / path).read_text().splitlines():
        if MARKS.search(line):
            assert re.search(r"\bhere\b|at == self\.at", line), line


def test_an_answer_without_signal_and_an_older_update_are_no_warnings() -> None:
    text = (SCREEN / "rlplay.tcss").read_text() + (SCREEN / "answers" / "answer_list.py").read_text()
    assert "$warning" not in text
    assert "palette.warning" not in text
