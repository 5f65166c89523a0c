"""What the options of `rlplay teachers` ask about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import click

from rlplay.api.recorded import held_out_answers, with_tokens
from rlplay.trace.records import Evaluated
from rlplay.trace.runfile import RunReader
from rlplay.trace.targets import target_at
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update


class Known(NamedTuple):
    """What the run has on record of it: the update, and the target, or the held-out answers if it is one of these."""

    own: Update
    target: Target | None
    held_out: Evaluated | None


@dataclass(frozen=True)
class Asked:
    """The options, as typed: answers and tokens count from 1."""

    update: int
    answer: int | None
    token: int | None
    candidate: str | None
    held_out: int | None
    by: int | None
    without: tuple[int, ...]
    course: bool

    def check(self) -> None:
        """Raises UsageError, one line, if the options do not go together."""
        if self.course and (self.by is not None or self.without):
            raise click.UsageError("--course is about all updates; omit --by and --without")
        if self.by is not None and self.without:
            raise click.UsageError(f"--without takes answers of update {self.update} away; omit --by")
        if self.held_out is not None and (self.answer, self.token, self.candidate) != (None, None, None):
            raise click.UsageError("--held-out is a whole answer; omit --answer, --token and --candidate")
        if self.held_out is None and self.answer is None:
            raise click.UsageError("which answer? --answer 1 is the first of the update, --held-out 1 a held-out one")

    def known(self, reader: RunReader) -> Known:
        """What is on record of it. Raises ValueError or UsageError, one line, if there is no such answer or token."""
        own = with_tokens(reader, self.update)
        assert own.sampled is not None
        for each in (*([] if self.answer is None else [self.answer]), *self.without):
            if each > own.completions:
                raise click.UsageError(
                    f"update {self.update} has answers 1 to {own.completions}; there is no answer {each}"
                )
        if self.answer is not None and self.token is not None:
            length = int(own.sampled.offsets[self.answer] - own.sampled.offsets[self.answer - 1])
            if self.token > length:
                where = f"answer {self.answer} of update {self.update}"
                raise click.UsageError(f"{where} has {length} tokens; there is no token {self.token}")
        if self.held_out is not None:
            return Known(own, None, self._held_out(reader, self.held_out))
        assert self.row is not None
        return Known(own, target_at(own, self.row, self.place, self._chosen), None)

    def _held_out(self, reader: RunReader, answer: int) -> Evaluated:
        found = held_out_answers(reader, self.update)
        if answer > (count := len(found.completions)):
            raise click.UsageError(f"after update {found.update} there are held-out answers 1 to {count}, no {answer}")
        return found

    @property
    def row(self) -> int | None:
        """The answer, from 0."""
        return None if self.answer is None else self.answer - 1

    @property
    def place(self) -> int | None:
        """The token, from 0."""
        return None if self.token is None else self.token - 1

    @property
    def _chosen(self) -> int | str | None:
        """The candidate: an id for #ID, else the text."""
        text = self.candidate
        if text is None or not (text.startswith("#") and text[1:].isascii() and text[1:].isdecimal()):
            return text
        return int(text[1:])
