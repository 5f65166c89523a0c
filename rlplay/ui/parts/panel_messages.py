"""Messages between the parts of the screen. They bubble up to the app; only the app acts on them."""

from __future__ import annotations

from typing import Any

from textual.message import Message

from rlplay.trace.kinds import SomeSettings


class CursorMoved(Message):
    """The cursor moved to token `token` of completion `completion` (both from 0, as sampled)."""

    def __init__(self, completion: int, token: int) -> None:
        super().__init__()
        self.completion = completion
        self.token = token


class Reflowed(Message):
    """The token map wrapped its lines again; the panel beside it has to follow."""


class UpdatePicked(Message):
    """The user picked update `number` in the curves or in a list."""

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
    """The user changed settings but did not apply them yet: the `changes` so far."""

    def __init__(self, changes: SomeSettings) -> None:
        super().__init__()
        self.changes = changes


class PreviewToggled(Message):
    """The user switched between the update as trained and the update as it would be."""


class CursorStepped(Message):
    """Move the cursor among the tokens while another widget has the focus."""

    def __init__(self, along: int = 0, across: int = 0) -> None:
        super().__init__()
        self.along = along
        self.across = across


class Answered(Message):
    """The user predicted choice `choice` (from 0) of the question on the screen."""

    def __init__(self, choice: int) -> None:
        super().__init__()
        self.choice = choice
