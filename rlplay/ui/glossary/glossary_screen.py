"""The glossary: every term in plain English, found by typing, with a key to where the screen shows it."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.glossary import TERMS, Term, matching, term_called
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.ui.format.keyed import keyed
from rlplay.ui.formula.algorithm_lines import origin_lines
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.parts.text_field import TextField
from rlplay.verbs import VERBS

_PANELS = {
    "answers": ("Answers", "every answer with its score, its advantage and its length, by prompt"),
    "tokens": ("Tokens", "every token of every answer, coloured by one statistic"),
    "token": ("Token", "the selected token: its candidates under reference, old and new policy, and its formula"),
}


class GlossaryScreen(Dialogue[tuple[str, str] | None]):
    """Terms on the left; on the right the explanation of the one under the cursor.

    Its result is the moment of a lesson to open, or None.
    """

    DEFAULT_CSS = """
    GlossaryScreen > Vertical { width: 110; height: 90%; max-height: 32; }
    GlossaryScreen.-narrow > Vertical { height: 100%; }
    GlossaryScreen.-tall > Vertical { max-height: 60; }
    GlossaryScreen Input {
        &, &:focus { height: 1; border: none; padding: 0 1; margin: 0 0 1 0; background: $surface; }
    }
    GlossaryScreen OptionList {
        width: 30; height: 1fr; background: $background; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis; border: none;
        & > .option-list--option-highlighted { background: $accent 30%; color: $foreground; text-style: none; }
        &:ansi > .option-list--option-highlighted { background: ansi_bright_black; color: ansi_white; }
    }
    GlossaryScreen.-narrow OptionList { width: 22; }
    GlossaryScreen VerticalScroll { width: 1fr; padding: 0 1 0 2; scrollbar-size-vertical: 1; }
    GlossaryScreen Static {
        height: auto;
        link-style: none; link-color: $foreground; link-background: $surface;
        link-style-hover: none; link-color-hover: $background; link-background-hover: $accent;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "term above"),
        Binding("down", "step(1)", "term below"),
        Binding("pageup", "scroll(-1)", "scroll the text up"),
        Binding("pagedown", "scroll(1)", "scroll the text down"),
        Binding("ctrl+l", "lesson", "open the lesson that shows it", priority=True),
        Binding("escape", "dismiss", "close"),
    ]

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

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TextField(placeholder="type to search: kl, clipping, hacking …", select_on_focus=False)
            with Horizontal():
                words = OptionList()
                words.can_focus = False
                yield words
                with VerticalScroll(can_focus=False):
                    yield Static()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._list(list(TERMS.values()), self._first)

    @property
    def term(self) -> Term | None:
        """The term under the cursor."""
        option = self.query_one(OptionList).highlighted_option
        return None if option is None or option.id is None else TERMS[option.id]

    def action_step(self, step: int) -> None:
        """Go to another term."""
        words = self.query_one(OptionList)
        if words.option_count:
            words.highlighted = max(0, min((words.highlighted or 0) + step, words.option_count - 1))

    def action_scroll(self, step: int) -> None:
        """Scroll a long explanation."""
        text = self.query_one(VerticalScroll)
        text.scroll_relative(y=step * max(text.size.height - 1, 1), animate=False)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        found = matching(event.value)
        self._list(found, found[0] if found else None)

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        term = self.term
        if term is not None:
            self.query_one(Static).update(entry(term))
            self.query_one(VerticalScroll).scroll_home(animate=False)
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
            self.query_one(Static).update(keyed("No entry matches. Try fewer letters; `ctrl+p` finds commands.", ""))
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
