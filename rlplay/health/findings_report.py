"""Findings as text for a person and as plain data for a program."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rlplay.health.digest import AnswerExample
from rlplay.health.finding import Evidence, Finding, Verdict
from rlplay.trace.numbers import number
from rlplay.trace.text import visible

WIDTH = 110
_LABEL = 10
_LONGEST = 160
"""Characters of an answer or a prompt in a sentence."""


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


def said(verdict: Verdict) -> str:
    """A check that found nothing, as a line."""
    record = f"; to know, {verdict.record}" if verdict.record else ""
    return f"{'✓' if verdict.ticked else '–'} {verdict.title}  {verdict.text}{record}"


def shown(example: AnswerExample) -> str:
    """An answer beside what its row says: the prompt, the answer, its reward, the columns."""
    columns = "".join(f" · {visible(name)} = {_short(value)}" for name, value in example.columns.items())
    earned = "no reward" if example.reward is None else f"reward {number(example.reward)}"
    return f"{_short(example.prompt)} → “{_short(example.answer)}” · {earned}{columns}"


def _short(text: str) -> str:
    text = visible(text.strip())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
