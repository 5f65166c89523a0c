"""An app that is fed hostile words, taken to every screen, and read at its last stage: what it writes to a terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.screen import Screen

from rlplay.link.messages import AnyEvent
from rlplay.trace.questions import (
    Continue,
    Continued,
    Estimate,
    Estimated,
    Imagined,
    Judge,
    Judged,
    LayersRead,
    Neighbours,
    NeighboursFound,
    Peek,
    Peeked,
    ReadLayers,
    Recall,
    Recalled,
    Tail,
    Tried,
    TryCode,
    Weigh,
    Weighed,
    WhatIf,
)
from rlplay.trace.records import Array, Sampled
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.teachers import Move, TakeAway, TakenAway, Taught, TaughtCourse, Teach, TeachCourse
from rlplay.ui.app import RlplayApp
from rlplay.ui.bindings import classes
from rlplay.ui.compat import lines_of
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.over_another import Dialogue, MainScreen
from rlplay.ui.parts.typed_list import TypedList
from tests.hostile import letters
from tests.poisoned import Poison, lesson, made, records
from tests.ui.patches import recorded_writes
from tests.ui.rehearsed import answers, cut
from tests.ui.stage import Fed, keys_done, taken


def all_screens() -> set[str]:
    """The names of all dialogues there are."""
    return {
        kind.__name__
        for kind in classes()
        if issubclass(kind, Screen) and kind not in (Dialogue, Following, MainScreen, TypedList)
    }


def _full(kind: type[Any], **given: Any) -> Any:
    """An answer of the engine's with something in every text field but those `given`."""
    return msgspec.structs.replace(made(kind), **{"refused": "", **given})


class Answering(Fed):
    """A live source that answers every question with hostile words; once it `refuses`, with why not."""

    def __init__(self, poison: Poison, path: Path) -> None:
        super().__init__(lesson(poison))
        self.poison, self.path = poison, path
        self.refuses = False
        self.title, self.question = poison.word("source: title"), poison.word("source: question")

    def say(self, *events: AnyEvent) -> None:
        """Let these happen, every text in them poisoned."""
        self.put(*map(self.poison.into, events))

    def begin(self) -> None:
        """Let the run have begun: the engine waits before the first update, where a lesson begins."""
        self.records(records(self.poison)[:1])
        self.status(0)

    def go_on(self) -> None:
        """Let the rest of a whole run happen."""
        self.records(records(self.poison)[1:])
        self.status(3)

    def fall_ill(self) -> None:
        """Let most answers be cut, for which there is something to try."""
        for number in range(4, 7):
            self.records(map(self.poison.into, cut(number)))
        self.status(6)

    async def send(self, command: Any) -> None:
        await super().send(command)
        if isinstance(command, Rehearse):
            self.put(*map(self.poison.into, answers(command)))
        answer = self._answer(command)
        if answer is not None:
            said = self.poison.into(msgspec.structs.replace(answer, refused="x") if self.refuses else answer)
            # What was asked comes back as it was: the screen asks again where it differs.
            same = {Imagined: ("changes",), Tried: ("exercise",)}.get(type(said), ())
            self.put(msgspec.structs.replace(said, **{name: getattr(command, name) for name in same}))

    def _shares(self, number: int) -> Array:
        """Something for each token of an update."""
        sampled = [each for each in records(self.poison) if isinstance(each, Sampled) and each.update == number]
        return np.linspace(-0.01, 0.02, len(sampled[-1].token_ids), dtype=np.float32)

    def _answer(self, command: Any) -> Any:  # noqa: PLR0911, PLR0912 - one for each question
        pieces = {1: "x", 2: "x"}
        match command:
            case Peek(prefix):
                n = len(prefix.answer)
                return _full(
                    Peeked, prefix=prefix, prompt_texts=["x"] * 3, texts=["x"] * n, top_ids=[1, 2], top=[0.6, 0.4],
                    pieces=pieces | dict.fromkeys(prefix.answer, "x"), probabilities=[0.5] * n,
                    ref_top=[0.5, 0.5], ended=False,
                )  # fmt: skip
            case Continue(prefix, writer):
                tails = [Tail([1, 2], ["x", "x"], False, 1.0)] * 6
                return _full(Continued, prefix=prefix, writer=writer, tails=tails, pieces=pieces)
            case Estimate(prefix, writer):
                return _full(Estimated, prefix=prefix, writer=writer, done=True, interval="Wilson")
            case Recall(prefix, ids):
                row = [0.5] * len(ids)
                return _full(Recalled, prefix=prefix, token_ids=ids, updates=[1], probabilities=[row], done=True)
            case Judge(pair):
                return _full(Judged, pair=pair, update=3, scores={"x": (0.5, 0.25)})
            case TryCode(exercise, _, number):
                return _full(Tried, exercise=exercise, number=number, passed=False)
            case WhatIf(changes):
                return Imagined(changes, 3, refused="x")
            case Teach(target, update, by):
                return Taught(target, update, by, before=-0.5, after=-0.4, shares=self._shares(by), rest={"x": 0.1})
            case TakeAway(target, update, tokens):
                return TakenAway(target, update, tokens, before=-0.5, after=-0.4, without=-0.45)
            case TeachCourse(target):
                return TaughtCourse(target, moves=[Move(0, 1, -0.5, 0.1, 0.1, 0.0, 0.0)], done=True)
            case Weigh(update):
                return _full(Weighed, update=update, moves=[], squares={}, done=True)
            case ReadLayers(prefix, token, update):
                return _full(LayersRead, prefix=prefix, token_id=token, update=update, pieces=pieces | {token: "x"})
            case Neighbours(token, update):
                return _full(NeighboursFound, token_id=token, update=update, pieces=pieces | {token: "x"})
        return None


