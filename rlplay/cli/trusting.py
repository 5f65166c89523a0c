"""Whether to run the code that a scenario or a run file names: asked once for each file and content."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from rlplay.cli.splash import lift

if TYPE_CHECKING:
    from rlplay.scenario.schema import Scenario


def ask_trust(scenario: Scenario, changes: dict[str, Any], trusted: bool, recorded: bool = False) -> None:
    """Ask for code that the user has not named on this command line or trusted before; remember the answer.

    Raises click.UsageError, one line, if the user says no, or if there is no terminal to ask in.
    """
    from rlplay.scenario.trust import code_in, code_of, described, trust, untrusted
    from rlplay.trace.text import visible

    if not (code := code_of(scenario)):
        return
    given = [value for each in changes.values() for value in (each if isinstance(each, tuple) else (each,))]
    words = [word for word in given if isinstance(word, str)]
    sets = {name.strip(): value.strip() for name, _, value in (word.partition("=") for word in words)}
    spoken = [word for word in (*words, *sets.values()) if ":" in word]
    spoken += code_in({"algorithm": changes.get("algorithm") or sets.get("algorithm")})
    strange = untrusted(code, spoken, changed=recorded)
    if strange and not trusted:
        places = ", ".join(visible(described(place)) for place in strange)
        what = "run" if recorded else "scenario"
        if not (sys.stdin.isatty() and sys.stdout.isatty()) or not _confirmed(
            f"This {what} runs the code of {places}. Trust it?"
        ):
            raise click.UsageError(f"it would run the code of {places}; read that first, then add --trust")
    trust(code)


def _confirmed(question: str) -> bool:
    lift()
    return click.confirm(question)
