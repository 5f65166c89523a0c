"""Findings as text for a person and as plain data for a program."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlplay.health.digest import AnswerExample
from rlplay.health.finding import NOT_USED, Evidence, Finding, Verdict
from rlplay.health.normal import Normal
from rlplay.trace.numbers import number
from rlplay.trace.text import visible

WIDTH = 110
_LABEL = 10
_LONGEST = 160
"""Characters of an answer or a prompt in a sentence."""


class Row(NamedTuple):
    """A line of the report: its mark, what it is about, and what is said of it."""

    mark: str
    title: str
    text: str


def summary(found: Sequence[Finding], said: Sequence[Verdict]) -> str:
    """How many problems were found, and how many checks would have seen one."""
    passed = sum(each.ticked for each in said)
    if not found and not passed:
        return "Nothing can be judged."
    checks = f"{passed} {'check' if passed == 1 else 'checks'} passed, {len(said) - passed} cannot tell."
    return f"{heading(found)} {checks}"


def heading(found: Sequence[Finding]) -> str:
    """How many problems were found."""
    return ("No problem found.", "1 problem found.", f"{len(found)} problems found.")[min(len(found), 2)]


def written(found: Sequence[Finding], run: Evidence | None = None) -> Iterator[str]:
    """The findings as lines, the gravest first; those of another trainer's `run` name its own steps."""
    for place, finding in enumerate(found, start=1):
        yield f"{place}. {finding.title}"
        for label, text in parts(finding, run):
            yield from textwrap.wrap(
                text, WIDTH, initial_indent=f"   {label:<{_LABEL}}", subsequent_indent=" " * (3 + _LABEL),
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        yield ""


def parts(finding: Finding, run: Evidence | None = None) -> Iterator[tuple[str, str]]:
    """The labelled sentences of a finding, as in `written`; foreign text in them is visible."""
    yield "Evidence", finding.evidence
    yield "Cause", finding.cause
    yield "Change", finding.change
    if finding.place is not None:
        update, answer, token = finding.place.update, finding.place.answer, finding.place.token
        yield "Look at", f"{called(update, run)}, answer {answer + 1}, token {token + 1}"
    for example in finding.examples:
        yield "Answer", shown(example)


def called(update: int, run: Evidence | None) -> str:
    """An update of a run, with its trainer's steps where these have other numbers."""
    steps = "" if run is None else run.history.clock.steps_of(run.source, update)
    return f"update {update} ({visible(steps)})" if steps else f"update {update}"


def rows(said: Sequence[Verdict]) -> list[Row]:
    """The checks that found nothing: each ✓, then each reason for a – with the titles of all that have it."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in said:
        if not each.ticked:
            reasons.setdefault((each.text, each.record), []).append(each.title)
    dashes = [Row("–", ", ".join(titles), f"{text}{record and f'. Next time, {record}.'}")
              for (text, record), titles in sorted(reasons.items(), key=_last)]  # fmt: skip
    return [*(Row("✓", each.title, each.text) for each in said if each.ticked), *dashes]


def _last(reason: tuple[tuple[str, str], list[str]]) -> tuple[bool, bool]:
    """What the run lacks comes after other reasons, and what it does not use at the end."""
    (text, record), _ = reason
    return text == NOT_USED, bool(record)


def usual(found: Sequence[Normal]) -> list[Row]:
    """What is normal in a run."""
    return [Row("·", f"{each.title}{' (likely normal)' * (not each.sure)}", each.text) for each in found]


def laid(rows: Sequence[Row], width: int) -> list[list[tuple[str, str]]]:
    """Each row as lines of at most `width` characters: its mark and title, and what is said, of each line.

    The claims of ✓ rows stand in a column of their own.
    """
    column = max((len(row.title) for row in rows if row.mark == "✓"), default=0)
    found = []
    for row in rows:
        head = f"{row.mark} {row.title}"
        if row.mark == "✓":
            head = head.ljust(column + 2)
        hanging = " " * (len(head) + 2 if row.mark == "✓" else 2)
        lines = textwrap.wrap(
            f"{head}  {visible(row.text)}", width, subsequent_indent=hanging, break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
        left, parted = len(head), []
        for line in lines:
            parted.append((line[:left], line[left:]))
            left = max(left - len(line) - 1 + len(hanging), 0) if left > len(line) else 0
        found.append(parted)
    return found


def shown(example: AnswerExample) -> str:
    """An answer beside what its row says: the prompt, the answer, its reward, the columns."""
    columns = "".join(f" · {visible(name)} = {_typed(value)}" for name, value in example.columns.items())
    earned = "no reward" if example.reward is None else f"reward {number(example.reward)}"
    return f"{_short(example.prompt)} → “{_short(example.answer)}” · {earned}{columns}"


def _typed(value: str | float) -> str:
    """A text in quotes, so that “30” and 30 are told apart."""
    return f"“{_short(value)}”" if isinstance(value, str) else str(value)


def _short(text: str) -> str:
    text = visible(text.strip())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