class Tour:
    """An app that is taken everywhere, and what it shows on the way."""

    def __init__(self, app: RlplayApp, pilot: Pilot[Any], written: list[str]) -> None:
        """`written` gets what the app writes."""
        self.app, self.pilot, self._written = app, pilot, written
        self.screens: set[str] = set()
        self.shown = ""
        self.bytes = self.looks = 0

    async def settle(self) -> None:
        """What was let happen and pressed is on the screen."""
        await self.pilot.pause()
        await taken(self.pilot)
        await keys_done(self.pilot)
        self.app.refresher.everything()
        await self.pilot.pause()

    async def look(self) -> None:
        """Read what was written since the last look. AssertionError if a terminal would obey any of it."""
        await self.settle()
        screen, written = self.app.screen, "".join(self._written)
        self._written.clear()
        self.bytes += len(written.encode())
        self.looks += 1
        self.shown += letters(written, self.app.size)
        for strip in lines_of(self.app):
            assert cell_len(strip.text) == self.app.size.width, strip.text
            actions = [str(segment.style.meta.get("@click")) for segment in strip if segment.style is not None]
            assert not [action for action in actions if "app." in action], "markup became an action"
        self.screens.add(type(screen).__name__)

    async def press(self, *keys: str) -> None:
        """One after the other, looking after each."""
        for key in keys:
            await self.pilot.press(key)
            await self.look()

    async def perform(self, verb: str, *keys: str) -> None:
        """What a verb opens, with the keys pressed there, and back to the main screen."""
        await self.app.play.perform(verb)
        await self.pilot.pause()
        if self.app.screen is not self.app.panels.main:
            await self.look()
            await self.press(*keys)
        await self.home()

    async def home(self) -> None:
        """Back to the main screen."""
        for screen in reversed(self.app.screen_stack[1:]):
            screen.dismiss(None)
            await self.pilot.pause()

    def unseen(self, poison: Poison) -> Iterator[str]:
        """Fields whose words were on no screen."""
        return (field for field, marker in poison.fields.items() if marker not in self.shown)


@asynccontextmanager
async def touring(app: RlplayApp, size: tuple[int, int]) -> AsyncIterator[Tour]:
    """A tour of an app whose driver is recorded."""
    with recorded_writes() as written:
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Tour(app, pilot, written)
