"""Which of two answers is better? Shows pair after pair, and the models' scores once the user has chosen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from rlplay.link.messages import Prefer
from rlplay.trace.records import Choice
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.legend import LOOKED_AT
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.labels.labelling import SIDES, Labelling
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.framed_text import FramedText
from rlplay.ui.session.session import Session

KEYS = "`←` A better · `→` B better · `0` skip · `z` undo · `U` skip the rest · `?` help · `esc` later"
FEW_KEYS = "`←` A · `→` B better · `0` skip · `z` undo · `U` skip all · `esc` later"
KEYS_CHOSEN = "`enter` submit · `z` undo · `?` help · `esc` later"
CHOOSE = (
    "Read both, then press `←` if A is better or `→` if B is, or click one. The next pair follows. Below you then see "
    "the model's scores for the previous pair."
)
NAME = 20
"""Cells for the name of a score."""
SAME = 5e-4
"""Scores that differ by less look equal on the screen."""


class LabelScreen(Following[None]):
    """Shows the waiting pairs until none is left or the user leaves; the engine keeps waiting."""

    HELP = """\
# Which is better?

With `labeller=user` you label the pairs of an update: the engine has two answers to each prompt and waits for you. `←`
picks A as the better answer, `→` picks B, `0` skips the pair; the next pair then follows. At the last pair, `enter`
submits your choice, and the engine continues. `U` skips all remaining pairs, and the update learns from the others.

The models' scores of a pair appear below only after your choice, so that they cannot influence you:

* **log-probability** of each answer under the policy, the sum over its tokens. A short answer often has a larger one.
* **implicit reward**: the quantity that the loss treats as a reward. In DPO it is β·log(π/πʳ), where π is the
  probability of the answer under the policy and πʳ under the reference. In DPO it is 0 for both answers until the
  policy has changed.
* a **reward model's** score instead, if the run trains a reward model.
* a **hidden** score, if the task has one, or a **reward**. The update does not train on either; they show how well your
  labels agree with them.

