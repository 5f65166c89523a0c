"""The dialogue about the weights: the model as a grid, the layers' readings, the neighbours, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from textual.containers import Vertical

from rlplay.link.messages import EndProbe, Failed
from rlplay.trace.moved_weights import LayerReading, ModelPart, MovedWeight
from rlplay.trace.questions import LayersRead, Neighbours, NeighboursFound, ReadLayers, Weigh, Weighed
from rlplay.trace.records import Rewound
from rlplay.ui.app import RlplayApp
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.weighing import Weighing
from rlplay.ui.weights import moved_picture
from rlplay.ui.weights.layers_panel import LayersPanel
from rlplay.ui.weights.matrix_detail import MatrixDetail
from rlplay.ui.weights.model_grid import grid
from rlplay.ui.weights.moved_picture import MovedPicture, share
from rlplay.ui.weights.neighbours_panel import NeighboursPanel
from rlplay.ui.weights.squares_picture import SquaresPicture
from rlplay.ui.weights.weights_screen import VIEWS, WeightsScreen
from rlplay.ui.weights.words import squares_summary, summary
from rlplay.verbs import WEIGHT_VIEWS
from rlplay.worlds.world import read_world
from tests.ui.stage import all_text, on_screen, playground, pressed, settled, shown, text_of

SIZES = [(80, 24), (120, 35), (160, 45), (240, 67)]


def weight(layer: int, part: ModelPart, label: str, moved: float, size: float = 1.0, **more: Any) -> MovedWeight:
    known = {"name": f"m.{layer}.{label}", "shape": [4, 8], "numbers": 32, "changed": 32} | more
    return MovedWeight(layer=layer, part=part, label=label, moved=moved, size=size, **known)


def model(layers: int = 2, **more: Any) -> Weighed:
    """What two updates would move: most in down of layer 2."""
    weights = [weight(0, "embedding", "tokens", 0.001)]
    for layer in range(1, layers + 1):
        weights += [weight(layer, "attention", label, 0.002) for label in ("k", "q", "o", "v")]
        weights += [
            weight(layer, "mlp", "up", 0.004),
            weight(layer, "mlp", "down", 0.004 * layer, rank=2.5, spectrum=[0.5, 0.25, 0.125]),
            weight(layer, "norm", "input_layernorm", 0.0003, shape=[4], numbers=4, changed=3),
            weight(layer, "norm", "post_layernorm", 0.0004, shape=[4], numbers=4, changed=4),
        ]
    weights += [weight(layers + 1, "norm", "norm", 0.0, shape=[4], numbers=4, changed=0)]
    weights += [weight(layers + 1, "value", "value head", 0.0, 0.0, changed=0)]
    known: dict[str, Any] = {"layers": layers, "tied": True, "done": True, "weights": weights}
    return Weighed(**{"update": 1, "since": 0} | known | more)


def test_a_grid_has_the_layers_in_order_and_the_columns_as_data_flows() -> None:
    found = grid(model(), 12)
    assert [row.title for row in found.rows] == ["embedding", "layer 1", "layer 2", "final norm"]
    assert [label for _, label in found.columns] == ["q", "k", "v", "o", "up", "down", "norms"]
    norms = found.rows[1].cells[-1]
    assert norms is not None
    assert norms.moved == pytest.approx(0.0005), "both norms of a layer are one cell"
    assert norms.relative == pytest.approx(0.0005 / 2**0.5)
    assert found.largest is not None
    assert (found.largest.title, found.largest.relative) == ("layer 2 · MLP down", 0.008)


def test_a_grid_without_room_has_a_cell_for_each_part() -> None:
    found = grid(model(), 4)
    assert [label for _, label in found.columns] == ["attention", "MLP", "norms"]
    attention = found.rows[1].cells[0]
    assert attention is not None
    assert attention.moved == pytest.approx(0.004), "the root of the sum of four squares"


@pytest.mark.parametrize(
    ("relative", "words"),
    [(0.0049, ".49 %"), (0.00995, "1.0 %"), (0.0123, "1.2 %"), (0.126, "13 %"), (0.00004, "<.01 %"), (0.0, "0"),
     (float("inf"), "from 0"), (float("nan"), "0"), (0.098, "9.8 %")],
)  # fmt: skip
def test_relative_changes_have_two_digits(relative: float, words: str) -> None:
    assert share(relative) == words


def test_the_sentences_say_what_was_measured() -> None:
    answer = model()
    first, largest = summary(answer, grid(answer, 12))
    count = sum(each.numbers for each in answer.weights if each.size)
    changed = sum(each.changed for each in answer.weights)
    assert f"changed {changed} of {count} numbers, by " in first, "a value head that is not trained does not count"
    assert largest == "The largest relative change, .80 %, is in down of layer 2's MLP."
    both = model(update=4, since=1, adapters=8, frozen=1234, model="reward model")
    words = " ".join(summary(both, grid(both, 12)))
    assert words.startswith("Updates 2 to 4 changed")
    assert "of the reward model" in words
    assert "Adapters of rank 8 carry it; 1,234 other numbers are frozen." in words
    still = Weighed(1, 0, weights=[weight(0, "embedding", "tokens", 0.0, changed=0)])
    assert summary(still, grid(still, 12))[-1] == "Nothing moved."


async def opened(pilot: Any, source: Any, *keys: str) -> WeightsScreen:
    source.update(1)
    await settled(pilot)
    source.commands.clear()
    await pressed(pilot, *keys, "W")
    screen = pilot.app.screen
    assert isinstance(screen, WeightsScreen)
    return screen


def asked(source: Any, kind: type) -> list[Any]:
    return [command for command in source.commands if isinstance(command, kind)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_model_is_drawn_and_the_largest_change_is_under_the_cursor(size: tuple[int, int]) -> None:
    async with on_screen(size=size) as (_, source, pilot):
        screen = await opened(pilot, source)
        picture, detail = screen.query_one(MovedPicture), screen.query_one(MatrixDetail)
        assert asked(source, Weigh) == [Weigh(1)]
        assert "Reading the weights" in text_of(picture)
        source.put(model())
        await settled(pilot)
        text = all_text(picture)
        assert "layer 2" in text
        assert ".80 %" in text
        assert "the same matrix as the embedding" in text
        assert "down of layer 2's MLP" in shown(screen.query_one("#summary", SteadyStatic))
        assert "layer 2 · MLP down" in all_text(detail)
        assert "2.5 of 4" in all_text(detail)
        assert str(screen.query_one(Vertical).border_title) == "Weights · update 1"
        await pressed(pilot, "up", "left")
        assert "layer 1 · MLP up" in all_text(detail)
        assert asked(source, Weigh) == [Weigh(1)], "once is enough"
        assert bool(asked(source, ReadLayers)) == (size == (240, 67)), "where there is room, all views are shown"


async def test_a_click_chooses_a_matrix() -> None:
    async with on_screen(size=(120, 35)) as (_, source, pilot):
        screen = await opened(pilot, source)
        source.put(model())
        await settled(pilot)
        picture = screen.query_one(MovedPicture)
        row = next(y for y in range(picture.size.height) if "layer 1" in
                   "".join(segment.text for segment in picture.render_line(y)))  # fmt: skip
        await pilot.click(MovedPicture, offset=(13, row))
        await settled(pilot)
        assert picture.chosen is not None
        assert picture.chosen.title == "layer 1 · attention q"


async def test_more_layers_than_lines_scroll_to_the_largest_change() -> None:
    async with on_screen(size=(80, 24)) as (_, source, pilot):
        screen = await opened(pilot, source)
        source.put(model(layers=40))
        await settled(pilot)
        picture = screen.query_one(MovedPicture)
        assert picture.scroll_offset.y > 0
        assert "layer 40" in text_of(picture)


async def test_the_cursor_moves_without_a_new_grid(monkeypatch: Any) -> None:
    made: list[Weighed] = []
    monkeypatch.setattr(moved_picture, "grid", lambda weighed, most: made.append(weighed) or grid(weighed, most))
    async with on_screen(size=(120, 35)) as (_, source, pilot):
        await opened(pilot, source)
        source.put(model(layers=30))
        await settled(pilot)
        made.clear()
        await pressed(pilot, "up", "left", "down")
        assert made == [], "sixty layers would take 0.2 s for each key"


async def test_tab_reads_the_layers_and_then_the_neighbours_of_the_token_under_the_cursor() -> None:
    async with on_screen(size=(120, 35)) as (_, source, pilot):
        screen = await opened(pilot, source, "right", "right")
        await pressed(pilot, "tab")
        (question,) = asked(source, ReadLayers)
        assert (question.update, len(question.prefix.answer)) == (1, 2)
        pieces = {question.token_id: "[bold]\x1b", 7: " seven"}
        low, high = (
            LayerReading([7, question.token_id], [0.75, 0.125], 0.125, 2),
            LayerReading([question.token_id, 7], [0.5, 0.25], 0.5, 1),
        )
        source.put(LayersRead(question.prefix, question.token_id, 1, 0, "", [low, low, low], [low, high, high], pieces))
        await settled(pilot)
        text = all_text(screen.query_one(LayersPanel))
        assert '"[bold]␛"' in text, "model text is shown and not obeyed"
        assert "from .125 to .500; it is the likeliest token from layer 1 on." in text
        assert [line.split()[0] for line in text.split("\n") if line.startswith(("embedding", "layer"))] == [
            "embedding", "layer", "layer",
        ]  # fmt: skip
        await pressed(pilot, "right")
        assert len(asked(source, ReadLayers)[-1].prefix.answer) == 3, "the next token of the answer"
        assert "Reading the weights" in text_of(screen.query_one(LayersPanel))
        await pressed(pilot, "left", "tab")
        (near,) = asked(source, Neighbours)
        assert near == Neighbours(question.token_id, 1)
        found = NeighboursFound(near.token_id, 1, 0, "", [7, 8], [0.5, 0.25], [0.625, 0.25], 0.999,
                                digits=[1 - abs(5 - digit) / 10 for digit in range(10)],
                                pieces={near.token_id: "5", 7: " seven", 8: "8"})  # fmt: skip
        source.put(found)
        await settled(pilot)
        text = all_text(screen.query_one(NeighboursPanel))
        assert "+.1250" in next(line for line in text.split("\n") if "seven" in line)
        assert "correlation of cosine and distance in value: −1.00" in text
        assert 'turned the embedding of "5" by 2.6°' in text
        await pressed(pilot, "tab")
        assert screen.view == "moved"


async def test_it_follows_the_run_unless_an_update_was_chosen(monkeypatch: Any) -> None:
    async with on_screen(size=(120, 35)) as (_, source, pilot):
        screen = await opened(pilot, source)
        source.put(model())
        monkeypatch.setattr(source, "snapshots", lambda: [1, 2])
        source.update(2)
        await settled(pilot)
        assert asked(source, Weigh) == [Weigh(1), Weigh(2)]
        assert str(screen.query_one(Vertical).border_title) == "Weights · update 1 · reading update 2 …"
        await pressed(pilot, "left_square_bracket")
        assert screen.update == 1
        source.update(3)
        await settled(pilot)
        assert screen.update == 1
        await pressed(pilot, "right_square_bracket", "right_square_bracket")
        assert screen.update == 3
        await pressed(pilot, "W")
        assert isinstance(source.commands[-1], EndProbe), "nobody waits for it any more"
        assert pilot.app.screen is pilot.app.panels.main


async def test_going_back_forgets_what_the_discarded_update_moved() -> None:
    async with on_screen(size=(120, 35)) as (_, source, pilot):
        screen = await opened(pilot, source)
        source.put(model())
        await settled(pilot)
        source.records([Rewound(update=0, abandoned=1, asked=True)])
        source.status(0)
        await settled(pilot)
        assert "No update yet" in text_of(screen.query_one(MovedPicture))
        source.update(1)
        await settled(pilot)
        assert asked(source, Weigh) == [Weigh(1), Weigh(1)]


async def test_before_the_first_update_and_without_an_engine_a_line_says_so() -> None:
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await pressed(pilot, "W")
        assert "No update yet" in text_of(app.screen.query_one(MovedPicture))
        await pressed(pilot, "tab")
        assert "No update yet" in text_of(app.screen.query_one(LayersPanel))
        await pressed(pilot, "escape")
        screen = await opened(pilot, source)
        source.put(Weighed(1, refused="the weights of update 1 were not kept", done=True))
        await settled(pilot)
        assert "The weights of update 1 were not kept." in text_of(screen.query_one(MovedPicture))
        source.put(Failed("ended"))
        await settled(pilot)
        assert "The engine has ended" in text_of(screen.query_one(MovedPicture))
        assert len(asked(source, Weigh)) == 1, "a refusal is not asked again"


async def test_a_recording_has_no_weights() -> None:
    app, source = playground()
    source.own_engine = source.live = False
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, source)
        assert "A recording has no weights" in " ".join(text_of(screen.query_one(MovedPicture)).split())
        assert asked(source, Weigh) == []


def test_a_question_that_was_interrupted_is_asked_again() -> None:
    weighing = Weighing()
    weighing.about(3, None)
    assert weighing.question("moved") == Weigh(3)
    assert weighing.question("moved") is None
    weighing.take(Weighed(3, refused="the engine was asked something else meanwhile"))
    assert weighing.question("moved") == Weigh(3)
    weighing.take(Weighed(3, done=True))
    assert weighing.question("moved") is None
    assert weighing.question("layers") is None, "there is no token"


@pytest.mark.parametrize(("width", "tall"), [(120, True), (40, False)])
async def test_a_table_is_a_map_of_its_squares(width: int, tall: bool) -> None:
    moved = {"a1": [0.0, 0.5, -0.25, 0.0], "b1": [0.125, 0.0, 0.0, 0.0], "?": [0.0, 0.0, 0.0, 1.0]}
    answer = Weighed(
        1, 0, squares=moved, moves=["↑", "→", "↓", "←"], weights=[weight(1, "head", "head", 0.5)], done=True
    )
    assert squares_summary(answer) == "It moved 3 squares, most ?: ← rose by 1."
    world = read_world({"map": ["S.G", "#.."]})
    async with RlplayApp(playground()[1]).run_test(size=(width, 24)) as pilot:
        panel = SquaresPicture()
        await pilot.app.mount(panel)
        panel.styles.width, panel.styles.height = width, 20 if tall else 8
        await pilot.pause()
        panel.tell(answer, world, "")
        text = all_text(panel)
    assert "→ +.50" in text
    assert ("↓ −.25" in text) == tall, "where there is room, every move is written"
    assert "▒▒" in text
    assert "?" in text.split("\n")[-1], "what is no square has a line of its own"


def test_the_verb_names_the_views() -> None:
    assert VIEWS == WEIGHT_VIEWS
