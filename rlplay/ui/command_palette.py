"""The command palette (ctrl+p): every verb, and every statistic, curve, knob and word by its title and its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from textual.app import SystemCommand
from textual.command import Hit, Hits
from textual.system_commands import SystemCommandsProvider

from rlplay.algorithms.knobs import KNOBS
from rlplay.glossary import TERMS
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.trace.text import visible
from rlplay.ui.actions import ACTIONS
from rlplay.ui.playground import Playground
from rlplay.ui.plot.views import single
from rlplay.ui.widgets.footer import key_name
from rlplay.verbs import VERBS, Verb


def commands(app: Playground) -> Iterator[SystemCommand]:
    """What can be done now. Curves, settings and words are many: they are found by typing, not listed at the start."""

    def command(words: str, help: str, verb: str, argument: Any = None, listed: bool = True) -> SystemCommand:
        return SystemCommand(words, help, lambda: app.call_later(app.perform, verb, argument), listed)

    for verb in VERBS.values():
        if verb.name in ACTIONS:
            yield command(_titled(verb), f"{_keyed(verb)}{verb.help}", verb.name)
    if app.session.asks:
        for side, choice in (("the first answer, A", "a"), ("the second answer, B", "b"), ("neither", "skip")):
            yield command(f"Better: {side}", "Label the pair that waits; enter goes to the next.", "prefer", choice)
    for lens in LENSES.values():
        yield command(f"Colour: {lens.title} ({lens.name})", lens.reading, "lens", lens.name)
    for name in app.session.history.names():
        row = describe(name)
        reading = "" if row is None else row.reading or row.formula
        yield command(f"Curve: {single(name).title} ({visible(name)})", reading, "curve", name, listed=False)
    for term in TERMS.values():
        yield command(f"Glossary: {term.name}", term.text, "glossary", term.name, listed=False)
    for knob in KNOBS.values():
        meaning = f"{knob.meaning} {knob.effect}"
        yield command(f"Setting: {knob.title} ({knob.name})", meaning, "knobs", knob.name, listed=False)


class Palette(SystemCommandsProvider):
    """Finds commands by their words first: names, other words for them, what they say; by single letters last."""

    async def search(self, query: str) -> Hits:
        """What fits `query`, each with how well."""
        matcher, words = self.matcher(query), _words(query)
        for title, help, callback, _ in self.app.get_system_commands(self.screen):
            score = closeness(words, f"{title} {_OTHER_WORDS.get(title, '')}", help) or matcher.match(title)
            if score > 0:
                yield Hit(score, matcher.highlight(title), callback, help=help)


def closeness(words: list[str], name: str, text: str) -> float:
    """How well all of `words` fit a command called `name` that says `text`, more than letters ever do; 0 if not."""
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


_BY_LETTERS = 1000.0
"""More than Textual's matcher gives for letters."""
_OTHER_WORDS = {
    **{_titled(verb): verb.words for verb in VERBS.values()},
    **{f"Glossary: {term.name}": " ".join(term.aliases) for term in TERMS.values()},
}


def _keyed(verb: Verb) -> str:
    return f"{key_name(verb)} · " if verb.keys else ""
