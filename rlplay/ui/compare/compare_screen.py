"""Compares runs: curves of all in one plot, two runs' answers to the same prompts, distributions at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from rlplay.trace.lenses import AUTOMATIC, LENSES, Lens
from rlplay.trace.records import Sampled
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.ui.compare.compared import ComparedPanels, PairedTokens
from rlplay.ui.compare.compared_views import ComparedViews
from rlplay.ui.compare.differences import compared_words, differing_line
from rlplay.ui.compare.side_by_side import counterpart, first_difference
from rlplay.ui.compare.two_runs import RunPair, place
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import CursorMoved, Perform, UpdatePicked
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.plot.several_runs import RUN_STYLES, Shown
from rlplay.ui.session.session import Session
from rlplay.ui.tokens.colouring import colouring
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.ui.words import clipping
from rlplay.verbs import VERBS
from rlplay.verbs import VIEWS as NAMED_VIEWS

VIEW_NAMES = "`B` river  `T` tree  `P` pull map"
_END = f"`p` view  {VIEW_NAMES}  `?` help  `esc` close"
KEYS = f"`[ ]` updates  {_END}"
MANY_KEYS = f"`< >` other run  {_END}"
LIVE_KEYS = f"`space` catch up  `u` update  {_END}"
_NAMED = 3
"""Differences that name a run in its title; the line below has all."""
VIEWS = ("answers", "token", "curves")
VIEW_KEYS = [Binding(",".join(VERBS[name].keys), f"view('{name}')", VERBS[name].title, id=name) for name in NAMED_VIEWS]
"""The keys of the views that take the place of the curves."""


class DisplayOptions(Protocol):
    """How the main screen shows tokens; the comparison follows it."""

    @property
    def lens_choice(self) -> str | None:
        """The statistic that the user chose for the colours."""

    @property
    def signs(self) -> bool:
        """Whether numbers are shown as well as colours."""

    @property
    def maths(self) -> bool:
        """Whether a token's formulas are shown."""


