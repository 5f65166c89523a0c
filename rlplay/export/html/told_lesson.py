"""A scenario's script beside the recorded run: what it says, asks and claims, each at the place where it was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlplay.export.html.frames import Shown
from rlplay.export.html.playback import Playback
from rlplay.scenario.claim import Expect
from rlplay.scenario.expect import ClaimResult, check
from rlplay.scenario.player import ScriptPlayer
from rlplay.scenario.script import Ask, Exercise, Pace, Step, Write, You
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Choice, Finished, Rewound, Stepped


class ToldLesson:
    """Plays a script against what happened; both the script's presenter and its engine.

    It ends where the run did something else than the script: from there on its sentences would not be about this run.
    """

    def __init__(self, steps: Sequence[Step], playback: Playback) -> None:
        self.items: list[Shown] = []
        self._playback = playback
        self._script = ScriptPlayer(steps, self, self)
        self._question: int | None = None  # the item of the question that is open
        self._look: Shown = {}  # what the script wants to be seen

    async def play(self) -> bool:
        """Fill `items`; whether the script was told to its end."""
        while self._script.action is not None:
            if not await self._script.play():
                return False
        return True

    # What the script says

    def say(self, text: str) -> None:
        """A sentence."""
        self._add({"say": text})

    remark = say

    def check(self, claim: Expect) -> ClaimResult:
        """Measure a claim on the run so far."""
        return check(claim, self._playback.run.history, self._playback.run.ended)

    async def inquire(self, claims: Sequence[Expect]) -> None:
        """A recording has no engine to ask."""

    def reveal(self, outcomes: list[ClaimResult], about: Ask | Exercise | None) -> None:
        """The outcomes of claims, but for those that only the engine could check, and the answer to a question."""
        known = [each for each in outcomes if each.passed is not None]
        claims = [{"passed": each.passed, "finding": each.finding} for each in known]
        answered = {"answers": self._question} if isinstance(about, Ask) else {}
        self._add({"claims": claims, **answered})

    def look(self, verb: str, argument: Any) -> None:
        """A verb of the screen: the page follows the colour and the curve."""
        if verb in ("lens", "curve") and isinstance(argument, str):
            self._look[verb] = argument
            if self.items:
                self.items[-1] |= {verb: argument}

    async def ask(self, question: Ask) -> bool:
        """A question, which the reader answers before going on."""
        self._question = len(self.items)
        self._add(
            {
                "ask": question.question,
                "choices": question.choices,
                "answer": question.answer,
                "because": question.because,
            }
        )
        return True

    async def turn(self, task: You | Exercise) -> bool:
        """What the learner was to do; the recording shows it done."""
        self._add({"do": task.text})
        return False

    async def write(self, task: Write) -> None:
        """What the learner was to write; the reader has no engine to try it on."""
        self._add({"do": task.text})

    def _add(self, item: Shown) -> None:
        frame, phase = self._playback.place
        self.items.append({**item, "frame": frame, "phase": phase, **self._look})

    # What the script does

    @property
    def update(self) -> int:
        """The number of finished updates."""
        newest = self._playback.run.newest
        return 0 if newest is None else newest.number - self._playback.under_way

    @property
    def under_way(self) -> bool:
        """Whether another update is."""
        return self._playback.under_way

    @property
    def asks(self) -> Sequence[int]:
        """Labels are on record."""
        return [0]

    async def advance(self, until: Pace, count: int) -> bool:
        """Take so many updates, phases or steps of the recording."""
        for _ in range(count):
            match until:
                case "update":
                    done = self._playback.until(lambda record: isinstance(record, Finished))
                    self._script.speak_up()
                case "phase":
                    done = self._playback.phase()
                case "step":
                    done = self._playback.until(lambda record: isinstance(record, Stepped))
                case _:
                    done = True
            if not done:
                return False
        return True

    async def rewind(self, update: int) -> bool:
        """Take the recording's way back, if it leads there."""
        if update < 0:
            return True
        while (record := self._playback.next_record()) is not None and not isinstance(record, Rewound):
            if isinstance(record, Finished):
                return False
            self._playback.take()
        if record is None or record.update != update:
            return False
        self._playback.take()
        self._playback.begin()
        return True

    async def set(self, settings: SomeSettings) -> None:
        """The changes are on record."""

    async def prefer(self, pair: int, choice: Choice) -> None:
        """The labels are on record."""

    async def withhold(self, tokens: list[int]) -> None:
        """The tokens are on record."""
