"""The type of a glossary entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Term:
    """One word of reinforcement learning on language models, in plain English.

    `see` is where the screen shows it live: a verb with its argument; the entry then also shows the formula and reading
    from there. `algorithm` is the preset with this name. `moments.py` has the lesson that shows it.
    """

    name: str
    text: str
    formula: str = ""
    aliases: tuple[str, ...] = ()
    see: tuple[str, Any] | None = None
    algorithm: str = ""
