"""The log shows where the user's own code failed, not the engine's way there."""

from __future__ import annotations

import traceback
from pathlib import Path

from rlplay.algorithms.setting_values import decoded
from rlplay.ui.log.traceback_text import folded


def a_traceback(tmp_path: Path) -> list[str]:
    own = tmp_path / "bad.py"
    own.write_text("def f(settings):\n    return len(settings) / nothing\n")
    scope: dict[str, object] = {}
    exec(compile(own.read_text(), str(own), "exec"), scope)
    try:
        scope["f"]([])  # type: ignore[operator]
    except NameError:
        return traceback.format_exc().splitlines()
    raise AssertionError("it must fail")


def test_the_user_s_frame_and_the_error_stay(tmp_path: Path) -> None:
    try:
        decoded({"epsilon": object()})  # type: ignore[dict-item]
    except Exception:
        engine = traceback.format_exc().splitlines()[1:-1]
    lines = a_traceback(tmp_path)
    both = [lines[0], *engine, *lines[1:]]
    shown = folded(both)
    assert any("bad.py" in line for line in shown)
    assert shown[-1] == lines[-1]
    assert "NameError" in shown[-1]
    assert not any("/rlplay/algorithms/" in line for line in shown)
    assert any("of rlplay and libraries" in line for line in shown)
    assert not any(line.strip() and not line.strip(" ^~") for line in shown), "no rows of marks"


def test_other_text_is_left_alone() -> None:
    lines = ["engine ready", "  in two lines", "", "done"]
    assert folded(lines) == lines
