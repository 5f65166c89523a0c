"""An episode up to the beginning of a turn, so that others can go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlplay.tasks.task import Message
from rlplay.tasks.tools import Call
from rlplay.trace.records import Array


@dataclass(frozen=True)
class Begun:
    """What happened in k turns: the model's `turns`, what replied to each, and what an environment needs to go on.

    `states` are the environment's true ones and `chances` the numbers in [0, 1) that it was given for these turns;
    `calls` are those of its tools, turn by turn. `room` is for how many tokens more there is room.
    """

    turns: Sequence[str]
    replies: Sequence[Sequence[Message]]
    states: Sequence[str]
    chances: Array
    calls: Sequence[Sequence[Call]]
    room: int
