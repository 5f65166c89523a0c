"""Q-learning and SARSA: what the value of a move is compared with, once it is seen what the move earned.

Source: Sutton and Barto, Reinforcement Learning: An Introduction (2nd edition, 2018), equations 6.7 and 6.8. The
engine computes with these functions, and the equations on the screen are traced from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ValueLoss:
    """One way to say what follows a move, from the values Q(s′, ·) [A] of the next moves and the one made next."""

    name: str
    following: Callable[[Any, int], Any]
    symbol: str
    greedy: bool
    """Whether Q is the value of the greedy policy; else it is that of the policy that made the moves."""
    about: str


def best_move(values: Any, _made: int) -> Any:
    """The best next move, whether or not it was made (Watkins and Dayan 1992, doi:10.1007/BF00992698)."""
    return values.max()


def made_move(values: Any, made: int) -> Any:
    """The next move that was really made (Rummery and Niranjan 1994, CUED/F-INFENG/TR 166)."""
    return values[made]


def target(reward: Any, gamma: Any, following: Any) -> Any:
    """What Q(s, a) moves towards: r + γ·following, where `following` is 0 once the episode is over."""
    return reward + gamma * following


def td_error(towards: Any, value: Any) -> Any:
    """δ, how far Q(s, a) is from its target."""
    return towards - value


def moved(value: Any, alpha: Any, delta: Any) -> Any:
    """Q(s, a) after one step of size α: plain stochastic gradient descent on ½·δ² with the target held fixed."""
    return value + alpha * delta


VALUE_LOSSES: dict[str, ValueLoss] = {
    loss.name: loss
    for loss in (
        ValueLoss("q_learning", best_move, "max Q(s′, ·)", True, "values of moves, by the best next move."),
        ValueLoss("sarsa", made_move, "Q(s′, a′)", False, "values of moves, by the next move made."),
    )
}
