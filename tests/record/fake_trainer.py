"""A trainer that only counts and listens for a screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlplay.record.trl.steering import Remote
from rlplay.trace.teachers import Taught, Teach

PATIENCE = 20


class Answers:
    """Answers every question about teachers at once, and counts the screens that have left."""

    left = 0

    def taught(self, question: Teach, interrupted: Callable[[], bool]) -> Taught:
        return Taught(question.target, question.update, question.by, steps=1)

    def leave(self) -> None:
        self.left += 1


class Trainer:
    """Counts updates in a thread of its own, `steps` optimizer steps each, as long as it is let."""

    def __init__(self, folder: Path, steps: int = 1, record: Callable[[int], None] | None = None) -> None:
        """It listens at `folder`, and has `record` write down every update."""
        self.answers = Answers()
        self.remote = Remote(folder, ("learning_rate", "beta"), self.answers)
        self.settings: dict[str, Any] = {"learning_rate": 0.1, "beta": 0.0}
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.calls = self.updates = 0
        self._steps, self._record, self._ends = steps, record, False
        self.thread = threading.Thread(target=self._train, daemon=True)
        self.thread.start()

    def _train(self) -> None:
        while not self._ends:
            self.calls += 1
            if self.calls % self._steps == 0:
                if self._record is not None:
                    self._record(self.updates + 1)
                self.updates += 1
            if found := self.remote.between_steps(self.updates, self.settings, self._change):
                self.changes.append((self.updates, found))
            time.sleep(0.0005)  # the other threads' turn, as torch leaves it to them
        self.remote.close()

    def _change(self, name: str, value: Any) -> str:
        if name == "beta" and value < 0:
            return "it is never below 0"
        self.settings[name] = value
        return ""

    def goes_on(self, updates: int = 5) -> None:
        """Wait until it has made so many more updates."""
        until(lambda wanted=self.updates + updates: self.updates >= wanted)

    def end(self) -> None:
        self._ends = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def until(done: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)
