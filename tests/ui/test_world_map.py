"""The map of a world: what is drawn on its squares, at every size, from a run of the real engine."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import choices, decoded
from rlplay.engine.driver import Driver
from rlplay.link.messages import Recorded
from rlplay.scenario.loader import load, read
from rlplay.scenario.schema import Job
from rlplay.trace.answers import measures
from rlplay.trace.history import History
from rlplay.trace.lenses import LENSES
from rlplay.trace.one_answer import one_answer
from rlplay.trace.playhead import at
from rlplay.trace.records import Changed, Rewound
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.compat import lines_of
from rlplay.ui.format.step_word import worded
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.session.happenings import Moved
from rlplay.ui.session.session import Session
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.tokens.colouring import Colouring
from rlplay.ui.tokens.map_title import title
from rlplay.ui.world.shades import unshaded
from rlplay.ui.world.world_map import MAPS, WorldMap
from rlplay.verbs import VERBS
from rlplay.worlds.chart import chart
from rlplay.worlds.planning import evaluate, plan
from rlplay.worlds.world import World, read_world
from tests.recorded import synthetic_started, synthetic_update
from tests.ui.stage import all_text, playground, pressed, settled, shown, until

MAZE: dict[str, Any] = {"map": ["S...", ".O.O", "..#O", "O..G"]}
ARMS: dict[str, Any] = {"arms": {"a": -0.1, "b": 1, "c": -0.1}}


def recorded(folder: Path, world: dict[str, Any], **settings: Any) -> Path:
    """A run of two updates in a world."""
    plain = {"algorithm": "ppo", "num_prompts": 1, "num_generations": 8, "learning_rate": 0.1, "gamma": 0.9}
    content = {"title": "Maze", "question": "?", "world": world, "settings": {**plain, **settings}, "max_updates": 2}
    (folder / "world.yaml").write_text(yaml.safe_dump({**content, "eval_every": 0}), encoding="utf-8")
    run = folder / "run.rlplay"
    driver = Driver(Job(read(folder / "world.yaml"), str(run), device="cpu", threads=1), lambda _record: None)
    driver.load(lambda _what, _share: None)
    driver.advance("update", 2, lambda: False)
    driver.close()
    return run


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("maze"), MAZE)


@pytest.fixture(scope="module")
def source(maze: Path) -> PlotData:
    with RunReader(maze) as reader:
        update = reader.load(2)
    update.step_word = "move"  # as the session says
    return PlotData(History(), shown=update, world=read_world(MAZE), settings=decoded({"gamma": 0.9}))


def lines(view: WorldMap, source: PlotData, width: int = 56, height: int = 9) -> list[str]:
    drawn = view.draw(source, Size(width, height), False)
    assert isinstance(drawn, Picture), drawn
    return drawn.content.plain.split("\n")


def test_the_map_stays_while_the_next_walks_are_sampled(source: PlotData, maze: Path) -> None:
    with RunReader(maze) as reader:
        before, now = reader.load(1), reader.load(2)
    assert now.sampled is not None
    sampling = Update(2)
    sampling.add(msgspec.structs.replace(now.sampled, done=False, survey=None))
    known = replace(source, shown=before)
    assert lines(WorldMap(), replace(source, shown=sampling, live=before)) == lines(WorldMap(), known)
    later = Update(3)
    later.add(msgspec.structs.replace(now.sampled, update=3, done=False, survey=None))
    blank = lines(WorldMap(), replace(source, shown=later, live=before))
    assert blank != lines(WorldMap(), known), "the policy of update 1 does not sample update 3"


def test_a_length_is_in_moves(source: PlotData) -> None:
    update = source.shown
    assert update is not None
    assert update.finished is not None
    assert measures(update)["length"].mean() == pytest.approx(update.finished.metrics["completions/mean_length"])


def test_every_square_has_its_best_move_probability_value_and_visits(source: PlotData) -> None:
    assert source.world is not None
    squares = chart(source.world, source.shown).squares
    text = "\n".join(lines(WorldMap(), source))
    for name, square in squares.items():
        if not source.world.ends(name):
            assert square.policy is not None
            assert square.value is not None
            move = max(square.policy, key=square.policy.__getitem__)
            share = f"{square.policy[move]:.2f}".replace("0.", ".", 1)
            tied = sum(each > square.policy[move] - 1e-6 for each in square.policy.values()) > 1
            assert (share if tied else f"{move} {share}") in text
            if square.value == 0:  # no walk has come here
                assert " 0 " in text
            else:
                assert f"{square.value:+.2f}".replace("0.", ".", 1).replace("-", "−") in text
    assert sum(square.visits for square in squares.values()) == sum(
        len(path) - 1 for path in chart(source.world, source.shown).paths.values()
    )
    assert "★" in text
    assert text.count("○") == 4
    assert "▒" in text


def test_a_square_whose_moves_are_equally_likely_has_no_arrow(maze: Path, source: PlotData) -> None:
    with RunReader(maze) as reader:
        untrained = reader.load(1)
    assert untrained.sampled is not None
    first = Update(1, "move")
    first.add(untrained.sampled)
    for view in (WorldMap(), WorldMap("change")):
        text = "\n".join(lines(view, replace(source, shown=first)))
        assert ".25" in text
        assert not set("↑→↓←") & set(text), text
    assert set("↑→↓←") & set("\n".join(lines(WorldMap(), source))), "after two updates some move is the likeliest"


def _rounded(word: str) -> set[str]:
    """A number with one decimal, as the narrowest squares have it."""
    try:
        value = float(word.replace("−", "-"))
    except ValueError:
        return set()
    return {f"{value:{sign}.1f}".replace("0.", ".", 1).replace("-", "−") for sign in ("+", "")}


@pytest.mark.parametrize("width", range(18, 60))
@pytest.mark.parametrize("view", MAPS, ids=lambda view: view.kind)
def test_no_number_is_cut_at_any_width(source: PlotData, view: WorldMap, width: int) -> None:
    whole = set(" ".join(lines(view, source, 120)).replace("×", " ×").split())
    narrow = " ".join(lines(view, source, width)).replace("×", " ×")
    for move in "↑→↓←":
        narrow, whole = narrow.replace(move, f"{move} "), whole | {move}
    whole |= {part for word in whole for part in _rounded(word)}
    for word in narrow.split():
        assert word in whole | {part for each in whole for part in each} or "▒" in word, word


@pytest.mark.parametrize("height", range(1, 14))
def test_a_map_that_does_not_fit_says_what_it_needs(source: PlotData, height: int) -> None:
    drawn = WorldMap().draw(source, Size(40, height), False)
    if height < 4:
        assert isinstance(drawn, str)
        assert "takes 4 lines" in drawn
    else:
        assert isinstance(drawn, Picture)
        assert len(drawn.content.plain.split("\n")) <= height
    assert "takes 4 lines and 18 columns" in str(WorldMap().draw(source, Size(17, 9), False))


def test_the_optimal_map_has_every_best_move_and_value(source: PlotData) -> None:
    assert source.world is not None
    best = plan(source.world, 0.9)
    text = "\n".join(lines(WorldMap("optimal"), source))
    for state in best.values:
        value = f"{best.values[state]:+.2f}".replace("0.", ".", 1).removesuffix(".00")
        assert value in text, state
    assert "→↓" in text or "↓→" in text or any(len(v) for v in text.split()), "equally good moves stand together"


def test_the_border_compares_learned_exact_and_best_values_of_the_start(source: PlotData) -> None:
    assert source.world is not None
    above, below = WorldMap().titles(replace(source, lines=8), None, False)
    assert above.plain == "Map · move · value V · ×visits"
    low = WorldMap().titles(replace(source, lines=7), None, False)[0]
    assert low.plain == "Map · move · value V", "one line for each square has no room for its visits"
    squares = chart(source.world, source.shown).squares
    policies = {name: square.policy for name, square in squares.items() if square.policy is not None}
    exact = evaluate(source.world, policies, 0.9)["a1"]
    assert f"exact {exact:+.2f}".replace("0.", ".", 1).replace("-", "−") in below.plain


def test_the_path_of_the_answer_under_the_cursor_is_marked(source: PlotData) -> None:
    assert source.world is not None
    paths = chart(source.world, source.shown).paths
    row = max(paths, key=lambda each: len(set(paths[each])))
    drawn = WorldMap().draw(replace(source, cursor=(row, 0)), Size(56, 9), False)
    assert isinstance(drawn, Picture)
    marked = [span for span in drawn.content.spans if "underline" in str(span.style) or "reverse" in str(span.style)]
    assert len(marked) == len(set(paths[row]))
    assert sum("reverse" in str(span.style) for span in marked) == 1, "the square of the move under the cursor"


def test_before_the_first_update_the_map_is_drawn_without_a_policy() -> None:
    empty = PlotData(History(), world=read_world(MAZE), settings=decoded({"gamma": 0.9}))
    text = "\n".join(lines(WorldMap(), empty))
    assert "★" in text
    assert "." not in text, "no number"
    assert WorldMap().titles(empty, None, False)[0].plain == "Map", "and nothing that its squares lack"


@pytest.mark.parametrize(("name", "panels"), [("grid", 3), ("trouble-credit", 2)])
async def test_a_wide_map_has_room_in_its_panel(name: str, panels: int) -> None:
    app, source = playground(scenario=name, scenario_text=msgspec.yaml.encode(load(name)).decode())
    async with app.run_test(size=(120, 35)) as pilot:
        await app.play.perform("stage", "all")
        await settled(pilot)
        source.update(1)
        await settled(pilot)
        seen = [panel for panel in app.panels.curves.panels if not panel.has_class("-beyond")]
        assert len(seen) == panels
        assert any("★" in shown(panel) or "a " in shown(panel) for panel in seen if isinstance(panel.view, WorldMap))


async def test_back_at_the_start_the_map_is_painted_as_the_first_update_will_find_it() -> None:
    scenario = load("trouble-credit")
    app, source = playground(
        scenario="trouble-credit",
        scenario_text=msgspec.yaml.encode(scenario).decode(),
        settings={**synthetic_started().settings, "squares": {"c1": "G"}},
    )
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        source.records([*synthetic_update(1), Rewound(update=0, abandoned=1)])
        await settled(pilot)
        panel = app.panels.curves.first
        before = shown(panel)
        assert "★" in before
        painted = Changed(update=1, phase="sample", name="squares", value={"i1": "G"}, previous={"c1": "G"})
        source.records([painted])
        await settled(pilot)
        assert shown(panel).index("★") > before.index("★")


def test_without_colour_only_the_shade_is_lost() -> None:
    assert unshaded("bold underline on $success 30%") == "bold underline"
    assert unshaded("bold $error") == "bold $error"


def test_a_bandits_arms_are_bars(tmp_path: Path) -> None:
    with RunReader(recorded(tmp_path, ARMS, algorithm="reinforce-baseline")) as reader:
        update = reader.load(2)
    source = PlotData(History(), shown=update, world=read_world(ARMS), settings=decoded({"gamma": 1.0}))
    found = lines(WorldMap(), source)
    named = {line[0]: line for line in found if line.strip() and line[0] != " "}
    assert list(named) == ["a", "b", "c"]
    assert sum("█" in line for line in found) == 6, "two lines each"
    square = chart(read_world(ARMS), update).squares["s"]
    assert square.before is not None
    assert square.after is not None
    for arm, line in named.items():
        for policy in (square.before, square.after):
            assert f"{policy[arm]:.2f}".replace("0.", ".", 1) in line


def test_on_a_large_panel_an_arms_probability_is_in_large_digits(tmp_path: Path) -> None:
    world = {"arms": {"1": -0.1, "b": 1}}
    with RunReader(recorded(tmp_path, world, algorithm="reinforce-baseline")) as reader:
        update = reader.load(2)
    source = PlotData(History(), shown=update, world=read_world(world), settings=decoded({"gamma": 1.0}))
    found = lines(WorldMap(), source, 60, 16)
    assert len(found) <= 16
    assert found[0].startswith("▄█") or found[0].startswith("▀█") or found[0].startswith("▄"), "a large 1"
    assert found[6].startswith("−.10")
    assert any(line.startswith("b     +1 ") for line in found)
    assert " → " in found[6]
    assert sum("█" in line[9:45] for line in found) == 14, "seven lines each"


def test_values_that_never_settle_are_said_not_to() -> None:
    forever: World = read_world({"map": ["S1"], "moves": ["→"]})
    source = PlotData(History(), shown=Update(1), world=forever, settings=decoded({"gamma": 1.0}))
    assert "best not finite" in WorldMap().titles(source, None, False)[1].plain
    assert np.isfinite(plan(forever, 0.9).values["a1"])


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45)])
async def test_the_map_is_on_the_screen_of_a_run_in_a_world(maze: Path, size: tuple[int, int]) -> None:
    app = RlplayApp(ReplaySource(maze))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.play.session.run.newest is not None and app.play.session.run.newest.number == 2)
        await settled(pilot)
        if size[0] > 120:
            assert " moves" in shown(app.panels.header)
            assert "0k" not in shown(app.panels.header)
        (panel,) = (panel for panel in app.panels.curves.seen if isinstance(panel.view, WorldMap))
        assert app.focused is panel
        assert panel.outer_size.width > size[0] / 2
        assert "a1" in shown(panel) or "★" in shown(panel)
        before = panel.render()
        app.play.point(0, 8)
        await settled(pilot)
        assert panel.render().spans != before.spans, "it shows where the cursor is in the walk"
        await app.play.perform("stage", "all")
        await settled(pilot)
        assert " mov" in all_text(app.panels.rollouts) + str(app.panels.rollouts.border_subtitle)


@pytest.mark.parametrize("key", ["C", "question_mark", "B", "P", "k"])
async def test_a_world_speaks_of_moves(maze: Path, key: str) -> None:
    app = RlplayApp(ReplaySource(maze))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.play.session.run.newest is not None and app.play.session.run.newest.number == 2)
        await app.play.perform("lens", "token_rewards")
        await pressed(pilot, key)
        strips = lines_of(app)
        text = "\n".join(
            [*(strip.text for strip in strips), all_text(app.panels.inspector), str(app.panels.tokens.border_title)]
        )
        assert "move 1 of" in text
        assert re.findall(r".*(?<![=_])(?<!\bre)[Tt]oken.*", text) == []


@pytest.mark.parametrize(("world", "word"), [(MAZE, "move"), (ARMS, "move"), (None, "token")])
def test_the_scenario_says_what_is_sampled_not_the_columns(source: PlotData, maze: Path, world: Any, word: str) -> None:
    assert source.shown is not None
    assert source.shown.sampled is not None
    text = yaml.safe_dump({"name": "x", "title": "x", "question": "?", "world": world})
    session = Session(ReplaySource(maze))
    session.apply(Recorded(msgspec.structs.replace(synthetic_started(), scenario_text=text)))
    columns: list[dict[str, Any]] = [{}] if world is ARMS else [{"start": "x"}]
    under_way = msgspec.structs.replace(source.shown.sampled, done=False, survey=None, columns=columns)
    session.apply(Recorded(under_way))
    assert session.shown is not None
    assert session.shown.step_word == word
    alone = one_answer(session.shown, 0)
    assert (alone.step_word, at(session.shown, 1).step_word) == (word, word)
    session.apply(Moved(Update(2), ""))
    assert session.shown.step_word == word


def test_a_world_renames_no_value_of_a_setting() -> None:
    for knob in KNOBS.values():
        for name in choices(knob.name) or ():
            for text in (knob.meaning, knob.effect):
                assert worded(text, "move").count(f"{name}:") == text.count(f"{name}:")


def test_no_text_says_move_twice_in_two_senses() -> None:
    texts = [verb.help for verb in VERBS.values()]
    texts += [lens.reading for lens in LENSES.values()]
    for text in texts:
        said = worded(text, "move")
        if said != text:
            assert re.search(r"\bmove (it|the)\b|still move\b", text, re.IGNORECASE) is None, said


def test_settings_and_parts_of_words_keep_the_word() -> None:
    text = "Tokens: a token counts as in level=token or seq_mean_token_mean."
    assert worded(text, "move") == "Moves: a move counts as in level=token or seq_mean_token_mean."
    assert worded(text, "token") == text
    assert worded("One dot for each token: its ratio.", "move") == "One dot for each move: its ratio."
    assert worded("Shows special tokens and tokens.", "move") == "Shows special tokens and moves."
    head = title(Colouring(LENSES["token_rewards"], why="0 for every move"), None, 60, "move")
    assert head.plain == "Moves · colour: move reward, 0 for every move"


def test_the_map_is_drawn_again_once_sampling_has_ended(source: PlotData) -> None:
    assert source.shown is not None
    assert source.shown.sampled is not None
    under_way, done = Update(2), Update(2)
    under_way.sampled = msgspec.structs.replace(source.shown.sampled, done=False, survey=None)
    done.sampled = source.shown.sampled
    before, after = (replace(source, shown=update) for update in (under_way, done))
    assert WorldMap().state(before) != WorldMap().state(after)
    assert "↓ ." not in "\n".join(lines(WorldMap(), before))
    assert any(f"{move} ." in "\n".join(lines(WorldMap(), after)) for move in "↑→↓←")
