"""The probe: for any prompt and prefix of an answer, the next-token distribution, continuations and the value."""

from __future__ import annotations

from typing import ClassVar

import yaml
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import AnyProbe, Estimate, Recall
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import WARN, keyed
from rlplay.ui.format.shown_text import literal
from rlplay.ui.format.step_word import worded
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.parts.text_field import TextField
from rlplay.ui.probe.columns import read_columns
from rlplay.ui.probe.probe_panels import ProbeBars, ProbeCourse, ProbeTails, ProbeText, described
from rlplay.ui.session.session import Session

KEYS = (
    "`← →` place · `↑ ↓` candidate · `enter` force · `D` greedy · `N` samples · `V` value · `H` over training · "
    "`Y` why · `@` writer · `tab` prompt · `=` columns · `M` plain · `?` help · `esc` close"
)
FEW_KEYS = "`← → ↑ ↓` · `enter` force · `N` sample · `V` value · `H` training · `tab` · `esc` close"
PROMPT = "Your own prompt (tab, then enter)"
COLUMNS = "columns for the reward, for example answer: 4"
TYPING = "typing {} · `enter` ask · `esc` back to the tokens"
STRAY = "`N`, `V`, `H`, `D` and `M` are commands here; press `tab` to type."
REPLAYED = "Recordings hold no model. `rlplay resume NAME` starts one."
ENDED = "The engine has ended: `esc`, then `r` to resume."
ASKED = "Waiting for the engine …"


