"""What is known of a setting beside its type and default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Knob:
    """How a setting is shown and bounded; `log` steps multiply, others add `step`."""

    name: str
    title: str
    group: Literal["algorithm", "sampling", "credit", "objective", "distillation", "update", "preferences"]
    meaning: str
    effect: str
    low: float | None = None
    high: float | None = None
    step: float = 1.0
    log: bool = False
    needs: tuple[str, tuple[str | bool, ...]] | None = None
    """Another setting and its values under which this one has any effect; None: always."""