class CompareScreen(Following[None]):
    """Follows two or more sessions, A, B and so on, and shows two of them side by side."""

    HELP = """\
# Compare

Two runs at the same update, first **A** and **B**, and the curves of all runs. With two runs, the line style (━ or ┅)
tells their curves apart; with more, each curve also has a letter. `<` and `>` replace the run without the
cursor. The fourth line shows how the other runs differ from the run on the left.

With the same seed and the same data, both runs get the same prompts and the same random numbers. Every difference in
them then comes from a difference named in the third line. Runs record only the names of data and reward files, so the
comparison does not cover the contents of these files.

Answers to the same prompt are on the same line, and the cursor is in both runs. Below are the distributions at the
cursor. They are comparable only if the words before the token are the same; the frame says whether they are.

Long answers take one line each, which shows the part around the cursor; `enter` unfolds the selected one in both runs.

`B`, `T`, `P` and `E` put belief river, answer tree, pull map and learning map of both runs in place of the curves; the
same key brings the curves back. The titles name what differs between the runs, or say that both are equal.

`p` enlarges the answers, the token or the curves in turn. ↷ below the curves marks where a run was resumed, or where a
branch left the part that it shares with the other run.

`u` plays one update of the run that is behind, or of both if they are level. `space` lets the run behind catch up.
"""
    SECONDS = 0.1
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "onward(1)", "update", id="update"),
        Binding("space", "onward", "run/pause", id="run"),
        Binding("left_square_bracket", "move(-1)", "older update", id="older"),
        Binding("right_square_bracket", "move(1)", "newer update", id="newer"),
        Binding("v", "newest", "back to live", id="live"),
        Binding("c", "perform('lens')", "colour", id="lens"),
        Binding("C", "perform('colours')", "all colours", id="colours"),
        Binding("m", "perform('signs')", "marks", id="signs"),
        Binding("greater_than_sign", "other(1)", "next run in place of the one without the cursor"),
        Binding("less_than_sign", "other(-1)", "the run before in its place"),
        Binding("x", "ranked(False)", "largest", id="largest"),
        Binding("X", "ranked(True)", "smallest", id="smallest"),
        Binding("y", "perform('copy')", "copy", id="copy"),
        Binding("w", "perform('shot')", "save the view", id="shot"),
        Binding("A", "label", "which is better?", id="prefer"),
        Binding("p", "panels", "view", id="panel"),
        *VIEW_KEYS,
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,b,q", "dismiss", "close"),
    ]

    def __init__(
        self, display: DisplayOptions, sessions: Sequence[Session], ask: Callable[[Session, str], None]
    ) -> None:
        """Compare `sessions`, coloured as in `display`; `ask` asks for labels that a session waits for."""
        super().__init__()
        self._display, self._ask = display, ask
        self.sessions = sessions
        self.sides = [0, 1]  # the two runs shown side by side
        self.runs = RunPair(sessions[0], sessions[1], among=sessions)
        self.tokens = PairedTokens(RUN_STYLES[0]), PairedTokens(RUN_STYLES[1])
        self.inspectors = Inspector(), Inspector()
        self._alone = all(session.source.curves_only for session in sessions)
        self.curves = ComparedPanels(self._shown, self._alone)
        self.views = ComparedViews(RUN_STYLES[:2])
        self._drawn: object = None
        self._reads = False  # whether there may be more to read for the views
        self._unfolded: tuple[set[int], set[int]] = set(), set()  # answers of either run, at this update:
        self._unfolded_at = 0, 0

    def compose(self) -> ComposeResult:
        yield SteadyStatic(id="runs")
        with Horizontal(id="pair"):
            for tokens, inspector in zip(self.tokens, self.inspectors, strict=True):
                with Vertical():
                    yield tokens
                    yield inspector
        yield self.curves
        yield self.views
        yield Static(keyed(self.keys), id="keys")

    @property
    def keys(self) -> str:
        """The last line."""
        live = any(session.source.live for session in self.sessions)
        return LIVE_KEYS if live else MANY_KEYS if len(self.sessions) > 2 else KEYS

    def on_mount(self) -> None:
        self.tokens[0].partner, self.tokens[1].partner = self.tokens[1], self.tokens[0]
        self.set_class(self._alone, "-no-answers")
        self.add_class(f"-view-{'curves' if self._alone else 'answers'}")
        (self.curves.panels if self._alone else self.tokens)[0].focus()
        for mine, its in (self.tokens, self.tokens[::-1]):
            self.watch(mine, "scroll_y", partial(_scroll_along, mine, its), init=False)
        self.begin()

    def version(self) -> object:
        """The runs, the cursors and the look; another one every time as long as a view reads more of the runs."""
        versions = [session.version for session in self.sessions]
        looks = self._display.lens_choice, self._display.signs, self._display.maths, self.size
        return object() if self._reads else (versions, [tokens.cursor for tokens in self.tokens], looks)

    def follow(self) -> None:
        """Bring the screen up to date with both runs."""
        self.runs.follow()
        self._head()
        self.curves.overlay(self.sessions[0].world)
        self.curves.mark_update(self.runs.picked)
        styles = [tokens.run_style for tokens in self.tokens]
        self._reads = self.views.follow(self.runs, styles, [tokens.cursor for tokens in self.tokens])
        self.views.mark_updates(self.runs.marked)
        lens, chosen, signs = self._display_options()
        updates = self.runs.updates()
        if self._unfolded_at != self.runs.numbers:
            self._unfolded, self._unfolded_at = (set(), set()), self.runs.numbers
        look = lens.name, chosen, signs, self._display.maths
        drawn = [id(update) for update in updates], self.runs.numbers, look
        if drawn == self._drawn:
            return
        self._drawn = drawn
        for side, (tokens, update, unfolded) in enumerate(zip(self.tokens, updates, self._unfolded, strict=True)):
            letter, number = tokens.run_style.letter, self.runs.numbers[side]
            kept = f"Update {number} of {letter} is not finished or was not kept."
            if self.runs.both[side].source.curves_only:
                kept = f"{letter} has curves and no answers."
            tokens.words = kept if number else "Updates that both runs have finished are compared here."
            order = [] if update is None or update.sampled is None else self._order(tokens, update.sampled)
            settings = self.runs.both[side].settings_of(update)
            tokens.show(
                update, order, colouring(update, lens.of(settings), not chosen, settings), signs, unfolded=unfolded
            )
        self._inspect()

    def _order(self, tokens: PairedTokens, sampled: Sampled) -> list[int]:
        """The answers that `tokens` shows, in order: those to the prompts that both sides have."""
        groups = tokens.groups
        rows = range(len(sampled.group))
        return [row for row in rows if groups is None or int(sampled.group[row]) in groups]

    def _display_options(self) -> tuple[Lens, bool, bool]:
        """The statistic of the colours, whether the user chose it, and whether numbers are shown."""
        chosen = self._display.lens_choice
        return LENSES[chosen or AUTOMATIC["after"]], chosen is not None, self._display.signs

    def _shown(self) -> Shown:
        """All runs, the two shown side by side first."""
        others = [index for index in range(len(self.sessions)) if index not in self.sides]
        return [(RUN_STYLES[index], self.sessions[index].run.history) for index in (*self.sides, *others)]

    def _head(self) -> None:
        lines = [
            Content.assemble(
                (f"{tokens.run_style.mark}  ", f"bold {tokens.run_style.ink}"),
                (" · ".join(self.runs.values(side)[:_NAMED]) or visible(session.source.path.stem), "bold"),
                f"  {visible(place(session))}",
            )
            for side, (tokens, session) in enumerate(zip(self.tokens, self.runs.both, strict=True))
        ]
        lines.append(differing_line(self.runs, self.size.width))
        if len(self.sessions) > 2:
            lines.append(self._others())
        self.query_one("#runs", SteadyStatic).say(Content("\n").join(lines))

    def _others(self) -> Content:
        """The runs that appear only in the curves, and how each differs from the run on the left."""
        line = Content("only in the curves:")
        for index in (index for index in range(len(self.sessions)) if index not in self.sides):
            style, pair = RUN_STYLES[index], RunPair(self.runs.both[0], self.sessions[index], among=self.sessions)
            differing = ", ".join(pair.values(1)) or f"as {self.tokens[0].run_style.letter}"
            line = Content.assemble(line, (f"  {style.mark} ", f"bold {style.ink}"), differing)
        return line.truncate(self.size.width - 2, ellipsis=True)

    def _inspect(self) -> None:
        """Show the details of both tokens, and whether the words before them are the same."""
        updates = self.runs.updates()
        for side, update in enumerate(updates):
            session = self.runs.both[side]
            settings, cursor = session.settings_of(update), self.tokens[side].cursor
            self.inspectors[side].show(update, cursor, settings, maths=self._display.maths, signs=self._display.signs)
        caption = ""
        if updates[0] is not None and updates[1] is not None and updates[0].sampled and updates[1].sampled:
            (mine, token), (its, _) = (tokens.cursor for tokens in self.tokens)
            caption = compared_words(first_difference((updates[0].sampled, mine), (updates[1].sampled, its)), token)
        for tokens, inspector in zip(self.tokens, self.inspectors, strict=True):
            inspector.caption(Content(f"Token · {tokens.run_style.letter}"), Content(caption))

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        """The cursor is in both runs at once."""
        event.stop()
        side = 1 if self.tokens[1].has_focus else 0
        here, there = (self.runs.updates()[index] for index in (side, 1 - side))
        if here is not None and there is not None and here.sampled is not None and there.sampled is not None:
            other = counterpart(event.completion, here.sampled, there.sampled, self.tokens[side].groups)
            if other is not None:
                self.tokens[1 - side].point(other, event.token)
        self._inspect()

    @on(Perform)
    def _unfold(self, event: Perform) -> None:
        """Unfold the answer under the cursor in both runs, or fold it again; show a view that a panel asks for."""
        if event.name in NAMED_VIEWS:
            event.stop()
            self.action_view(event.name)
        if event.name != "unfold":
            return
        event.stop()
        for unfolded, tokens in zip(self._unfolded, self.tokens, strict=True):
            unfolded ^= {tokens.cursor[0]}
        self._drawn = None
        self.follow()

    @on(UpdatePicked)
    def _picked(self, event: UpdatePicked) -> None:
        event.stop()
        self.runs.picked = event.number
        self.follow()

    def action_move(self, step: int) -> None:
        """Compare the update before or after."""
        try:
            moved = self.runs.move(step)
        except RunFileError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
            return
        if not moved:
            self.notify("No earlier update in both runs." if step < 0 else "No later update in both runs.")
        self.follow()

    def action_other(self, step: int) -> None:
        """Replace the run without the cursor by the next one, at the same update."""
        if len(self.sessions) == 2:
            self.notify("There are only two runs here; rlplay compare takes more.")
            return
        side = 0 if self.tokens[1].has_focus else 1
        stays, runs = self.sides[1 - side], range(len(self.sessions))
        others = [index for index in runs if index != stays]
        self.sides[side] = others[(others.index(self.sides[side]) + step) % len(others)]
        one, other = self.sides
        pair = RunPair(
            self.sessions[one], self.sessions[other], RUN_STYLES[one].letter + RUN_STYLES[other].letter, self.sessions
        )  # fmt: skip
        pair.picked, self.runs = self.runs.picked, pair
        self.tokens[side].run_style = RUN_STYLES[self.sides[side]]
        self._drawn = None
        self.follow()

    def action_newest(self) -> None:
        """Follow the newest update that both runs have."""
        self.runs.picked = None
        self.follow()

    async def action_onward(self, count: int | None = None) -> None:
        """Continue the run that is behind."""
        commands = self.runs.advance_commands(count)
        self.runs.picked = None  # show the new updates
        for session, command in commands:
            await session.source.send(command)
        if not commands:
            live = any(session.source.live for session in self.runs.both)
            self.notify("Both are at the same update: u plays one more." if live else "Both runs are recordings.")

    def action_perform(self, verb: str) -> None:
        """A verb of the main screen."""
        self.post_message(Perform(verb))

    def action_view(self, name: str) -> None:
        """Show a view of both runs in place of the curves, or the curves again."""
        self.views.shown = "" if self.views.shown == name else name
        self.set_class(bool(self.views.shown), "-views")
        if self.has_class("-narrow") and self.views.shown:
            self._show("curves")
        self.follow()
        panels = self.views.panels if self.views.shown else self.curves.panels
        panels[0].focus()

    def action_ranked(self, lowest: bool) -> None:
        """Go to the token with the largest value, or the `lowest`; if no token is clipped, say why."""
        side = 1 if self.tokens[1].has_focus else 0
        tokens, session, update = self.tokens[side], self.runs.both[side], self.runs.updates()[side]
        if self._display.lens_choice == "clip_state" and not clipping.count_clipped(update):
            self.notify(clipping.explain_none(update, session.settings_of(update), session.source.live), markup=False)
            return
        found, what = tokens.next_ranked(lowest)
        if found is not None:
            tokens.point(*found[:2])
            tokens.post_message(CursorMoved(*found[:2]))
            self.notify(what.replace("`", ""), markup=False)

    def action_label(self) -> None:
        """Ask for the labels that one of the runs waits for."""
        waiting = next((each for each in zip(self.runs.letters, self.runs.both, strict=True) if each[1].asks), None)
        if waiting is None:
            self.notify("Neither run waits for labels.")
        else:
            self._ask(*waiting[::-1])

    def action_panels(self) -> None:
        """Show answers, token or curves in turn: enlarged on a wide screen, alone on a narrow one."""
        if self._alone:
            return
        here = next(view for view in VIEWS if self.has_class(f"-view-{view}"))
        following = VIEWS[(VIEWS.index(here) + 1) % len(VIEWS)]
        self._show(following)
        # Keys should act on the visible panel.
        curves = self.views.panels if self.views.shown else self.curves.panels
        (curves[0] if following == "curves" else self.tokens[0]).focus()

    def _show(self, view: str) -> None:
        for each in VIEWS:
            self.set_class(each == view, f"-view-{each}")


def _scroll_along(mine: PairedTokens, its: PairedTokens, y: float) -> None:
    """Scroll `its` lines along with `mine`, which scrolled to `y`, as far as they reach."""
    end = y == mine.max_scroll_y and its.scroll_y > y  # the longer panel scrolls on alone
    if its.scroll_y != y and not end:
        its.scroll_to(y=y, animate=False, immediate=True)
