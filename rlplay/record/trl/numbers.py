"""The numbers of one update from those that a TRL trainer averages over the steps between two logs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

_PROGRESS = ("epoch", "num_tokens", "total_flos")
"""What TRL logs about its progress."""


def finite(logs: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among what a trainer logs."""
    return {k: float(v) for k, v in logs.items() if isinstance(v, int | float) and math.isfinite(v)}


class Numbers:
    """Collects what TRL measures in each step, logged or not, until `taken`."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._read: dict[str, tuple[list[float], int]] = {}  # TRL's lists, and up to where they were read
        self._values: dict[str, list[float]] = {}
        self._logged_at = self._began_at = trainer.state.global_step

    def logged(self, logs: Mapping[str, Any]) -> None:
        """TRL logs means over the steps since it last did, and then begins new lists."""
        self._collect()
        own = self._trainer._metrics["train"]
        for name, value in finite(logs).items():
            # The mean loss may be that of several updates; the norm and the rate are the last step's.
            fits = name != "loss" or self._logged_at >= self._began_at
            if name not in own and name not in _PROGRESS and not name.startswith("train_") and fits:
                self._values.setdefault(name, []).append(value)
        self._logged_at = self._trainer.state.global_step

    def taken(self, losses: Sequence[float]) -> dict[str, float]:
        """The means over the update, which ends here; `losses` are those of its steps on this process."""
        self._collect()
        values, self._values = self._values, {}
        self._began_at = self._trainer.state.global_step
        if self._trainer.accelerator.num_processes == 1 and "loss" not in values:
            values["loss"] = list(losses)
        known = {name: [v for v in found if not math.isnan(v)] for name, found in values.items()}
        return {name: sum(found) / len(found) for name, found in known.items() if found}

    def _collect(self) -> None:
        for name, values in self._trainer._metrics["train"].items():
            if name not in _PROGRESS:
                seen, count = self._read.get(name, (values, 0))
                self._values.setdefault(name, []).extend(values[count if seen is values else 0 :])
                self._read[name] = values, len(values)
