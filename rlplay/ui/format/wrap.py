"""Wraps tokens into lines of a given width, independent of colours and screens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells


class TokenPiece(NamedTuple):
    """A token's piece of one line. A token longer than a line has several pieces."""

    token: int
    text: str
    width: int


def wrap(
    texts: Sequence[str], width: int, breaks: Sequence[bool], start: list[list[TokenPiece]] | None = None
) -> list[list[TokenPiece]]:
    """Lines of at most `width` cells. A new line begins after tokens with `breaks`, else before a token's blank.

    `start` is an earlier result for the first of these tokens; all its lines except the last are reused.
    """
    width = max(width, 2)
    lines = start[:-1] if start else []
    first = start[-1][0].token if start else 0
    # A token split over several lines must be laid out again from its first piece.
    while lines and lines[-1][-1].token >= first:
        first = lines.pop()[0].token
    current: list[TokenPiece] = []
    used = 0
    for token in range(first, len(texts)):
        text = texts[token]
        size = cell_len(text)
        if used + size > width and current:
            moved = _tail(current) if not text.startswith(" ") else []
            lines.append(current[: len(current) - len(moved)])
            current = moved
            used = sum(cell.width for cell in current)
        if used + size > width:
            if current:
                lines.append(current)
            *full, text = chop_cells(text, width)
            lines += [[TokenPiece(token, piece, cell_len(piece))] for piece in full]
            current, used, size = [], 0, cell_len(text)
        current.append(TokenPiece(token, text, size))
        used += size
        if breaks[token]:
            lines.append(current)
            current, used = [], 0
    return [*lines, current] if current else lines


def _tail(line: list[TokenPiece]) -> list[TokenPiece]:
    """The cells of the last word of a line, which move to the next line; none if the line is one word."""
    for index in range(len(line) - 1, 0, -1):
        if line[index].text.startswith(" "):
            return line[index:]
    return []
