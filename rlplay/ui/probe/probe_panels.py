"""The panels of the probe: the text so far, the candidates, the continuations and the value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.message import Message

from rlplay.trace.questions import Estimate, Estimated, Peeked, Tail, Writer
from rlplay.trace.text import visible
from rlplay.ui.format.bars import horizontal
from rlplay.ui.format.number_cells import plain
from rlplay.ui.format.shown_text import is_special, quoted, token_text
from rlplay.ui.format.wrap import TokenPiece, wrap
from rlplay.ui.parts.made_panel import MadePanel
from rlplay.ui.plot.probability_lines import probability_lines, share_text
from rlplay.ui.session.probing import Probing
from rlplay.ui.theme.inks import STEPS, Palette

WRITERS: tuple[Writer, ...] = ("policy", "reference")
TRACK = 40
"""Cells of the line on which a value between 0 and 1 is drawn, at most."""
_LEAST_TRACK = 20
_WIDEST_BAR = 40
_HIGHEST = 4
"""Cells of a candidate's bars over training, at most."""


class ProbePanel(MadePanel, can_focus=False):
    """Base of the panels: all lines are made from what is known about a prefix."""

    def __init__(self, probing: Probing, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.probing = probing


class ProbeText(ProbePanel, can_focus=True, inherit_bindings=False):
    """Prompt and answer, token by token; the cursor is the place of the question."""

    EMPTY = "Press `tab` to type a prompt. Or put the cursor on a token of the main screen and press `i`."

    class Place(Message):
        """The user clicked token `place` of the answer."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def made(self) -> Iterator[list[Segment]]:
        """The prompt as the model reads it, then the answer; shades before the place show probabilities."""
        self._places: dict[int, list[TokenPiece]] = {}
        probing = self.probing
        if probing.vacant:
            return
        asked = [token_text(text, text, spaces=is_special(text)) for text in self._prompt()]
        prompt = wrap(asked, self.width, [False] * len(asked))
        yield from ([Segment("".join(cell.text for cell in cells), self.palette.muted)] for cells in prompt)
        yield []
        texts = _shown(probing, probing.answer, probing.texts)
        breaks = [text.endswith("\n") for text in probing.texts]
        # One extra place after the last token.
        answer = wrap([*texts, "▁"], self.width, [*breaks, False])
        shares = self._shares()
        for row, cells in enumerate(answer, start=len(prompt) + 1):
            self._places[row] = cells
            yield [Segment(cell.text, self._style(cell.token, shares)) for cell in cells if self._there(cell.token)]

    def _prompt(self) -> list[str]:
        peeked = self.probing.peeked
        if peeked is not None and peeked.prompt_texts:
            return peeked.prompt_texts
        return [f" {word}" if i else word for i, word in enumerate(self.probing.prompt.split(" "))]

    def _there(self, token: int) -> bool:
        return token < len(self.probing.answer) or token == self.probing.place

    def _shares(self) -> list[float]:
        """The policy's probabilities of the answer's first tokens, as far as known."""
        peeked = self.probing.peeked
        if peeked is None:
            return []
        same = takewhile(lambda both: both[0] == both[1], zip(peeked.prefix.answer, self.probing.answer, strict=False))
        return [share for share, _ in zip(peeked.probabilities, same, strict=False)]

    def _style(self, token: int, shares: list[float]) -> Style:
        if token == self.probing.place:
            return self.palette.cursor
        if token > self.probing.place:
            return self.palette.muted
        level = round(shares[token] * STEPS) if token < len(shares) else 0
        return self.palette.shade(level, diverging=False) or self.palette.text

    def follow(self) -> None:
        """Scroll to the cursor."""
        for row, cells in self._places.items():
            if any(cell.token == self.probing.place for cell in cells):
                self.reveal(row)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked token."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        x = 0
        for cell in self._places.get(offset.y + self.scroll_offset.y, []):
            x += cell.width
            if offset.x < x:
                self.post_message(self.Place(cell.token))
                return


class ProbeBars(ProbePanel):
    """The candidates for the place, with their probabilities under the reference and the policy."""

    _step_word = "token"

    def speak(self, step_word: str) -> None:
        """Name what the policy samples."""
        self._step_word = step_word

    def made(self) -> Iterator[list[Segment]]:
        """A line for each candidate, one for the rest, then a summary of the two distributions."""
        peeked = self.probing.peeked
        if peeked is None or peeked.refused or not peeked.top_ids:
            return
        fresh = self.probing.fresh
        if fresh and peeked.ended:
            yield [Segment("The answer ends here.", self.palette.text)]
            yield [Segment(f"← an earlier {self._step_word}", self.palette.muted)]
            return
        text, bar = self._columns()
        head = f"{'':{text + 2}}{'reference':<{bar + 6}}{'policy now':<{bar + 6}}"
        yield [Segment(head, self.palette.muted)]
        at_place = self._token_at_place()
        for rank, (token, policy, reference) in enumerate(zip(peeked.top_ids, peeked.top, peeked.ref_top, strict=True)):
            here = fresh and rank == self.probing.rank
            style = self.palette.strong if here else self.palette.text if fresh else self.palette.muted
            mark = "▸ " if here else "· " if token == at_place else "  "
            name = set_cell_size(quoted(peeked.pieces.get(token, "")), text)
            yield [
                Segment(mark, self.palette.mark if here else self.palette.muted),
                Segment(name, style),
                *self._bar(reference, bar, self.palette.muted, self.palette.muted),
                *self._bar(
                    policy, bar, self.palette.text if fresh else self.palette.muted, self._moved(policy, reference)
                ),
            ]
        yield self._rest(peeked, text, bar)
        yield []
        yield from self._summary(peeked)

    def _columns(self) -> tuple[int, int]:
        """Cells for a candidate's text and for a bar."""
        bar = max(min((self.width - 26) // 2, 16), min((self.width - 36) // 2, _WIDEST_BAR), 4)
        return max(self.width - 2 - 2 * (bar + 6), 6), bar

    def _token_at_place(self) -> int | None:
        probing = self.probing
        return probing.answer[probing.place] if probing.place < len(probing.answer) else None

    def _bar(self, value: float, cells: int, ink: Style, number: Style) -> Iterable[Segment]:
        return [Segment(horizontal(value, cells), ink), Segment(f" {share_text(value)} ", number)]

    def _moved(self, policy: float, reference: float) -> Style:
        if not self.probing.fresh or abs(policy - reference) < 0.005:
            return self.palette.text if self.probing.fresh else self.palette.muted
        return self.palette.up_text if policy > reference else self.palette.down_text

    def _rest(self, peeked: Peeked, text: int, bar: int) -> list[Segment]:
        left = [max(0.0, 1 - sum(values)) for values in (peeked.ref_top, peeked.top)]
        parts = [Segment(f"  {'all others':<{text}}"[: text + 2], self.palette.muted)]
        for value in left:
            parts += self._bar(value, bar, self.palette.faint, self.palette.muted)
        return parts

    def _summary(self, peeked: Peeked) -> Iterator[list[Segment]]:
        quiet, loud = self.palette.muted, self.palette.text
        yield [
            Segment("entropy ", quiet), Segment(plain(peeked.ref_entropy), loud), Segment(" → ", quiet),
            Segment(plain(peeked.entropy), loud), Segment(" nats", quiet),
        ]  # fmt: skip
        yield [
            Segment("KL to reference ", quiet), Segment(plain(peeked.kl, 3), loud),
            Segment(" nats, exact, here", quiet),
        ]  # fmt: skip

    def reveal_choice(self) -> None:
        """Scroll to the chosen candidate."""
        rank = self.probing.rank
        last = self.probing.peeked is not None and rank + 1 == len(self.probing.peeked.top_ids)
        self.reveal(rank + 1 if rank else 0, self.count() - 1 if last else rank + 1)

    def on_click(self, event: events.Click) -> None:
        """Choose the candidate under the mouse."""
        offset = event.get_content_offset(self)
        if offset is not None:
            self.probing.choose(offset.y + self.scroll_offset.y - 1 - self.probing.rank)


class ProbeCourse(ProbePanel):
    """The candidates over training, on a wide screen; the lower the panel, the lower their bars."""

    EMPTY = "`H` candidates over training"

    def made(self) -> Iterator[list[Segment]]:
        """One or more lines for each candidate."""
        lines = self.scrollable_content_region.height
        yield from _course(self.probing, self.width, self.palette, lines)


class ProbeTails(ProbePanel):
    """The value of the prefix, and its continuations; the candidates over training, if they have no panel."""

    EMPTY = "`N` sample six continuations · `V` estimate the value · `H` candidates over training"
    BESIDE = "`N` sample six continuations · `V` estimate the value"
    has_course = True

    def made(self) -> Iterator[list[Segment]]:
        """The candidates over training, then values, then continuations, the policy's first."""
        probing = self.probing
        if self.has_course:
            yield from _course(probing, self.width, self.palette)
        values = [(writer, probing.values.get((probing.begun, writer))) for writer in WRITERS]
        for writer, value in values:
            if value is not None:
                yield from self._value(writer, value)
        for writer in WRITERS:
            tails = probing.tails.get((probing.begun, writer), [])
            for tail in tails:
                yield from self._tail(writer, tail)

    def _value(self, writer: Writer, value: Estimated) -> Iterator[list[Segment]]:
        quiet, loud = self.palette.muted, self.palette.strong
        asked = self.probing.asked
        growing = isinstance(asked, Estimate) and asked.writer == writer and not value.done
        unscored = f", {value.unscored} more without a score" if value.unscored else ""
        mean = "·" if value.mean is None else plain(value.mean, 3)
        parts = [Segment(f"value, {writer:<10}", quiet), Segment(mean, loud)]
        if value.low is not None and value.high is not None:
            parts += [Segment(f"  95 % {plain(value.low, 3)} … {plain(value.high, 3)}", self.palette.text)]
            parts += [Segment(f" ({value.interval})", quiet)]
        parts += [Segment(f"  n = {value.count}{unscored}{' …' if growing else ''}", self.palette.text)]
        room = self.width - sum(segment.cell_length for segment in parts) - 3
        drawn = self._track(value, min(room, TRACK)) if room >= _LEAST_TRACK else []
        yield [*parts, Segment("   "), *drawn]

    def _track(self, value: Estimated, cells: int) -> list[Segment]:
        """The interval on a line from 0 to 1, if it lies there."""
        if value.mean is None or value.low is None or value.high is None or value.low < 0 or value.high > 1:
            return []
        low, mean, high = (round(x * (cells - 3)) for x in (value.low, value.mean, value.high))
        marks = ["─" if low <= at <= high else "·" for at in range(cells - 2)]
        marks[mean] = "●"
        ink = self.palette.text
        body = [Segment(mark, ink if low <= at <= high else self.palette.faint) for at, mark in enumerate(marks)]
        return [Segment("0", self.palette.muted), *body, Segment("1", self.palette.muted)]

    def _tail(self, writer: Writer, tail: Tail) -> Iterator[list[Segment]]:
        reward = "     " if tail.reward is None else f"{plain(tail.reward):>5}"
        head = f"{reward}  {writer:<9}  "
        texts = [*_shown(self.probing, tail.token_ids, tail.texts), *["…"] * tail.truncated]
        lines = wrap(texts, max(self.width - len(head), 10), [False] * len(texts))
        for number, cells in enumerate(lines or [[]]):
            start = Segment(head, self.palette.muted) if number == 0 else Segment(" " * len(head))
            yield [start, Segment("".join(cell.text for cell in cells), self.palette.text)]


def _course(probing: Probing, width: int, palette: Palette, lines: int = 0) -> Iterator[list[Segment]]:
    """The candidates over training; with `lines` to fill, as high as they allow."""
    recalled = probing.courses.get(probing.begun)
    if recalled is None:
        return
    pieces = probing.pieces | (probing.peeked.pieces if probing.peeked is not None else {})
    high = max((lines - 1) // max(len(recalled.token_ids), 1) - 1, 1) if lines else 1
    title = "" if lines else "over training"
    yield from probability_lines(recalled, pieces, probing.chosen, width, palette, title, min(high, _HIGHEST))


def _shown(probing: Probing, ids: list[int], texts: list[str]) -> list[str]:
    return [token_text(text, probing.pieces.get(i, "")) for i, text in zip(ids, texts, strict=True)]


def described(probing: Probing) -> Content:
    """One line about the question: the update, the temperature, and whether answers earn a reward."""
    if probing.refused:
        return Content.styled(f"▲ {visible(probing.refused)}", "$error")
    peeked = probing.peeked
    if peeked is None or peeked.refused:
        return Content("")
    reward = f"no reward: {visible(peeked.unrewarded)}" if peeked.unrewarded else "answers earn a reward"
    template = " · plain text" if probing.plain else ""
    aside = f" · temperature {peeked.temperature:g}{template} · {reward}"
    further = f" and {peeked.steps} step{'s' * (peeked.steps > 1)} of the next" * (peeked.steps > 0)
    return Content.assemble((f"after update {peeked.update}{further}", "$foreground"), (aside, "$text-muted"))
