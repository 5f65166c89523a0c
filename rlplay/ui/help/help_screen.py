"""Help about the focused panel: its main keys and parts, what it shows, the formulas behind it, and every key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.algorithms.trl_verl import trainer, verl
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.trace.numbers import compact, real_minus
from rlplay.trace.update import Update
from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.markdown import markdown
from rlplay.ui.format.shortcuts import LIST_KEYS, Shortcut, written
from rlplay.ui.format.step_word import worded
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.panel import Panel
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import VERBS

GENERAL = """\
# rlplay

A model answers prompts (**sample**), and each answer gets a reward (**score**). Every token then gets an advantage,
above 0 if the result was better than expected and below 0 if it was worse (**credit**). The weights change to make
tokens with an advantage above 0 likelier (**update**). Then the next update begins.

Other algorithms learn from examples, or from a label that says which of two answers is better. They have the same
phases, but no reward.

**space** runs and pauses, **u** makes one update, and **z** undoes it: you cannot break anything. The line above the
keys says what just happened. Move between panels with **tab** or the mouse, and open this help on any of them; **p**
shows other panels, which a small screen needs.

The mouse works everywhere: click a token, an answer, a curve, a stage at the top, a key at the bottom or a title, turn
the wheel, drag the border before Token or above the curves. Where it rests on a title, a key or a stage, a text
explains it.
"""
_GROUPS = {
    "engine": "Forward and back",
    "look": "What you see",
    "panels": "Panels",
    "script": "Lesson",
    "program": "Program",
}


_MOST = 5
"""Keys of the panel in the first line."""


class HelpScreen(Dialogue[None]):
    """Explains `widget`, or the nearest panel around it that has help; statistics follow the `settings`."""

    DEFAULT_CSS = """
    HelpScreen > VerticalScroll {
        width: 100; height: auto; max-height: 95%; padding: 0 0 0 2; scrollbar-gutter: stable;
    }
    HelpScreen Static { padding: 0 2 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "close"),
        Binding("question_mark,f1,d", "glossary", "glossary"),
        *LIST_KEYS,
    ]

    def __init__(
        self,
        widget: Widget | None,
        settings: Settings = UNKNOWN,
        own_keys: Mapping[str, str] | None = None,
        step_word: str = "token",
        shown: Update | None = None,
    ) -> None:
        """`own_keys` are the user's, by action; `step_word` names what the policy samples in the update `shown`."""
        super().__init__()
        self._own_keys, self._step_word = own_keys or {}, step_word
        self._panel = _explained(widget)
        self._settings, self._shown = settings, shown

    def compose(self) -> ComposeResult:
        with VerticalScroll() as page:
            page.border_title = "Help"
            page.border_subtitle = keyed("`↑ ↓` scroll · `?` glossary · `esc` close")
            word = self._step_word
            own = (self._panel.HELP if self._panel is not None else "") or GENERAL
            now = getattr(self._panel, "help_first", "")
            own = now + own.replace(now, "")
            about = worded("\n".join([own, *_terms(self._panel)]), word)
            keys = _keys(self._panel, self._own_keys, word)
            shown = *_elsewhere(self._panel, self._settings), *self._statistics(word)
            first = *_used_most(self._panel, self._own_keys, word), *(() if now else _miniature(self._panel, word))
            yield Static(Content("\n\n").join([*first, markdown(about), *shown, keys]))

    def _statistics(self, word: str) -> Iterator[Content]:
        """One block for each statistic the panel shows, from the registries; `word` names what the policy samples."""
        panel, settings = self._panel, self._settings
        if isinstance(panel, TokenMap | Inspector):
            for lens in (lens.of(settings) for lens in LENSES.values()):
                if lens.special and (self._shown is None or lens.values(self._shown) is None):
                    continue
                scale = f"{real_minus(compact(lens.low))} … {real_minus(compact(lens.high))} {lens.unit}".strip()
                reading = worded(f"{lens.reading} Scale: {scale}.", word)
                yield _block(worded(lens.title, word), lens.symbol, worded(lens.formula, word), reading)
        rewarded = isinstance(panel, AnswerList) and settings.rewarded
        names = ("reward", "frac_reward_zero_std", "completions/clipped_ratio") if rewarded else ()
        for name in names or (panel.help_metrics if isinstance(panel, Panel) else ()):
            row = describe(name)
            if row is not None:
                reading = f"{row.reading} {f'In {row.unit}.' if row.unit else ''}".strip()
                yield _block(worded(row.title, word), name, worded(row.formula, word), worded(reading, word))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_glossary(self) -> None:
        """Open the glossary."""
        self.post_message(Perform("glossary"))
        self.dismiss()