class ProbeScreen(Following[None]):
    """Asks the engine about the prefix in `session.probing`, also while the run continues."""

    HELP = """\
# Probe

A prompt, an answer to it, and a **place** in the answer: `← →` move it. `tab` switches between the line for your own
prompt, where you type, and the tokens, where letters are shortcuts.

The bars show the next-token distributions at that place, under the frozen **reference** and under the current
**policy**, at the run's temperature. They are updated after every update of the run.

`enter` **forces** the chosen candidate: it goes to that place, and the model writes a new continuation. `D` continues
greedily, always with the likeliest token. `N` samples six continuations, new ones each time. `@` switches the
writer, the policy or the reference; both get the same random numbers.

**Value** (`V`): the mean reward of up to 256 answers sampled from here, with a 95 % interval. It is Wilson's score
interval if all rewards are 0 or 1, else Student's t; equal rewards that are neither 0 nor 1 have none. The number of
samples grows until you press `V` again or ask something else; the result so far stays. Answers are cut at the run's
maximum length.

**Over training** (`H`): the candidates' probabilities at this place after each update whose weights are kept, at the
current temperature. A fuller cell means a likelier token. Blue: likelier than at the first of these updates; orange:
less likely. The chart grows with the run.

A prompt of the run has its columns, such as the right answer. To get rewards for your own prompt, enter its columns:
press `=`, then type for example `answer: 4`.

`Y` asks who taught it that: which answers moved the chosen candidate's probability in the newest update.

The probe records nothing and does not change the run: neither its weights nor its random numbers.
"""
    DEFAULT_CSS = """
    ProbeScreen > Vertical { width: 100%; height: 100%; }
    ProbeScreen Static { height: auto; min-height: 1; max-height: 2; padding: 0 1; }
    ProbeScreen #above { height: 21; }
    ProbeScreen ProbeText { width: 1fr; height: 1fr; }
    ProbeScreen ProbeBars { width: 68; height: 1fr; }
    ProbeScreen #below { height: 1fr; }
    ProbeScreen ProbeTails { width: 1fr; height: 1fr; }
    ProbeScreen ProbeCourse { width: 1fr; height: 1fr; display: none; }
    ProbeScreen.-wide, ProbeScreen.-huge {
        ProbeBars { width: 1fr; }
        ProbeCourse { display: block; }
        #above { height: 18; }
    }
    ProbeScreen.-tall > Vertical { max-height: 48; }
    ProbeScreen.-medium ProbeBars { width: 56; }
    ProbeScreen.-medium #above { height: 18; }
    ProbeScreen.-narrow ProbeBars { width: 44; }
    ProbeScreen.-narrow #above { height: 13; }
    ProbeScreen.-narrow.-captioned #above { height: 8; }
    ProbeScreen Input {
        &, &:focus { height: 1; border: none; padding: 0 1; background: $surface; }
        &#columns { display: none; }
        &#columns.-typing { display: block; }
    }
    """
    AUTO_FOCUS = "ProbeText"
    SECONDS = 0.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "one token back"),
        Binding("right", "move(1)", "one token on"),
        Binding("home", "move(-100000)", "start of the answer"),
        Binding("end", "move(100000)", "end of the answer"),
        Binding("up", "choose(-1)", "candidate above"),
        Binding("down", "choose(1)", "candidate below"),
        Binding("enter", "force", "force the candidate and continue from it"),
        Binding("D", "greedy", "continue with the likeliest tokens"),
        Binding("N", "samples", "sample six continuations"),
        Binding("V", "value", "estimate the value, or stop"),
        Binding("H", "course", "candidates' probabilities over training"),
        Binding("at", "writer", "switch the writer: policy or reference"),
        Binding("equals_sign", "columns", "columns for the reward, for example answer: 4"),
        Binding("M", "plain", "plain text or chat template"),
        Binding("Y", "teachers", "why"),
        Binding("pageup", "scroll(-1)", "samples up"),
        Binding("pagedown", "scroll(1)", "samples down"),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,q", "leave", "close"),
    ]

    def __init__(self, session: Session, then: str = "", force: str = "") -> None:
        """`then` is the first question to ask: "samples", "value", "greedy" or "course".

        `force` is the text of the candidate to force at the place, once the candidates are known.
        """
        super().__init__()
        self.session = session
        self.probing = session.probing
        self._then, self._force = then, force
        self._stray = False  # whether the user pressed a letter that is not a shortcut
        self._update: int | None = None

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Probe"
            yield Static()
            yield TextField(placeholder=PROMPT, id="prompt")
            yield TextField(placeholder=COLUMNS, id="columns")
            with Horizontal(id="above"):
                yield ProbeText(self.probing)
                yield ProbeBars(self.probing)
            with Horizontal(id="below"):
                yield ProbeTails(self.probing)
                yield ProbeCourse(self.probing)

    async def on_mount(self) -> None:
        self._label()
        self.query_one(ProbeTails).border_title = "Continuations"
        self.query_one(ProbeCourse).border_title = "Over training"
        await self._ask(self.probing.peek() if not self.probing.vacant else None)
        if self._then:
            await self.run_action(self._then)
        if self.probing.vacant and self.live:
            self.action_type()
        self.begin()

    def on_resize(self) -> None:
        """Show as many keys as fit."""
        self._label()

    def _label(self) -> None:
        keys = KEYS if self.size.width > len(KEYS.replace("`", "")) + 6 else FEW_KEYS
        typing = isinstance(self.focused, Input)
        what = "columns" if self.focused is not None and self.focused.id == "columns" else "a prompt"
        self.query_one(Vertical).border_subtitle = keyed(
            worded(TYPING.format(what), self.session.step_word) if typing else keys
        )
        hint = " · `tab` back" if typing else " · `tab` type a prompt"
        self.query_one(ProbeText).border_title = keyed(f"Text{hint * self.live}")

    @property
    def live(self) -> bool:
        """Whether there is an engine to ask."""
        return self.session.has_engine and self.session.failed is None

    async def _ask(self, *questions: AnyProbe | EndProbe | None) -> None:
        for question in questions:
            if question is not None and self.live:
                await self.session.source.send(question)

    # Drawing

    def version(self) -> object:
        """The update, what is asked and answered, and why there is no answer."""
        status = self.session.status
        return None if status is None else status.update, self.probing.version, self._words()

    def follow(self) -> None:
        """Ask again after each update, and draw the changes."""
        status = self.session.status
        if status is not None and status.update != self._update:
            again = self._update is not None and self.probing.asked is None and not self.probing.vacant
            self._update = status.update
            peek = self.probing.peek() if again else None
            self.call_later(self._ask, peek, self.probing.recall_on(status.update))
        if self._force and self.probing.pick(self._force):
            self._force = ""
            self.call_later(self.action_force)
        self._stray = False
        self._draw()

    def _draw(self) -> None:
        probing = self.probing
        text, bars, tails = self.query_one(ProbeText), self.query_one(ProbeBars), self.query_one(ProbeTails)
        course = self.query_one(ProbeCourse)
        word = self.session.step_word
        bars.speak(word)
        bars.words = worded(self._words(), word)
        text.show()
        text.follow()
        bars.show()
        bars.reveal_choice()
        tails.has_course = not course.display
        if not self.live or probing.vacant:
            tails.words = "Samples and values appear here."
            course.words = "The candidates over training appear here."
        else:
            tails.words = (
                "Sampling …"
                if probing.asked is not None
                else ProbeTails.EMPTY
                if tails.has_course
                else ProbeTails.BESIDE
            )
            course.words = "Recalling …" if isinstance(probing.asked, Recall) else ProbeCourse.EMPTY
        tails.show()
        course.show()
        bars.caption(
            Content.assemble(worded("Next token", word), ("" if probing.fresh else " …", "$text-muted")), Content("")
        )
        tails.caption(
            Content.assemble(
                "Continuations",
                (f" · by the {probing.writer}", "$text-muted"),
                (self._busy(), "bold $foreground"),
            ),
            Content(""),
        )
        self.query_one("#prompt").display = self.live
        self.query_one(Static).update(keyed(f"▲ {STRAY}", WARN) if self._stray else described(probing))

    def _words(self) -> str:
        """Why there are no bars."""
        loading = self.session.loading
        if not self.session.has_engine:
            return REPLAYED
        if self.session.failed is not None:
            return ENDED
        if self.probing.vacant:
            return "The next-token distributions appear here once there is a prompt."
        if loading is not None:
            return f"The engine is still starting: {visible(loading.what)}."
        return literal(self.probing.refused) or ASKED

    def _busy(self) -> str:
        asked = self.probing.asked
        match asked:
            case None:
                return ""
            case Recall():
                return " · recalling"
            case Estimate():
                return " · sampling for the value, V stops"
        return " · sampling"

    # Keys

    async def action_move(self, step: int) -> None:
        """Go to another place in the answer."""
        await self._ask(self.probing.move(step))

    @on(ProbeText.Place)
    async def _pointed(self, event: ProbeText.Place) -> None:
        await self._ask(self.probing.go(event.place))

    def action_choose(self, step: int) -> None:
        """Choose another candidate."""
        self.probing.choose(step)

    async def action_force(self) -> None:
        """Put the candidate at the place."""
        if self.live:
            await self._ask(*self.probing.force())

    async def action_greedy(self) -> None:
        """Continue greedily."""
        if self._can_ask():
            await self._ask(self.probing.greedy())

    async def action_samples(self) -> None:
        """Sample several continuations."""
        if self._can_ask():
            await self._ask(self.probing.sample())

    async def action_value(self) -> None:
        """Start or stop estimating the value."""
        if self._can_ask():
            await self._ask(self.probing.estimate())

    async def action_course(self) -> None:
        """Show the candidates over training."""
        if self._can_ask():
            await self._ask(self.probing.recall())

    def _can_ask(self) -> bool:
        return self.live and not self.probing.vacant

    def action_writer(self) -> None:
        """Switch the writer."""
        self.probing.other_writer()

    async def action_plain(self) -> None:
        """Switch the chat template on or off."""
        if self._can_ask():
            await self._ask(self.probing.toggle_template())

    def action_teachers(self) -> None:
        """Ask who taught the model the chosen candidate."""
        if (subject := self.probing.subject) is not None and self.live:
            self.post_message(Perform("teachers", subject))

    def action_scroll(self, pages: int) -> None:
        """Scroll the continuations."""
        tails = self.query_one(ProbeTails)
        tails.scroll_relative(y=pages * max(tails.scrollable_content_region.height - 1, 1), animate=False)

    async def action_leave(self) -> None:
        """Stop typing, or go back to the main screen."""
        if isinstance(self.focused, Input):
            self.query_one(ProbeText).focus()
            return
        await self._ask(EndProbe() if self.probing.asked is not None else None)
        self.dismiss(None)

    # Typing

    def on_key(self, event: events.Key) -> None:
        """A letter that is not a shortcut was probably meant as text: say how to type."""
        letter = event.character or ""
        typing = isinstance(self.focused, Input)
        if letter.isalpha() and not typing and self.live and event.key not in self.active_bindings:
            event.stop()
            self._stray = True
            self._draw()

    def action_type(self) -> None:
        """Type a prompt."""
        if self.live:
            self.query_one("#prompt").focus()

    def action_columns(self) -> None:
        """Type the columns that the reward needs."""
        if not self.live:
            return
        columns, entry = self.probing.columns, self.query_one("#columns", Input)
        entry.value = yaml.safe_dump(columns, default_flow_style=True, width=10**6).strip()[1:-1] if columns else ""
        entry.add_class("-typing")
        entry.focus()

    @on(events.DescendantFocus)
    def _moved(self) -> None:
        """Show whether letters are text or shortcuts; start the prompt line with the current prompt."""
        prompt, columns = self.query_one("#prompt", Input), self.query_one("#columns", Input)
        if prompt.has_focus and not prompt.value:
            prompt.value = self.probing.prompt
            prompt.select_all()
        columns.set_class(columns.has_focus, "-typing")
        self._stray = False
        self._label()
        self._draw()

    @on(Input.Submitted, "#prompt")
    async def _typed(self, event: Input.Submitted) -> None:
        await self._ask(self.probing.type(event.value) if event.value else None)
        self.query_one(ProbeText).focus()

    @on(Input.Submitted, "#columns")
    async def _given(self, event: Input.Submitted) -> None:
        columns = read_columns(event.value)
        if isinstance(columns, str):
            self.probing.refuse(columns)
            return
        await self._ask(self.probing.give(columns))
        self.query_one(ProbeText).focus()
