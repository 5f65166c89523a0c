"""What a map can show, one at a time: `←` and `→` go through it."""

from __future__ import annotations

from typing import Literal

Kind = Literal["policy", "values", "visits", "change", "optimal"]
KINDS: tuple[Kind, ...] = ("policy", "values", "visits", "change", "optimal")
