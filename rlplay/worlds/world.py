"""A world as data: its squares, its rewards, and what a move does.

```yaml
world:
  map:                 # S start, G goal, O hole, # wall, I ice, . floor, 1 to 9 a reward of that size
    - S...
    - .O.O
    - ...O
    - O..G
  goal: 1              # reward for reaching G, which ends the episode
  hole: -1             # reward for falling into O, which ends it too
  step: -0.01          # reward for every other move
  slip: 0.2            # share of moves that go another way, each other way equally often
  ice: 0.5             # the same for moves that begin on ice, I
  hidden: [b1, c1]     # squares whose names the policy cannot see; all of them: true
  moves: [↑, →, ↓, ←]  # those that the policy may choose
  steps: 100           # moves after which an episode ends
```

A bandit has `arms` instead of a map, as in `arms: {a: 1, b: -0.1}`: one choice, then the episode ends. With
`contexts: 64` the choice is made in one of 64 situations, which do not matter for the reward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from rlplay.spelling import did_you_mean
from rlplay.trace.numbers import compact
from rlplay.trace.text import quote

DIRECTIONS = {"↑": (-1, 0), "→": (0, 1), "↓": (1, 0), "←": (0, -1)}
"""Row and column that a move adds."""
START, GOAL, HOLE, WALL, ICE, FLOOR = "S", "G", "O", "#", "I", "."
_KINDS = START + GOAL + HOLE + WALL + ICE + FLOOR + "123456789"
HIDDEN = "?"
"""What the policy reads on a hidden square."""
ONLY = "s"
"""The situation of a bandit that has only one."""
_PAINTS = GOAL, HOLE, WALL, ICE, FLOOR
LARGEST_REWARD = 1e6
LARGEST = 9
"""Rows and columns of the largest map: a square's name has one letter and one digit."""
MOST_CONTEXTS = 256


class WorldError(ValueError):
    """A world that does not make sense: one line with the key and what is allowed."""


class Outcome(NamedTuple):
    """One thing that a move may lead to; an episode that is `over` has no further move."""

    probability: float
    state: str
    reward: float
    over: bool


