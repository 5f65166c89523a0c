"""The screen as a lesson's player sees it, so that it can be tested without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rlplay.link.messages import AnyCommand
from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import Outcome


class Stage(Protocol):
    """What a player needs of the screen."""

    async def send(self, command: AnyCommand) -> None:
        """Pass a command to the engine."""

    def look(self, verb: str, argument: Any) -> None:
        """Carry out a verb of the screen."""

    def say(self, text: str, outcomes: Sequence[Outcome], hint: str) -> None:
        """Show a scenario's text and the outcomes of its claims."""

    def ask(self, question: str, choices: Sequence[str], wanted: str) -> None:
        """Ask a question, for a "prediction" or an "answer"; the choice comes back through `Player.answered`."""

    def under_way(self, update: int, target: int) -> None:
        """Show the progress of the engine towards the update at which the script continues."""

    def check(self, expect: Expect) -> Outcome:
        """Check a claim against the records so far."""

    def shows(self, verb: str, argument: Any) -> bool:
        """Whether the screen is as the verb with this argument leaves it, as far as that can be seen."""

    async def viewed(self, seconds: float | None) -> None:
        """Wait until the user has closed the dialogue that was opened; close it after `seconds`."""

    def over(self) -> None:
        """The script has released the screen."""
