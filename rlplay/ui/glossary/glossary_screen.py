"""The glossary: every term in plain English, found by typing, with a key to where the screen shows it."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.style import Style
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.glossary import TERMS, Term, matching, term_called
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.ui.format.keyed import keyed
from rlplay.ui.formula.algorithm_lines import origin_lines
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.parts.typed_list import TypedList
from rlplay.verbs import VERBS

_PANELS = {
    "answers": ("Answers", "every answer with its score, its advantage and its length, by prompt"),
    "tokens": ("Tokens", "every token of every answer, coloured by one statistic"),
    "token": ("Token", "the selected token: its candidates under reference, old and new policy, and its formula"),
}


class GlossaryScreen(TypedList[tuple[str, str] | None]):
    """Terms on the left; on the right the explanation of the one under the cursor.

    Its result is the moment of a lesson to open, or None.
    """

    DEFAULT_CSS = """
    GlossaryScreen > Vertical { width: 110; max-height: 32; }
    GlossaryScreen.-tall > Vertical { max-height: 60; }
    GlossaryScreen OptionList { width: 30; }
    GlossaryScreen Static {
        link-style: none; link-color: $foreground; link-background: $surface;
        link-style-hover: none; link-color-hover: $background; link-background-hover: $accent;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+l", "lesson", "open the lesson that shows it", priority=True),
    ]
    SEEKING = "type to search: kl, clipping, hacking …"

    def __init__(self, term: str | None, here: tuple[str, Any], moves: bool) -> None:
        """The cursor starts on `term`, a name or an alias, or on the term that the screen shows at `here`.

        `moves` says whether a lesson can be opened in place of the run.
        """
        super().__init__()
        self._moves = moves
        if term is None:
            self._first = next((each for each in TERMS.values() if each.see == here), matching("")[0])
        else:
            self._first = term_called(term)

    def on_mount(self) -> None:
        self._list(list(TERMS.values()), self._first)

    @property
    def term(self) -> Term | None:
        """The term under the cursor."""
        return None if self.under_cursor is None else TERMS[self.under_cursor]

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        found = matching(event.value)
        self._list(found, found[0] if found else None)

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        term = self.term
        if term is not None:
            self.tell(entry(term))
            self.query_one(Vertical).border_subtitle = keyed(f"`↑ ↓` term · {_keys(term, self._moves)}`esc` close")

    @on(Input.Submitted)
    def action_jump(self) -> None:
        """Go to where the screen shows the term; if nothing does, to the lesson."""
        term = self.term
        if term is None:
            return
        if term.see is not None:
            self.post_message(Perform(*term.see))
            self.dismiss()
        else:
            self.action_lesson()

    def action_lesson(self) -> None:
        """Go to the moment of the lesson that shows the term."""
        if self.term is not None and self.term.moment is not None:
            self.dismiss(self.term.moment)

    def _list(self, found: list[Term], at: Term | None) -> None:
        words = self.query_one(OptionList)
        how_many = f"{len(found)} of {len(TERMS)}" if len(found) < len(TERMS) else f"{len(found)} terms"
        self.query_one(Vertical).border_title = Content.assemble("Glossary", (f" · {how_many}", "$text-muted"))
        words.set_options([Option(Content(term.name), id=term.name) for term in found])
        if at is None:
            self.tell(keyed("No entry matches. Try fewer letters; `ctrl+p` finds commands.", ""))
            self.query_one(Vertical).border_subtitle = keyed("`esc` close")
        else:
            words.highlighted = found.index(at)


def entry(term: Term) -> Content:
    """Everything about one term."""
    lines = [Content.styled(term.name, "bold $foreground"), Content(term.text)]
    if term.formula:
        lines += [Content(""), *(Content.styled(line, "bold") for line in term.formula.split("\n"))]
    if term.algorithm:
        lines += [Content(""), *origin_lines(PRESETS[term.algorithm])]
    if term.see is not None:
        lines += [Content(""), *_place(*term.see)]
    if term.moment is not None:
        lesson, words = term.moment
        there = Content(f" {lesson} ").stylize(Style.from_meta({"@click": "screen.lesson"}))
        head = Content.assemble(("ctrl+l", "bold $foreground"), ("  lesson: ", "$text-muted"), there)
        lines += [Content(""), head, Content.styled(f"“… {words} …”", "$text-muted")]
    if term.aliases:
        lines += [Content(""), Content.styled(f"also: {', '.join(term.aliases)}", "$text-muted")]
    return Content("\n").join(lines)


def _place(verb: str, argument: Any) -> list[Content]:
    """Where the screen shows the term, with the registry's explanation."""
    kind, title, formula, reading = _row(verb, argument)
    there = Content(f" {title} ").stylize(Style.from_meta({"@click": "screen.jump"}))
    head = Content.assemble(("enter", "bold $foreground"), (f"  {kind} ", "$text-muted"), there)
    if formula:
        head = Content.assemble(head, (f" = {formula}", "$text-muted"))
    return [head, Content.styled(reading, "$text-muted")] if reading else [head]


def _row(verb: str, argument: Any) -> tuple[str, str, str, str]:
    if verb == "lens":
        lens = LENSES[argument]
        return "colour:", lens.title, lens.formula, lens.reading
    if verb == "curve" and (metric := describe(argument)) is not None:
        return "curve:", metric.title, metric.formula, metric.reading
    if verb == "knobs":
        knob = KNOBS[argument]
        return "setting:", f"{knob.title} ({knob.name})", "", f"{knob.meaning} {knob.effect}"
    if verb == "panel":
        title, reading = _PANELS[argument]
        return "panel:", title, "", f"{reading[0].upper()}{reading[1:]}."
    return "screen:", VERBS[verb].title, "", VERBS[verb].help


def _keys(term: Term, moves: bool) -> str:
    lesson = "play the lesson" if moves else "copy the lesson's command"
    live = "`enter` see it live · " if term.see is not None else ""
    return live + (f"`ctrl+l` {lesson} · " if term.moment is not None else "")