`z` takes a choice back, or returns to the previous pair. After the last pair, only undoing the update takes you back.
"""
    DEFAULT_CSS = """
    LabelScreen > Vertical { width: 100%; max-width: 112; height: 100%; max-height: 28; }
    LabelScreen #progress { height: 1; padding: 0 1; margin: 0 0 1 0; }
    LabelScreen #prompt { height: auto; min-height: 3; max-height: 6; }
    LabelScreen Horizontal { height: 1fr; }
    LabelScreen Horizontal FramedText { width: 1fr; height: 1fr; }
    LabelScreen #verdict {
        height: 8; padding: 0 1; border: round $border; border-title-color: $foreground; border-title-style: bold;
    }
    LabelScreen.-narrow {
        #progress { margin: 0; }
        #prompt { max-height: 4; }
    }
    """
    AUTO_FOCUS = ""
    SECONDS = 0.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,1", "choose('a')", "A is better"),
        Binding("right,2", "choose('b')", "B is better"),
        Binding("0", "choose('skip')", "skip this pair"),
        Binding("enter", "on", "submit the last label"),
        Binding("z,backspace", "back", "undo"),
        Binding("U", "enough", "skip the rest"),
        Binding("up", "scroll(-1)", "up", show=False),
        Binding("down", "scroll(1)", "down", show=False),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,q", "leave", "close"),
    ]

    def __init__(
        self, session: Session, labelling: Labelling, send: Callable[[Prefer], Awaitable[None]], letter: str = ""
    ) -> None:
        """For a session whose source gets the labels with `send`; in a comparison, `letter` is the run's letter."""
        super().__init__()
        run = f"Which is better? · run {letter}, {session.source.path.stem}"
        self._title = run if letter else "Which answer is better?"
        self.session, self.labelling, self._send = session, labelling, send
        self._drawn: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = Content(visible(self._title))
            yield Static(id="progress")
            yield FramedText(id="prompt")
            with Horizontal():
                yield FramedText(id="a")
                yield FramedText(id="b")
            yield Static(id="verdict")

    def on_mount(self) -> None:
        self.query_one("#prompt", FramedText).border_title = "Prompt"
        self.call_after_refresh(self.begin)

    def version(self) -> object:
        """Whatever has happened in the run, and the width."""
        return self.session.version, self.size.width

    def follow(self) -> None:
        """Take the engine's messages; close when no pair is left."""
        session, labelling = self.session, self.labelling
        if not session.asks or session.run.newest is not labelling.update:
            self._close()
            return
        labelling.take_asks(session.asks)
        if session.judged is not None:
            labelling.take_judged(session.judged)
        self._draw()

    # Drawing

    def _draw(self) -> None:
        labelling = self.labelling
        said = labelling.held, labelling.chosen, labelling.judged, labelling.refused
        now = labelling.pair, said, tuple(labelling.left), self.size.width
        if now == self._drawn or not self.is_current:
            return
        before, self._drawn = self._drawn, now
        if not before or before[0] != labelling.pair:
            self.query_one("#prompt", FramedText).show_prompt(labelling.sampled.prompts[labelling.pair])
            for side in SIDES:
                self._answer(side).show_completion(labelling.sampled, labelling.answer(side))
        for side in SIDES:
            self._mark(side)
        held = labelling.held is not None
        keys = KEYS if self.size.width > len(KEYS) else FEW_KEYS
        self.query_one(Vertical).border_subtitle = keyed(KEYS_CHOSEN if held else keys)
        line = self.query_one("#progress", Static)
        line.update(progress(labelling, line.content_size.width))
        verdict = self.query_one("#verdict", Static)
        verdict.border_title = "" if labelling.chosen is None else "What the model thinks"
        verdict.update(verdict_text(labelling))

    def _answer(self, side: str) -> FramedText:
        return self.query_one(f"#{side}", FramedText)

    def _mark(self, side: str) -> None:
        labelling, answer = self.labelling, self._answer(side)
        chosen = labelling.held == side
        answer.set_class(chosen, "-chosen")
        answer.set_class(labelling.held is not None and not chosen, "-other")
        row = labelling.answer("a" if side == "a" else "b")
        tokens = int(labelling.sampled.offsets[row + 1] - labelling.sampled.offsets[row])
        cut = ", cut" if labelling.sampled.truncated[row] else ""
        answer.caption(
            Content(f"{side.upper()} ✓ your choice" if chosen else side.upper()),
            Content.styled(f"{tokens} token{'s' * (tokens != 1)}{cut}", "$text-muted"),
        )

    # Keys

    async def action_choose(self, choice: Choice) -> None:
        """Choose, ask for the models' scores, and show the next pair if there is one."""
        question = self.labelling.choose(choice)
        if question is not None:
            await self.session.source.send(question)
            if self.labelling.left:
                await self.action_on()
        self._draw()

    @on(FramedText.Clicked)
    async def _clicked(self, event: FramedText.Clicked) -> None:
        if self.labelling.held is not None:
            await self.action_on()
        elif event.answer.id in SIDES:
            await self.action_choose(event.answer.id)

    async def action_on(self) -> None:
        """Submit the choice and show the next pair; close after the last one."""
        last = not self.labelling.left
        said = self.labelling.go_on()
        if said is not None:
            await self._say(said, over=last)

    async def action_enough(self) -> None:
        """Skip the remaining pairs: the update learns from the labelled ones."""
        said = self.labelling.enough()
        if said:
            await self._say(*said, over=True)
        self._draw()

    async def _say(self, *labels: Prefer, over: bool) -> None:
        for label in labels:
            await self._send(label)
        if over:
            self._close()
        else:
            self._draw()

    def _close(self) -> None:
        """Leave the dialogue, unless it has closed already or another screen covers it.

        `dismiss` pops the topmost screen, whichever it is: the timer must neither close a help screen nor pop twice.
        """
        if self.is_active:
            self.dismiss(None)

    def action_back(self) -> None:
        """Take the choice back, or return to the previous pair."""
        self.labelling.take_back()
        self._draw()

    def action_scroll(self, lines: int) -> None:
        """Scroll both answers, if they are longer than their frames."""
        for side in SIDES:
            self._answer(side).scroll_relative(y=lines, animate=False)

    async def action_leave(self) -> None:
        """Return to the main screen. A choice already made counts; the engine waits for the other pairs."""
        said = self.labelling.go_on()
        if said is not None:
            await self._say(said, over=True)
        else:
            self._close()


