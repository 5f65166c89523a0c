"""The command palette (ctrl+p): every verb, and every statistic, curve, knob and word by its title and its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand

from rlplay.scenario.glossary import TERMS
from rlplay.scenario.knobs import KNOBS
from rlplay.scenario.verbs import VERBS, Verb
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe
from rlplay.trace.text import visible
from rlplay.ui.actions import ACTIONS
from rlplay.ui.views import single
from rlplay.ui.widgets.footer import key_name

if TYPE_CHECKING:
    from rlplay.ui.app import RlplayApp


def commands(app: RlplayApp) -> Iterator[SystemCommand]:
    """What can be done now. Curves, knobs and words are many: they are found by typing, not listed at the start."""

    def command(words: str, help: str, verb: str, argument: Any = None, listed: bool = True) -> SystemCommand:
        return SystemCommand(words, help, lambda: app.call_later(app.perform, verb, argument), listed)

    for verb in VERBS.values():
        if verb.name in ACTIONS:
            yield command(f"{verb.title[0].upper()}{verb.title[1:]}", f"{_keyed(verb)}{verb.help}", verb.name)
    if app.session.asks:
        for side, choice in (("the first answer, A", "a"), ("the second answer, B", "b"), ("neither", "skip")):
            yield command(f"Better: {side}", "Label the pair that waits; with `enter` the next.", "prefer", choice)
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
        yield command(f"Knob: {knob.title} ({knob.name})", meaning, "knobs", knob.name, listed=False)


def _keyed(verb: Verb) -> str:
    return f"{key_name(verb)} · " if verb.keys else ""
