"""What a script does next, whoever plays it: the screen (`ui/player.py`) and a run without one (`engine/headless.py`).

A question stays open until the claims after it, or until the next words: a `Reveal` then checks the claims and answers
the question. What `you` asks the learner to do may lie in between: it brings the answer about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import cast

from rlplay.scenario.claim import Expect
from rlplay.scenario.script import Ask, Change, Exercise, Prefer, Rewind, Say, ScreenVerb, Step, Train, Watch, You


@dataclass(frozen=True)
class Reveal:
    """Check `claims`, then answer the question that was `asked` before them, if there is one."""

    claims: list[Expect]
    asked: Ask | None


Action = Say | Ask | You | Exercise | Watch | Train | Change | Prefer | Rewind | ScreenVerb | Reveal


class Interpreter:
    """Where a script is: `at` of its `steps` were played, `asked` is the question that is open."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self.at = 0
        self.asked: Ask | None = None

    @property
    def finished(self) -> bool:
        """Whether every step was played; a question may still be open."""
        return self.at >= len(self.steps)

    @property
    def action(self) -> Action | None:
        """What is to be done now; None at the end."""
        step = None if self.finished else self.steps[self.at]
        if isinstance(step, Expect):
            claims = takewhile(lambda each: isinstance(each, Expect), self.steps[self.at :])
            return Reveal(list(cast("Iterator[Expect]", claims)), self.asked)
        if self.asked is not None and (step is None or isinstance(step, Say | Ask | Exercise)):
            return Reveal([], self.asked)
        return step

    def done(self) -> None:
        """The action is done."""
        action = self.action
        if isinstance(action, Reveal):
            self.at, self.asked = self.at + len(action.claims), None
        elif action is not None:
            self.at, self.asked = self.at + 1, action if isinstance(action, Ask) else self.asked


def goes_back_to(step: Rewind, finished: int, under_way: bool) -> int:
    """The update to whose end `step` goes back, of a run that has `finished` so many; -1 at the start of the run.

    An undo gives up the update that is `under_way`; else it takes back the last one that is finished.
    """
    if step.update is not None:
        return step.update
    return finished if under_way else finished - 1


def begins_within(step: Step) -> bool:
    """Whether `step` needs the run where the script left it within an update: every step that moves the engine does,
    but for whole updates, which come to the same."""
    if isinstance(step, You):
        return begins_within(step.step)
    whole = isinstance(step, Train) and step.until == "update"
    return not (whole or isinstance(step, Say | Ask | Watch | ScreenVerb | Expect))
