"""A slider below the answers: what another value would do to them, with every step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from rlplay.trace.kinds import SomeSettings
from rlplay.trace.numbers import compact, number, real_minus
from rlplay.trace.questions import Peek
from rlplay.trace.text import visible
from rlplay.ui.format.bars import horizontal
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import Drafted
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.probing import Probing
from rlplay.ui.sliders.quantity import GAP, Quantity, chance_to_win
from rlplay.ui.sliders.slider_track import SliderTrack

_BARS, _BAR = 5, 40
AtCursor = Callable[[str], tuple[float, float] | None]
"""A statistic of the token under the cursor, as trained and as it would be; None without a preview."""


class SliderScreen(Following[SomeSettings | None]):
    """Its result is the changed setting, or None."""

    DEFAULT_CSS = """
    SliderScreen { align: center bottom; background: transparent; }
    SliderScreen > Vertical { width: 1fr; height: auto; padding: 0 1; }
    SliderScreen SteadyStatic { height: auto; min-height: 3; margin: 1 1 0 1; }
    """
    SECONDS = 0.05
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "less"),
        Binding("right", "move(1)", "more"),
        Binding("shift+left", "move(-5)", "five times as far", show=False),
        Binding("shift+right", "move(5)", "five times as far", show=False),
        Binding("z", "reset", "undo", id="undo"),
        Binding("enter", "apply", "use it"),
        Binding("escape,q", "dismiss(None)", "close"),
    ]

    def __init__(
        self, quantity: Quantity, steers: bool, at_cursor: AtCursor, probing: Probing,
        ask: Callable[[Peek], Awaitable[None]],
    ) -> None:  # fmt: skip
        """`steers`: whether the value can be used. `ask` sends a question about the next token to the engine."""
        super().__init__()
        self.quantity, self.value = quantity, quantity.begins
        self._steers, self._at_cursor = steers and quantity.name != GAP, at_cursor
        self._probing, self._ask = probing, ask
        self._foreseen: Sequence[str] = ()

    @property
    def name_under_cursor(self) -> str | None:
        """The setting that the knobs begin with next."""
        return None if self.quantity.name == GAP else self.quantity.name

    def tell(self, words: Sequence[str], _comparable: bool) -> None:
        """Show what the preview says."""
        self._foreseen = words
        if self.is_attached:
            self.look(at_once=True)

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            use = "`enter` use it · " * self._steers
            panel.border_subtitle = keyed(f"`← →` or drag · `z` undo · {use}`esc` close")
            yield SliderTrack(self.quantity)
            yield SteadyStatic()

    async def on_mount(self) -> None:
        await self._changed()
        self.begin()

    def version(self) -> object:
        """The value, the engine's answers, and the preview."""
        return self.value, self._probing.version, self._foreseen, self._at_cursor(self.quantity.lens)

    def follow(self) -> None:
        """Show what the value means."""
        self.query_one(Vertical).border_title = Content(f"{self.quantity.title}  {_written(self.value)}")
        self.query_one(SliderTrack).move(self.value)
        self.query_one(SteadyStatic).say(Content("\n").join(self._lines()))

    @on(SliderTrack.Dragged)
    async def _dragged(self, event: SliderTrack.Dragged) -> None:
        await self._to(event.value)

    async def action_move(self, steps: int) -> None:
        """Another value."""
        await self._to(self.quantity.snapped(self.value + steps * self.quantity.step))

    async def action_reset(self) -> None:
        """The value that it began with."""
        await self._to(self.quantity.begins)

    def action_apply(self) -> None:
        """Train with this value from now on."""
        self.dismiss({self.quantity.name: self.value} if self._steers and self.value != self.quantity.begins else None)

    async def _to(self, value: float) -> None:
        if value != self.value:
            self.value = value
            await self._changed()
            self.look(at_once=True)

    async def _changed(self) -> None:
        if self.quantity.name == "temperature":
            await self._ask(Peek(self._probing.prefix, self.value))
        elif self.quantity.name != GAP:
            self.post_message(Drafted({} if self.value == self.quantity.begins else {self.quantity.name: self.value}))

    def _lines(self) -> list[Content]:
        if self.quantity.name == GAP:
            return _preference(self.value)
        if self.quantity.name == "temperature":
            return self._distribution()
        lines = [Content.styled(visible(line), "$text-muted") for line in self._foreseen]
        found = self._at_cursor(self.quantity.lens)
        if found is not None:
            what = "Return" if self.quantity.lens == "returns" else "Advantage"
            lines.insert(0, Content.assemble(
                f"{what} of the token under the cursor: {_signed(found[0])} → ", (_signed(found[1]), "bold")
            ))  # fmt: skip
        return lines or [Content.styled("Move it to see what it would do to these answers.", "$text-muted")]

    def _distribution(self) -> list[Content]:
        found = self._probing.peeked
        if found is None or not self._probing.fresh:
            return [Content.styled(self._probing.refused or "Asking the model …", "$text-muted")]
        if found.refused:
            return [Content.styled(visible(found.refused), "$text-muted")]
        rows = list(zip(found.top_ids, found.top, strict=True))[:_BARS]
        names = [quoted(found.pieces.get(token, "")) for token, _ in rows]
        wide = max(map(len, names), default=0)
        lines = [
            Content.assemble(f"{name:>{wide}} ", (horizontal(p, _BAR), "$scale-amount"), f" {number(p)}")
            for name, (_, p) in zip(names, rows, strict=True)
        ]
        entropy = f"entropy {number(found.entropy)} nats at temperature {_written(found.temperature)}"
        return [*lines, Content.styled(entropy, "$text-muted")]


def _preference(gap: float) -> list[Content]:
    chance = chance_to_win(gap)
    what = "P(the first is better) = σ(score 1 − score 2) = σ("
    return [
        Content.assemble(what, (_written(gap), "bold"), ") = ", (f"{chance:.2f}", "bold")),
        Content.assemble("first  ", (horizontal(chance, _BAR), "$scale-up"), f" {chance:.2f}"),
        Content.assemble("second ", (horizontal(1 - chance, _BAR), "$scale-down"), f" {1 - chance:.2f}"),
    ]


def _written(value: float) -> str:
    return real_minus(compact(value, 4))


def _signed(value: float) -> str:
    return real_minus(f"{value:+.2f}")
