"""The answer tree: the answers of the group at the cursor, merged where they agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from textual.content import Content, Span

from rlplay.trace.answer_tree import Node, answer_tree
from rlplay.trace.records import Sampled
from rlplay.trace.text import visible
from rlplay.ui.format.bars import stroke
from rlplay.ui.format.number_cells import bare, plain
from rlplay.ui.format.shown_text import token_text
from rlplay.ui.plot.picture import Axes, Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import VALUE, OfUpdate

NOTHING_SAMPLED = "The answers to a prompt will be drawn here, merged where they agree. Press `n` to sample the first."
ABOVE, BELOW, SAME = "$success", "$error", "$text-muted"
_MARKS: dict[float | None, str] = {1.0: "✓", 0.0: "✗"}
_TINTS = {ABOVE: "on $success 28%", BELOW: "on $error 28%", SAME: "on $foreground 12%"}
"""Of the bars, which lie behind the text."""
_BAR, _WIDE = 8, 60
"""Cells of the bar of all answers where there are no tints; columns from which on the number of all is repeated."""


class Words(NamedTuple):
    """The text of a line; whether the cursor is there, answers are right or wrong, branches have no room, and whether
    there are tints for its bar."""

    text: str
    here: bool
    binary: bool
    folded: bool
    tinted: bool


@dataclass(frozen=True)
class AnswerTree(OfUpdate):
    """A view of one group of the update on the screen, not of the run, so it has no cursor of its own."""

    title = "Answer tree"

    def state(self, source: PlotData) -> object:
        """The update with its phase, and the token under the cursor."""
        shown = source.shown
        return None if shown is None else (shown.number, shown.phase, shown.tokens, id(shown.scored)), source.cursor

    def data(self, source: PlotData) -> object:
        """What is drawn: texts, numbers and mean rewards of every branch, equal for equal trees; None without one."""
        root, shown = _root(source), source.shown
        if root is None or shown is None or shown.sampled is None:
            return None
        prompt = shown.sampled.prompts[int(shown.sampled.group[root.rows[0]])]
        return prompt, [(_text(shown.sampled, node), len(node.rows), node.reward) for node in _all(root)]

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """A line for each stretch of text, the largest branches opened first, as many as there are lines."""
        root = _root(source)
        if root is None:
            return source.coming(NOTHING_SAMPLED)
        lines = _tree(source, root, size, source.cursor)
        if len(lines) > size.height:
            hidden = len(lines) - size.height + 1
            lines = [
                *lines[: size.height - 1],
                Content.styled(f"… {hidden} more beginnings", SAME).truncate(size.width),
            ]
        if not root.children and len(root.rows) > 1 and size.height > 1:
            lines.append(Content.styled(f"All {len(root.rows)} answers are the same text.", SAME).truncate(size.width))
            lines += _further(source, root, Size(size.width, size.height - len(lines)))
        return Picture(Content("\n").join(lines), Axes(size.width, 0, size.width - 1, 0, 1))

    def titles(
        self, source: PlotData, _cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, how many answers there are and their mean reward; below, the prompt."""
        root = _root(source)
        if root is None or source.shown is None or source.shown.sampled is None:
            return Content(self.title), Content("")
        sampled = source.shown.sampled
        different = sum(1 for node in _all(root) if not node.children)
        parts = [f"{self.title} · {different} distinct of {len(root.rows)}"]
        value = "" if root.reward is None else plain(root.reward)
        mean = Content.assemble(" · mean reward ", (value, VALUE)) if value else Content("")
        prompt = sampled.prompts[int(sampled.group[root.rows[0]])]
        return Content.assemble(parts[0], mean), Content(visible(prompt))


def _tree(source: PlotData, root: Node, size: Size, cursor: tuple[int, int] | None) -> list[Content]:
    """The lines of one prompt's tree, with the node at `cursor`, if it is in this tree, marked."""
    assert source.shown is not None
    assert source.shown.sampled is not None
    opened = _opened(root, size.height)
    here = None if cursor is None else _here(root, opened, cursor)
    lines = []
    for node, indent in _walk(root, "", opened):
        folded = bool(node.children) and id(node) not in opened
        words = Words(_text(source.shown.sampled, node), node is here, _binary(source), folded, source.tinted)
        lines.append(_line(node, indent, root, size.width, words))
    return lines