class World(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True, dict=True):
    """The squares of a map, or the arms of a bandit, with what each is worth."""

    map: tuple[str, ...] = ()
    arms: dict[str, float] = {}
    contexts: int = 1
    goal: float = 1.0
    hole: float = -1.0
    step: float = -0.01
    slip: float = 0.0
    ice: float = 0.5
    hidden: tuple[str, ...] | bool = ()
    moves: tuple[str, ...] = tuple(DIRECTIONS)
    steps: int = 100
    painted: dict[str, float] = {}

    @property
    def tokens(self) -> int:
        """Tokens of the longest episode: a move and a square each; a bandit's arm is one token."""
        return 1 if self.arms else 2 * self.steps

    @property
    def actions(self) -> tuple[str, ...]:
        """What the policy chooses from: moves or arms."""
        return tuple(self.arms) or self.moves

    @cached_property
    def states(self) -> tuple[str, ...]:
        """All squares but walls, row by row; the situations of a bandit."""
        if self.arms:
            return (ONLY,) if self.contexts == 1 else tuple(f"{ONLY}{k}" for k in range(1, self.contexts + 1))
        return tuple(square for square, kind in self._kinds.items() if kind != WALL)

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """Where an episode may begin."""
        return self.states if self.arms else tuple(s for s, kind in self._kinds.items() if kind == START)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {square_name(r, c): kind for r, row in enumerate(self.map) for c, kind in enumerate(row)}

    def kind(self, square: str) -> str:
        """The sign of a square on the map."""
        return self._kinds[square]

    def ends(self, state: str) -> bool:
        """Whether an episode is over once it has reached this square."""
        return not self.arms and self._kinds[state] in (GOAL, HOLE)

    def reward(self, state: str) -> float:
        """What reaching this square earns."""
        if state in self.painted:
            return self.painted[state]
        kind = self._kinds[state]
        return {GOAL: self.goal, HOLE: self.hole}.get(kind, float(kind) if kind.isdigit() else self.step)

    def repainted(self, squares: Mapping[str, float | str]) -> World:
        """The world with some `squares` painted over: a number is the reward there, a sign what the square is.

        Of a bandit, with other rewards for some arms. Raises WorldError, one line.
        """
        if not squares:
            return self
        if self.arms:
            return self._with_rewards(squares)
        rows, painted = [list(row) for row in self.map], dict(self.painted)
        for square, paint in squares.items():
            if square not in self._kinds:
                raise WorldError(f"squares names {quote(square)}, which is no square of this world's map")
            if isinstance(paint, str):
                if paint not in _PAINTS:
                    raise WorldError(
                        f"squares paints {square} with {quote(paint)}; it takes a number, {', '.join(_PAINTS)}"
                    )
                row, column = place(square)
                rows[row][column] = paint
            elif abs(paint) <= LARGEST_REWARD:
                painted[square] = paint
            else:
                raise WorldError(f"squares paints {square} with {quote(paint)}; it takes a number from -1e6 to 1e6")
        world: World = msgspec.structs.replace(self, map=tuple(map("".join, rows)), painted=painted)
        if world.starts != self.starts:
            raise WorldError(f"squares paints over the start {self.starts[0]}, where episodes begin")
        return world

    def _with_rewards(self, arms: Mapping[str, float | str]) -> World:
        for arm, reward in arms.items():
            if arm not in self.arms:
                raise WorldError(f"squares names {quote(arm)}, which is no arm; the arms are {', '.join(self.arms)}")
            if isinstance(reward, str) or not abs(reward) <= LARGEST_REWARD:
                raise WorldError(f"squares gives arm {arm} {quote(reward)}; it takes a number from -1e6 to 1e6")
        rewards = {arm: float(arms.get(arm, reward)) for arm, reward in self.arms.items()}
        return msgspec.structs.replace(self, arms=rewards)

    def observed(self, state: str) -> str:
        """What the policy reads in this state."""
        return HIDDEN if self.hidden is True or (self.hidden and state in self.hidden) else state

    def moved(self, square: str, move: str) -> str:
        """The square that a move leads to if nothing slips; a wall or the edge of the map stops it."""
        down, right = DIRECTIONS[move]
        row, column = place(square)
        there = square_name(row + down, column + right)
        return square if self._kinds.get(there, WALL) == WALL else there

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        """Everything that an action may lead to; the probabilities add up to 1."""
        if (state, action) not in self._outcomes:
            self._outcomes[state, action] = self._possible(state, action)
        return self._outcomes[state, action]

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str], list[Outcome]]:
        return {}

    def _possible(self, state: str, action: str) -> list[Outcome]:
        if self.arms:
            return [Outcome(1.0, state, self.arms[action], True)]
        found: dict[str, float] = {}
        others = [move for move in self.moves if move != action]
        share = self.ice if self._kinds[state] == ICE else self.slip
        slip = share if others else 0.0
        for move, probability in [(action, 1.0 - slip), *((other, slip / len(others)) for other in others)]:
            if probability:
                there = self.moved(state, move)
                found[there] = found.get(there, 0.0) + probability
        return [Outcome(p, square, self.reward(square), self.ends(square)) for square, p in found.items()]

    def after(self, state: str, action: str, chance: float) -> Outcome:
        """What an action leads to for a random number `chance` in [0, 1)."""
        reached = 0.0
        possible = self.outcomes(state, action)
        for outcome in possible:
            reached += outcome.probability
            if chance < reached:
                return outcome
        return possible[-1]


def square_name(row: int, column: int) -> str:
    """The name of a square, counted from 0: (0, 0) is a1, (0, 1) is b1."""
    return f"{chr(ord('a') + column)}{row + 1}"


def place(square: str) -> tuple[int, int]:
    """Row and column of a square, from 0."""
    return int(square[1:]) - 1, ord(square[0]) - ord("a")


