"""What is printed: visible whoever prints it, and orders to the terminal only where they are meant."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

from rlplay.cli import main as cli
from rlplay.cli.splash import splash
from rlplay.printing import VisibleStream, raw_stream, visible_output

EVIL = "x\x1b]0;owned\x07\x9b31m\u202e\n\x7f"
SHOWN = "x␛]0;owned␇◦31m◦\n␡"


@pytest.fixture
def careless() -> Iterator[None]:
    """A command that prints foreign text in every way there is."""

    @cli.cli.command("careless")
    def command() -> None:
        print(EVIL, end="")
        click.echo(EVIL, nl=False)
        sys.stdout.writelines([EVIL])
        print(EVIL, file=sys.stderr)
        click.echo(EVIL, err=True)
        raise RuntimeError(EVIL)

    yield
    del cli.cli.commands["careless"]


def test_whatever_a_command_prints_comes_out_visible(
    careless: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLPLAY_DEBUG", "1")
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit):
        cli.main(["careless"])
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert out == SHOWN * 3
    assert err.count("x␛]0;owned␇◦31m◦") == 4, "printed, echoed, in the traceback and in the message"
    assert all(character.isprintable() or character == "\n" for character in out + err)


def test_a_visible_stream_otherwise_behaves_like_its_stream() -> None:
    class Terminal(io.StringIO):
        encoding: Any = "utf-8"

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    stream: Any = VisibleStream(terminal)
    assert stream.write(EVIL) == len(EVIL)
    assert stream.isatty()
    assert stream.encoding == "utf-8"
    assert raw_stream(stream) is terminal
    assert raw_stream(terminal) is terminal


def test_the_splash_writes_escapes_raw_and_its_title_visibly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlplay.cli.splash.on_a_terminal", lambda: True)
    with visible_output(), splash(EVIL):
        pass
    shown = capsys.readouterr().out
    assert shown.startswith("\x1b[?1049h")
    assert "owned" in shown
    assert "\x1b]" not in shown
    assert "\x9b" not in shown
