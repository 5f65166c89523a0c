"""A driver that TEXTUAL_DRIVER names and that is none: one line, before the terminal changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import called
from tests.recorded import synthetic_run

NO_DRIVERS = (
    "x",
    ":",
    "nowhere:Driver",
    "os:system",
    "textual.driver:nothing",
    "../x:y",
    "\x1b]0;owned\x07:x",
    "x" * 9999,
)


@pytest.mark.parametrize("name", NO_DRIVERS, ids=range(len(NO_DRIVERS)))
def test_an_unknown_driver_is_refused_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", name)
    run = synthetic_run(tmp_path / "a.rlplay", updates=1)
    for words in (["replay", str(run)], ["two-plus-two"]):
        status, out, err = called(capsys, *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("rlplay: TEXTUAL_DRIVER=")
        assert err.endswith("unset it\n")
        assert "\x1b" not in err
