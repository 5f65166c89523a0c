"""Whether to run the code that a scenario or a run file names: asked once for each file and content."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rlplay.cli.splash import lift

TRUST = click.option(
    "--trust", is_flag=True, help="Run the Python code that is named there; remembered until it changes."
)


def ask_trust(code: Sequence[str], trusted: bool, named_by: str = "scenario") -> None:
    """Ask for the files, modules and addresses `code` unless the user has named or agreed to them; remember it.

    Raises click.UsageError, one line, if the user says no, or if there is no terminal to ask in.
    """
    from rlplay.trace.text import visible
    from rlplay.trusted import agree, consequences, contents, strange

    if not code:
        return
    seen = contents(code)  # before the question: what is agreed to is what could be read by then
    if (asked := strange(code)) and not trusted:
        would = visible(consequences(asked))
        if not (sys.stdin.isatty() and sys.stdout.isatty()) or not _confirmed(
            f"This {named_by} would {would}. Trust it?"
        ):
            raise click.UsageError(f"this {named_by} would {would}; read that first, then add --trust")
    agree(seen)


def follow_named(changes: Mapping[str, Any]) -> None:
    """Let the files and modules run that the user has named among the options of this command line."""
    from rlplay.algorithms.own_choices import functions_in
    from rlplay.scenario.trust import places_of
    from rlplay.tasks.remote.served_file import is_served
    from rlplay.trusted import follow

    words = [word for name in _NAMING for word in (changes.get(name) or ())]
    words += [word for name in _NAMING_ONE if (word := changes.get(name))]
    sets = [word.partition("=") for word in changes.get("sets", ())]
    words += functions_in({name.strip(): value.strip() for name, _, value in sets})
    follow(each for word in words if ":" in word or is_served(word) for each in places_of(word))


_NAMING = "reward", "tools"
_NAMING_ONE = "task", "environment", "environment_factory", "surrogate", "advantage"
"""The options that take the user's code, one entry or several."""


@click.command(epilog="Example: rlplay trust score.py")
@click.argument(
    "files", metavar="FILE…", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True
)
def trust(files: tuple[Path, ...]) -> None:
    """Let Python files run as they are now.

    What they import beside them runs, too. rlplay remembers their content.
    A run that waits for such a file can go on; a later version of it is asked for again.
    """
    from rlplay.trace.text import visible
    from rlplay.trusted import agree, contents, described, place

    places = [place(str(file)) for file in files]
    agree(contents(places))
    for each in places:
        click.echo(f"trusted as it is now: {visible(described(each))}")


def _confirmed(question: str) -> bool:
    lift()
    return click.confirm(question)
