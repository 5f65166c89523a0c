"""The YAML file of a judge or a teacher, read again whenever it changes, and the reward function it stands for."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlplay.containment import OwnError
from rlplay.plain_yaml import PlainYamlError, plain_yaml
from rlplay.tasks.task import Completion, Message, Steps
from rlplay.trace.text import quote
from rlplay.trusted import SERVED, UntrustedError, source, without_password
from rlplay.user_code import in_one_line


class Served(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of such a file; it has either a `judge` or a `teacher`, an address that ends in /v1 mostly."""

    model: str
    prompt: str  # with {prompt}, for a judge also {answer}, and any column of the data
    judge: str = ""
    teacher: str = ""
    system: str = ""  # of a judge: a system message
    range: tuple[float, float] = (0.0, 10.0)  # of a judge: the scores that it may give
    field: str = ""  # of a judge: it replies with JSON, and this is the score in it
    steps: bool = False  # of a teacher: a score for each token instead of their mean
    options: dict[str, Any] = {}
    key: str = ""  # the environment variable that holds the API key; empty: none is sent
    parallel: int = 8  # requests at once
    seconds: float = 60.0  # for one request
    retries: int = 3
    price: tuple[float, float] | None = None  # of a million tokens, in a prompt and in a reply

    @property
    def address(self) -> str:
        """The server's."""
        return (self.judge or self.teacher).rstrip("/")

    def secret(self, place: str) -> str:
        """The API key, which goes with each request; "" if none does. Raises OwnError, one line, if it is no key."""
        if not self.key:
            return ""
        if not (secret := os.environ.get(self.key, "").strip()):
            raise OwnError(f"{place}: the environment variable {self.key} is not set; it holds the key for this server")
        if not (secret.isascii() and secret.isprintable()):
            raise OwnError(
                f"{place}: the environment variable {self.key} is no key: it has a line break, or a character that is "
                "not ASCII"
            )
        return secret


Ask = Callable[..., Awaitable[Sequence[float | Steps | None]]]


class ServedFile:
    """The reward of a file: a function of the user's that is made anew when the file changes."""

    def __init__(self, path: Path, make: Callable[[str, str, Served], Ask]) -> None:
        """`make` gives the function for the file's place, the reward's name and the content."""
        self.path, self.name, self._make = path, path.stem, make
        self._seen, self._current = b"", None

    _current: Ask | None

    @property
    def place(self) -> str:
        """The file, for a message."""
        return str(self.path)

    def current(self) -> Ask:
        """The reward function. Raises OwnError, one line, if the file is not trusted, or says what cannot be."""
        try:
            content = source(self.path)
        except UntrustedError as error:
            raise OwnError(str(error)) from error
        except OSError as error:
            raise OwnError(f"{self.path}: {error.strerror}") from None
        if self._current is None or content != self._seen:
            self._current = self._make(self.place, self.name, _read(self.path, content))
            self._seen = content
        return self._current

    def failed(self, error: BaseException) -> OwnError:
        """The error in one line, with the file."""
        return OwnError(f"{self.place}: {in_one_line(error)}")


def is_served(entry: str) -> bool:
    """Whether the name of a reward means such a file."""
    return entry.endswith(SERVED)


def _read(path: Path, content: bytes) -> Served:
    try:
        found = msgspec.convert(plain_yaml(content.decode()), Served)
    except (PlainYamlError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise OwnError(f"{path}: {error}") from None
    if bool(found.judge) == bool(found.teacher):
        raise OwnError(f"{path}: it has a judge or a teacher: the address of the server that is asked")
    if found.address != without_password(found.address):
        raise OwnError(
            f"{path}: {without_password(found.address)} holds a password, which would be shown; "
            "rlplay sends a key: set an environment variable to it, and write key: ITS_NAME"
        )
    if not found.address.startswith(("http://", "https://")):
        raise OwnError(f"{path}: an address begins with http:// or https://; got {quote(found.address)}")
    if found.judge and "{answer}" not in found.prompt:
        raise OwnError(f"{path}: the judge's prompt has no {{answer}}, so it would not see what it judges")
    for name, least in (("parallel", 1), ("seconds", 0.001), ("retries", 0)):
        if not getattr(found, name) >= least:
            raise OwnError(f"{path}: {name} is {least:g} or more; got {getattr(found, name):g}")
    if not found.range[0] < found.range[1]:
        raise OwnError(f"{path}: range is the lowest and the highest score, as in [0, 10]; got {list(found.range)}")
    return found


def as_text(said: str | Completion) -> str:
    """Text as it is; of messages the one's content, or of several also who wrote them."""
    if isinstance(said, str):
        return said
    messages: list[Message] = said
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)
