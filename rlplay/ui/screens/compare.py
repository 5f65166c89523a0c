"""Two runs side by side: curves in one plot, the same prompts' answers, the distributions under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from rlplay.trace.lenses import Lens
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.ui.abreast import counterpart, parting
from rlplay.ui.messages import CursorMoved, Perform, UpdatePicked
from rlplay.ui.overlay import DOTTED, LINE
from rlplay.ui.pair import Pair, place
from rlplay.ui.session import Session
from rlplay.ui.views import FIRST, SECOND
from rlplay.ui.widgets.compared import ComparedPanels, PairedTokens
from rlplay.ui.widgets.inspector import Inspector
from rlplay.ui.widgets.narrator import keyed
from rlplay.ui.widgets.said import Said

_LOOK_AGAIN = 0.1
KEYS = "`[ ]` updates  `c` colour  `p` panels  `?` help  `esc` close"
LIVE_KEYS = f"`space` catch up  `u` update  {KEYS}"
VIEWS = ("answers", "token", "curves")


class CompareScreen(ModalScreen[None]):
    """Follows two sessions, A and B."""

    HELP = """\
# Compare

Two runs, **A** (━) and **B** (┅), at the same update. With the same seed both are given the same prompts and the same
random numbers, so that whatever is different comes from what is different about the runs, named in the third line.

Answers to the same prompt stand at the same height; the cursor is in both. Below are the distributions at that place.
They can be compared only as long as the words before the token are the same, and the frame says whether they are.

