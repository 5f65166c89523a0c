"""What `rlplay try` prints: an object for programs, and lines of it for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlplay.cli.table import table
from rlplay.health.finding import Finding
from rlplay.health.remedies.outcome import Outcome, Rehearsal
from rlplay.health.remedies.outcome import ShownToken as OfOutcome
from rlplay.health.remedies.remedy import Untried
from rlplay.printed import ShownToken, Tried, TriedChange, finite, number_or_null
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

WIDTH = 79
MOVED = 0.01
"""Difference of a token's probability between two changes, below which there is nothing to say."""


def tried(run: Path, rehearsal: Rehearsal) -> Tried:
    """What became of each change."""
    trial, measure = rehearsal.trial, rehearsal.measure
    return Tried(
        run=str(run), finding=trial.finding.name, title=trial.finding.title, since=trial.since, why=trial.why,
        updates=trial.updates, measure=measure.name, better="higher" if measure.more else "lower",
        changes=[_change(each) for each in rehearsal.outcomes()],
    )  # fmt: skip


def untried(run: Path, finding: Finding | None, reason: str) -> Tried:
    """Nothing was tried: why."""
    name, title = ("", "") if finding is None else (finding.name, finding.title)
    return Tried(run=str(run), finding=name, title=title, since=0, why=reason, updates=0, measure="", better="",
                 changes=[])  # fmt: skip


def _change(each: Outcome) -> TriedChange:
    return TriedChange(
        label=each.remedy.label, settings=each.remedy.changes, verdict=each.verdict, helped=each.helped,
        text=each.text, number=number_or_null(each.number), numbers={n: number_or_null(x) for n, x in each.numbers},
        reward=number_or_null(each.reward), kl=number_or_null(each.kl), gold=finite(each.gold or {}),
        paid_alike=each.paid_alike, costs_reward=each.costs_reward,
        brings=list(each.brings), token=None if each.token is None else _token(each.token),
    )  # fmt: skip


def _token(each: OfOutcome) -> ShownToken:
    place = each.place
    return ShownToken(
        update=place.update, answer=place.answer, token=place.token, text=each.text, before=each.before,
        after=each.after, same=each.same,
    )  # fmt: skip


def lines(rehearsal: Rehearsal) -> Iterator[str]:
    """The same for people: where it began, a table, and what helped."""
    trial, outcomes = rehearsal.trial, rehearsal.outcomes()
    yield f"{visible(trial.finding.title)}: tried over {_count(trial.updates)} {visible(trial.why)}."
    yield ""
    yield from table(_rows(rehearsal, outcomes), right_aligned=("number", "reward", "gold", "KL"))
    yield ""
    better = "higher" if rehearsal.measure.more else "lower"
    which = "the largest value in" if rehearsal.measure.wild else "the mean over"
    said = f"Number: {rehearsal.measure.name}, {which} these updates; {better} is better."
    yield from textwrap.wrap(visible(said), WIDTH)
    yield from _tokens(outcomes)
    yield from textwrap.wrap(_helped(rehearsal, outcomes), WIDTH)


def _count(updates: int) -> str:
    return "1 update" if updates == 1 else f"{updates} updates"


def _rows(rehearsal: Rehearsal, outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    golds = list(dict.fromkeys(name for each in outcomes for name in each.gold or {}))[:1]
    head = ("change", "number", "reward", *("gold" for _ in golds), "KL", "the problem is")
    return [head, *(_row(each, rehearsal, golds) for each in outcomes)]


def _row(each: Outcome, rehearsal: Rehearsal, golds: Sequence[str]) -> tuple[str, ...]:
    shown = "" if each.number is None else rehearsal.measure.shown(each.number)
    reward = "" if each.reward is None else number(each.reward) + "*" * (not each.paid_alike)
    verdict = {"unchanged": "", "same": "the same", "untold": "not seen"}.get(each.verdict, each.verdict)
    if each.verdict == "refused":
        verdict = f"refused: {each.text}"
    if each.costs_reward:
        verdict += ", with less reward"
    brings = f", but now: {', '.join(each.brings)}" if each.brings else ""
    scores = [number(each.gold[name]) if each.gold and name in each.gold else "" for name in golds]
    kl = "" if each.kl is None else number(each.kl)
    return each.remedy.label, shown, reward, *scores, kl, verdict + brings


def _tokens(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The token that shows the problem, where all have sampled it: how far each moved it."""
    known = [each for each in outcomes if each.token is not None and each.token.after is not None and each.token.same]
    after = [each.token.after for each in known if each.token is not None and each.token.after is not None]
    if len(known) < 2 or known[0].verdict != "unchanged" or max(after) - min(after) < MOVED:
        return
    token = known[0].token
    assert token is not None
    moved = ", ".join(
        f"{percent(each.token.after)} with {visible(each.remedy.text) or 'the run as it is'}"
        for each in known
        if each.token is not None and each.token.after is not None
    )
    place = token.place
    text = (
        f"The token “{visible(token.text)}” (update {place.update}, answer {place.answer + 1}, token "
        f"{place.token + 1}) had {percent(token.before)} before that update, and after it {moved}."
    )
    yield from textwrap.wrap(text, WIDTH)
    yield ""


def _helped(rehearsal: Rehearsal, outcomes: Sequence[Outcome]) -> str:
    others = [_named(each) for each in outcomes[1:] if not each.helped]
    helped = [_named(each) for each in outcomes[1:] if each.helped]
    star = " * is another reward." if any(not each.paid_alike for each in outcomes) else ""
    if not helped:
        updates = rehearsal.trial.updates
        return f"Nothing that was tried helped in {_count(updates)}; --updates {2 * updates} looks further.{star}"
    failed = f" Did not help: {'; '.join(others)}." if others else ""
    return visible(f"Helped: {'; '.join(helped)}.{failed}{star}")


def _named(each: Outcome) -> str:
    """A change with its settings, unless its name says them all."""
    return (
        f"{each.remedy.label} ({each.remedy.text})"
        if each.remedy.label not in each.remedy.changes
        else each.remedy.text
    )


def untried_line(found: Untried) -> str:
    """The same in a line where nothing can be tried."""
    return f"{visible(found.finding.title)}: nothing to try, as {found.reason}."
