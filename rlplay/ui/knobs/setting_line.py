"""The list of settings: a line for each with title, value, and the other possible values."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from textual.content import Content
from textual.widgets.option_list import Option

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.named import preset, title
from rlplay.algorithms.own_choices import OWN, SUFFIXES, is_own
from rlplay.algorithms.setting_values import choices, shown
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.settings import row as chosen_row
from rlplay.scenario.reproduction import Reproduction
from rlplay.trace.numbers import number
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.step_word import worded
from rlplay.ui.knobs.draft import Draft

_TITLE, _VALUE = 23, 20
"""Cells for the mark with the title, and for the value with a blank."""
WIDEST = 400
"""Cells that hold any list of choices."""


def row(draft: Draft, knob: Knob, width: int) -> Content:
    """A line of `width` cells; if not all choices fit, it counts the rest."""
    changed, idle = draft.changed(knob.name), draft.idle(knob.name)
    ink = "$foreground bold" if changed else "$text-muted" if idle else "$foreground"
    was = f"was {_brief(shown(draft.original(knob.name)))}   " if changed else ""
    aside = "no effect" if idle else allowed(draft, knob, width - _TITLE - _VALUE - len(was))
    if draft.fixed(knob.name):
        aside = "fixed"
    return Content.assemble(
        ("● " if changed else "  ", "bold $foreground"),
        (f"{knob.title:<{_TITLE - 3}} ", "$text-muted" if idle else ""),
        (f"{_brief(shown(draft.value(knob.name))):<{_VALUE - 1}} ", ink),
        (was + aside, "$text-muted"),
    )


def _brief(value: str) -> str:
    """A value; for a user's file, its name."""
    return visible(Path(value).name if is_own(value) or value.endswith(SUFFIXES) else value)


def allowed(draft: Draft, knob: Knob, room: int) -> str:
    """The possible values in `room` cells: choices or a range; for the algorithm, the title of the current one."""
    if knob.name == "algorithm":
        chosen = draft.value("algorithm")
        place = f"{list(PRESETS).index(chosen) + 1} of {len(PRESETS)}" if chosen in PRESETS else ""
        called = ", ".join(filter(None, (title(chosen), place)))
        return called if len(called) <= room or not place else place
    if isinstance(draft.value(knob.name), bool):
        return "on | off"
    if words := choices(knob.name):
        return _fitted((*words, "FILE.py:FUNCTION") if knob.name in OWN else words, room)
    return "" if knob.low is None or knob.high is None else f"{number(knob.low)} … {number(knob.high, 6)}"


def about(draft: Draft, knob: Knob, step_word: str) -> tuple[str, str]:
    """What a setting is, and the effect of changing it, of a policy that samples tokens or moves."""
    texts = knob.meaning, effect(draft, knob)
    return texts if knob.name in _COUNT_SQUARES else (worded(texts[0], step_word), worded(texts[1], step_word))


def options(draft: Draft, at: str | None, only: Collection[str], width: int) -> list[Option]:
    """A line of `width` cells for each setting of `only` and the one named `at`, below the titles of their groups.

    Last, how many others are hidden.
    """
    found, group = list[Option](), ""
    names = draft.listed(at, only)
    for knob in map(KNOBS.__getitem__, names):
        if knob.group != group:
            group = knob.group
            found.append(Option(Content.styled(group.upper(), "$text-muted bold"), disabled=True))
        found.append(Option(row(draft, knob, width), id=knob.name))
    if hidden := len(draft.listed(at, KNOBS)) - len(names):
        found.append(Option(keyed(f"{hidden} more settings are hidden · `*` show all", "$text-muted"), disabled=True))
    return found


def described(draft: Draft, knob: Knob, listed: Content, step_word: str) -> list[Content]:
    """Lines about a setting: what it is, what it does, its values if its line in the list cuts them, why it is idle."""
    meaning, does = about(draft, knob, step_word)
    head = Content.assemble((knob.title, "bold"), (f"  {knob.name}", "$text-muted"), f"  {meaning}")
    lines, every = [head, Content(does)], allowed(draft, knob, WIDEST)
    if choices(knob.name) and not listed.plain.endswith(every):
        lines.append(Content.assemble(("can be: ", "$text-muted"), every))
    if knob.name == "algorithm" and draft.value("algorithm"):
        lines.append(keyed(f"`enter` list of all {len(PRESETS)}", "$text-muted"))
    if idle := draft.idle(knob.name):
        lines.append(Content.styled(f"No effect now: {idle}.", "$text-muted"))
    return lines


def reproduced(reproduction: Reproduction, settings: Settings) -> list[Content]:
    """The command with these settings, and their share code."""
    code, remark = reproduction.code(settings)
    return [
        Content.assemble(("$ ", "$text-muted"), (visible(reproduction.command(settings)), "bold $foreground")),
        Content.assemble((f"{code} " if code else "", "bold $foreground"), (remark, "$text-muted")).rstrip(),
    ]


_COUNT_SQUARES = ("max_completion_length", "overlong_buffer")
"""Settings in tokens, of which squares are some, too."""


def effect(draft: Draft, knob: Knob) -> str:
    """The effect of changing a setting; for an algorithm and a user's function, what it is."""
    if knob.name in OWN and is_own(draft.value(knob.name)):
        return f"{draft.value(knob.name)}: {chosen_row(draft.settings, knob.name).about or 'your own'}"
    if knob.name != "algorithm":
        return knob.effect
    if not draft.value("algorithm"):
        return "The program that trained this run did not record it."
    try:
        named = preset(draft.value("algorithm"))
    except ValueError as error:  # a user's file that is gone or broken
        return visible(str(error))
    return f"{named.title} ({named.paper}): {named.explained}"


def _fitted(words: tuple[str, ...], room: int) -> str:
    """As many words as fit, and the number of the rest."""
    for kept in range(len(words), 0, -1):
        text = " | ".join(words[:kept]) + f" … +{len(words) - kept} more" * (kept < len(words))
        if len(text) <= room:
            return text
    return f"{len(words)} choices"
