"""What is kept between starts: so far the theme, in a small file of rlplay's own folder."""

from __future__ import annotations

import json
from pathlib import Path

from rlplay import paths


def file() -> Path:
    """Where it is kept; it need not exist yet."""
    return paths.home() / "preferences.json"


def theme() -> str | None:
    """The name of the theme chosen last; None if none was, or if the file cannot be read."""
    try:
        name = json.loads(file().read_text(encoding="utf-8"))["theme"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def keep_theme(name: str) -> None:
    """Start with this theme from now on. Raises OSError if that cannot be written down."""
    file().parent.mkdir(parents=True, exist_ok=True)
    file().write_text(json.dumps({"theme": name}) + "\n", encoding="utf-8")