def _explained(widget: Widget | None) -> Widget | None:
    around = widget.ancestors_with_self if widget is not None else ()
    return next((node for node in around if isinstance(node, Widget) and node.HELP), None)


def _used_most(panel: Widget | None, own_keys: Mapping[str, str], word: str) -> Iterator[Content]:
    """The keys of the panel that matter most, in one line."""
    shortcuts: tuple[Shortcut, ...] = getattr(panel, "shortcuts", ())[:_MOST]
    names = {key: verb.name for verb in VERBS.values() for key in verb.keys}
    keys = [
        Content.assemble(
            (_written(own_keys.get(names.get(key, ""), key) for key in each.keys), "bold $foreground"),
            f" {worded(each.title, word)}",
        )
        for each in shortcuts
    ]
    if keys:
        yield Content("   ").join(keys)


def _miniature(panel: Widget | None, word: str) -> Iterator[Content]:
    """What the parts of the panel are."""
    rows: tuple[tuple[str, str], ...] = getattr(panel, "MINIATURE", ())
    width = max((cell_len(picture) for picture, _ in rows), default=0)
    lines = [
        Content.assemble(f"  {set_cell_size(picture, width)}", (f"   {worded(words, word)}", "$text-muted"))
        for picture, words in rows
    ]
    if lines:
        yield Content("\n").join(lines)


def _terms(panel: Widget | None) -> Iterator[str]:
    """The entries of the glossary that end the panel's help, as Markdown, each with its formulas."""
    from rlplay.glossary import term_called  # reads files

    for term in map(term_called, getattr(panel, "help_terms", ())):
        formulas = [f"* {line}" for line in term.formula.split("\n") if line]
        yield "\n".join([f"**{term.name}**: {term.text}", *([""] if formulas else []), *formulas, ""])


def _elsewhere(panel: Widget | None, settings: Settings) -> Iterator[Content]:
    """What TRL and verl call the loss of a token, where they have it."""
    names = {"TRL": trainer(settings), "verl": verl(settings)}
    if isinstance(panel, Inspector) and settings.axes_known and any(names.values()):
        calls = ". ".join(f"{library} calls it {name}" for library, name in names.items() if name)
        yield Content.assemble(("The loss of this run elsewhere", "bold"), f"\n{calls}.")


def _block(title: str, symbol: str, formula: str, reading: str) -> Content:
    head = Content.assemble((title, "bold"), (f"  {symbol}", "bold"), (f"  = {formula}", "$text-muted"))
    return Content("\n").join([head, Content(reading)]) if reading else head


def _keys(panel: Widget | None, own_keys: Mapping[str, str], word: str) -> Content:
    rows = [Content.styled("Keys", "bold $foreground")]
    own = [
        (_written(own_keys.get(binding.id or "", binding.key).split(",")), binding.description)
        for binding in (panel.BINDINGS if panel is not None else ())
        if isinstance(binding, Binding)
    ]
    groups = [("In this panel", own)]
    for group, title in _GROUPS.items():
        verbs = [verb for verb in VERBS.values() if verb.group == group and verb.keys]
        groups.append(
            (
                title,
                [
                    (_written([own_keys[verb.name]] if verb.name in own_keys else verb.keys), verb.help)
                    for verb in verbs
                ],
            )
        )
    nameless = [verb for verb in VERBS.values() if not verb.keys]
    for title, scripted in (("By name, with ctrl+p", False), ("Only in the script of a scenario", True)):
        entries = [(verb.name, verb.help) for verb in nameless if (verb.where == "script") == scripted]
        groups.append((title, entries))
    for title, entries in groups:
        rows += [Content(""), Content.styled(title, "$text-muted")] if entries else []
        rows += [Content.assemble((f"{keys:>9}  ", "bold $foreground"), worded(words, word)) for keys, words in entries]
    return Content("\n").join([*rows, Content(""), _PALETTE])


def _written(keys: Iterable[str]) -> str:
    return " ".join(map(written, keys))


_PALETTE = Content.assemble(
    (f"{'ctrl+p':>9}  ", "bold $foreground"), "Every command by name; also themes and a screenshot."
)
