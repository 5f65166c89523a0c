"""The numbers of one update from those that a TRL trainer averages over the steps between two logs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlplay.record.trl import compat
from rlplay.trace.over_steps import over_steps

_ALWAYS = ("loss", "grad_norm")
"""What every step has."""


def finite(logs: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among what a trainer logs."""
    return {k: float(v) for k, v in logs.items() if isinstance(v, int | float) and math.isfinite(v)}


class StepMetrics:
    """Collects what a trainer measures in each step, logged or not, until `close_update`."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        # TRL's lists, and up to where they were read.
        self._read = {name: (values, len(values)) for name, values in compat.metrics(trainer).items()}
        self._values: dict[str, list[float]] = {}
        self._logged_at = self._began_at = trainer.state.global_step

    def logged(self, logs: Mapping[str, Any]) -> None:
        """A trainer logs means over the steps since it last did, and then begins new lists."""
        self._collect()
        own = compat.metrics(self._trainer)
        broken = {"grad_norm": float(logs["grad_norm"])} if _broken(logs.get("grad_norm")) else {}
        for name, value in (finite(logs) | broken).items():
            # The mean loss may be that of several updates; the norm and the rate are the last step's.
            fits = name != "loss" or self._logged_at >= self._began_at
            if name not in own and name != "total_flos" and not name.startswith("train_") and fits:
                self._values.setdefault(name, []).append(value)
        self._logged_at = self._trainer.state.global_step

    def close_update(self, losses: Sequence[float]) -> dict[str, float]:
        """The numbers of the update, which ends here; `losses` are those of its steps on this process.

        `over_steps` makes them.
        """
        self._collect()
        values, self._values = self._values, {}
        self._began_at = self._trainer.state.global_step
        # Where a loss is NaN, transformers logs another number in its place.
        alone = self._trainer.accelerator.num_processes == 1
        if any(map(_broken, losses)) or (alone and "loss" not in values):
            values["loss"] = list(losses)
        # The others are NaN where a step has no such number.
        known = {
            name: found if name in _ALWAYS else [v for v in found if not math.isnan(v)]
            for name, found in values.items()
        }
        return {name: over_steps(name, found) for name, found in known.items() if found}

    def _collect(self) -> None:
        for name, values in compat.metrics(self._trainer).items():
            seen, count = self._read.get(name, (values, 0))
            self._values.setdefault(name, []).extend(values[count if seen is values else 0 :])
            self._read[name] = values, len(values)


def _broken(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isfinite(value)
