"""Dragging a probability: the reward that leads there is read between measured points, then measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.link.messages import Status
from rlplay.trace.questions import Reach, Reached
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.reach.reach_plot import Frame, drawn
from rlplay.ui.reach.reach_screen import ReachPlot, ReachScreen
from rlplay.ui.session.reaching import Reaching
from tests.ui.stage import on_screen, settled


def known() -> Reaching:
    reaching = Reaching(0, 0, 0.0)
    reaching.first()
    reaching.take(Reached(0, 0, 1, rewards=[0.0, 1.0, -1.0], probabilities=[0.4, 0.6, 0.1], reward=0.0, old=0.35))
    return reaching


def test_a_reward_with_many_digits_is_found_again() -> None:
    reaching = Reaching(0, 0, 1 / 3)
    question = reaching.first()
    assert question.rewards[0] == 1 / 3
    reaching.take(Reached(0, 0, 1, rewards=question.rewards[:1], probabilities=[0.4], reward=1 / 3 + 1e-9, old=0.35))
    assert reaching.as_trained == 0.4


def test_the_reward_is_read_between_the_points_and_then_measured() -> None:
    reaching = known()
    reaching.drag(0.5)
    assert reaching.needed() == pytest.approx(0.5)
    assert reaching.check() == Reach(0, 0, [0.5])
    assert reaching.asked == [0.5]
    reaching.take(Reached(0, 0, 1, rewards=[0.5], probabilities=[0.52], reward=0.0, old=0.35))
    assert reaching.measured(0.5) == 0.52
    assert reaching.asked == []
    assert reaching.needed() == pytest.approx(0.4 + 0.02, abs=0.05), "now between the nearer points"


def test_of_several_rewards_the_nearest_counts_and_what_no_reward_reaches_has_none() -> None:
    reaching = known()
    reaching.points[2.0] = 0.3
    reaching.drag(0.35)
    assert reaching.needed() == pytest.approx(-1 / 6)
    reaching.drag(0.9)
    assert reaching.needed() is None
    assert reaching.check() is None
    reaching.drag(-1)
    assert reaching.target == 0.0


def test_answers_about_another_token_are_ignored_and_a_refusal_is_kept() -> None:
    reaching = known()
    reaching.take(Reached(0, 1, 1, rewards=[5.0], probabilities=[0.9]))
    assert 5.0 not in reaching.points
    reaching.first()
    reaching.take(Reached(0, 0, 1, rewards=[0.0], probabilities=[0.4], done=True))
    assert reaching.asked == [], "another command came first"
    reaching.take(Reached(0, 0, refused="an update is under way"))
    assert reaching.refused
    assert reaching.asked == []


def test_points_and_target_stand_at_their_values() -> None:
    reaching = known()
    reaching.drag(0.5)
    frame = Frame.of(80, 20, reaching)
    lines = drawn(frame, reaching).plain.split("\n")
    assert len(lines) == 20
    for reward, probability in reaching.points.items():
        sign = lines[frame.line(probability)][5 + frame.column(reward)]
        assert sign == ("◆" if reward == 0.0 else "●")
    assert "━" in lines[frame.line(0.5)]
    assert frame.probability_at(frame.line(0.5)) == pytest.approx(0.5, abs=(frame.high - frame.low) / frame.height)


async def test_the_screen_asks_follows_and_measures() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await pilot.press("I")
        screen = app.screen
        assert isinstance(screen, ReachScreen)
        asked = source.commands[-1]
        assert isinstance(asked, Reach)
        earned = screen.reaching.reward
        source.put(Reached(0, 0, 1, rewards=asked.rewards,
                           probabilities=[0.4 + 0.05 * (each - earned) for each in asked.rewards],
                           reward=earned, old=0.4))  # fmt: skip
        await settled(pilot)
        await pilot.press("up", "up", "enter")
        again = source.commands[-1]
        assert isinstance(again, Reach)
        assert again.rewards == pytest.approx([earned + 0.4], abs=1e-3)
        said = str(screen.query_one("#said", SteadyStatic).content)
        assert "1 to go" in said
        plot = screen.query_one(ReachPlot)
        await pilot.mouse_down(plot, offset=(20, 2))
        await pilot.mouse_up(plot, offset=(20, 2))
        assert screen.reaching.target == pytest.approx(plot.frame.probability_at(2), abs=0.02)


async def test_a_run_that_goes_on_is_not_asked() -> None:
    async with on_screen(1, size=(80, 24), notifications=True) as (app, source, pilot):
        source.put(Status(True, 1, "sample", {}))
        await settled(pilot)
        commands = len(source.commands)
        await pilot.press("I")
        assert not isinstance(app.screen, ReachScreen)
        assert len(source.commands) == commands
        assert source.path == Path("nowhere.rlplay")