def _further(source: PlotData, root: Node, size: Size) -> list[Content]:
    """The trees of the prompts after that of `root`, each below its prompt, as many as fit as a whole."""
    assert source.shown is not None
    assert source.shown.sampled is not None
    sampled, lines = source.shown.sampled, list[Content]()
    for group in range(int(sampled.group[root.rows[0]]) + 1, len(sampled.prompts)):
        room = size.height - len(lines) - 2
        other = answer_tree(source.shown, group) if room > 0 else None
        tree = [] if other is None else _tree(source, other, Size(size.width, room), None)
        if not tree or len(tree) > room:
            break
        heading = Content.styled(visible(sampled.prompts[group]), SAME).truncate(size.width, ellipsis=True)
        lines += [Content(""), heading, *tree]
    return lines


def _root(source: PlotData) -> Node | None:
    shown = source.shown
    if shown is None or shown.sampled is None or source.cursor[0] >= shown.completions:
        return None
    return answer_tree(shown, int(shown.sampled.group[source.cursor[0]]))


def _opened(root: Node, lines: int) -> set[int]:
    """The nodes whose children have lines: the most frequent first, while they fit."""
    opened: set[int] = set()
    used, waiting = 1, [root]
    while waiting:
        node = max(waiting, key=lambda each: len(each.rows))
        waiting.remove(node)
        if node.children and (node is root or used + len(node.children) <= lines):
            opened.add(id(node))
            used += len(node.children)
            waiting += node.children
    return opened


def _walk(node: Node, indent: str, opened: set[int]) -> Iterator[tuple[Node, str]]:
    """The nodes with lines, top to bottom, and the branches drawn before each."""
    yield node, indent
    if id(node) not in opened:
        return
    below = indent.replace("├ ", "│ ").replace("└ ", "  ")
    for child in node.children:
        yield from _walk(child, below + ("└ " if child is node.children[-1] else "├ "), opened)


def _line(node: Node, indent: str, root: Node, width: int, words: Words) -> Content:
    """The text of a node on a bar as long as its share of the answers; at the right their number and mean reward."""
    right = _numbers(node, root, width, words)
    text = f"{words.text} ▸" if words.folded else words.text
    room = max(width - len(indent) - right.cell_length, 0)
    fitting = Content.styled(text, "reverse" if words.here else "").truncate(room, ellipsis=True)
    gap = " " * (room - fitting.cell_length)
    line = Content.assemble((indent, SAME), fitting, gap, right).truncate(width)
    if not words.tinted:
        return line
    cells = max(round(len(node.rows) / len(root.rows) * (width - right.cell_length)), 1)
    # Wide characters take two cells, so the bar ends with the text's characters that fit in it.
    return line.add_spans([Span(0, len(line.truncate(cells).plain), _TINTS[_ink(node, root)])])


def _numbers(node: Node, root: Node, width: int, words: Words) -> Content:
    """How many answers begin this way and what they earn on average; in little room, of whole answers only ✓ or ✗."""
    ink, total = _ink(node, root), len(root.rows)
    mark = "" if node.children or not words.binary else _MARKS.get(node.reward, "")
    reward = "" if node.reward is None else plain(node.reward)
    counted = f" {len(node.rows)}/{total}".rjust(len(f" {total}/{total}"))
    if width < _WIDE:
        counted = f" ×{len(node.rows)}".rjust(len(f" ×{total}"))
        reward = "" if mark else bare(reward)
    share = f" {stroke(len(node.rows) / total, _BAR, least=1):<{_BAR}}" if not words.tinted and width >= _WIDE else ""
    return Content.assemble((share, ink), counted, (f"{reward:>6}" if width >= _WIDE else f"{reward:>5}", ink),
                            (f" {mark:<1}", f"bold {ink}"))  # fmt: skip


def _text(sampled: Sampled, node: Node) -> str:
    """The text of a node's tokens, as the answers show it."""
    start = int(sampled.offsets[node.rows[0]])
    tokens = range(start + node.start, start + node.end)
    pieces = (token_text(sampled.texts[at], sampled.pieces.get(int(sampled.token_ids[at]), "")) for at in tokens)
    return "".join(pieces) or ("(all answers)" if node.start == 0 else "(ends)")


def _ink(node: Node, root: Node) -> str:
    """Whether the answers below earned more or less than the group on average."""
    if node.reward is None or root.reward is None or abs(node.reward - root.reward) < 1e-9:
        return SAME
    return ABOVE if node.reward > root.reward else BELOW


def _here(root: Node, opened: set[int], cursor: tuple[int, int]) -> Node:
    """The deepest node with a line that holds the token under the cursor, or what comes before it."""
    row, token = cursor
    node = root
    while id(node) in opened and token >= node.end:
        node = next(child for child in node.children if row in child.rows)
    return node


def _binary(source: PlotData) -> bool:
    """Whether every reward of the update is 0 or 1, so that an answer is right or wrong."""
    scored = None if source.shown is None else source.shown.scored
    return scored is not None and bool(np.isin(scored.rewards, (0.0, 1.0)).all())


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all(child)
