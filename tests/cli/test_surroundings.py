"""What a shell may hand over that cannot be used: one line, before the terminal changes."""

from __future__ import annotations

import sys
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


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
def test_a_current_folder_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    status, out, err = called(capsys, "run", "two-plus-two", "--updates", "1")
    assert (status, out) == (2, "")
    assert err == "rlplay: the current folder is gone; go to another: No such file or directory\n"
