"""Drag the probability of the token under the cursor, and see what reward of its answer would have moved it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from rlplay.trace.numbers import compact, real_minus
from rlplay.trace.questions import Reach
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.shown_text import literal, quoted
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.reach.reach_plot import Frame, drawn
from rlplay.ui.session.reaching import Reaching

_STEP = 0.01
_SLIGHT = 0.05
"""A span of probabilities below this is no effect to speak of."""


class ReachPlot(Widget):
    """The picture. The target follows the mouse."""

    DEFAULT_CSS = "ReachPlot { height: 1fr; margin: 1 1 0 1; }"

    class Dragged(Message):
        """The target was dragged to this probability."""

        def __init__(self, target: float) -> None:
            super().__init__()
            self.target = target

    def __init__(self, reaching: Reaching) -> None:
        super().__init__()
        self._reaching = reaching
        self._held: Frame | None = None  # as it was when the mouse took the target, so that it does not run away

    @property
    def frame(self) -> Frame:
        """Where things are."""
        return self._held or Frame.of(*self.content_size, self._reaching)

    def render(self) -> Content:
        return drawn(self.frame, self._reaching)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take the target."""
        self._held = self.frame
        self.capture_mouse()
        self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Let it follow."""
        if self._held is not None:
            self._drag(event)

    def on_mouse_up(self) -> None:
        """Let it go."""
        self._held = None
        self.release_mouse()
        self.refresh()

    def _drag(self, event: events.MouseEvent) -> None:
        self.post_message(self.Dragged(self.frame.probability_at(int(event.y))))


class ReachScreen(Following[None]):
    """Follows the engine's answers: each reward is measured by taking the update once more."""

    DEFAULT_CSS = """
    ReachScreen > Vertical { width: 110; height: 80%; }
    ReachScreen SteadyStatic { height: auto; margin: 0 1; }
    ReachScreen #said { min-height: 2; margin: 1 1 0 1; }
    """
    SECONDS = 0.1
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(1)", "likelier"),
        Binding("down", "move(-1)", "less likely"),
        Binding("shift+up", "move(5)", "five times as far", show=False),
        Binding("shift+down", "move(-5)", "five times as far", show=False),
        Binding("enter", "measure", "measure there"),
        Binding("escape,q,I", "dismiss", "close"),
    ]

    def __init__(self, reaching: Reaching, token: str, ask: Callable[[Reach], Awaitable[None]]) -> None:
        """About a `token` of an answer; `ask` sends a question to the engine."""
        super().__init__()
        self.reaching, self._token, self._ask = reaching, token, ask

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "How large a reward would move this token?"
            panel.border_subtitle = keyed("`↑ ↓` or drag · `enter` measure there · `esc` close")
            yield SteadyStatic(id="head")
            yield ReachPlot(self.reaching)
            yield SteadyStatic(id="said")

    async def on_mount(self) -> None:
        await self._ask(self.reaching.first())
        self.begin()

    def version(self) -> object:
        """The engine's answers and the target."""
        return self.reaching.version

    def follow(self) -> None:
        """Show what is known."""
        self.query_one("#head", SteadyStatic).say(keyed(self._head()))
        self.query_one(ReachPlot).refresh()
        self.query_one("#said", SteadyStatic).say(keyed(self._said()))

    @on(ReachPlot.Dragged)
    def _dragged(self, event: ReachPlot.Dragged) -> None:
        self.reaching.drag(event.target)
        self.look(at_once=True)

    def action_move(self, steps: int) -> None:
        """Move the target; it begins where the update took the token."""
        here = self.reaching.target if self.reaching.target is not None else self.reaching.as_trained
        if here is not None:
            self.reaching.drag(here + steps * _STEP)
            self.look(at_once=True)

    async def action_measure(self) -> None:
        """Take the update with the reward that the target needs."""
        question = self.reaching.check()
        if question is not None:
            await self._ask(question)
            self.look(at_once=True)

    def _head(self) -> str:
        known, name = self.reaching, literal(quoted(self._token))
        if known.old is None:
            return f"{name}: taking the update once more for each reward …"
        after = "" if known.as_trained is None else f", and the update took it to {_share(known.as_trained)}"
        return f"{name} was sampled with {_share(known.old)}; its answer earned {_reward(known.reward)}{after}."

    def _said(self) -> str:
        known = self.reaching
        if known.refused:
            return literal(known.refused[:1].upper() + known.refused[1:] + ".")
        if known.asked:
            return f"Measuring rewards: {len(known.asked)} to go. Each repeats the update from stage ③ on."
        if known.target is None:
            hint = "All other answers keep their rewards. Drag a line to the probability you want, or press `↑`."
            return f"{_conclusion(known)}● measured · ◆ as it was. {hint}"
        return self._answer(known, known.target)

    def _answer(self, known: Reaching, target: float) -> str:
        needed, ends = known.needed(), known.ends
        if needed is None and ends is not None:
            return (
                f"No reward from {_reward(min(known.points))} to {_reward(max(known.points))} moves it to "
                f"{_share(target)}: this update reaches {_share(ends[0])} to {_share(ends[1])}."
            )
        if needed is None:
            return ""
        found = known.measured(needed)
        instead = f"A reward of {_reward(round(needed, 2))} instead of {_reward(known.reward)}"
        if found is None:
            return f"{instead} would move it to {_share(target)}, by the line between two points. `enter` measures it."
        return f"{instead} moves it to {_share(found)}: measured."


def _conclusion(known: Reaching) -> str:
    """What the points say where they are nearly equal."""
    ends = known.ends
    if ends is None or len(known.points) < 3 or ends[1] - ends[0] >= _SLIGHT:
        return ""
    rewards = f"from {_reward(min(known.points))} to {_reward(max(known.points))}"
    return f"No reward {rewards} moves it by {_SLIGHT}: this answer is one of many, and the others decide. "


def _share(probability: float) -> str:
    return f"{probability:.3f}".replace("0.", ".", 1)


def _reward(reward: float) -> str:
    return real_minus(compact(reward))
