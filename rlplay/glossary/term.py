"""What a glossary entry is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Term:
    """One word of reinforcement learning on language models, in plain English.

    `see` is where it can be seen live: a verb of the screen with its argument, whose own formula and reading are
    shown with it. `play` is a bundled scenario about it, `algorithm` the preset that the term is the name of.
    """

    name: str
    text: str
    formula: str = ""
    aliases: tuple[str, ...] = ()
    see: tuple[str, Any] | None = None
    play: str = ""
    algorithm: str = ""
