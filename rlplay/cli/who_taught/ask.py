"""Puts the question of `rlplay teachers` to an engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from rlplay.api.teachers import Asker, find_teachers, held_out_target
from rlplay.cli.who_taught.asked import Asked, Known
from rlplay.cli.who_taught.object import asked_about, asked_about_held_out, course_object, teachers_object
from rlplay.cli.who_taught.report import course_lines, head, lines, subject_of
from rlplay.engine.driver import Driver
from rlplay.printed import Printed
from rlplay.trace.runfile import RunReader
from rlplay.ui.teachers.words import sentence


def ask(asked: Asked, known: Known, engine: Driver, reader: RunReader) -> tuple[Printed, Iterator[str]]:
    """The answer for programs, and as lines for people. Raises ValueError, one line, if the engine refuses."""
    own, asker, row = known.own, Asker(engine), None
    if known.held_out is not None and asked.held_out is not None:
        target = held_out_target(asker, known.held_out, asked.held_out - 1)
        about = asked_about_held_out(known.held_out, asked.held_out - 1)
    else:
        assert asked.row is not None
        assert known.target is not None
        row, target = asked.row, known.target
        about = asked_about(own, row, asked.place, target, asked.candidate is not None)
    subject = subject_of(about, target, own.number)
    first = head(reader.path.stem, subject, about)
    if asked.course:
        course = asker.course(target)
        return course_object(reader.path, course, about), chain(first, course_lines(course.moves))
    found = find_teachers(asker, reader, own, target, row, asked.by)
    away = [each - 1 for each in asked.without]
    taken = found.take_away(away) if away else None
    why = sentence(found.taught, found.of, subject) if found.by == found.update else ""
    printed = teachers_object(reader.path, found, about, why, away, taken)
    return printed, chain(first, lines(printed, found.taught, taken))
