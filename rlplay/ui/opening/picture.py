"""The opening as lines of text with roles, for a size: title, two answers, a curve, three ways on. No Textual here."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import NamedTuple

from rlplay.trace.text import visible
from rlplay.ui.opening.big_digits import big
from rlplay.ui.opening.story import Story

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_WIDEST = 160
_TALL, _ROOMY = 34, 40
"""Lines from which the ways are three lines high, and from which digits are large if there are `_LARGE` columns."""
_LARGE = 110
_BESIDE = 72
"""Columns from which the two answers stand side by side,"""
_WAYS = 56
"""and the three ways."""
_LEAST, _SHARE = 4, 3
"""The least lines of the curve; the part of the screen, one in so many lines, that it takes at most."""
_PROGRESS = 12


class Part(NamedTuple):
    """Some cells of a line. `role` says how they look; `way` is the number of the way that a click there takes."""

    text: str
    role: str = "text"
    way: int | None = None


Line = list[Part]


@dataclass(frozen=True)
class Way:
    """A way on: its key, what it does, and more about it."""

    key: str
    title: str
    detail: str


@dataclass(frozen=True)
class Now:
    """What changes while the opening is on the screen."""

    ways: tuple[Way, ...]
    chosen: int = 0
    """The way that enter takes."""
    waits: bool = False
    """Whether it has been taken, and the engine is awaited."""
    engine: str = "starting"
    """What the engine does, or once it is `ready`, what it is."""
    fraction: float = 0.0
    ready: bool = False
    live: str | None = None
    """What the engine's own model has written of its first answer so far; None before it writes."""
    right: bool | None = None
    """Whether that answer is right, once it is whole."""


