"""The answers at two moments of the run on the screen, and what lies between them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from rlplay.plain_yaml import PlainYamlError
from rlplay.scenario.reproduction import scenario_of
from rlplay.trace.moments import VERDICTS, AskedTwice, Verdict, held_out_twice, trained_twice
from rlplay.trace.records import Changed, Evaluated
from rlplay.ui.session.session import Session
from rlplay.ui.words.changed_settings import changes_line

_HELD_OUT, _TRAINED = "Held-out prompts", "Prompts trained on in both"


class Section(NamedTuple):
    """Prompts of one kind that were asked at both moments; `note` says when, or why there are none."""

    title: str
    asked: list[AskedTwice]
    note: str

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many prompts have each verdict; those without rewards only if there are any."""
        found = {verdict: sum(each.verdict == verdict for each in self.asked) for verdict in VERDICTS}
        return {verdict: count for verdict, count in found.items() if count or verdict != "unscored"}


def first_moment(session: Session, later: int) -> int:
    """The earliest moment to compare update `later` with: the first of several evaluations, else kept answers."""
    evaluated = [at for at in session.run.history.series("eval_reward")[0] if at <= later]
    kept = [at for at in session.source.recorded() if at < later]
    return next(iter([*evaluated[:-1], *kept]), 0)


def moments(session: Session) -> list[int]:
    """The updates after which there was an evaluation, and those whose answers were kept, ascending."""
    return sorted({*session.run.history.series("eval_reward")[0], *session.source.recorded()})


def sections(session: Session, before: int, after: int) -> list[Section]:
    """Held-out prompts, and prompts that both updates trained on. RunFileError if their records are damaged."""
    return [_held_out(session, before, after), _trained(session, before, after)]


def changed_between(session: Session, before: int, after: int) -> str:
    """The stages and the settings that changed after update `before`, up to `after`; empty for none."""
    changes = [each for each in session.run.timeline.changes if before < each.update <= after]
    stages = [f"{each.name} from update {each.update}" for each in changes if not isinstance(each, Changed)]
    settings = _net(each for each in changes if isinstance(each, Changed))
    parts = [f"another stage, {stage}: its rewards may have another scale" for stage in stages]
    return " · ".join([*parts, *([changes_line(settings)] if settings else [])])


def _net(changes: Iterable[Changed]) -> list[Changed]:
    """One change for each setting that has another value in the end than in the beginning."""
    found: dict[str, Changed] = {}
    for change in changes:
        first = found.get(change.name, change)
        found[change.name] = msgspec.structs.replace(change, previous=first.previous)
    return [change for change in found.values() if change.value != change.previous]


def _held_out(session: Session, before: int, after: int) -> Section:
    found = [session.source.held_out(number) for number in (before, after)]
    one, other = found
    if one is None or other is None:
        missing = before if one is None else after
        return Section(_HELD_OUT, [], f"No held-out answers are on record up to update {missing}.")
    if one.update == other.update:
        return Section(_HELD_OUT, [], f"No evaluation since the one {_when(one)}{_next_one(session, after)}.")
    asked = held_out_twice(one, other)
    evaluated = f"evaluated {_when(one)} and {_when(other)}"
    return Section(_HELD_OUT, asked, evaluated if asked else "The two evaluations have no prompt in common.")


def _next_one(session: Session, after: int) -> str:
    """When the run evaluates next, if it says so."""
    started = session.run.started
    with contextlib.suppress(msgspec.MsgspecError, PlainYamlError):
        every = 0 if started is None or started.source else scenario_of(started).eval_every
        return f"; the next is after update {(after // every + 1) * every}" if every else ""
    return ""


def _trained(session: Session, before: int, after: int) -> Section:
    if not before:
        return Section(_TRAINED, [], "The start of the run has no training answers.")
    found = [session.run.find(number) for number in (before, after)]
    one, other = (each if each is not None and each.sampled is not None else None for each in found)
    if one is None or other is None:
        return Section(_TRAINED, [], f"The answers of update {before if one is None else after} were not kept.")
    asked = trained_twice(one, other)
    note = "with different random numbers" if asked else "The two updates have no prompt in common."
    return Section(_TRAINED, asked, note)


def _when(found: Evaluated) -> str:
    return f"after update {found.update}" if found.update else "before training"
