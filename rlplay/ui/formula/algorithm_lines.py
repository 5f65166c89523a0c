"""An algorithm of the catalogue in lines: what it changes, its paper, its equations."""

from __future__ import annotations

from textual.content import Content

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS, Preset
from rlplay.algorithms.equations import equation, terms


def algorithm_lines(preset: Preset) -> list[Content]:
    """Title, what it changes, and `origin_lines`."""
    title = Content.styled(preset.title, "bold $foreground")
    return [title, Content(preset.changes), Content(""), *origin_lines(preset)]


def origin_lines(preset: Preset) -> list[Content]:
    """Its paper, its predecessor, where it differs from the paper, and its equations."""
    after = f" · builds on {PRESETS[preset.after].title}" if preset.after else ""
    equations = (equation(left, right) for left, right in terms(resolve({"algorithm": preset.name})).items())
    differs = [Content(preset.differs)] if preset.differs else []
    return [Content.styled(f"{preset.paper}{after}", "$text-muted"), *differs, *map(Content, equations)]
