"""Findings as text for a person and as plain data for a program."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rlplay.health.digest import AnswerExample
from rlplay.health.finding import Finding, Verdict
from rlplay.trace.numbers import number
from rlplay.trace.text import visible

WIDTH = 110
_LABEL = 10
_LONGEST = 160
"""Characters of an answer or a prompt in a sentence."""


def heading(found: Sequence[Finding]) -> str:
    """How many problems were found."""
    return ("No problem found.", "1 problem found.", f"{len(found)} problems found.")[min(len(found), 2)]


def written(found: Sequence[Finding]) -> Iterator[str]:
    """The findings as lines, the gravest first."""
    for place, finding in enumerate(found, start=1):
        yield f"{place}. {finding.title}"
        for label, text in parts(finding):
            yield from textwrap.wrap(
                text, WIDTH, initial_indent=f"   {label:<{_LABEL}}", subsequent_indent=" " * (3 + _LABEL),
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        yield ""


def parts(finding: Finding) -> Iterator[tuple[str, str]]:
    """The labelled sentences of a finding; foreign text in them is visible."""
    yield "Evidence", finding.evidence
    yield "Cause", finding.cause
    yield "Change", finding.change
    if finding.place is not None:
        update, answer, token = finding.place.update, finding.place.answer, finding.place.token
        yield "Look at", f"update {update}, answer {answer + 1}, token {token + 1}"
    for example in finding.examples:
        yield "Answer", shown(example)


def said(verdict: Verdict) -> str:
    """A check that found nothing, as a line."""
    record = f"; to know, {verdict.record}" if verdict.record else ""
    return f"{'✓' if verdict.ticked else '–'} {verdict.title}  {verdict.text}{record}"


def shown(example: AnswerExample) -> str:
    """An answer beside what its row says: the prompt, the answer, its reward, the columns."""
    columns = "".join(f" · {visible(name)} = {_short(value)}" for name, value in example.columns.items())
    return f"{_short(example.prompt)} → “{_short(example.answer)}” · reward {number(example.reward)}{columns}"


def plain(finding: Finding) -> dict[str, Any]:
    """A finding as data for JSON, with places counted from 0 as in the run file; NaN becomes null."""
    data: dict[str, Any] = msgspec.to_builtins(finding)
    for example in data["examples"]:
        example["reward"] = example["reward"] if example["reward"] == example["reward"] else None
    return data


def _short(text: str) -> str:
    text = visible(text.strip())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