def progress(labelling: Labelling, width: int) -> Content:
    """The position among all pairs, and a dot for each pair if they fit into `width` cells."""
    pairs, labels = labelling.pairs, labelling.labels
    waiting = {labelling.pair, *labelling.left}
    place = Content.styled(f"{labelling.pair + 1} of {pairs}", "bold $foreground")
    wanted = f"{len(waiting)} label{'s' * (len(waiting) != 1)}"
    aside = Content.styled(f"   update {labelling.update.number} waits for {wanted}", "$text-muted")
    dots = []
    for pair in range(pairs):
        if pair == labelling.pair:
            dots.append(Content.styled(LOOKED_AT, "$accent"))
        elif pair in waiting:
            dots.append(Content.styled("○", "$text-muted"))
        else:
            dots.append(Content.styled("–" if labels.get(pair) == "skip" else "●", "$foreground"))
    lines = (Content.assemble(place, "   ", Content(between).join(dots), aside) for between in (" ", ""))
    return next((line for line in lines if line.cell_length <= width), place + aside)


def verdict_text(labelling: Labelling) -> Content:
    """How to choose; after a choice, each score of the two answers of that pair and the answer that it favours."""
    lines = [Content.styled(f"▲ {labelling.refused}", "$warning")] if labelling.refused else []
    if labelling.chosen is None:
        return Content("\n").join([*lines, keyed(CHOOSE, "$text-muted")])
    pair, choice = labelling.chosen
    said = {"a": "you chose A.", "b": "you chose B.", "skip": "you skipped it."}[choice]
    held = labelling.held is not None
    back = "   `enter` submit the last label · `z` undo" if held else "   `z` undo"
    lines.append(Content.assemble((f"Pair {pair + 1}: {said}", "bold $foreground"), keyed(back, "$text-muted")))
    judged = labelling.judged
    if judged is None:
        lines.append(Content.styled("Asking the model …", "$text-muted"))
    elif judged.refused:
        lines.append(Content.styled(f"▲ {visible(judged.refused)}", "$warning"))
    else:
        lines.append(Content.styled(f"{'':<{NAME}}{'A':>9}{'B':>9}", "$text-muted"))
        lines += [_score(name, *scores, choice) for name, scores in judged.scores.items()]
    return Content("\n").join(lines)


def _score(name: str, one: float, other: float, choice: Choice) -> Content:
    learned = name in ("implicit reward", "reward model")
    written, digits = (signed, 3) if learned else (plain, 2)
    favoured = _favoured(one - other)
    agrees = None if name == "log-probability" or choice == "skip" or not favoured else favoured == choice
    verdict, ink = _verdict(name, favoured, agrees), "$text-muted"
    if learned and max(abs(one), abs(other)) < SAME:
        verdict = "not trained on yet"
    elif agrees is not None:
        ink = "$success" if agrees else "$warning"
    return Content.assemble(
        (f"{visible(name)[: NAME - 1]:<{NAME}}", "$foreground"),
        (f"{written(one, digits):>9}{written(other, digits):>9}", "bold $foreground"),
        (f"   {verdict}", ink),
    )


def _favoured(lead: float) -> Choice | None:
    """The answer with the higher score, given A's lead; None if the scores are equal."""
    if not abs(lead) >= SAME:
        return None
    return "a" if lead > 0 else "b"


def _verdict(name: str, favoured: Choice | None, agrees: bool | None) -> str:
    """The answer that a score favours, and whether it `agrees` with the user."""
    if favoured is None:
        return "no difference"
    agreement = {None: "", True: ", like you", False: ", unlike you"}[agrees]
    return f"{'likelier' if name == 'log-probability' else 'better'}: {favoured.upper()}{agreement}"