`u` lets the run that is behind play an update, both where they are level. `space` lets it catch up.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "onward(1)", "one more update"),
        Binding("space", "onward", "catch up, or pause"),
        Binding("left_square_bracket", "move(-1)", "older update"),
        Binding("right_square_bracket", "move(1)", "newer update"),
        Binding("v", "newest", "newest update"),
        Binding("c", "perform('lens')", "colour"),
        Binding("C", "perform('lens_back')", "colour back"),
        Binding("m", "perform('signs')", "marks"),
        Binding("x", "most", "largest value"),
        Binding("y", "perform('copy')", "copy"),
        Binding("a", "label", "label the pairs that wait"),
        Binding("p", "panels", "panels"),
        Binding("question_mark,f1", "help", "help"),
        Binding("escape,b,q", "dismiss", "close"),
    ]

    def __init__(self, one: Session, other: Session) -> None:
        super().__init__()
        self.pair = Pair(one, other)
        self.tokens = PairedTokens((f"{LINE} A ", FIRST)), PairedTokens((f"{DOTTED} B ", SECOND))
        self.inspectors = Inspector(), Inspector()
        self.curves = ComparedPanels(lambda: other.history)
        self._drawn: object = None
        self._cut = self._cuts()

    def compose(self) -> ComposeResult:
        yield Said(id="runs")
        with Horizontal(id="pair"):
            for tokens, inspector in zip(self.tokens, self.inspectors, strict=True):
                with Vertical():
                    yield tokens
                    yield inspector
        yield self.curves
        yield Static(keyed(LIVE_KEYS if any(each.source.live for each in self.pair.both) else KEYS), id="keys")

    def on_mount(self) -> None:
        self.tokens[0].partner, self.tokens[1].partner = self.tokens[1], self.tokens[0]
        self.tokens[0].focus()
        self.add_class("-view-answers")
        for mine, its in (self.tokens, self.tokens[::-1]):
            self.watch(
                mine, "scroll_y", lambda y, its=its: its.scroll_to(y=y, animate=False, immediate=True), init=False
            )
        self.follow()
        self.set_interval(_LOOK_AGAIN, self.follow)

    def follow(self) -> None:
        """Bring the screen up to date with both runs."""
        cuts = self._cuts()
        if cuts != self._cut:
            self._cut = cuts
            self.pair.forget()
        self._head()
        self.curves.overlay(self.pair.both[0].history)
        self.curves.stand(self.pair.picked)
        lens, chosen, signs = self._look()
        updates = self.pair.updates()
        drawn = [id(update) for update in updates], self.pair.number, lens.name, chosen, signs
        if drawn == self._drawn:
            return
        self._drawn = drawn
        for letter, tokens, update in zip("AB", self.tokens, updates, strict=True):
            number = self.pair.number
            tokens.words = f"Update {number} of {letter} comes once it is finished, or was not kept." if number else (
                "What both have finished is compared here.")  # fmt: skip
            order = [] if update is None or update.sampled is None else list(range(update.completions))
            tokens.show(update, order, lens, not chosen, signs)
        self._inspect()

    def _cuts(self) -> list[int]:
        """How much of each run was rewound away."""
        return [sum(len(part[0]) for part in session.history.abandoned("num_tokens")) for session in self.pair.both]

    def _look(self) -> tuple[Lens, bool, bool]:
        """The statistic that colours the tokens, whether it was chosen, and whether numbers are written."""
        from rlplay.trace.lenses import AUTOMATIC, LENSES
        from rlplay.ui.app import RlplayApp

        app = self.app
        assert isinstance(app, RlplayApp)
        return LENSES[app.lens_choice or AUTOMATIC["after"]], app.lens_choice is not None, app.signs

    def _head(self) -> None:
        lines = [
            Content.assemble(
                (f"{mark} {letter}  ", f"bold {ink}"),
                (visible(session.source.path.stem), "bold"),
                f"  {visible(place(session))}",
            )
            for mark, letter, ink, session in zip((LINE, DOTTED), "AB", (FIRST, SECOND), self.pair.both, strict=True)
        ]  # fmt: skip
        lines.append(_differing(self.pair, self.size.width))
        self.query_one("#runs", Said).say(Content("\n").join(lines))

    def _inspect(self) -> None:
        """Take apart the tokens under the cursors, and say whether they follow the same words."""
        updates = self.pair.updates()
        for side, update in enumerate(updates):
            session = self.pair.both[side]
            self.inspectors[side].show(update, self.tokens[side].cursor, session.settings_of(update))
        told = ""
        if updates[0] is not None and updates[1] is not None and updates[0].sampled and updates[1].sampled:
            (mine, token), (its, _) = (tokens.cursor for tokens in self.tokens)
            told = _context(parting((updates[0].sampled, mine), (updates[1].sampled, its)), token)
        for letter, inspector in zip("AB", self.inspectors, strict=True):
            inspector.caption(Content(f"Token · {letter}"), Content(told))

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        """The cursor is in both runs at once."""
        event.stop()
        side = 1 if self.tokens[1].has_focus else 0
        here, there = (self.pair.updates()[index] for index in (side, 1 - side))
        if here is not None and there is not None and here.sampled is not None and there.sampled is not None:
            other = counterpart(event.completion, here.sampled, there.sampled)
            if other is not None:
                self.tokens[1 - side].point(other, event.token)
        self._inspect()

    @on(UpdatePicked)
    def _picked(self, event: UpdatePicked) -> None:
        event.stop()
        self.pair.picked = event.number
        self.follow()

    def action_move(self, step: int) -> None:
        """Compare the update before or after."""
        try:
            moved = self.pair.move(step)
        except RunFileError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
            return
        if not moved:
            self.notify("Both runs have no update on record before." if step < 0 else "Both have none on record after.")
        self.follow()

    def action_newest(self) -> None:
        """Follow the newest update that both have."""
        self.pair.picked = None
        self.follow()

    async def action_onward(self, count: int | None = None) -> None:
        """Let the run that is behind go on."""
        told = self.pair.onward(count)
        self.pair.picked = None  # who goes on wants to see what comes
        for session, command in told:
            await session.source.send(command)
        if not told:
            live = any(session.source.live for session in self.pair.both)
            self.notify("Both are as far. u plays one more update of each." if live else "Both runs are recordings.")

    def action_perform(self, verb: str) -> None:
        """A verb of the main screen."""
        self.post_message(Perform(verb))

    def action_help(self) -> None:
        """What is compared, and all keys."""
        from rlplay.ui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self))

    def action_most(self) -> None:
        """To the token with the largest value."""
        tokens = self.tokens[1 if self.tokens[1].has_focus else 0]
        found, what = tokens.next_largest()
        if found is not None:
            tokens.point(*found)
            tokens.post_message(CursorMoved(*found))
        if what:
            self.notify(what.replace("`", ""), markup=False)

    def action_label(self) -> None:
        """Ask which answer is better, for the run that waits for it."""
        from rlplay.ui import dialogues
        from rlplay.ui.app import RlplayApp

        waiting = next((each for each in zip("AB", self.pair.both, strict=True) if each[1].asks), None)
        assert isinstance(self.app, RlplayApp)
        if waiting is None:
            self.notify("Neither run waits for labels.")
        else:
            dialogues.label(self.app, *waiting[::-1])

    def action_panels(self) -> None:
        """On a narrow screen show answers, tokens or curves in turn."""
        here = next(view for view in VIEWS if self.has_class(f"-view-{view}"))
        following = VIEWS[(VIEWS.index(here) + 1) % len(VIEWS)]
        for view in VIEWS:
            self.set_class(view == following, f"-view-{view}")
        # Keys should move what is in sight.
        (self.curves.panels[0] if following == "curves" else self.tokens[0]).focus()


def _differing(pair: Pair, width: int) -> Content:
    """The third line: what the runs are compared at, and what is different about B there."""
    if pair.starting:
        line = f"{pair.starting} is still starting; once it has, what is different about B stands here"
    else:
        there, set_now = (" · ".join(pair.differences(now)) for now in (False, True))
        line = f"at update {pair.number}, different about B: {there or 'nothing'}"
        if pair.alike and not there:
            line = f"at update {pair.number} both are the same: settings, answers and numbers"
        elif set_now and not there:
            line = f"at update {pair.number} the settings are the same"
        if set_now and not there:
            line = f"{line}; later in B: {set_now}"
    return Content(line if len(line) <= width - 2 else f"{line[: width - 3]}…")


def _context(parted: int | None, token: int) -> str:
    if parted == -1:
        return "not the same prompt"
    if parted is None or token <= parted:
        return "the same words before it"
    return f"other words before it, from token {parted + 1} on"
