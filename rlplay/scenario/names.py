"""The folder and the names of the bundled scenarios; imports little, because shell completion uses it."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGED = Path(__file__).parent.parent / "scenarios"
_CHECKOUT = Path(__file__).parent.parent.parent / "scenarios"


def folder() -> Path:
    """The bundled scenarios: inside the installed package, or beside it in a checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


COURSE = "course"
"""The file in the folder of scenarios that is none: it puts them in order."""


def bundled() -> list[str]:
    """Names of the scenarios that come with rlplay, sorted."""
    return sorted(path.stem for path in folder().glob("*.yaml") if path.stem != COURSE)


def looks_like_path(name: str) -> bool:
    """Whether `name` means a file rather than a bundled scenario."""
    return name.endswith((".yaml", ".yml")) or "/" in name or "\\" in name


def looks_like_folder(name: str) -> bool:
    """Whether a model's `name` means a folder rather than a name on Hugging Face's hub: `./mine`, `a/b/c`."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1


def looks_like_code(name: str) -> bool:
    """Whether `name` is meant as a share code (see `share.py`), even a damaged one."""
    return re.match(r"rlp\d+-", name) is not None
