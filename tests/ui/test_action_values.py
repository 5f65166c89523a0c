"""Q-learning and SARSA on the screen: Q on the map and beside the moves, and each step with its numbers."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.equations import value_error
from rlplay.algorithms.setting_values import decoded
from rlplay.health.health_of_run import Health
from rlplay.trace.history import History
from rlplay.trace.numbers import number
from rlplay.trace.records import Started
from rlplay.trace.run import Run as FoldedRun
from rlplay.ui.app import RlplayApp
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.formula.action_value import action_value
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.words.narration import narrate
from rlplay.ui.world.world_map import MAPS
from rlplay.worlds.world import read_world
from tests.numbers import numbers_of
from tests.ui.stage import Fed, all_text, text_of, until
from tests.ui.stage import settled as shown_at_last
from tests.worlds.value_run import MAZE, VALUES, Run

SETTINGS = decoded({**VALUES, "algorithm": "q-learning", "loss_type": "q_learning"})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    played = Run(tmp_path_factory.mktemp("values"), MAZE).go(12)
    played.driver.close()
    return played


def drawn(run: Run, which: int, update: int = 12, **changes: float) -> tuple[str, str]:
    """A map's upper border and picture, and its lower border."""
    source = PlotData(
        History(),
        settings=msgspec.structs.replace(SETTINGS, **changes),
        shown=run.updates[update],
        world=read_world(MAZE),
    )
    picture = MAPS[which].draw(source, Size(60, 12), False)
    assert isinstance(picture, Picture)
    above, below = MAPS[which].titles(source, None, False)
    return f"{above}\n{picture.content}", str(below)


def test_the_map_shows_the_best_moves_by_q_and_their_value(run: Run) -> None:
    text, below = drawn(run, 0)
    finished = run.updates[12].finished
    assert finished is not None
    assert finished.survey is not None
    q = finished.survey.action_values
    assert q is not None
    assert "best move by Q · max Q" in text
    assert "%" not in text, "the arrow is the greedy policy, which has no probability to show"
    row = q[finished.survey.states.index("a1")]
    best = [move for move, worth in zip(finished.survey.actions, row, strict=True) if worth == row.max()]
    assert text.splitlines()[1].split()[1] == "".join(best)
    assert [part.split()[-2] for part in below.removeprefix("a1: ").split(" · ")] == ["greedy", "ε", "best"]
    assert len(below) <= 34, "as much as fits below a quarter of a screen of 160 columns"
    change, _ = drawn(run, 1)
    assert "before → after" in change


def test_a_greedy_policy_that_walks_in_circles_has_no_value_without_discount(run: Run) -> None:
    _, below = drawn(run, 0, update=1, gamma=1.0)
    assert "greedy never arrives · ε −" in below
    assert "best .95" in below


def test_the_token_panels_numbers_are_the_trained_ones(run: Run) -> None:
    update, settings = run.updates[12], SETTINGS
    sampled, credited = update.sampled, update.credited
    assert sampled is not None
    assert credited is not None
    for token in np.flatnonzero(sampled.mask)[:20].tolist():
        numbers = numbers_of(update, token)
        lines = ["".join(text for text, _ in line) for line in action_value(settings, numbers)]
        assert lines[0] == "δ = r + 0.9·max Q(s′, ·) − Q(s, a)"
        delta = float(credited.advantages[token])
        assert lines[1].endswith(f"= {signed(delta, 3).strip()}")
        known = {"reward": numbers.reward, "following": numbers.following, "value": numbers.value}
        assert value_error(settings, known).at(0) == pytest.approx(delta, abs=1e-6)
        assert numbers.value is not None
        assert plain(numbers.value, 3) in lines[3]
        assert signed(numbers.value + 0.25 * delta, 3).strip() in lines[3]


def test_before_the_credit_the_formula_waits() -> None:
    lines = ["".join(text for text, _ in line) for line in action_value(SETTINGS, TokenNumbers())]
    assert lines[1:] == ["numbers appear after ③ credit"]


def test_the_narrator_says_what_both_policies_earn(run: Run) -> None:
    update = run.updates[12]
    assert update.finished is not None
    happened = narrate(update, History(), SETTINGS).happened
    assert number(update.finished.metrics["greedy_reward"]) in happened
    assert f"{number(update.finished.metrics['behaviour_reward'])} with ε = 0.3" in happened
    assert "answers" not in happened


def test_the_remedy_for_too_little_exploration_is_a_larger_epsilon(run: Run) -> None:
    health, update = Health(FoldedRun()), run.updates[12]
    assert update.finished is not None
    for at in range(1, 13):
        metrics = {"entropy": 1.4 if at < 3 else 0.0, "reward": -1.0}
        health.run.history.add(msgspec.structs.replace(update.finished, update=at, metrics=metrics))
    health.add(update)
    for settings, setting in (
        (SETTINGS, "exploration_rate"),
        (msgspec.structs.replace(SETTINGS, loss_type="policy_gradient"), "learning"),
    ):
        found = {finding.name: finding for finding in health.findings(12, msgspec.structs.asdict(settings))}
        assert setting in found["entropy"].change


async def test_map_and_token_panel_show_q(run: Run) -> None:
    started = next(record for record in run.records if isinstance(record, Started))
    source = Fed()
    source.records([msgspec.structs.replace(started)])
    source.status()
    app = RlplayApp(source)
    async with app.run_test(size=(160, 45)) as pilot:
        await shown_at_last(pilot)
        source.records(record for record in run.records if not isinstance(record, Started))
        await shown_at_last(pilot)
        await until(pilot, lambda: app.play.session.shown is not None and app.play.session.shown.number == 12)
        await shown_at_last(pilot)
        sampled = run.updates[12].sampled
        assert sampled is not None
        assert sampled.survey is not None
        assert sampled.survey.action_values is not None
        words = all_text(app.panels.inspector)
        assert "than Q said, so Q goes" in " ".join(words.split())
        await app.play.perform("maths", True)
        await shown_at_last(pilot)
        token = all_text(app.panels.inspector)
        for worth in sampled.survey.action_values[sampled.survey.states.index("a1")].tolist():
            assert f" {signed(worth).strip():>5} " in token
        assert "   Q  old  new" in token
        assert "value of this move" in token
        assert "ref" not in words
        assert "TD error" in text_of(app.panels.rollouts) or "TD error" in str(app.panels.rollouts.border_subtitle)
        titles = [str(panel.border_title) for panel in app.panels.curves.query("CurvePanel")]
        assert app.play.lens.title == "TD error"
        assert titles[0].startswith("Expected reward")
        assert titles[1].startswith("Map · best move by Q")
