"""The text strip at the bottom: what just happened, a lesson's text, its questions and their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.signal import Signal
from textual.style import Style
from textual.widget import Widget

from rlplay.scenario.expect import ClaimResult
from rlplay.trace.text import visible
from rlplay.ui.format.folded import wrapped
from rlplay.ui.format.keyed import BAD, GOOD, KEY, QUIET, STRONG, WARN, keyed
from rlplay.ui.parts.panel_messages import Answered
from rlplay.ui.words.narration import Narration

_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")


@dataclass(frozen=True)
class Spot:
    """What the screen shows: the update, its progress, and the completion and token under the cursor."""

    update: int = 0
    progress: tuple[int, ...] = ()
    cursor: tuple[int, int] = (0, 0)


_ANYWHERE = Spot()


class Narrator(Widget):
    """Shows one text at a time. A lesson's text stays until the script continues, whatever the engine does."""

    HELP = """\
# Narrator

What just happened, with the recorded numbers, and what you can do next.

In a lesson it shows the lesson's text: `t` plays the next step, or shows the rest of a text that does not fit. When the
lesson asks a question, predict first: press a choice's number or click the choice. The answer appears once the run
shows it. If you moved the run or changed a setting meanwhile, `t` says so and goes back to where the lesson was.
"""
    DEFAULT_CSS = """
    Narrator { height: auto; min-height: 3; max-height: 9; padding: 0 1; border-left: outer $border;
        &.-lesson { border-left: outer $foreground; }
        &.-warning { border-left: outer $warning; }
        link-style: none; link-color: $foreground; link-background: $surface;
        link-style-hover: none; link-color-hover: $background; link-background-hover: $accent;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(number), f"choose({number - 1})", "predict", show=False, id=f"narrator.choose_{number}")
        for number in range(1, 10)
    ]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text = Content("")
        self.words = Content("")  # the lesson's text without its hint
        self.said: Signal[Content] = Signal(self, "said")  # the lesson has another text
        self._below = Content("")  # the hint: how the lesson continues
        self._remark: tuple[str, Spot] | None = None  # a remark, and what the screen showed then
        self._spot = Spot()
        self._top = 0  # the first visible line
        self._narration: Narration | None = None
        self._choices: Sequence[str] = ()
        self._wanted = "prediction"  # what the choice is
        self._before_asking: Widget | None = None

    @property
    def asking(self) -> bool:
        """Whether a question is waiting for an answer."""
        return bool(self._choices)

    @property
    def teaching(self) -> bool:
        """Whether a lesson's text is shown instead of the narration."""
        return self.has_class("-lesson")

    def narrate(self, narration: Narration, spot: Spot = _ANYWHERE) -> None:
        """Take the narration and the `spot` on the screen; shown after the lesson, if one is running."""
        again = (narration, spot) == (self._narration, self._spot)
        urgent = narration.urgent or (self._narration is not None and self._narration.urgent)
        self._narration, self._spot = narration, spot
        if self._remark is not None and self._remark[1].cursor != spot.cursor:
            self._remark = None
        if not again and (self._remark is not None or urgent or not self.teaching):
            self._show()

    def remark(self, words: str, spot: Spot = _ANYWHERE) -> None:
        """Show a remark about the `spot` on the screen, until the cursor leaves it or `forget` is called.

        The remark comes first, because the end may be cut. Once the update has progressed, it names its update.
        """
        self._remark, self._spot = (words, spot), spot
        self._show()

    def forget(self) -> None:
        """Remove the remark."""
        if self._remark is not None:
            self._remark = None
            self._show()

    def say(self, text: str, outcomes: Sequence[ClaimResult] = (), hint: str = "`t` next") -> None:
        """Show a scenario's text, with the outcomes of its claims below."""
        self._stop_asking()
        results = [_outcome(outcome) for outcome in outcomes]
        body = [_judged(text)] if text else []
        self._teach([*body, *results], keyed(hint, QUIET))

    def ask(self, question: str, choices: Sequence[str], wanted: str = "prediction") -> None:
        """Ask a question; posts `Answered` when the user presses a number or clicks a choice.

        `wanted` is "answer" where nothing is predicted, as in a quiz.
        """
        self._choices, self._wanted = tuple(choices), wanted
        self.can_focus = True
        self._before_asking = self.screen.focused
        self.focus()
        shown = [
            Content.styled(
                f" {number} {visible(choice)} ", Style.from_meta({"@click": f"choose({number - 1})"})
            ).stylize(KEY, 0, 3)
            for number, choice in enumerate(choices, start=1)
        ]
        hint = keyed(f"Your {wanted}? Press `1`-`{len(choices)}`", QUIET)
        self._teach([keyed(question, STRONG), Content("  ").join(shown)], hint)

    def insist(self) -> None:
        """Remind the user, at the top, to answer the question first."""
        numbers = [f"`{number}`" for number in range(1, len(self._choices) + 1)]
        asked = ": what do you expect?" if self._wanted == "prediction" else "."
        reminder = keyed(f"▲ Press {', '.join(numbers[:-1])} or {numbers[-1]} first{asked}", f"bold {WARN}")
        self._top = 0
        self._set(Content("\n").join([reminder, self.words]), "-lesson")

    def under_way(self, update: int, target: int) -> None:
        """Show the engine's progress towards the update at which the lesson continues."""
        if self.teaching:
            self._below = keyed(f"running: update {update} of {target} · the lesson then continues by itself", QUIET)
            self._show()

    def more(self) -> bool:
        """Show the next lines of a lesson's text that does not fit; False if it fits."""
        room = self.content_size.height
        if not self.teaching or len(self._lines()) - self._top <= room:
            return False
        self._top += room - 1
        self.refresh()
        return True

    def release(self) -> None:
        """End the lesson: show the narration again."""
        self._stop_asking()
        self.remove_class("-lesson")
        self._show()

    def action_choose(self, choice: int) -> None:
        """Take the prediction `choice`, from 0."""
        if 0 <= choice < len(self._choices):
            said = self._choices[choice]
            self._stop_asking()
            hint = "now watch" if self._wanted == "prediction" else ""
            self._teach([Content.assemble(f"Your {self._wanted}: ", (visible(said), STRONG))], keyed(hint, QUIET))
            self.post_message(Answered(choice))

    def key_choice(self, key: str) -> bool:
        """Handle a key press for the app when the strip has no focus; True if the key answered the question."""
        if not (self.asking and key.isdigit() and 1 <= int(key) <= len(self._choices)):
            return False
        self.action_choose(int(key) - 1)
        return True

    def render(self) -> Content:
        lines, room = self._lines(), self.content_size.height
        if not 0 < room < len(lines):
            return Content("\n").join(lines)
        if not self.teaching:
            return self._shortened(room)
        rest = len(lines) - self._top - (room - 1)
        if rest <= 1:
            return Content("\n").join(lines[-room:])
        more = keyed(f"`t` next {rest} lines", WARN)
        return Content("\n").join([*lines[self._top : self._top + room - 1], more])

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        """The height of the whole text, whichever part is visible."""
        return len(wrapped(self._text, width))

    def _lines(self) -> list[Content]:
        return wrapped(self._text, max(self.content_size.width, 1))

    def _teach(self, words: Sequence[Content], hint: Content) -> None:
        self.words, self._below, self._top = Content("\n").join(words), hint, 0
        self.said.publish(self.words)
        self._remark = None
        self._set(Content("\n").join([self.words, hint]), "-lesson")

    def _stop_asking(self) -> None:
        self._choices = ()
        if self._before_asking is not None and self.has_focus:
            self._before_asking.focus()
        self._before_asking = None
        self.can_focus = False

    def _show(self) -> None:
        """Show the lesson's text or the narration, with the remark."""
        narration, remark = self._narration, self._remarked()
        if self.teaching:
            trouble = [] if narration is None or not narration.urgent else [_troubled(narration)]
            self._set(Content("\n").join([*trouble, self.words, *remark, self._below]), "-lesson")
        elif narration is not None:
            self._set(self._narrated(narration), "-warning" if narration.warning else "")

    def _narrated(self, narration: Narration) -> Content:
        """The remark, what happened, what looks wrong and what to press, without empty parts."""
        parts = [
            keyed(narration.happened),
            _troubled(narration),
            keyed(narration.next, QUIET),
        ]
        there = (narration.happened, narration.warning, narration.next)
        return Content("\n").join([*self._remarked(), *(part for part, text in zip(parts, there, strict=True) if text)])

    def _shortened(self, room: int) -> Content:
        """The narration without its last sentences, cut at the end of a sentence; the warning stays."""
        narration, width = self._narration, max(self.content_size.width, 1)
        if narration is None:
            return self._text
        sentences = _SENTENCES.split(narration.happened)
        for count in range(len(sentences), -1, -1):
            for hint in (narration.next, ""):
                shorter = self._narrated(replace(narration, happened=" ".join(sentences[:count]), next=hint))
                if len(wrapped(shorter, width)) <= room:
                    return shorter
        return self._most_of(narration.warning, room) or self._text

    def _most_of(self, warning: str, room: int) -> Content | None:
        """A warning without as many of the sentences before its last one, which says where there is more, as needed."""
        *sentences, last = _SENTENCES.split(warning)
        for count in range(len(sentences), 0, -1):
            shorter = self._narrated(Narration("", "", " ".join([*sentences[:count], last])))
            if len(wrapped(shorter, max(self.content_size.width, 1))) <= room:
                return shorter
        return None

    def _remarked(self) -> list[Content]:
        """The remark; preceded by its update if the screen now shows another state."""
        if self._remark is None:
            return []
        words, then = self._remark
        when = f"update {then.update}" if then.update != self._spot.update else "earlier in this update"
        stale = (then.update, then.progress) != (self._spot.update, self._spot.progress)
        return [Content.assemble((f"{when}: " if stale else "", QUIET), keyed(words, STRONG))]

    def _set(self, text: Content, state: str) -> None:
        for name in ("-lesson", "-warning"):
            self.set_class(name == state, name)
        height = self.styles.height
        may_grow = height is None or height.is_auto
        changed = text.plain != self._text.plain
        self._text = text
        self.refresh(layout=may_grow and changed)


def _troubled(narration: Narration) -> Content:
    return Content.assemble(("▲ ", WARN), keyed(narration.warning))


def _judged(text: str) -> Content:
    """Colour the ✓ or ✗ with which the verdict on a prediction begins."""
    mark = {"✓": GOOD, "✗": BAD}.get(text[0])
    return keyed(text) if mark is None else Content.assemble((text[0], mark), keyed(text[1:]))


def _outcome(outcome: ClaimResult) -> Content:
    mark, style = {True: ("✓", GOOD), False: ("✗", BAD), None: ("–", QUIET)}[outcome.passed]
    return Content.assemble((f"{mark} ", style), visible(outcome.finding))
