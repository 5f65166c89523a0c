"""The command palette (ctrl+p): verbs, statistics, curves, settings, glossary terms and themes, by title and name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from textual.app import SystemCommand
from textual.command import Command, DiscoveryHit, Hit, Hits
from textual.content import Content
from textual.style import Style
from textual.system_commands import SystemCommandsProvider
from textual.widget import Widget

from rlplay.algorithms.knobs import KNOBS
from rlplay.glossary import TERMS
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.trace.text import visible
from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.answers.pair_panel import PairPanel
from rlplay.ui.compat import ListedPalette, OverAnother
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.format.shown_text import within
from rlplay.ui.format.step_word import worded
from rlplay.ui.main.playground import Playground
from rlplay.ui.main.stages import fitting
from rlplay.ui.plot.curve_view import single
from rlplay.ui.status.footer import key_name
from rlplay.ui.theme.themes import THEMES
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import VERBS, Verb


class PaletteScreen(OverAnother, ListedPalette):
    """Textual's palette over the playground."""

    def __init__(self) -> None:
        super().__init__(id="--command-palette", classes="-ready")

    def listed(self) -> list[Command]:
        """All commands but the many, which are found by typing; first what helps most with the focused panel now."""
        screen = self.app.screen_stack[-2]
        useful = [_titled(VERBS[name]) for name in useful_now(screen.focused, getattr(self.app, "play", None))]
        ranks = {title: rank for rank, title in enumerate(useful)}
        found = sorted(
            (each for each in self.app.get_system_commands(screen) if each.discover),
            key=lambda each: (ranks.get(each.title, len(ranks)), each.title),
        )
        quiet = Style.from_styles(self.get_component_styles("command-palette--help-text"))
        return [
            Command(Content.assemble(title, "\n", (help, quiet)), DiscoveryHit(title, callback, help=help))
            for title, help, callback, _ in found
        ]


def useful_now(focused: Widget | None, play: Playground | None) -> list[str]:
    """The verbs to list first: those of the situation, of the focused panel, and those that are always of use."""
    if play is None:
        return []
    session = play.session
    now = ("prefer",) if session.asks else ("live", "older", "newer") if session.looking is not None else _ONWARD
    of_panel = next((names for kind, names in _OF_PANEL.items() if isinstance(focused, kind)), ())
    return list(dict.fromkeys([*now, *of_panel, *_ALWAYS]))


def commands(play: Playground) -> Iterator[SystemCommand]:
    """The commands available now. The many (curves, settings, terms, themes) are listed only after typing."""

    def command(words: str, help: str, verb: str, argument: Any = None, listed: bool = True) -> SystemCommand:
        return SystemCommand(words, help, lambda: play.app.call_later(play.perform, verb, argument), listed)

    word = play.session.step_word
    for verb in VERBS.values():
        if verb.name in play.actions:
            yield command(_titled(verb), f"{_keyed(verb, play)}{worded(verb.help, word)}", verb.name)
    if play.session.asks:
        for side, choice in (("the first answer, A", "a"), ("the second answer, B", "b"), ("neither", "skip")):
            yield command(f"Better: {side}", "Label the current pair, and go to the next.", "prefer", choice)
    for stage in fitting(play.session):
        yield command(
            f"Stage: {worded(stage, word)}", "Give the room of the screen to it.", "stage", stage, listed=False
        )
    for lens in LENSES.values():
        yield command(f"Colour: {lens.title} ({lens.name})", worded(lens.reading, word), "lens", lens.name)
    for name in play.session.run.history.names():
        row = describe(name)
        reading = "" if row is None else row.reading or row.formula
        yield command(f"Curve: {single(name).title} ({visible(name)})", reading, "curve", name, listed=False)
    for name in play.session.run.history.names():
        if name.startswith("gold/"):
            words, both = f"Curve: Reward over {within(single(name).title)}", f"reward over {name}"
            yield command(words, "Two lines in one plot, each with its own scale.", "curve", both, listed=False)
    for term in TERMS.values():
        yield command(f"Glossary: {term.name}", term.text, "glossary", term.name, listed=False)
    for knob in KNOBS.values():
        meaning = f"{knob.meaning} {knob.effect}"
        yield command(f"Setting: {knob.title} ({knob.name})", meaning, "knobs", knob.name, listed=False)
    for name, _ in sorted(play.app.available_themes.items(), key=lambda each: (each[1] not in THEMES, each[0])):
        here = "The present one." if name == play.app.theme else ""
        yield SystemCommand(f"Theme: {name}", here, partial(setattr, play.app, "theme", name), discover=False)


class CommandProvider(SystemCommandsProvider):
    """Finds commands by words first (names, synonyms, help text) and by single letters last."""

    async def search(self, query: str) -> Hits:
        """The commands that match `query`, each with its score."""
        matcher, words = self.matcher(query), _words(query)
        for title, help, callback, _ in self.app.get_system_commands(self.screen):
            theme = self.app.available_themes.get(title.removeprefix("Theme: "))
            kind = "" if theme is None else "dark colours" if theme.dark else "light colours"
            name, text = f"{title} {_OTHER_WORDS.get(title, '')}", f"{help} {kind}"
            score = closeness(words, name, text) or matcher.match(title)
            if score > 0:
                yield Hit(score, matcher.highlight(title), callback, help=help or None)


def closeness(words: list[str], name: str, text: str) -> float:
    """How well `words` match a command's `name` and `text`: above any score by letters; 0 if they do not match."""
    named, said = _words(name), _words(f"{name} {text}")
    ways = (
        set(words) <= set(named),
        all(_begun(word, named) for word in words),
        set(words) <= set(said),
        all(_begun(word, said) for word in words),
    )
    return next((_BY_LETTERS * (len(ways) - rank) for rank, holds in enumerate(ways) if holds and words), 0.0)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _begun(word: str, words: list[str]) -> bool:
    return any(each.startswith(word) for each in words)


def _titled(verb: Verb) -> str:
    return f"{verb.title[0].upper()}{verb.title[1:]}"


_ONWARD = ("run", "update", "phase", "undo")
"""What the palette lists first while the newest update is on the screen."""
_OF_PANEL: dict[type[Widget], tuple[str, ...]] = {
    TokenMap: ("probe", "lens", "largest", "find"),
    AnswerList: ("sort", "tree", "find", "moments"),
    Inspector: ("probe", "maths", "surrogate"),
    CurvePanel: ("belief", "pull", "position", "learning", "timeline"),
    PairPanel: ("probe", "compare"),
}
"""What helps with each panel."""
_ALWAYS = ("knobs", "tour", "health", "moments", "lessons", "help")
_BY_LETTERS = 1000.0
"""More than any score of Textual's matcher for letters."""
_OTHER_WORDS = {
    **{_titled(verb): verb.words for verb in VERBS.values()},
    **{f"Glossary: {term.name}": " ".join(term.aliases) for term in TERMS.values()},
}


def _keyed(verb: Verb, play: Playground) -> str:
    return f"{key_name(verb, play.own_keys)} · " if verb.keys else ""
