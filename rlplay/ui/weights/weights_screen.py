"""What an update moved in the weights, what each layer says of a token, and which tokens the model takes for alike."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, get_args

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content

from rlplay.link.messages import EndProbe
from rlplay.trace.questions import LayersRead, NeighboursFound, Weighed
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.shown_text import literal
from rlplay.ui.format.step_word import worded
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.answer_at import AnswerAt
from rlplay.ui.session.session import Session
from rlplay.ui.session.weighing import View
from rlplay.ui.weights.layers_panel import LayersPanel
from rlplay.ui.weights.matrix_detail import MatrixDetail
from rlplay.ui.weights.moved_picture import MovedPicture
from rlplay.ui.weights.neighbours_panel import NeighboursPanel
from rlplay.ui.weights.squares_picture import SquaresPicture
from rlplay.ui.weights.words import squares_summary, summary

VIEWS: tuple[View, ...] = get_args(View)
TITLES: dict[View, str] = {"moved": "what moved", "layers": "logit lens", "neighbours": "neighbours"}
NO_UPDATE = "No update yet: `esc`, then `u` for the first one."
REPLAYED = "A recording has no weights to compare. rlplay resume, with the run's name, starts an engine."
ELSEWHERE = "Another program trains this model, and its weights are there."
ENDED = "The engine has ended: `esc`, then `r` to resume."
NO_TOKEN = "No token is under the cursor: `esc`, and choose one."
ASKED = "Reading the weights … The engine answers between two steps."


class WeightsScreen(Following[None]):
    """Follows the run while it is open, unless an older update was chosen."""

    HELP = """\
# Weights

The policy **is** its weights: other numbers give other probabilities, and those give other answers.

**What moved**: a row for each layer, from the embedding to the head, and a cell for each matrix W, shaded by its
relative change ‖Δ‖/‖W‖ in this update. ‖·‖ is the root of the sum of squares (Frobenius norm), Δ is W after the update
minus W before. The darkest shade is this update's largest change. The **effective rank** of Δ says in how many
directions it goes: exp of the entropy of its singular values, as shares of their sum (Roy and Vetterli 2007). One
direction has rank 1. With LoRA, Δ is the change of what the adapters add; with bfloat16 weights, that of the float32
masters. For a table in a world, the squares whose numbers moved are shown.

**Logit lens** (nostalgebraist 2020): what the model would say if it ended after each layer. What the layer hands on
goes straight to the final norm and the head. The last line is the model's own distribution, at the run's temperature.
Where the head is the embedding, the first line mostly names the token that was read last.

**Neighbours**: the tokens whose embeddings have the largest cosine with that of the token.

