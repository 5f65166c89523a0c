"""A pretended screen and engine, on which a script is played."""

import asyncio

from rlplay.link.messages import Advance, Rewind, Set, Status
from rlplay.scenario.expect import ClaimResult
from rlplay.scenario.script import parse
from rlplay.trace.update import PHASES
from rlplay.ui.lesson.lesson_on_screen import Lesson

BEGUN = {"beta": 0.0}


class FakeView:
    """A screen whose engine obeys at once, or does nothing at all while `stuck`."""

    def __init__(self) -> None:
        self.sent, self.looks, self.captions, self.asked, self.progress = [], [], [], [], []
        self.guesses = []
        self.freed = 0
        self.begun = BEGUN  # a rewind keeps what was changed before the first update
        self.stuck = False
        self.colour = None
        self.status = Status(running=False, update=0, phase="sample", settings=BEGUN)
        self.player: Lesson | None = None

    async def send(self, command) -> None:
        self.sent.append(command)
        if self.stuck:
            return
        match command:
            case Advance():
                self.tell(running=True)
                update, phase = self.status.update, PHASES.index(self.status.phase)
                if command.until == "update":
                    update, phase = update + command.count, 0
                elif command.until == "phase":
                    update, phase = update + (phase + command.count) // 5, (phase + command.count) % 5
                self.tell(running=False, update=update, phase=PHASES[phase])
            case Set(changes):
                self.tell(settings={**self.status.settings, **changes})
            case Rewind(update):
                self.tell(update=update, phase="sample", settings=self.begun)

    def tell(self, **changes) -> None:
        fields = {name: getattr(self.status, name) for name in self.status.__struct_fields__}
        self.status = Status(**{**fields, **changes})
        self.player.receive(self.status)

    def look(self, verb, argument) -> None:
        self.looks.append((verb, argument))

    def say(self, text, outcomes, hint) -> None:
        self.captions.append((text, [outcome.passed for outcome in outcomes], hint))

    def ask(self, question, choices, wanted) -> None:
        assert choices
        self.asked.append(question)
        self.wanted = wanted

    def guess(self, metric, ahead, way) -> None:
        self.guesses.append((metric, ahead, way))

    def under_way(self, update, target) -> None:
        self.progress.append((update, target))

    def check(self, expect) -> ClaimResult:
        return ClaimResult(expect.text, expect.text == "Longer", 9.5, "")

    def question(self, _claim) -> None:
        return None

    def shows(self, _verb, argument) -> bool:
        return self.colour is None or argument == self.colour

    async def viewed(self, _seconds) -> None:
        pass

    def over(self) -> None:
        self.freed += 1


def playing(script, pace=lambda _text: 0.0) -> tuple[Lesson, FakeView]:
    stage = FakeView()
    stage.player = Lesson(parse(script), stage, pace)
    stage.player.receive(stage.status)
    return stage.player, stage


async def settled(player) -> asyncio.Task:
    task = asyncio.create_task(player.play())
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def turns() -> None:
    """Let everything that waits go on."""
    for _ in range(10):
        await asyncio.sleep(0)
