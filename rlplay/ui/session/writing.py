"""The writing exercise on the screen as plain data: the learner's lines, and what the engine says of them."""

from __future__ import annotations

import time

from rlplay import paths, user_preferences
from rlplay.exercises import Exercise, exercise_called
from rlplay.trace.questions import Tried, TryCode
from rlplay.trusted import follow


class Writing:
    """The exercise `name` and its `text`. `version` is another one whenever there is something new to draw.

    Methods that need the engine return the question for it; `take` takes its answers.
    """

    def __init__(self) -> None:
        self.name = ""
        self.text = ""
        self.tried: Tried | None = None  # about these lines, or some before them
        self.help = 0  # hints shown; with one more than there are, the solution
        self.solved: set[str] = set()  # exercises solved in this session
        self.puts = 0  # how often lines were put into the editor that the learner did not type
        self.version = 0
        self._number = 0
        self._asked_at: float | None = None  # while an answer is awaited

    @property
    def exercise(self) -> Exercise:
        """The words of the exercise."""
        return exercise_called(self.name)

    @property
    def begun(self) -> bool:
        """Whether the learner has written anything."""
        return self.text.strip() != self.exercise.starter.strip()

    @property
    def waited(self) -> float:
        """Seconds since the engine was asked; 0 if it has answered."""
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    def open(self, name: str) -> None:
        """Take up an exercise, with what was written for it before. Raises ValueError, one line, if there is none."""
        exercise_called(name)
        if name != self.name:
            self.name, self.help = name, 0
            kept = user_preferences.written(name)
            self.text = self.exercise.starter.rstrip() if kept is None else kept.text
        self.tried, self._asked_at = None, None
        self.puts += 1
        self.version += 1

    def edit(self, text: str) -> None:
        """Take what the learner typed; what was said of other lines holds no more."""
        self.tried = self.tried if text == self.text else None
        self.text = text
        self.version += 1

    def ask(self) -> TryCode | None:
        """The question whether these lines are right; None for a starter that nobody has touched."""
        if not self.begun:
            self.tried = None
            self.version += 1
            return None
        self._number += 1
        self._asked_at = time.monotonic()
        self.version += 1
        return TryCode(self.name, self.text, self._number)

    def more_help(self) -> None:
        """Show the next hint, after the last one the solution in place of the learner's lines."""
        self.help = min(self.help + 1, len(self.exercise.hints) + 1)
        if self.help > len(self.exercise.hints):
            self.show_solution()
        self.version += 1

    def show_solution(self) -> None:
        """Put the solution in place of the learner's lines."""
        self.text = self.exercise.solution.rstrip()
        self.puts += 1
        self.version += 1

    def take(self, tried: Tried) -> None:
        """Take an answer of the engine, unless it is about other lines."""
        if (tried.exercise, tried.number) != (self.name, self._number):
            return
        self.tried, self._asked_at = tried, None
        if tried.passed:
            self.solved.add(self.name)
        self.version += 1

    def own_setting(self) -> tuple[str, str]:
        """The setting that takes the learner's function, and its value: the file that now has the lines, which the user
        has named by that. Raises OSError if it cannot be written."""
        from rlplay.exercises.checks import CHECKS  # which needs the worlds

        file = paths.home() / "written" / f"{self.name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.text + "\n", encoding="utf-8")
        follow([str(file)])
        return self.exercise.trains, f"{file}:{CHECKS[self.name].function}"

    def keep(self) -> None:
        """Remember the lines between starts. Raises OSError if they cannot be written."""
        if self.name and self.begun:
            user_preferences.keep_written(self.name, self.text, self.name in self.solved)
