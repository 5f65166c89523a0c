"""The moment before the screen."""

from __future__ import annotations

import pytest

from rlplay.cli.splash import splash


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.cli.splash.on_a_terminal", lambda: True)


def test_the_title_stays_for_whoever_takes_over(capsys: pytest.CaptureFixture[str]) -> None:
    with splash("Learn to think"):
        pass
    shown = capsys.readouterr().out
    assert "rlplay" in shown
    assert "Learn to think" in shown
    assert "\x1b[?1049l" not in shown


def test_the_shell_comes_back_if_nobody_takes_over(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ImportError), splash("x" * 500):
        raise ImportError
    assert capsys.readouterr().out.endswith("\x1b[?25h\x1b[?1049l")


def test_a_pipe_gets_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.cli.splash.on_a_terminal", lambda: False)
    with splash("Learn to think"):
        pass
    assert capsys.readouterr().out == ""