def discounted(rewards: Iterable[float], gamma: float) -> float:
    """Σ γᵏ·rₖ, k from 0."""
    return float(sum(reward * gamma**k for k, reward in enumerate(rewards)))


def read_world(content: Any) -> World:
    """The world that a scenario describes. Raises WorldError."""
    if not isinstance(content, dict):
        raise WorldError("world is a mapping with a map, as in {map: [S..G]}, or with arms, as in {arms: {a: 1, b: 0}}")
    known = [name for name in World.__struct_fields__ if name != "painted"]
    for key in content:
        if key not in known:
            raise WorldError(f"unknown key {quote(str(key))} of world{did_you_mean(str(key), known)}")
    plain = dict(content)
    if isinstance(plain.get("map"), str):
        plain["map"] = plain["map"].split()
    if isinstance(plain.get("map"), list):
        plain["map"] = [row.replace(" ", "") if isinstance(row, str) else str(row) for row in plain["map"]]
    if isinstance(plain.get("arms"), dict):
        plain["arms"] = {str(name): value for name, value in plain["arms"].items()}
    try:
        world = msgspec.convert(plain, World)
    except msgspec.ValidationError as error:
        raise WorldError(f"world: {error}") from None
    for problem in _problems(world):
        raise WorldError(problem)
    return world


def _problems(world: World) -> Iterator[str]:
    """What is wrong with a world, in the order of its keys."""
    if bool(world.map) == bool(world.arms):
        yield "world needs either a map or arms"
    yield from _bandit_problems(world) if world.arms else _map_problems(world)
    for name in ("goal", "hole", "step"):
        if not abs(getattr(world, name)) <= LARGEST_REWARD:
            yield f"{name} of world is {quote(getattr(world, name))}; it takes a number from -1e6 to 1e6"
    for name, share in (("slip", world.slip), ("ice", world.ice)):
        if not 0.0 <= share < 1.0:
            yield f"{name} of world is {compact(share)}; it takes a share from 0 to below 1"
    if not 1 <= world.steps <= 1000:
        yield f"steps of world is {world.steps}; it takes a whole number from 1 to 1000"


def _bandit_problems(world: World) -> Iterator[str]:
    if len(world.arms) < 2:
        yield "arms of world needs at least two arms to choose from"
    for name, value in world.arms.items():
        if len(name) != 1 or not name.isprintable() or name in (" ", ONLY, HIDDEN):
            yield f"an arm's name is one character, and not {ONLY!r} or {HIDDEN!r}; got {quote(name)}"
        if not abs(value) <= LARGEST_REWARD:
            yield f"arm {name} of world is worth {quote(value)}; it takes a number from -1e6 to 1e6"
    if not 1 <= world.contexts <= MOST_CONTEXTS:
        yield f"contexts of world is {world.contexts}; it takes a whole number from 1 to {MOST_CONTEXTS}"


def _map_problems(world: World) -> Iterator[str]:
    width = len(world.map[0]) if world.map else 0
    if not 1 <= len(world.map) <= LARGEST or not 1 <= width <= LARGEST:
        yield f"map of world has {len(world.map)} rows of {width} squares; it takes 1 to {LARGEST} of each"
        return
    for number, row in enumerate(world.map, start=1):
        if len(row) != width:
            yield f"row {number} of world's map has {len(row)} squares, row 1 has {width}"
        if odd := next((sign for sign in row if sign not in _KINDS), None):
            yield f"row {number} of world's map has {quote(odd)}; squares are S, G, O, #, I, . or a digit from 1 to 9"
    if not world.starts:
        yield "world's map needs a start, S"
    if not world.moves or len(set(world.moves)) < len(world.moves) or set(world.moves) - set(DIRECTIONS):
        yield f"moves of world are some of {', '.join(DIRECTIONS)}, each once; got {', '.join(world.moves) or 'none'}"
    if not isinstance(world.hidden, bool):
        for square in world.hidden:
            if square not in world.states:
                yield (
                    f"hidden of world names {quote(square)}, which is no square of the map; the first is "
                    f"{world.states[0]}"
                )
