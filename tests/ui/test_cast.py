"""A film of a run shows, in a terminal, the replay's screen after each update."""

from __future__ import annotations

import json
from pathlib import Path

import pyte
import pytest

from rlplay.export.atomic_output import ExportError
from rlplay.trace.runfile import RunWriter
from rlplay.ui.cast import SIZE, export_cast
from tests.hostile import letters
from tests.recorded import synthetic_run, synthetic_started

UPDATES = 3


def test_each_frame_is_the_replay_after_an_update(tmp_path: Path) -> None:
    out = tmp_path / "run.cast"
    export_cast(synthetic_run(tmp_path / "run.rlplay", updates=UPDATES), out)
    head, *events = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert (head["version"], head["width"], head["height"]) == (2, *SIZE)
    screen = pyte.Screen(*SIZE)
    stream = pyte.Stream(screen)
    times = [time for time, _, _ in events]
    assert times == sorted(times)
    for number, (_, kind, written) in enumerate(events[:UPDATES], start=1):
        assert kind == "o"
        stream.feed(written)
        assert f"update {number} of {UPDATES}" in screen.display[0]
        assert "Word problems" in screen.display[0]
    body = "".join(written for _, _, written in events[1:UPDATES])
    assert "\x1b" not in letters(body, SIZE), "positions and styles alone"


def test_a_run_without_tokens_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run.rlplay"
    RunWriter.create(run, synthetic_started()).close()
    with pytest.raises(ExportError, match="no update with tokens"):
        export_cast(run, tmp_path / "run.cast")