`tab` goes from one to the next. `[` and `]` choose another update whose weights are kept. Arrows move from matrix to
matrix, or from token to token. Nothing here changes the run; the engine pauses while it computes.
"""
    DEFAULT_CSS = """
    WeightsScreen > Vertical { width: 100%; height: 100%; max-width: 164; max-height: 40; }
    WeightsScreen SteadyStatic { height: auto; padding: 0 1; }
    WeightsScreen #views { margin-bottom: 1; }
    WeightsScreen #summary { min-height: 1; max-height: 3; margin-bottom: 1; }
    WeightsScreen Horizontal { height: 1fr; }
    WeightsScreen LinePanel { width: 1fr; height: 1fr; display: none; }
    WeightsScreen LinePanel.-shown { display: block; }
    WeightsScreen MatrixDetail { width: 46; margin-left: 2; }
    WeightsScreen.-narrow, WeightsScreen.-medium {
        #moved { layout: vertical; }
        MatrixDetail { width: 1fr; height: 5; margin: 1 0 0 0; }
    }
    WeightsScreen.-low SteadyStatic, WeightsScreen.-narrow #views, WeightsScreen.-narrow #summary { margin-bottom: 0; }
    WeightsScreen #asked { display: none; }
    WeightsScreen.-asked { #asked { display: block; } #moved { display: none; } }
    WeightsScreen.-huge.-tall {
        &> Vertical { max-width: 210; max-height: 66; }
        #moved { display: block; height: 34; }
        #asked { display: block; border-top: solid $border; padding-top: 1; }
        NeighboursPanel { width: 70; margin-left: 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "turn", "next view", priority=True),
        Binding("left", "go(0, -1)", "matrix or token before"),
        Binding("right", "go(0, 1)", "matrix or token after"),
        Binding("up", "go(-1, 0)", "layer above"),
        Binding("down", "go(1, 0)", "layer below"),
        Binding("left_square_bracket", "move(-1)", "older update", id="older"),
        Binding("right_square_bracket", "move(1)", "newer update", id="newer"),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("escape,q,W", "dismiss", "close"),
    ]
    AUTO_FOCUS = ""

    def __init__(self, session: Session, place: AnswerAt | None, view: View) -> None:
        """`place` is the token that the second and the third view are about; `view` is the first to show."""
        super().__init__()
        self.session, self.weighing = session, session.weighing
        self.view = view
        self._place = place
        self._chosen = session.older_update if session.source.live else None  # an update other than the newest

    def compose(self) -> ComposeResult:
        with Vertical():
            yield SteadyStatic(id="views")
            yield SteadyStatic(id="summary")
            with Horizontal(id="moved"):
                yield MovedPicture()
                yield SquaresPicture()
                yield MatrixDetail()
            with Horizontal(id="asked"):
                yield LayersPanel()
                yield NeighboursPanel()

    def on_mount(self) -> None:
        self.begin()

    def on_unmount(self) -> None:
        """Nobody waits for an answer any more."""
        if self._live:
            self.app.call_later(self.session.source.send, EndProbe())

    @property
    def _live(self) -> bool:
        return self.session.has_engine and self.session.failed is None

    @property
    def update(self) -> int:
        """The update that is shown; 0 before the first."""
        finished = self.session.run.finished
        return finished if self._chosen is None else min(self._chosen, finished)

    def version(self) -> object:
        """What is asked about, what is known, and whether the engine is there."""
        session = self.session
        return self.update, self.weighing.version, session.run.rewinds, session.failed, session.loading is None

    def follow(self) -> None:
        """Ask for what is missing, and show what is known."""
        weighing = self.weighing
        weighing.at(self.session.run.rewinds)
        weighing.about(self.update, self._place)
        for view in VIEWS if self._shows_all else (self.view,):
            question = weighing.question(view) if self._live else None
            if question is not None:
                self.call_later(self.session.source.send, question)
        self._draw()

    @property
    def _shows_all(self) -> bool:
        """Whether there is room for the three views at once."""
        return self.has_class("-huge") and self.has_class("-tall")

    def on_resize(self) -> None:
        """Another size may have room for all views, or for one."""
        if self._next is not None:
            self.call_after_refresh(self.follow)

    def _draw(self) -> None:
        weighing, view = self.weighing, self.view
        weighed = weighing.weighed if self.update and not self._problem() else None
        known = weighed is not None and not weighed.refused
        table = known and self._is_table
        picture, squares = self.query_one(MovedPicture), self.query_one(SquaresPicture)
        detail, layers, near = (
            self.query_one(MatrixDetail),
            self.query_one(LayersPanel),
            self.query_one(NeighboursPanel),
        )
        every = self._shows_all
        self.set_class(view != "moved", "-asked")
        for panel, there in (
            (picture, not table),
            (squares, table),
            (detail, known and not table),
            (layers, every or view == "layers"),
            (near, every or view == "neighbours"),
        ):
            panel.set_class(there, "-shown")
        picture.tell(weighed if known else None, self._words(weighed))
        squares.tell(weighed if table else None, self.session.world, self._words(weighed))
        self._tell_detail()
        place = weighing.place
        read = weighing.read if _is_about(weighing.read, weighing.update, place) else None
        found = weighing.found if _is_about(weighing.found, weighing.update, place) else None
        layers.tell(read, place, self._words(read))
        near.tell(found, place, self._words(found))
        self._label(weighed if known else None)

    def _tell_detail(self) -> None:
        picture, weighed = self.query_one(MovedPicture), self.weighing.weighed
        cell = picture.chosen
        tied = weighed is not None and weighed.tied and cell is not None and cell.title == "embedding"
        self.query_one(MatrixDetail).tell(cell, weighed is None or weighed.done, tied)

    def _label(self, weighed: Weighed | None) -> None:
        panel = self.query_one(Vertical)
        panel.border_title = f"Weights{self._titled(weighed)}"
        arrows = "`← →` token · " if self.view != "moved" else "" if self._is_table else "`← ↑ ↓ →` matrix · "
        arrows = worded(arrows, self.session.step_word)
        panel.border_subtitle = keyed(f"`tab` next view · {arrows}`[ ]` update · `?` help · `esc` close")
        views: list[Content] = []
        for view, title in TITLES.items():
            style = "bold $foreground underline" if view == self.view else "$text-muted"
            views += [Content.styled(title, style), Content("   ")]
        self.query_one("#views", SteadyStatic).say(Content.assemble(*views[:-1]))
        about = self.query_one("#summary", SteadyStatic)
        about.display = (self.view == "moved" or self._shows_all) and weighed is not None
        if weighed is not None:
            lines = summary(weighed, self.query_one(MovedPicture).grid)
            lines = [lines[0], squares_summary(weighed)] if weighed.moves else lines
            about.say(Content(" ".join(filter(None, lines))))

    def _titled(self, weighed: Weighed | None) -> str:
        """The update in the title; if the picture is still that of another one, both."""
        if not self.update:
            return ""
        late = self.view == "moved" and weighed is not None and weighed.update != self.update
        shown = weighed.update if late and weighed is not None else self.update
        return f" · update {shown}" + f" · reading update {self.update} …" * late

    @property
    def _is_table(self) -> bool:
        weighed = self.weighing.weighed
        return weighed is not None and bool(weighed.moves)

    def _problem(self) -> str:
        """Why nothing can be asked."""
        session = self.session
        if not session.has_engine:
            return ELSEWHERE if session.source.live else REPLAYED
        if session.failed is not None:
            return ENDED
        return "" if self.update else NO_UPDATE

    def _words(self, answer: Weighed | LayersRead | NeighboursFound | None) -> str:
        """What an empty panel says."""
        if problem := self._problem():
            return problem
        if answer is not None and answer.refused:
            words = literal(answer.refused)
            return f"{words[:1].upper()}{words[1:]}."
        if self.view != "moved" and (self._place is None or self._place.token >= len(self._place.ids)):
            return NO_TOKEN
        return ASKED

    # Keys

    def action_turn(self) -> None:
        """Show the next view."""
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        self.follow()

    def action_go(self, down: int, right: int) -> None:
        """Move the cursor to another matrix, or to another token of the answer."""
        if self.view == "moved":
            self.query_one(MovedPicture).go(down, right)
            return
        if down:
            panel = self.query_one(LayersPanel if self.view == "layers" else NeighboursPanel)
            panel.scroll_relative(y=down, animate=False)
        place = self._place
        if place is not None and right and place.ids:
            self._place = replace(place, token=max(0, min(place.token + right, len(place.ids) - 1)))
            self.follow()

    @on(MovedPicture.Chosen)
    def _matrix_chosen(self) -> None:
        self._tell_detail()

    def action_move(self, step: int) -> None:
        """Show another update whose weights are kept."""
        finished = self.session.run.finished
        known = sorted({*(number for number in self.session.source.snapshots() if 0 < number <= finished), finished})
        others = [number for number in known if (number < self.update if step < 0 else number > self.update)]
        if others:
            number = others[-1] if step < 0 else others[0]
            self._chosen = None if number == finished else number
            self.follow()


def _is_about(answer: LayersRead | NeighboursFound | None, update: int, place: AnswerAt | None) -> bool:
    """Whether an answer is about this update and this token."""
    if answer is None or place is None or place.token >= len(place.ids):
        return False
    token = place.ids[place.token]
    here = answer.update == update and answer.token_id == token
    return here and (not isinstance(answer, LayersRead) or answer.prefix == place.prefix)
