"""Games with reset and step, as a pure function of seed and turns."""

from __future__ import annotations

import random

import pytest

from rlplay.containment import OwnError
from rlplay.tasks.library.replayed import Replayed, Said, rewards_by_step


class Counting:
    """A game that adds up the turns and a number that its seed decides; over once it is above 20."""

    made = begun = steps = closed = 0

    def __init__(self) -> None:
        Counting.made += 1
        self.total = 0

    def begin(self, seed: int) -> str:
        Counting.begun += 1
        self.total = seed
        return f"from {seed}"

    def step(self, turn: str) -> Said:
        Counting.steps += 1
        if turn == "fail":
            raise ValueError("it fails")
        self.total += int(turn)
        return Said(f"now {self.total}", self.total > 20, float(turn))

    def close(self) -> None:
        Counting.closed += 1


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    Counting.made = Counting.begun = Counting.steps = Counting.closed = 0


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_any_order_of_questions_gives_what_a_game_of_its_own_gives(at_once: int) -> None:
    games, order = Replayed("p", Counting, at_once), random.Random(at_once)
    asked = [(seed, turns) for seed in (1, 2) for turns in (["1"], ["1", "2"], ["1", "3"], ["2"], ["2", "9", "9"])]
    for seed, turns in order.choices(asked, k=60):
        alone = Counting()
        first, said = alone.begin(seed), [alone.step(turn) for turn in turns]
        assert games.first(seed) == first
        assert games.reply(seed, turns) == said[-1]
        assert games.replies(seed, turns) == said


def test_what_is_known_is_not_asked_again() -> None:
    games = Replayed("p", Counting, 100)
    for turns in (["1"], ["1", "2"], ["1", "2", "3"]):
        games.reply(5, turns)
    assert (Counting.begun, Counting.steps) == (1, 3)
    games.replies(5, ["1", "2", "3"])
    assert (Counting.begun, Counting.steps) == (1, 3)
    games.reply(5, ["1", "4"])  # the one that was under way has gone another way
    assert (Counting.begun, Counting.steps) == (2, 5)


def test_no_more_games_are_open_than_may_be() -> None:
    games = Replayed("p", Counting, 1)
    for seed in range(5):
        games.first(seed)
    for turns in (["1"], ["2"], ["1", "1"]):
        games.reply(3, turns)
    assert Counting.made == 1


def test_an_episode_ends_with_the_turn_that_ends_it() -> None:
    games = Replayed("p", Counting, 2)
    assert [said.over for said in games.replies(0, ["15", "9", "1"])] == [False, True]


def test_one_that_fails_is_given_up_and_can_be_tried_again() -> None:
    games = Replayed("p", Counting, 2)
    games.reply(0, ["1"])
    with pytest.raises(ValueError, match="it fails"):
        games.reply(0, ["1", "fail"])
    assert Counting.closed == 1
    assert games.reply(0, ["1", "2"]).text == "now 3"


def test_half_a_character_is_replaced() -> None:
    class Torn(Counting):
        def begin(self, seed: int) -> str:
            return super().begin(seed) + "\ud800"

    assert Replayed("p", Torn, 1).first(3) == "from 3?"


class Moody(Counting):
    """It says something else each time."""

    def begin(self, seed: int) -> str:
        return super().begin(seed) + str(Counting.begun)

    def step(self, turn: str) -> Said:
        return Said(super().step(turn).text + str(Counting.steps))


class Late(Counting):
    """The same once it has begun."""

    def step(self, turn: str) -> Said:
        return Said(super().step(turn).text + str(Counting.steps))


@pytest.mark.parametrize(("game", "place"), [(Moody, "after a reset with seed 7"), (Late, "after turn 1")])
def test_one_that_follows_more_than_its_seed_is_refused(game: type[Counting], place: str) -> None:
    games = Replayed("p", game, 1)
    games.reply(7, ["1", "2"])
    with pytest.raises(OwnError, match=f"p: {place}"):
        games.reply(7, ["1", "3"])


def test_rewards_of_steps_stand_at_the_ends_of_turns() -> None:
    said = [Said("a", reward=0.5), Said("b"), Said("c", True, -1.0)]
    assert rewards_by_step(["one", "to", "x"], said) == [(3, 0.5), (6, -1.0)]
    assert rewards_by_step(["one"], [Said("a")]) is None
    assert rewards_by_step([], []) is None
