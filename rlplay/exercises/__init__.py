"""The writing exercises: a few lines of Python that a learner writes, and what they are compared with.

A YAML file holds the words of each: task, starter, hints, solution, and wrong tries with a remark about each. What the
learner's function gets, and the engine's own computation of the same, is in `CHECKS`; start at `check.py`. Nothing here
runs a learner's code: `rlplay/engine/try_code.py` does. Imports the algorithms, the tasks and the worlds; not torch.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from rlplay.spelling import did_you_mean
from rlplay.trace.text import quote

NAMES = ("reward", "reinforce", "baseline", "advantage", "returns", "gae", "values", "clip", "kl", "dpo")
"""The exercises, in the order of the course."""


class WrongTry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A typical mistake: code that makes it, and what to say to everyone whose numbers are those of this code."""

    code: str
    remark: str


class Exercise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of an exercise. `engine` is a file of the package and how the line in it begins that does the same.

    `trains` is the setting that takes the learner's function, so that the run goes on with it; "" if none does.
    """

    title: str
    task: str
    starter: str
    hints: tuple[str, str]
    solution: str
    wrong: tuple[WrongTry, ...]
    engine: tuple[str, str]
    trains: str = ""


@cache
def exercise_called(name: str) -> Exercise:
    """The exercise `name`. Raises ValueError, one line, if there is none."""
    if name not in NAMES:
        raise ValueError(f"unknown exercise {quote(name)}{did_you_mean(name, NAMES)}")
    return msgspec.yaml.decode((Path(__file__).parent / f"{name}.yaml").read_bytes(), type=Exercise)
