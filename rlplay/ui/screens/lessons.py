"""The lessons: what each bundled scenario shows, how far the user played it, and a key to play it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from rlplay.scenario.course import chapters, following, order
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Scenario
from rlplay.ui.messages import Perform
from rlplay.ui.widgets.narrator import keyed
from rlplay.user_preferences import LessonProgress


class LessonsScreen(ModalScreen[str | None]):
    """Its result is the name of the scenario to play, or None."""

    DEFAULT_CSS = """
    LessonsScreen { align: center middle; background: $background 70%; }
    LessonsScreen > Vertical {
        width: 108; max-width: 100%; height: 19; max-height: 100%; padding: 1 1 0 1;
        background: $background; border: round $accent; border-title-color: $accent; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    LessonsScreen OptionList {
        width: 44; height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size-vertical: 1;
        &, &:focus { background: $background; padding: 0; border: none; background-tint: $background 0%; }
        & > .option-list--option-highlighted, &:focus > .option-list--option-highlighted {
            background: $accent 30%; color: $foreground; text-style: none;
        }
        &:ansi > .option-list--option-highlighted { background: ansi_bright_black; color: ansi_white; }
    }
    LessonsScreen.-narrow OptionList { width: 28; }
    LessonsScreen Static { width: 1fr; height: 1fr; padding: 0 1 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "glossary", "glossary"),
        Binding("escape,l,q", "dismiss", "close"),
    ]

    def __init__(self, here: str, played: dict[str, LessonProgress], moves: bool) -> None:
        """`here` is the scenario on the screen; `moves` says whether another can be opened in its place."""
        super().__init__()
        self._here, self._played, self._moves = here, played, moves
        self._scenarios: dict[str, Scenario] = {}

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Lessons"
            panel.border_subtitle = keyed("`esc` close")
            with Horizontal():
                yield OptionList()
                yield Static("… reading the scenarios")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        """Load all lessons in a thread: checking them takes longer than a key may."""
        found = [scenario for scenario in map(load, order()) if scenario.script]
        self.app.call_from_thread(self._list, found)

    def _list(self, scenarios: list[Scenario]) -> None:
        self._scenarios = {scenario.name: scenario for scenario in scenarios}
        whole = sum(name in self._scenarios and played.whole for name, played in self._played.items())
        count = f" · {whole} of {len(scenarios)} played to the end"
        self.query_one(Vertical).border_title = Content.assemble("Lessons", (count, "$text-muted"))
        lessons = self.query_one(OptionList)
        lessons.set_options(self._options())
        lessons.highlighted = lessons.get_option_index(self._first())

    def _options(self) -> Iterator[Option]:
        """The lessons below the titles of their chapters, which cannot be chosen."""
        for number, chapter in enumerate(chapters()):
            here = [self._scenarios[name] for name in chapter.lessons if name in self._scenarios]
            if here:
                gap = "\n" if number else ""
                yield Option(Content.styled(f"{gap}{chapter.title}", "$text-muted italic"), disabled=True)
            for scenario in here:
                yield Option(self._line(scenario), id=scenario.name)

    def _first(self) -> str:
        """The lesson to begin with: the one on the screen, or the next one if it was played to its end."""
        played, after = self._played.get(self._here), following(self._here)
        if played is not None and played.whole and after in self._scenarios:
            return str(after)
        return self._here if self._here in self._scenarios else next(iter(self._scenarios))

    def _line(self, scenario: Scenario) -> Content:
        played = self._played.get(scenario.name)
        mark = "✓" if played is not None and played.whole else "◐" if played is not None else "○"
        return Content.assemble((f"{mark} ", "$success" if mark == "✓" else "$text-muted"), scenario.title)

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        scenario = self._scenarios[event.option_id or ""]
        self.query_one(Static).update(self._summary(scenario))
        elsewhere = "play" if self._moves else "copy its command"
        enter = "continue" if scenario.name == self._here else elsewhere
        self.query_one(Vertical).border_subtitle = keyed(f"`↑ ↓` lesson · `enter` {enter} · `d` glossary · `esc` close")

    def _summary(self, scenario: Scenario) -> Content:
        played = self._played.get(scenario.name)
        questions = sum("ask" in step for step in scenario.script) + len(scenario.quiz)
        acts = sum("you" in step or "exercise" in step for step in scenario.script)
        asks = f" · {questions} to predict" if questions else ""
        asks += f" · {acts} to do" if acts else ""
        lines = [
            Content.styled(scenario.title, "bold $accent"),
            Content(scenario.question),
            Content(""),
            Content(scenario.summary.strip()),
            Content(""),
            Content.styled(f"{len(whole_script(scenario))} steps{asks} · {progress(played)}", "$text-muted"),
        ]
        if scenario.name == self._here:
            lines.append(Content.styled("This lesson is on the screen.", "$text-muted"))
        elif self._moves:
            kept = "The run on the screen is saved; rlplay resume continues it."
            lines.append(Content.styled(kept, "$text-muted"))
        return Content("\n").join(lines)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_glossary(self) -> None:
        """Open the glossary."""
        self.post_message(Perform("glossary"))
        self.dismiss(None)


def progress(played: LessonProgress | None) -> str:
    """How far it was played, in words."""
    if played is None:
        return "not played yet"
    reached = "played to the end" if played.whole else f"played to step {played.steps}"
    return f"{reached}, {played.right} of {played.predicted} predicted right" if played.predicted else reached
