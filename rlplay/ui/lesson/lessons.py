"""The lessons: what each bundled scenario shows, how far the user played it and answered, and a key to play it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from rlplay import user_preferences
from rlplay.scenario.course import chapters, following, order
from rlplay.scenario.lesson import questions, whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import Ask
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.parts.confirm import ConfirmScreen
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.panel_messages import Perform
from rlplay.user_preferences import LessonProgress

RIGHT, WRONG = ("✓ ", "$success"), ("✗ ", "$error")


class LessonsScreen(Dialogue[str | None]):
    """Its result is the name of the scenario to play, or None."""

    DEFAULT_CSS = """
    LessonsScreen > Vertical { width: 108; height: 90%; padding: 1 1 0 1; }
    LessonsScreen OptionList {
        width: 44; height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size-vertical: 1;
        &, &:focus { background: $background; padding: 0; border: none; background-tint: $background 0%; }
        & > .option-list--option-highlighted, &:focus > .option-list--option-highlighted {
            background: $accent 30%; color: $foreground; text-style: none;
        }
        &:ansi > .option-list--option-highlighted { background: ansi_bright_black; color: ansi_white; }
    }
    LessonsScreen.-narrow OptionList { width: 28; }
    LessonsScreen.-narrow > Vertical { height: 100%; max-height: 26; }
    LessonsScreen VerticalScroll { width: 1fr; height: 1fr; padding: 0 1 0 2; scrollbar-size-vertical: 1; }
    LessonsScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "glossary", "glossary", id="glossary"),
        Binding("y", "share", "copy", id="copy"),
        Binding("delete,backspace", "reset", "forget this lesson's answers"),
        Binding("R", "reset_all", "forget all lessons' answers"),
        Binding("pageup", "scroll(-1)", "scroll the text up", priority=True),
        Binding("pagedown", "scroll(1)", "scroll the text down", priority=True),
        Binding("escape,l,q", "dismiss", "close"),
        *LIST_KEYS,
    ]

    def __init__(
        self,
        here: str,
        played: dict[str, LessonProgress],
        moves: bool,
        share: Callable[[], tuple[str, str]],
        restart: Callable[[], Awaitable[None]],
    ) -> None:
        """`here` is the scenario on the screen; `moves` says whether another can be opened in its place.

        `share` returns the share code of the lesson on the screen as it is now, and a remark. `restart` begins that
        lesson again.
        """
        super().__init__()
        self._here, self._played, self._moves, self._share, self._restart = here, played, moves, share, restart
        self._scenarios: dict[str, Scenario] = {}

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Lessons"
            panel.border_subtitle = keyed("`esc` close")
            with Horizontal():
                yield OptionList()
                with VerticalScroll(can_focus=False):
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
        self._show(self._first())

    def _show(self, name: str) -> None:
        """List the lessons with what was played of them, the cursor on the lesson `name`."""
        whole = sum(name in self._scenarios and played.whole for name, played in self._played.items())
        count = f" · {whole} of {len(self._scenarios)} played to the end"
        self.query_one(Vertical).border_title = Content.assemble("Lessons", (count, "$text-muted"))
        lessons = self.query_one(OptionList)
        lessons.set_options(self._options())
        lessons.highlighted = lessons.get_option_index(name)

    def _options(self) -> Iterator[Option]:
        """The lessons below the titles of their chapters, which cannot be chosen."""
        for number, chapter in enumerate(chapters()):
            here = [self._scenarios[name] for name in chapter.lessons if name in self._scenarios]
            if here:
                gap = "\n" if number else ""
                about = f" · {chapter.about}" if chapter.about else ""
                yield Option(Content.styled(f"{gap}{chapter.title}{about}", "$text-muted italic"), disabled=True)
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
        self.query_one(VerticalScroll).scroll_home(animate=False)
        elsewhere = "play" if self._moves else "copy its command"
        enter = "continue" if scenario.name == self._here else elsewhere
        share = "`y` share · " if self._here else ""
        reset = "`del` `R` reset · " if self._played else ""
        keys = f"`↑ ↓` lesson · `enter` {enter} · {share}`d` glossary · {reset}`esc` close"
        self.query_one(Vertical).border_subtitle = keyed(keys)

    def _summary(self, scenario: Scenario) -> Content:
        played = self._played.get(scenario.name)
        predictions, quiz = questions(scenario)
        acts = sum(not {"you", "exercise", "write"}.isdisjoint(step) for step in scenario.script)
        asks = f" · {len(predictions)} to predict" if predictions else ""
        asks += f" · {acts} to do" if acts else ""
        asks += f" · {len(quiz)} in the quiz" if quiz else ""
        lines = [
            Content.styled(scenario.title, "bold $foreground"),
            Content(scenario.question),
            Content(""),
            Content(scenario.summary.strip()),
            Content(""),
            Content.styled(f"{len(whole_script(scenario))} steps{asks} · {progress(played)}", "$text-muted"),
        ]
        if played is not None:
            lines += [*answered("Predictions", predictions, played), *answered("Quiz", quiz, played)]
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

    def action_share(self) -> None:
        """Copy the share code of the lesson on the screen as it is now."""
        if not self._here:
            return
        code, remark = self._share()
        self.app.copy_to_clipboard(code)
        done = f"Copied. To open the lesson at this step: rlplay {code[:12]}…"
        self.notify(" ".join(filter(None, (done if code else "", remark))), markup=False)

    def action_scroll(self, step: int) -> None:
        """Scroll a long summary."""
        text = self.query_one(VerticalScroll)
        text.scroll_relative(y=step * max(text.size.height - 1, 1), animate=False)

    def action_reset(self) -> None:
        """Forget what was played of the lesson under the cursor, after a question."""
        option = self.query_one(OptionList).highlighted_option
        if option is not None and option.id in self._played:
            self._ask_to_forget([option.id], f"“{self._scenarios[option.id].title}”")

    def action_reset_all(self) -> None:
        """Forget what was played of every lesson, after a question."""
        if self._played:
            self._ask_to_forget(list(self._played), "all lessons")

    def _ask_to_forget(self, names: list[str], what: str) -> None:
        def answer(yes: bool | None) -> None:
            if yes:
                self._forget(names)

        restarts = " The lesson on the screen begins again." if self._here in names else ""
        question = f"Forget the progress and the answers of {what}?{restarts} Recorded runs stay."
        self.app.push_screen(ConfirmScreen("Reset", question, "reset"), answer)

    def _forget(self, names: list[str]) -> None:
        try:
            user_preferences.forget_lessons(names)
        except OSError as error:
            self.notify(f"Cannot write {error.filename}: {error.strerror}", severity="error", markup=False)
            return
        if self._here in names:
            self.app.call_later(self._restart)
        self._played = {name: played for name, played in self._played.items() if name not in names}
        here = self.query_one(OptionList).highlighted_option
        self._show(self._here if here is None or here.id is None else here.id)


def progress(played: LessonProgress | None) -> str:
    """How far it was played, in words."""
    if played is None:
        return "not played yet"
    return "played to the end" if played.whole else f"played to step {played.steps}"


def answered(title: str, asked: list[Ask], played: LessonProgress) -> list[Content]:
    """The score, then each question with a mark: right, wrong, open. Nothing before the first answer."""
    if not any(ask.question in played.answers for ask in asked):
        return []
    right = sum(played.answers.get(ask.question) == ask.choices[ask.answer] for ask in asked)
    return [Content.styled(f"{title}: {right} of {len(asked)} right", "bold"), *(_marked(ask, played) for ask in asked)]


def _marked(ask: Ask, played: LessonProgress) -> Content:
    choice = played.answers.get(ask.question)
    mark = ("○ ", "$text-muted") if choice is None else RIGHT if choice == ask.choices[ask.answer] else WRONG
    return Content.assemble(mark, keyed(ask.question))
