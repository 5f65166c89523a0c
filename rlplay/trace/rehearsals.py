"""The question "what would these settings make of the next updates?", and its answers: plain data, never recorded."""

from __future__ import annotations

from typing import Any

import msgspec

from rlplay.trace.records import AnyRecord


class Rehearse(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """What becomes of the run with each of these changes? Answered by `Rehearsed` after each update of each.

    All begin at the end of update `since`, as if the run had gone back to it, with the weights, settings, prompts and
    random numbers that it has there, and go on for `updates`. `changes` has the changed settings of each; an empty one
    is the run as it is. Nothing is recorded, and the run is where it was afterwards.
    """

    since: int
    updates: int
    changes: list[dict[str, Any]]
    number: int = 0  # of the question, so that late answers to an earlier one are told apart


class Rehearsed(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """An answer to a `Rehearse`: the records of one update with the settings `changes[index]`."""

    number: int
    index: int
    update: int = 0
    refused: str = ""  # why this one cannot be tried, or ended in `update`, in one line; the others go on
    records: list[AnyRecord] = []  # `Changed`, then `Sampled` to `Finished`, and `Evaluated` where there is one
    done: bool = False  # no further answer follows: all are rehearsed, or another command came
