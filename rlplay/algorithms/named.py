"""Algorithms by name: those of the catalogue, and the user's own, each described in a YAML file:

title: Soft GRPO
after: grpo
changes: A clip without a corner.
settings: {surrogate: soft.py:soft_clip}
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from rlplay.algorithms.catalogue import PRESETS, Preset
from rlplay.algorithms.own_choices import SUFFIXES, absolute_files, functions_in
from rlplay.algorithms.settings import Settings
from rlplay.containment import OwnError
from rlplay.plain_yaml import plain_yaml, read_text
from rlplay.spelling import did_you_mean, similar
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.plugins import additions, refuse
from rlplay.trace.text import brief_path, quote
from rlplay.trusted import follow, place


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """The content of an algorithm's file: the settings in which it differs from the algorithm `after`."""

    title: str
    settings: SomeSettings
    after: str = "grpo"
    changes: str = ""
    paper: str = "your own"


def preset(name: str) -> Preset:
    """The algorithm with that name, or in the file with that name. Raises ValueError, one line, if there is none."""
    if name in PRESETS:
        return PRESETS[name]
    if not name.endswith(SUFFIXES):
        raise ValueError(unknown_algorithm(name))
    path = Path(name).expanduser()
    try:
        row = msgspec.convert(plain_yaml(read_text(path)), _Row)
    except FileNotFoundError:
        raise OwnError(
            f"algorithm {brief_path(name)}: there is no such file; correct the path, or put the file back"
        ) from None
    except OSError as error:
        raise OwnError(f"algorithm {brief_path(name)}: {error.strerror}") from None
    except (ValueError, msgspec.MsgspecError) as error:
        raise OwnError(
            f"{name}: {error}; an algorithm has a title and settings, and optionally after, changes and paper"
        ) from None
    return _described(name, row, path.parent)


def _described(name: str, row: _Row, folder: Path) -> Preset:
    """The algorithm that a row describes. Raises OwnError, one line, if it names what is not there."""
    if row.after not in PRESETS:
        raise OwnError(f"{name}: after={row.after}: no such algorithm{did_you_mean(row.after, list(PRESETS))}")
    known = [field for field in Settings.__struct_fields__ if field != "algorithm"]
    if unknown := [field for field in row.settings if field not in known]:
        raise OwnError(f"{name}: unknown setting {quote(unknown[0])}{did_you_mean(unknown[0], known)}")
    axes = PRESETS[row.after].axes | absolute_files(row.settings, folder)
    return Preset(name, row.title, row.paper, row.after, row.changes, axes)


def title(name: str) -> str:
    """The title of an algorithm; if its file is gone, the file's name. A run of another trainer may not name it: ""."""
    if not name:
        return "algorithm not on record"
    try:
        return preset(name).title
    except ValueError:
        return Path(name).stem


def unknown_algorithm(name: str) -> str:
    """The message for an unknown algorithm: the nearest names, and where to find all."""
    one, other, third = similar(name, list(PRESETS))
    return f"unknown algorithm {quote(name)}; nearest are {one}, {other} and {third}; 'rlplay algorithms' lists all"


def join_algorithms() -> None:
    """Add the algorithms of other packages: mappings as in a file, with absolute paths if they name files."""
    for name, content in additions("rlplay.algorithms", dict, PRESETS).items():
        try:
            PRESETS[name] = _described(name, msgspec.convert(content, _Row), Path.cwd())
            follow(place(entry) for entry in functions_in(PRESETS[name].axes))  # the user has installed them
        except (ValueError, msgspec.MsgspecError) as error:
            refuse("rlplay.algorithms", name, str(error))
