"""An engine that answers who taught a token, and rehearses, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.cli import repair, teachers
from rlplay.engine import asked_run
from rlplay.trace.questions import Peek, Peeked
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.runfile import RunReader
from rlplay.trace.teachers import Move, TakeAway, TakenAway, Taught, TaughtCourse, Teach, TeachCourse
from tests.health.remedies.made_up_answers import records


class MadeUpEngine:
    """Answers as an engine does: token i of T has the share i / 1000, every second one negative; the first answer 0."""

    def __init__(self, run: Path, refused: str = "") -> None:
        self.run, self.refused = run, refused
        self.asked: list[Any] = []
        self.helps = True  # the first change of a rehearsal

    def answers(self, question: Any, interrupted: Callable[[], bool]) -> Iterator[Any]:
        self.asked.append(question)
        match question:
            case Peek(prefix):
                yield Peeked(prefix, prompt_ids=[1], answer_ids=[ord(character) for character in prefix.text])
            case Teach(target, update, by):
                with RunReader(self.run) as reader:
                    sampled = reader.load(by).sampled
                assert sampled is not None
                places = np.arange(len(sampled.token_ids))
                shares = np.where(places % 2, -places, places).astype(np.float32) / 1000
                shares[: sampled.offsets[1]] = 0
                first_order = float(shares.sum()) + 0.125
                yield Taught(
                    target, update, by, refused=self.refused, before=-1.0, after=-0.5, shares=shares,
                    batch=float(shares.sum()), earlier=0.25, earlier_by=[(0, 1, 0.25)], rest={"weight decay": -0.125},
                    first_order=first_order,
                )  # fmt: skip
            case TakeAway(target, update, tokens):
                yield TakenAway(target, update, tokens, before=-1.0, after=-0.5, without=-0.75)
            case Rehearse(since, updates, changes):
                for index in range(len(changes)):
                    for number in range(since + 1, since + updates + 1):
                        yield Rehearsed(
                            0, index, number, records=records(number, 0.0 if index == 1 and self.helps else 1.0)
                        )
                yield Rehearsed(0, len(changes), done=True)
            case TeachCourse(target):
                yield TaughtCourse(target, moves=[])
                moves = [Move(0, 1, -1.0, 0.5, 0.375, 0.0, 0.0), Move(1, 3, -0.5, 0.5, 0.25, 0.125, 0.0625)]
                yield TaughtCourse(target, refused=self.refused, moves=moves, done=True)


def made_up_engine(monkeypatch: pytest.MonkeyPatch, run: Path) -> MadeUpEngine:
    """The engine that `rlplay teachers` and `rlplay try` get for a run from now on."""
    made_up = MadeUpEngine(run)

    @contextmanager
    def asked(_job: object, _progress: object) -> Iterator[MadeUpEngine]:
        yield made_up

    monkeypatch.setattr(asked_run, "asked_run", asked)
    for command in (teachers, repair):
        monkeypatch.setattr(command, "question_job", lambda *_: None)
    return made_up
