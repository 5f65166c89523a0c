"""The view as files: the text is what the screen shows, every column stands in the drawing, nothing is overwritten."""

import re
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App

from rlplay.ui.screenshot import save as keeping
from rlplay.ui.screenshot.cells import Cell, CellStyle, _cells, capture, clusters, text_of
from rlplay.ui.screenshot.save import keep
from rlplay.ui.screenshot.shapes import Dot, Rectangle, shapes
from rlplay.ui.screenshot.svg import HEIGHT, NBSP, WIDTH, svg
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, playground, pressed, settled
from tests.ui.stage import text_of as shown

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = CellStyle("#ffffff", "#000000")


def grid_of(*lines, look=PLAIN):
    return [[Cell(text, cell_len(text), look) for text in clusters(line)] for line in lines]


def words_at(drawing):
    """Text and where it stands, in cells: [(text, x, y, columns)]."""
    found = []
    for text in ElementTree.fromstring(drawing).iter(f"{SVG}text"):
        x, y, length = (float(text.get(name)) for name in ("x", "y", "textLength"))
        found.append((text.text.replace(NBSP, " "), x / WIDTH, int(y // HEIGHT), length / WIDTH))
    return found


async def test_the_text_is_what_stands_on_the_screen_dialogue_included():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        source.records(synthetic_update(1))
        await settled(pilot)
        lines = text_of(capture(app)).splitlines()
        assert len(lines) == 35
        assert all(line == line.rstrip() for line in lines)
        row = app.panels.tokens.content_region
        for y, line in enumerate(shown(app.panels.tokens).splitlines()):
            assert line.rstrip() in lines[row.y + y]
        await pressed(pilot, "k")
        grid = capture(app)
        assert "Knobs" in text_of(grid)
        assert all(sum(cell.width for cell in line) == 120 for line in grid)


def test_wide_characters_take_two_columns_in_the_drawing_and_push_nothing_aside():
    drawing = svg(grid_of("ab東京c", "─ e\u0301x <&>"), "a <title>")
    assert words_at(drawing) == [
        ("ab", 0, 0, 2), ("東", 2, 0, 2), ("京", 4, 0, 2), ("c", 6, 0, 1),
        ("e\u0301", 2, 1, 1), ("x <&>", 3, 1, 5),
    ]  # fmt: skip
    assert "http" not in drawing.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched to show it"


def test_lines_and_blocks_reach_the_edges_of_their_cells():
    ways = {"─": "lr", "│": "tb", "┼": "lrtb", "╭": "rb", "├": "rtb"}
    for character, sides in ways.items():
        edges = zip(*shapes(character), strict=True)
        left, top, right, bottom = min(next(edges)), min(next(edges)), max(next(edges)), max(next(edges))
        reached = {"l": left == 0, "t": top == 0, "r": right == 1, "b": bottom == 1}
        assert {side for side, there in reached.items() if there} == set(sides), character
    assert shapes("█") == [Rectangle(0, 0, 1, 1)]
    assert sum((b.right - b.left) * (b.bottom - b.top) for b in shapes("▜")) == 0.75
    assert len(shapes("⣿")) == 8
    assert all(isinstance(dot, Dot) for dot in shapes("⣿"))
    assert shapes("a") is None


def test_nothing_is_overwritten_and_a_folder_that_refuses_is_passed_over(tmp_path, monkeypatch):
    run = tmp_path / "runs" / "one.rlplay"
    first, _ = keep(grid_of("one"), run)
    second, _ = keep(grid_of("two"), run)
    assert {path.suffix for path in first} >= {".svg", ".txt"}
    assert not set(first) & set(second)
    assert first[1].read_text() == "one\n"
    monkeypatch.chdir(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    elsewhere, _ = keep(grid_of("three"), blocked / "two.rlplay")
    assert [path.parent for path in elsewhere] == [tmp_path] * len(elsewhere)


def test_without_pillow_there_are_the_other_two_and_a_word(tmp_path, monkeypatch):
    def missing(grid, path):
        raise ImportError("PIL")

    monkeypatch.setattr(keeping, "_painted", missing)
    files, word = keep(grid_of("one"), tmp_path / "run.rlplay")
    assert [path.suffix for path in files] == [".svg", ".txt"]
    assert "pip install pillow" in word


def test_the_picture_has_the_colours_in_their_places(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    from rlplay.ui.screenshot.png import NoFont, PngRenderer

    try:
        renderer = PngRenderer()
    except NoFont:
        pytest.skip("no monospaced font on this machine")
    lit = [Cell("█", 1, CellStyle("#ff0000", "#000000")), Cell("東", 2, CellStyle("#ffffff", "#00ff00"))]
    renderer.paint([lit, grid_of("   ")[0]], tmp_path / "a.png")
    image = pillow.open(tmp_path / "a.png")
    w, h = renderer.width // 2, renderer.height // 2
    assert image.size == (3 * w, 2 * h)
    assert image.getpixel((w // 2, h // 2)) == (255, 0, 0)
    assert image.getpixel((3 * w - 1, 0)) == (0, 255, 0), "a wide character's ground covers both columns"
    assert image.getpixel((w, h + 1)) == (0, 0, 0)
    with pytest.raises(FileExistsError):
        renderer.paint([lit], tmp_path / "a.png")


async def test_the_key_writes_the_files_and_says_where(tmp_path):
    app, source = playground()
    source.path = tmp_path / "mine.rlplay"
    async with app.run_test(size=(160, 45)) as pilot:
        source.records(synthetic_update(1))
        await settled(pilot)
        await pressed(pilot, "w")
        assert [toast.message for toast in app._notifications if re.search(r"Saved.*mine\.view-1", toast.message)]
    assert "Answers" in (tmp_path / "mine.view-1.txt").read_text()
    ElementTree.parse(tmp_path / "mine.view-1.svg")


async def test_the_palette_has_one_way_to_save_the_screen():
    app, _ = playground()
    async with app.run_test():
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "Save the view" in titles
        assert not [title for title in titles if "screenshot" in title.lower()]


def test_dim_and_reversed_letters_are_drawn_so():
    theme = App().ansi_theme
    (dim, turned) = _cells([Segment("a", Style(color="#ffffff", dim=True)),
                            Segment("b", Style(color="#ffffff", bgcolor="#112233", reverse=True))],
                           theme, "#000000")  # fmt: skip
    assert (dim.style.ink, dim.style.ground) == ("#999999", "#000000")
    assert (turned.style.ink, turned.style.ground) == ("#112233", "#ffffff")
