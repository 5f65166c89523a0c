"""The door of a trainer: where it listens, who may enter, and what lies beside the recording."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlplay.link import framing
from rlplay.link import trainer_address as remote
from rlplay.link.trainer_address import Door, NoDoorError, enters, find, forget, listen

DOOR = Door("127.0.0.1", 7, "ab" * 32)


def test_a_door_is_there_until_it_is_forgotten(tmp_path: Path) -> None:
    forget(tmp_path)
    listen(tmp_path)[0].close()
    (tmp_path / "remote.json").unlink()
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "remote.json").symlink_to(tmp_path / "elsewhere")
    sock, door = listen(tmp_path)
    with sock:
        assert sock.getsockname() == ("127.0.0.1", door.port)
        assert find(tmp_path) == door
        assert (tmp_path / "elsewhere").read_text() == "kept", "it follows no link that a recording brought"
        assert (tmp_path / "remote.json").stat().st_mode & 0o777 == 0o600
        again, other = listen(tmp_path)
        again.close()
        assert find(tmp_path) == other != door
    for _ in range(2):
        forget(tmp_path)
        with pytest.raises(NoDoorError, match="its trainer has ended"):
            find(tmp_path)


@pytest.fixture
def both() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@pytest.mark.parametrize(
    ("token", "entered"), [("ab" * 32, True), ("ab" * 31 + "aa", False), ("", False), ("ab" * 200, False)]
)
def test_who_has_the_token_enters(both: tuple[socket.socket, socket.socket], token: str, entered: bool) -> None:
    screen, trainer = both
    screen.sendall(framing.pack(token.encode()))
    assert enters(trainer, DOOR) is entered
    assert trainer.gettimeout() is None or not entered, "a screen may be silent for as long as it likes"


def test_who_says_nothing_is_waited_for_only_so_long(
    both: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PATIENCE", 0.01)
    screen, trainer = both
    assert not enters(trainer, DOOR)
    screen.close()
    assert not enters(trainer, DOOR)
