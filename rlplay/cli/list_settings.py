"""The command that lists the settings of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import click

from rlplay.cli.options import AS_JSON
from rlplay.cli.table import table
from rlplay.cli.types import SETTING

_WIDTH, _INDENT = 110, 4


@click.command(epilog="Example: rlplay settings beta")
@click.argument("name", type=SETTING, required=False)
@AS_JSON
def settings(name: str | None, as_json: bool) -> None:
    """List every setting, or explain one.

    The list has each setting's default, its meaning and what it takes. --set NAME=VALUE changes one, and so
    does the knobs panel (k) while a run is under way.
    """
    from rlplay.trace.text import visible_lines

    if as_json:
        click.echo(_as_json(name))
        return
    for line in _all() if name is None else _one(name):
        click.echo(visible_lines(line))


def _as_json(name: str | None) -> str:
    from rlplay.algorithms.knobs import KNOBS
    from rlplay.algorithms.setting_values import takes
    from rlplay.algorithms.settings import Settings
    from rlplay.printed import ListedSetting, SettingList, json_line

    listed = [
        ListedSetting(
            name=knob.name, title=knob.title, group=knob.group, default=getattr(Settings(), knob.name),
            takes=takes(knob.name), meaning=knob.meaning, effect=knob.effect,
        )
        for knob in KNOBS.values()
        if name in (None, knob.name)
    ]  # fmt: skip
    return json_line(SettingList(settings=listed))


def _all() -> Iterator[str]:
    from rlplay.algorithms.knobs import KNOBS
    from rlplay.algorithms.setting_values import takes

    listed = sorted(KNOBS.values(), key=lambda knob: _GROUPS.index(knob.group))
    rows = [("NAME", "DEFAULT", "MEANING", "TAKES")]
    rows += [(knob.name, _default(knob.name), knob.meaning, takes(knob.name)) for knob in listed]
    first, *lines = table(rows)
    if sys.stdout.isatty() and max(map(len, lines)) > (room := shutil.get_terminal_size().columns):
        # Too wide for the terminal, which would break lines within words.
        first, *lines = table([row[:2] for row in rows])
        indent = " " * _INDENT
        lines = [
            f"{line}\n{click.wrap_text(f'{meaning} Takes {takes}.', min(room, _WIDTH), indent, indent)}"
            for line, (_, _, meaning, takes) in zip(lines, rows[1:], strict=True)
        ]
    yield first
    group = ""
    for knob, line in zip(listed, lines, strict=True):
        if knob.group != group:
            group = knob.group
            yield f"\n{group}"
        yield line
    yield "\nOne in detail: rlplay settings NAME      Change it: --set NAME=VALUE"


_GROUPS = ("algorithm", "sampling", "credit", "objective", "distillation", "update", "preferences")
"""The groups in the order in which an update reads them."""


def _one(name: str) -> Iterator[str]:
    from rlplay.algorithms.knobs import KNOBS
    from rlplay.algorithms.setting_values import shown, takes

    knob = KNOBS[name]
    yield f"{knob.title}   {name}, group {knob.group}"
    yield from _wrapped("Takes", takes(name))
    yield f"  Default  {_default(name)}"
    yield from _wrapped("Meaning", knob.meaning)
    yield from _wrapped("Effect", knob.effect)
    if knob.needs is not None:
        other, values = knob.needs
        yield from _wrapped("Needs", f"{other}={' or '.join(map(shown, values))}; otherwise it has no effect")


def _wrapped(title: str, text: str) -> Iterator[str]:
    room = shutil.get_terminal_size((_WIDTH, 0)).columns
    yield click.wrap_text(text, min(room, _WIDTH), f"  {title:<9}", " " * 11)


def _default(name: str) -> str:
    from rlplay.algorithms.setting_values import shown
    from rlplay.algorithms.settings import Settings

    return shown(getattr(Settings(), name))
