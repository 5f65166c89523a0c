"""Runs the command line inside the test."""

from __future__ import annotations

import pytest

from rlplay.cli import main as cli


def called(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit status, output and error output of a command line."""
    with pytest.raises(SystemExit) as left:
        cli.main(list(args))
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err
