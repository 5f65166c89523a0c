"""A map on a large panel: where its squares are, what is drawn in them, and that every mark is explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.algorithms.setting_values import decoded
from rlplay.trace.history import History
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.world.arrows import arrow, draw_arrows
from rlplay.ui.world.big_signs import big
from rlplay.ui.world.board import board
from rlplay.ui.world.canvas import Canvas
from rlplay.ui.world.layers import KINDS, Kind
from rlplay.ui.world.reading import reading
from rlplay.ui.world.rose import draw_rose, longest, quarters, thickness
from rlplay.ui.world.shades import of_256, shade
from rlplay.ui.world.world_map import WorldMap
from rlplay.worlds.chart import chart
from rlplay.worlds.planning import evaluate
from rlplay.worlds.world import DIRECTIONS, World, place, read_world, square_name
from tests.ui.stage import pressed, settled, shown, until
from tests.ui.test_world_map import MAZE, recorded

WORLD = read_world(MAZE)
LARGE = Size(90, 32)
maps = st.builds(
    lambda rows, columns: read_world({"map": ["S" + "." * (columns - 1), *["." * columns] * (rows - 1)]}),
    st.integers(1, 9), st.integers(1, 9),
)  # fmt: skip
sizes = st.builds(Size, st.integers(10, 240), st.integers(4, 67))


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("maze"), MAZE)


@pytest.fixture(scope="module")
def source(maze: Path) -> PlotData:
    with RunReader(maze) as reader:
        update = reader.load(2)
    update.step_word = "move"
    settings = decoded({"gamma": 0.9})
    return PlotData(History(), shown=update, world=WORLD, settings=settings, lines=LARGE.height, columns=LARGE.width)


def drawn(kind: Kind, source: PlotData, size: Size = LARGE) -> Picture:
    picture = WorldMap(kind).draw(source, size, False)
    assert isinstance(picture, Picture)
    return picture


def inside(picture: Picture, name: str, size: Size = LARGE) -> list[str]:
    """The lines of one square."""
    found = board(WORLD, size)
    assert found is not None
    top, left = found.corner(*place(name))
    lines = picture.content.plain.split("\n")
    return [line[left : left + found.width] for line in lines[top : top + found.height]]


@given(maps, sizes)
def test_a_board_fits_its_panel_and_knows_its_squares(world: World, size: Size) -> None:
    found = board(world, size)
    if found is None:
        return
    assert found.lines <= size.height
    assert found.left >= 0
    assert found.left + found.columns * (found.width + 1) + 1 <= size.width
    assert found.width >= 11
    assert found.height >= 4
    for row in range(found.rows):
        for column in range(found.columns):
            top, left = found.corner(row, column)
            for line in (top, top + found.height - 1):
                for cell in (left, left + found.width - 1):
                    assert found.square_at(cell, line) == square_name(row, column)
    assert found.square_at(found.left - 1, found.top + 1) is None
    assert found.square_at(found.left + 1, found.lines) is None
    assert found.square_at(found.left + 1, found.top - 1) is None


@pytest.mark.parametrize(("size", "least"), [((76, 27), (13, 5)), ((100, 32), (18, 6)), ((236, 60), (35, 13))])
def test_squares_grow_with_the_panel(size: tuple[int, int], least: tuple[int, int]) -> None:
    found = board(read_world({"map": ["S...", "....", "....", "...G"]}), Size(*size))
    assert found is not None
    assert (found.width, found.height) >= least


@given(st.integers(5, 20), st.integers(11, 50), st.sampled_from("↑→↓←"))
def test_four_lengths_of_an_arm_differ(height: int, width: int, move: str) -> None:
    size = Size(width, height)
    counts = []
    for length in range(1, 5):
        canvas = Canvas(width, height)
        draw_rose(canvas, 0, 0, size, {move: length / 4}, "", "")
        text = "".join(line.plain for line in canvas.content())
        counts.append(text.count("█") * 2 + text.count("▀") + text.count("▄"))
    assert counts == sorted(set(counts)), "each is longer than the one before"
    assert counts[-1] == longest(size) * thickness(size)


@given(st.floats(0, 1))
def test_a_chance_is_drawn_to_the_nearest_quarter(chance: float) -> None:
    assert abs(quarters(chance) / 4 - chance) <= 0.125 + 1e-9


def test_arms_point_where_moves_lead_and_only_a_best_one_has_a_head() -> None:
    size = Size(18, 6)
    for move, (down, right) in DIRECTIONS.items():
        canvas = Canvas(*size)
        draw_rose(canvas, 0, 0, size, {move: 1.0}, move, "")
        filled = [(y, x) for y, line in enumerate(canvas.content()) for x, c in enumerate(line.plain) if c != " "]
        y, x = np.mean(filled, axis=0)
        assert np.sign(round(y - 2.5)) == down
        assert np.sign(round((x - 8.5) / 2)) == right
        plain = Canvas(*size)
        draw_rose(plain, 0, 0, size, {move: 1.0}, "", "")
        assert plain.content() != canvas.content()


@given(st.integers(4, 12), st.integers(11, 23), st.sampled_from("↑→↓←"))
def test_an_arrow_on_a_small_square_widens_to_its_head_and_tapers_to_its_tip(
    height: int, width: int, move: str
) -> None:
    pixels = arrow(move, 8)
    down, right = DIRECTIONS[move]
    widths = pixels.sum(1 if down else 0).tolist()[:: down + right]
    assert widths[-4:] == [8, 6, 4, 2]
    assert set(widths[:-4]) == {2}
    canvas = Canvas(width, height)
    draw_arrows(canvas, 0, 0, Size(width, height), {move: 0.6, "↑" if down else "←": 0.0}, move, "")
    assert not {"━", "┃"} & set("".join(line.plain for line in canvas.content()))


def test_the_other_moves_begin_at_the_tail_and_several_best_ones_are_side_by_side() -> None:
    size = Size(15, 5)
    canvas = Canvas(*size)
    draw_arrows(canvas, 0, 0, size, {"→": 0.4, "↓": 0.35, "←": 0.2, "↑": 0.05}, "→", "")
    text = "\n".join(line.plain for line in canvas.content())
    assert text.count("━") == 2, "a quarter: two columns"
    assert text.count("┃") == 1
    two, four = Canvas(*size), Canvas(*size)
    draw_arrows(two, 0, 0, size, {"→": 0.5, "↓": 0.5}, "→↓", "")
    assert not {"━", "┃", "→"} & set("".join(line.plain for line in two.content()))
    draw_arrows(four, 0, 0, size, dict.fromkeys(DIRECTIONS, 0.25), "↑→↓←", "")
    assert "↑ → ↓ ←" in "".join(line.plain for line in four.content())


def test_an_untrained_policy_has_four_equal_arms_and_no_bright_one(maze: Path, source: PlotData) -> None:
    with RunReader(maze) as reader:
        untrained = reader.load(1)
    assert untrained.sampled is not None
    first = Update(1, "move")
    first.add(untrained.sampled)
    content = drawn("policy", replace(source, shown=first)).content
    bright = [content.plain[s.start : s.end] for s in content.spans if "bold $foreground" in str(s.style)]
    assert not any(set("█▀▄") & set(text) for text in bright)
    assert sum(line.count("█") + line.count("▀") + line.count("▄") for line in inside(drawn("policy", source), "a1"))


def test_without_shades_the_legend_speaks_of_none(source: PlotData) -> None:
    for kind in KINDS:
        for size in (LARGE, Size(76, 16)):
            assert "shade" not in drawn(kind, replace(source, tinted=False), size).content.plain
    assert "also the shade" in drawn("policy", source).content.plain


def test_a_bandit_offers_no_walk(source: PlotData) -> None:
    panel = CurvePanel(WorldMap())
    panel.source = replace(source, world=read_world({"arms": {"a": 1.0, "b": 0.0}}))
    assert [shortcut.title for shortcut in panel.shortcuts] == ["layer", "metric"]
    panel.source = source
    assert "walk" in [shortcut.title for shortcut in panel.shortcuts]


def test_the_exact_value_of_the_policy_is_beside_the_learned_one(source: PlotData) -> None:
    found = reading(source)
    assert found is not None
    exact = evaluate(WORLD, found.policies, 0.9)
    picture = drawn("values", source)
    for name, value in exact.items():
        text = f"{value:+.2f}".replace("0.", ".", 1).replace("-", "−")
        assert f"={text}" in inside(picture, name)[-1]
    assert found.exact == pytest.approx(exact)
    residual = {
        name: value - sum(
            share * p * (reward + (0 if over else 0.9 * exact[there]))
            for move, share in found.policies[name].items()
            for p, there, reward, over in WORLD.outcomes(name, move)
        )
        for name, value in exact.items()
    }  # fmt: skip
    assert max(map(abs, residual.values())) < 1e-9, "the Bellman equation holds on every square of this layer"


def test_a_reading_is_made_once_for_one_state_of_an_update(source: PlotData) -> None:
    found = reading(source)
    assert found is not None
    assert reading(replace(source, cursor=(2, 3))) is found
    assert reading(replace(source, repainted=True)) is not found
    assert source.shown is not None
    assert source.shown.sampled is not None
    again = Update(2)
    again.add(source.shown.sampled)
    before = reading(replace(source, shown=again))
    again.sampled = msgspec.structs.replace(source.shown.sampled, done=False, survey=None)
    after = reading(replace(source, shown=again))
    assert before is not None
    assert after is not None
    assert before.policies
    assert not after.policies


def test_visits_add_up(source: PlotData) -> None:
    found = chart(WORLD, source.shown)
    visits = {name: square.visits for name, square in found.squares.items() if not WORLD.ends(name)}
    picture = drawn("visits", source)
    total = sum(visits.values())
    for name, count in visits.items():
        assert inside(picture, name)[-1].replace("•", "").split() == [f"{100 * count / total:.0f}", "%"]


def test_the_path_crosses_the_lines_between_its_squares(source: PlotData) -> None:
    paths = chart(WORLD, source.shown).paths
    row = max(paths, key=lambda each: len(set(paths[each])))
    assert "•••" in drawn("policy", replace(source, cursor=(row, 0))).content.plain or len(set(paths[row])) == 1
    elsewhere = drawn("policy", replace(source, cursor=(99, 0))).content.plain
    assert "•" not in elsewhere
    assert "┏" not in elsewhere


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [Size(76, 27), LARGE, Size(236, 60)])
def test_every_layer_has_a_legend_that_fits(source: PlotData, kind: Kind, size: Size) -> None:
    lines = drawn(kind, source, size).content.plain.split("\n")
    found = board(WORLD, size)
    assert found is not None
    assert len(lines) <= size.height
    assert max(map(len, lines)) <= size.width
    assert any(line.strip() for line in lines[found.lines :])


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=16))
def test_a_larger_value_is_never_paler(values: list[float]) -> None:
    def depth(value: float) -> int:
        return int(shade(value, values).rpartition(" ")[2].strip("%") or 0)

    for sign in (-1, 1):
        depths = [depth(value) for value in sorted(values, key=abs) if value * sign > 0]
        assert depths == sorted(depths)
        assert all(each <= 45 for each in depths)


def test_with_256_colours_a_shade_keeps_its_hue() -> None:
    assert of_256("bold $error on $error 23%", dark=True) == "bold $error on #5f0000"
    assert of_256("on $success 45%", dark=True) != of_256("on $success 20%", dark=True)
    assert of_256("on $success 45%", dark=True) != of_256("on $success 45%", dark=False)
    assert of_256("bold $foreground on $success 6%", dark=True) == "bold $foreground"
    for style in ("bold $foreground", "$border", "reverse", "on $foreground 25%"):
        assert of_256(style, dark=True) == style


def test_large_digits_are_different() -> None:
    assert len({big(str(digit)).tobytes() for digit in range(10)}) == 10
    assert big("+.34").shape == (5, 13)


def test_before_the_first_update_only_the_world_is_drawn() -> None:
    empty = PlotData(History(), world=WORLD, settings=decoded({"gamma": 0.9}))
    for kind in KINDS:
        if kind != "optimal":
            text = drawn(kind, empty).content.plain
            assert "V " not in text
            assert "%" not in text
    assert "V*" in drawn("optimal", empty).content.plain or "arrow" in drawn("optimal", empty).content.plain


async def test_left_and_right_go_through_the_layers(maze: Path) -> None:
    app = RlplayApp(ReplaySource(maze))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.run.newest is not None and app.play.session.run.newest.number == 2)
        await app.play.perform("stage", "map")
        await settled(pilot)
        panel = app.focused
        assert panel in app.panels.curves.panels
        seen = []
        for key in ("right",) * 5 + ("left",):
            seen.append(panel.view.kind)
            await pressed(pilot, key)
        assert seen == [*KINDS, "policy"]
        assert panel.view.kind == "optimal"
        await app.play.perform("curve", "map")
        await settled(pilot)
        assert panel.view == WorldMap(), "a layer gives way to the map"
        assert "★" in shown(panel) or "█" in shown(panel)


def test_squares_that_the_policy_cannot_see_are_marked(source: PlotData) -> None:
    blind = replace(source, world=read_world({**MAZE, "hidden": ["b1"]}))
    picture = drawn("optimal", blind)
    assert inside(picture, "b1")[0].startswith("b1 ?")
    assert "?" not in inside(picture, "c1")[0]
    assert "? the policy cannot tell" in picture.content.plain


@pytest.mark.parametrize("width", range(46, 70))
def test_texts_in_narrow_squares_do_not_overlap(source: PlotData, width: int) -> None:
    size = Size(width, 34)
    found = board(WORLD, size)
    if found is None:
        return
    squares = chart(WORLD, source.shown).squares
    picture = drawn("change", source, size)
    for name, square in squares.items():
        if square.before and square.after:
            text = " ".join(inside(picture, name, size)[1:])
            for move in square.after:
                moved = square.after[move] - square.before[move]
                if abs(moved) >= 0.005:
                    written = f"{moved:+.2f}".replace("0.", ".", 1).replace("-", "−")
                    assert f"{move}{written}" in text.replace(f"{move} ", move), (name, move)


def test_a_painted_reward_is_written_on_its_square(source: PlotData) -> None:
    painted = replace(source, world=WORLD.repainted({"b1": 0.5, "d1": "I"}))
    picture = drawn("policy", painted)
    assert "◆+.5" in inside(picture, "b1")[0]
    assert "≈" in inside(picture, "d1")[0]
    assert msgspec.to_builtins(WORLD.painted) == {}
