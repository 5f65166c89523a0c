"""Three of Textual's classes made cheaper, for the version that `pyproject.toml` names.

A dialogue that opens makes some two thousand `Strip`s, one for each piece of a line. Textual gives each of them seven
caches, of which most strips never use one: a third of all objects that the garbage collector visits. Here a strip gets
a cache when it first needs it.

A style sheet hashes all its rules for each widget that it styles, in Python. Here that is Python's own hash, by
identity as well.

The cache of a widget's lines looks up its colours in one table for all such caches, of which it is itself a part of the
key: the table kept the lines of the last five hundred closed widgets. Here the colours alone are the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rich.segment import Segment
from textual._styles_cache import StylesCache
from textual.cache import FIFOCache
from textual.color import Color
from textual.css.model import RuleSet
from textual.strip import Strip
from textual.style import Style

_SIZES = {
    "_divide_cache": 4, "_crop_cache": 16, "_style_cache": 16, "_filter_cache": 4, "_line_length_cache": 4,
    "_crop_extend_cache": 4, "_offsets_cache": 4,
}  # fmt: skip
"""Entries that Textual lets each cache of a strip have."""


def slim() -> None:
    """Replace what is costly in Textual's classes, in this process."""
    Strip.__init__ = _without_caches  # type: ignore[method-assign]
    Strip.__getattr__ = _cache  # type: ignore[attr-defined]
    StylesCache.get_inner_outer = staticmethod(_inner_outer)  # type: ignore[assignment]
    RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign]


def _without_caches(self: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    self._segments = list(segments)
    self._cell_length = cell_length
    self._render_cache = self._link_ids = self._cell_count = None


@lru_cache(1024)
def _inner_outer(base_background: Color, background: Color) -> tuple[Style, Style]:
    """The styles inside of a widget's border and outside of it."""
    return Style(background=base_background + background), Style(background=base_background)


def _cache(self: Strip, name: str) -> FIFOCache[Any, Any]:
    """The cache called `name`, which is not there yet."""
    if name not in _SIZES:
        raise AttributeError(f"a strip has no {name!r}")
    cache: FIFOCache[Any, Any] = FIFOCache(_SIZES[name])
    setattr(self, name, cache)
    return cache
