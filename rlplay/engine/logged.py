"""What reward functions log beside their scores, by TRL's `log_extra` and `log_metric`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlplay.tasks.dataset_row import check_recordable
from rlplay.trace.metrics import describe
from rlplay.trace.text import quote


class Logged:
    """Columns with one value for each of `count` answers, `extra`, and numbers of the whole batch."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.extra: dict[str, list[Any]] = {}
        self._metrics: dict[str, list[float]] = {}

    def log_extra(self, column: str, values: Sequence[Any]) -> None:
        """Take a column; one that is given again replaces itself.

        Raises ValueError if there are more or fewer values than answers, or if one cannot be recorded.
        """
        plain = [value.item() if _scalar(value) else value for value in values]
        if len(plain) != self._count:
            raise ValueError(
                f"log_extra {quote(column)} has {len(plain)} values; give one for each of {self._count} answers"
            )
        for value in [column, *plain]:
            try:
                check_recordable("a value", value)
            except ValueError as error:
                raise ValueError(f"log_extra {quote(column)} {error}") from None
        self.extra[column] = plain

    def log_metric(self, name: str, value: float) -> None:
        """Take a number. Raises ValueError if it is none, or if the training itself has a metric of that name."""
        if describe(name) is not None or describe(f"eval_{name}") is not None:
            raise ValueError(f"log_metric {quote(name)}: the training has a metric of this name; choose another")
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"log_metric {quote(name)} takes a number; got {quote(value)}") from None
        self._metrics.setdefault(str(name), []).append(number)

    def means(self) -> dict[str, float]:
        """The mean of each number's finite values, without those that have none."""
        finite = {name: [value for value in values if math.isfinite(value)] for name, values in self._metrics.items()}
        return {name: float(np.mean(values)) for name, values in finite.items() if values}


def _scalar(value: Any) -> bool:
    """Whether it is one number of numpy or torch."""
    return hasattr(value, "item") and getattr(value, "ndim", None) == 0
