"""What the screen's parts tell each other; every message bubbles up to the app, which alone acts on it."""

from __future__ import annotations

from typing import Any

from textual.message import Message


class CursorMoved(Message):
    """The cursor went to token `token` of completion `completion` (both from 0, as sampled)."""

    def __init__(self, completion: int, token: int) -> None:
        super().__init__()
        self.completion = completion
        self.token = token


class Reflowed(Message):
    """The lines of the token map broke elsewhere, so that what stands beside them has to follow."""


class UpdatePicked(Message):
    """The user wants to look at update `number`: from the curves or a list."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Perform(Message):
    """Carry out the verb `name` of the registry, as a key or a script would, with a script's argument."""

    def __init__(self, name: str, argument: Any = None) -> None:
        super().__init__()
        self.name = name
        self.argument = argument


class Drafted(Message):
    """Settings were changed in the knobs and not applied yet: the `changes` so far."""

    def __init__(self, changes: dict[str, Any]) -> None:
        super().__init__()
        self.changes = changes


class Compared(Message):
    """The user wants to see the update as trained in place of as it would be, or the reverse."""


class Wandered(Message):
    """The cursor should go on among the tokens while something else has the focus."""

    def __init__(self, along: int = 0, across: int = 0) -> None:
        super().__init__()
        self.along = along
        self.across = across


class Answered(Message):
    """The user predicted choice `choice` (from 0) of the question on the screen."""

    def __init__(self, choice: int) -> None:
        super().__init__()
        self.choice = choice