def picture(story: Story, now: Now, width: int, height: int) -> list[Line]:
    """The lines from top to bottom, `height` of them, each at most `width` cells."""
    margin = 1 if width < 100 else width // 16
    inner = max(min(width - 2 * margin, _WIDEST), 1)
    blocks = {
        "head": [_head(now, inner)],
        "title": [[Part(line, "title")] for line in textwrap.wrap(story.title, inner)],
        "question": [[Part(line, "muted")] for line in textwrap.wrap(visible(story.question), inner)],
        "answers": _answers(story, now, inner, 2 if height >= _TALL else 1),
        "curve": [],
        "moral": [[Part(line, "text")] for line in textwrap.wrap(_MORAL, inner)],
        "ways": _ways(now, inner, 3 if height >= _TALL else 1),
        "note": [[Part(line, "muted")] for line in textwrap.wrap(_note(story), inner)],
    }
    for spare in ("note", "question", "moral", "title"):
        if _needed(blocks) + _LEAST + 2 > height:
            del blocks[spare]
    if (room := height - _needed(blocks) - 2) >= _LEAST:
        blocks["curve"] = _curve(story, inner, min(room, max(height // _SHARE, 7)), height >= _ROOMY)
    spread = _spread(list(blocks.values()), height)
    left = Part(" " * ((width - inner) // 2))
    return [[left, *line] for line in spread][:height]


_MORAL = "Nobody told it to show its work. Only a right final answer was rewarded."


def _note(story: Story) -> str:
    return f"Recorded: {story.scenario}, seed {story.seed}, {story.updates} updates. Your run begins like this one."


def _needed(blocks: dict[str, list[Line]]) -> int:
    """Lines of the blocks with one empty line between two."""
    return sum(map(len, blocks.values())) + len(blocks) - 1


def _spread(blocks: list[list[Line]], height: int) -> list[Line]:
    """The blocks with empty lines evenly between them, so that they fill the height; a tall screen has a margin."""
    margin: list[list[Line]] = [[[]]] if height >= _TALL else []
    blocks = [*margin, *(block for block in blocks if block), *margin]
    gaps = len(blocks) - 1
    spare = max(height - sum(map(len, blocks)), gaps)
    lines: list[Line] = list(blocks[0])
    for at, block in enumerate(blocks[1:], start=1):
        lines += [[] for _ in range(spare * at // gaps - spare * (at - 1) // gaps)]
        lines += block
    return lines


def _head(now: Now, width: int) -> Line:
    """The program at the left, its engine at the right."""
    filled = round(now.fraction * _PROGRESS)
    bar = [] if now.ready else [Part("━" * filled, "strong"), Part("─" * (_PROGRESS - filled), "faint"), Part("  ")]
    said = f"{'●' if now.ready else '○'} {visible(now.engine)}"
    room = width - len("rlplay") - 2 - sum(len(part.text) for part in bar)
    said = said if len(said) <= room else said[: max(room - 1, 0)] + "…"
    right = [*bar, Part(said, "good" if now.ready else "muted")]
    return [Part("rlplay", "strong"), _gap(width - len("rlplay") - sum(len(part.text) for part in right)), *right]


def _gap(cells: int) -> Part:
    return Part(" " * max(cells, 0))


def _answers(story: Story, now: Now, width: int, rows: int) -> list[Line]:
    """What the model writes before training, recorded or live, and what it wrote after it."""
    side = (width - 4) // 2 if width >= _BESIDE else width
    mark = "live" if now.live is not None else "recorded"
    text, right = (story.before.text, story.before.right) if now.live is None else (now.live, now.right)
    before = _answer("A small model guesses", mark, text, right, side, rows)
    after = _answer(f"After {story.updates} updates", "recorded", story.after.text, story.after.right, side, rows)
    if side == width:
        return [*before, *after]
    return [[*one, _gap(side + 4 - _cells(one)), *other] for one, other in zip(before, after, strict=True)]


def _answer(title: str, mark: str, text: str, right: bool | None, width: int, rows: int) -> list[Line]:
    head = [Part(title, "muted"), Part("  "), Part("● live" if mark == "live" else mark, mark)]
    written = textwrap.wrap(visible(text), max(width - 2, 1)) or [""]
    if len(written) > rows:
        written = [*written[: rows - 1], written[rows - 1][: width - 3] + "…"]
    sign = Part("  ") if right is None else Part("✓ ", "good") if right else Part("✗ ", "bad")
    body = [[sign if at == 0 else Part("  "), Part(line, "strong")] for at, line in enumerate(written)]
    if right is None:
        body[-1].append(Part("▏", "muted"))
    return [head, *body, *([] for _ in range(rows - len(body)))]


def _cells(line: Line) -> int:
    return sum(len(part.text) for part in line)


def _curve(story: Story, width: int, rows: int, large: bool) -> list[Line]:
    """The shares of right answers over the updates, the first and the last in large digits beside them."""
    edges = story.shares[0], story.shares[-1]
    first, last = (big(f"{share:.0%}", large and width >= _LARGE) for share in edges)
    beside = len(first[0]) + 2
    across = width - beside - len(last[0]) - 2
    drawn = _area(story.shares, across, rows)
    tops = [min(max(round(rows * (1 - share) - len(first) / 2), 0), rows - len(first)) for share in edges]
    lines: list[Line] = [[Part(f"Right answers to {story.held_out} problems that it never trains on", "muted")]]
    for row in range(rows):
        one, other = (
            digits[row - top] if 0 <= row - top < len(digits) else " " * len(digits[0])
            for digits, top in zip((first, last), tops, strict=True)
        )
        lines.append([Part(one, "strong"), Part("  "), *drawn[row], Part("  "), Part(other, "strong")])
    end = f"update {story.updates}"
    between = _gap(across - len("update 0") - len(end))
    lines.append([_gap(beside), Part("update 0", "muted"), between, Part(end, "muted")])
    return lines


def _area(shares: list[float], width: int, rows: int) -> list[Line]:
    """The area below straight lines from each share to the next, 0 at the bottom and 1 at the top."""
    heights = []
    for x in range(width):
        place = x / max(width - 1, 1) * (len(shares) - 1)
        at = min(int(place), len(shares) - 2)
        share = shares[at] + (place - at) * (shares[at + 1] - shares[at])
        heights.append(round(share * rows * 8))
    lines: list[Line] = []
    for row in range(rows):
        levels = (height - (rows - 1 - row) * 8 for height in heights)
        lines.append([Part("".join(_EIGHTHS[min(max(level, 0), 8)] for level in levels), "curve")])
    return lines


def _ways(now: Now, width: int, rows: int) -> list[Line]:
    """The three ways beside each other, `rows` lines high, or below each other; then more about the chosen one."""
    beside = width >= _WAYS
    inside = (width + 2) // len(now.ways) - 2 if beside else width
    widths = [inside, inside, width - 2 * (inside + 2) if beside else width]
    boxes = [_way(at, way, at == now.chosen, widths[at], rows) for at, way in enumerate(now.ways)]
    rowed = [[*one, Part("  "), *two, Part("  "), *three] for one, two, three in zip(*boxes, strict=True)]
    lines = rowed if beside else [line for box in boxes for line in box]
    detail = now.ways[now.chosen].detail
    if now.waits:
        return [*lines, [], [Part(_fitting(f"starting… {detail}", width), "strong")]]
    return [*lines, [], [Part("enter", "key"), Part(_fitting(f"  {detail}", width - len("enter")), "muted")]]


def _fitting(text: str, width: int) -> str:
    """The sentences of the text that fit."""
    while len(text) > width and ". " in text:
        text = text.rpartition(". ")[0] + "."
    return text[:width]


def _way(at: int, way: Way, chosen: bool, width: int, rows: int) -> list[Line]:
    role = "chosen" if chosen else "way"
    key = f"  {way.key}"
    words = f"  {way.title}"[: width - len(key)]
    middle = [Part(key, role if chosen else "key", at), Part(f"{words:{width - len(key)}}", role, at)]
    return [middle if row == rows // 2 else [Part(" " * width, role, at)] for row in range(rows)]
