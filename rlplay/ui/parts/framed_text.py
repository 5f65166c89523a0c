"""Model text in a frame: a prompt, or an answer that the mouse can choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message

from rlplay.trace.records import Sampled
from rlplay.trace.text import NEWLINE, visible
from rlplay.ui.format.shown_text import token_text
from rlplay.ui.format.wrap import TokenPiece, wrap
from rlplay.ui.parts.line_panel import LinePanel


class FramedText(LinePanel, can_focus=False):
    """One text, wrapped between tokens."""

    class Clicked(Message):
        """The user clicked this text."""

        def __init__(self, answer: FramedText) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._texts: Sequence[str] = ()
        self._breaks: Sequence[bool] = ()
        self._lines: list[list[TokenPiece]] = []

    def show(self, texts: Sequence[str], breaks: Sequence[bool]) -> None:
        """Show these tokens from the top, with a line break after those with `breaks`."""
        self._texts, self._breaks = texts, breaks
        self._lay_out()
        self.refresh(layout=True)
        self.scroll_to(y=0, animate=False, immediate=True)

    def show_prompt(self, prompt: str) -> None:
        """Show the prompt."""
        words = visible(prompt.replace("\n", f"{NEWLINE} ")).split(" ")
        self.show([f" {word}" if i else word for i, word in enumerate(words)], [False] * len(words))

    def show_completion(self, sampled: Sampled, completion: int) -> None:
        """Show one of the completions."""
        tokens = range(*(int(x) for x in sampled.offsets[completion : completion + 2]))
        pieces = (sampled.pieces.get(int(sampled.token_ids[token]), "") for token in tokens)
        texts = [token_text(sampled.texts[token], piece) for token, piece in zip(tokens, pieces, strict=True)]
        self.show(texts, [sampled.texts[token].endswith("\n") for token in tokens])

    def on_resize(self) -> None:
        """Wrap the text to the new width."""
        self._lay_out()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """The number of lines, for a frame as high as its text."""
        return max(len(wrap(self._texts, width, self._breaks)), 1)

    def _lay_out(self) -> None:
        self._lines = wrap(self._texts, self.scrollable_content_region.width, self._breaks)
        self.rebuild()

    def count(self) -> int:
        """The number of lines, at least one: an empty answer is an answer."""
        return max(len(self._lines), 1)

    def line(self, row: int) -> Iterable[Segment]:
        """One line of the text."""
        if row < len(self._lines):
            text = "".join(cell.text for cell in self._lines[row])
            # A wrapped line drops the leading blank of its first word.
            broken = row > 0 and not self._breaks[self._lines[row - 1][-1].token]
            yield Segment(text.removeprefix(" ") if broken else text, self.palette.text)

    def on_click(self, event: events.Click) -> None:
        """A click chooses the text."""
        event.stop()
        self.post_message(self.Clicked(self))
