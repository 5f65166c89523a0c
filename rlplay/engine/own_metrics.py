"""Metrics of other packages: computed when an update is finished, from its records."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from rlplay.engine.loop import Moment
from rlplay.trace.metrics import ADDED
from rlplay.trace.plugins import refuse
from rlplay.trace.records import Finished, Record
from rlplay.trace.update import Update


def measured(moments: Iterator[Moment]) -> Iterator[Moment]:
    """The same moments; where other packages bring metrics, these are in every record of a finished update."""
    return _measured(moments) if ADDED else moments


def _measured(moments: Iterator[Moment]) -> Iterator[Moment]:
    update = Update(0)
    for moment in moments:
        if isinstance(moment, Record):
            if moment.update != update.number:
                update = Update(moment.update)
            update.add(moment)
        yield (
            msgspec.structs.replace(moment, metrics=moment.metrics | _values(update))
            if isinstance(moment, Finished)
            else moment
        )


def _values(update: Update) -> dict[str, float]:
    """What each metric gives for an update; one that fails, or gives no finite number, is left out."""
    found = dict[str, float]()
    for name, metric in ADDED.items():
        assert metric.value is not None
        try:
            value = metric.value(update)
            number = math.nan if value is None else float(value)
        except Exception as error:
            refuse("rlplay.metrics", name, " ".join(f"{type(error).__name__}: {error}".split()))
            continue
        if math.isfinite(number):
            found[name] = number
    return found
