"""The strip at the bottom that talks: what just happened, what a scenario says, questions and their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.style import Style
from textual.widget import Widget

from rlplay.scenario.expect import Outcome
from rlplay.trace.text import visible, visible_lines
from rlplay.ui.format.text import TICK
from rlplay.ui.messages import Answered
from rlplay.ui.words.narration import Narration

KEY, QUIET, STRONG, GOOD, BAD, WARN = "$accent", "$text-muted", "bold $foreground", "$success", "$error", "$warning"
_KEY = re.compile(r"`([^`]+)`")
_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")


@dataclass(frozen=True)
class Spot:
    """What is looked at: the update, how far it had come, and the completion and token under the cursor."""

    update: int = 0
    progress: tuple[int, ...] = ()
    cursor: tuple[int, int] = (0, 0)


_ANYWHERE = Spot()


class Narrator(Widget):
    """Shows one thing at a time; a scenario's words stay until the script goes on, whatever the engine does."""

    HELP = """\
# Narrator

What just happened, with the numbers that were recorded, and what you can do next.

In a lesson it is the teacher: `t` plays the next step, and shows the rest where not all of it fits. When it asks,
predict first: press a choice's number or click it. The answer follows once it can be seen. If you have taken the run
elsewhere meanwhile, `t` says so and goes back to where the lesson was.
"""
    DEFAULT_CSS = """
    Narrator { height: auto; min-height: 3; max-height: 9; padding: 0 1; border-left: outer $border;
        &.-lesson { border-left: outer $accent; }
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
        self._words = Content("")  # those of the lesson, without the line that says how it goes on
        self._below = Content("")  # that line
        self._remark: tuple[str, Spot] | None = None  # what was said of what is looked at
        self._spot = Spot()
        self._top = 0  # the first of its lines that is shown
        self._narration: Narration | None = None
        self._choices: Sequence[str] = ()
        self._before_asking: Widget | None = None

    @property
    def asking(self) -> bool:
        """Whether a question waits for an answer."""
        return bool(self._choices)

    @property
    def teaching(self) -> bool:
        """Whether a scenario's words are shown rather than what the engine does."""
        return self.has_class("-lesson")

    def narrate(self, narration: Narration, spot: Spot = _ANYWHERE) -> None:
        """What the engine did, and the `spot` looked at; kept back while a lesson speaks."""
        again = (narration, spot) == (self._narration, self._spot)
        self._narration, self._spot = narration, spot
        if self._remark is not None and self._remark[1].cursor != spot.cursor:
            self._remark = None
        if not again and (self._remark is not None or not self.teaching):
            self._show()

    def remark(self, words: str, spot: Spot = _ANYWHERE) -> None:
        """Say something of the `spot` looked at, until the cursor leaves it or `forget`.

        It stands first, for what comes last may be cut; once the update has gone on, with the update it was said of.
        """
        self._remark, self._spot = (words, spot), spot
        self._show()

    def forget(self) -> None:
        """Leave out what was remarked."""
        if self._remark is not None:
            self._remark = None
            self._show()

    def say(self, text: str, outcomes: Sequence[Outcome] = (), hint: str = "`t` next") -> None:
        """A scenario's words, and below them how its claims fared."""
        self._stop_asking()
        results = [_outcome(outcome) for outcome in outcomes]
        body = [_judged(text)] if text else []
        self._teach([*body, *results], keyed(hint, QUIET))

    def ask(self, question: str, choices: Sequence[str]) -> None:
        """Put a question; `Answered` is posted when a number is pressed or a choice clicked."""
        self._choices = tuple(choices)
        self.can_focus = True
        self._before_asking = self.screen.focused
        self.focus()
        shown = [
            Content.styled(
                f" {number} {visible(choice)} ", Style.from_meta({"@click": f"choose({number - 1})"})
            ).stylize(KEY, 0, 3)
            for number, choice in enumerate(choices, start=1)
        ]
        hint = keyed(f"Your prediction? Press `1`-`{len(choices)}`", QUIET)
        self._teach([keyed(question, STRONG), Content("  ").join(shown)], hint)

    def insist(self) -> None:
        """Say that the question wants its answer first, where it cannot be overlooked."""
        numbers = [f"`{number}`" for number in range(1, len(self._choices) + 1)]
        reminder = keyed(
            f"▲ Press {', '.join(numbers[:-1])} or {numbers[-1]} first: what do you expect?", f"bold {WARN}"
        )
        self._top = 0
        self._set(Content("\n").join([reminder, self._words]), "-lesson")

    def under_way(self, update: int, target: int) -> None:
        """How far the engine is on the way to where the lesson goes on."""
        if self.teaching:
            self._below = keyed(f"running: update {update} of {target} · the lesson then continues by itself", QUIET)
            self._show()

    def more(self) -> bool:
        """Turn to the lesson's next lines, where they did not all fit; False if they do."""
        room = self.content_size.height
        if not self.teaching or len(self._lines()) - self._top <= room:
            return False
        self._top += room - 1
        self.refresh()
        return True

    def release(self) -> None:
        """End the lesson: show what the engine does again."""
        self._stop_asking()
        self.remove_class("-lesson")
        self._show()

    def action_choose(self, choice: int) -> None:
        """Take the prediction `choice`, from 0."""
        if 0 <= choice < len(self._choices):
            said = self._choices[choice]
            self._stop_asking()
            self._teach([Content.assemble("Your prediction: ", (visible(said), STRONG))], keyed("now watch", QUIET))
            self.post_message(Answered(choice))

    def key_choice(self, key: str) -> bool:
        """Offer a key press; True if it answered the question. For the app, when the strip has no focus."""
        if not (self.asking and key.isdigit() and 1 <= int(key) <= len(self._choices)):
            return False
        self.action_choose(int(key) - 1)
        return True

    def render(self) -> Content:
        lines, room = self._lines(), self.content_size.height
        if not 0 < room < len(lines):
            return self._text
        if not self.teaching:
            return self._shortened(room)
        rest = len(lines) - self._top - (room - 1)
        if rest <= 1:
            return Content("\n").join(lines[-room:])
        more = keyed(f"`t` next {rest} lines", WARN)
        return Content("\n").join([*lines[self._top : self._top + room - 1], more])

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        """As high as all of it, whatever of it is shown."""
        return len(self._text.wrap(width))

    def _lines(self) -> list[Content]:
        return self._text.wrap(max(self.content_size.width, 1))

    def _teach(self, words: Sequence[Content], hint: Content) -> None:
        self._words, self._below, self._top = Content("\n").join(words), hint, 0
        self._remark = None
        self._set(Content("\n").join([self._words, hint]), "-lesson")

    def _stop_asking(self) -> None:
        self._choices = ()
        if self._before_asking is not None and self.has_focus:
            self._before_asking.focus()
        self._before_asking = None
        self.can_focus = False

    def _show(self) -> None:
        """A lesson's words or the narration, with what was remarked."""
        narration, remark = self._narration, self._remarked()
        if self.teaching:
            self._set(Content("\n").join([self._words, *remark, self._below]), "-lesson")
        elif narration is not None:
            self._set(self._narrated(narration), "-warning" if narration.warning else "")

    def _narrated(self, narration: Narration) -> Content:
        """What was remarked, what happened, what looks wrong, what to press; leaves out what is empty."""
        parts = [
            keyed(narration.happened),
            Content.assemble(("▲ ", WARN), keyed(narration.warning)),
            keyed(narration.next, QUIET),
        ]
        there = (narration.happened, narration.warning, narration.next)
        return Content("\n").join([*self._remarked(), *(part for part, text in zip(parts, there, strict=True) if text)])

    def _shortened(self, room: int) -> Content:
        """The narration without its last sentences, so that it ends where one does; the warning stays."""
        narration, width = self._narration, max(self.content_size.width, 1)
        if narration is None:
            return self._text
        sentences = _SENTENCES.split(narration.happened)
        for count in range(len(sentences), -1, -1):
            for hint in (narration.next, ""):
                shorter = self._narrated(replace(narration, happened=" ".join(sentences[:count]), next=hint))
                if len(shorter.wrap(width)) <= room:
                    return shorter
        return self._text

    def _remarked(self) -> list[Content]:
        """What was remarked, with the update that it was said of if that is not what is shown now."""
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


def keyed(text: str, style: str = "") -> Content:
    """Text whose parts between backticks are shown as keys. Nothing else in it is markup or obeyed."""
    parts = [visible_lines(part.replace(TICK, "`")) for part in _KEY.split(text)]
    return Content.assemble(*((part, KEY if index % 2 else style) for index, part in enumerate(parts) if part))


def _judged(text: str) -> Content:
    """A verdict on a prediction begins with ✓ or ✗."""
    mark = {"✓": GOOD, "✗": BAD}.get(text[0])
    return keyed(text) if mark is None else Content.assemble((text[0], mark), keyed(text[1:]))


def _outcome(outcome: Outcome) -> Content:
    mark, style = {True: ("✓", GOOD), False: ("✗", BAD), None: ("–", QUIET)}[outcome.passed]
    return Content.assemble((f"{mark} ", style), visible(outcome.finding))
