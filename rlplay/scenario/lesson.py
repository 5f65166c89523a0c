"""A scenario as a lesson: its script, then two quiz questions, then the card with what to take away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import unknown
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import Ask, parse, parse_step
from rlplay.spelling import did_you_mean
from rlplay.trace.metrics import METRICS, describe, pair_of
from rlplay.trace.text import quote
from rlplay.verbs import VIEWS

CONCEPTS = 60
"""Concepts that the course teaches; `shows` names those of a lesson by number."""
_CARD = {"takeaway": str, "formula": str, "sources": list, "then": str}


def whole_script(scenario: Scenario) -> list[dict[str, Any]]:
    """The steps of the lesson, the quiz and the card among them."""
    quiz = [{"ask": question} for question in scenario.quiz]
    ends = [_card_text(scenario.card), *filter(None, [scenario.card.get("then")])] if scenario.card else []
    return [*scenario.script, *quiz, *({"say": text} for text in ends)]


def without_lesson(scenario: Scenario) -> Scenario:
    """The same training without the lesson about it."""
    return msgspec.structs.replace(scenario, script=[], quiz=[], card={})


def questions(scenario: Scenario) -> tuple[list[Ask], list[Ask]]:
    """The predictions that the script of a lesson asks for, and the questions of its quiz."""
    return _asks(scenario.script), _asks([{"ask": question} for question in scenario.quiz])


def _asks(script: list[dict[str, Any]]) -> list[Ask]:
    return [step for step in parse(script) if isinstance(step, Ask)]


def step_saying(scenario: Scenario, words: str) -> int:
    """The number of steps of a lesson up to the one that says `words`. Raises ValueError unless exactly one does."""
    said = [" ".join(str(step.get("say", "")).split()) for step in whole_script(scenario)]
    found = [number for number, text in enumerate(said, start=1) if words in text]
    if len(found) != 1:
        raise ValueError(f"{len(found)} steps of {scenario.name} say {quote(words)}; a moment of a lesson needs one")
    return found[0]


def _card_text(card: dict[str, Any]) -> str:
    formula = f" {card['formula']}" if card.get("formula") else ""
    return f"Takeaway: {card['takeaway']}{formula} Sources: {'; '.join(card['sources'])}."


def quiz_problems(name: str, line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is wrong with the questions after a lesson, each with its line."""
    if not isinstance(node, yaml.SequenceNode):
        yield line, "quiz is a list of questions, each with question, choices, answer and because"
        return
    for number, (place, entry) in enumerate(zip(node.value, content[name], strict=True), start=1):
        try:
            parse_step({"ask": entry})
        except ValueError as error:
            yield place.start_mark.line + 1, f"quiz question {number}: {error}"


def card_problems(name: str, line: int, _node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is wrong with the card at the end of a lesson."""
    card = content[name]
    if not isinstance(card, dict) or not set(_CARD) >= set(card) >= {"takeaway", "sources"}:
        yield line, "card takes a mapping with takeaway, sources and, if there are any, formula and then"
        return
    for key, kind in _CARD.items():
        if key in card and not (isinstance(card[key], kind) and card[key]):
            yield line, f"{key} of card takes {'a list of texts' if kind is list else 'text'}; got {quote(card[key])}"
    if any(not isinstance(each, str) for each in card["sources"]):
        yield line, f"sources of card takes a list of texts; got {quote(card['sources'])}"


def shows_problems(name: str, line: int, _node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is wrong with the concepts that a lesson names."""
    numbers = content[name]
    fits = isinstance(numbers, list) and all(type(each) is int and 1 <= each <= CONCEPTS for each in numbers)
    if not fits:
        yield line, f"shows is a list of concepts, whole numbers from 1 to {CONCEPTS}; got {quote(numbers)}"


def knobs_problems(name: str, line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is wrong with the settings that the knobs panel shall show, each with its line."""
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        yield line, "knobs is a list of the settings to show, as in [beta, epsilon]"
        return
    for place, entry in zip(node.value, content[name], strict=True):
        if str(entry) not in KNOBS:
            yield place.start_mark.line + 1, f"knobs: {unknown(str(entry))}"


def panels_problems(name: str, line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is wrong with the curves and views that a scenario begins with, each with its line."""
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        yield line, "panels is a list of metrics and views, as in [reward, completions/mean_length, belief]"
        return
    for place, entry in zip(node.value, content[name], strict=True):
        if str(entry) not in VIEWS and describe(str(entry)) is None and pair_of(str(entry)) is None:
            known = [*VIEWS, *METRICS]
            yield (
                place.start_mark.line + 1,
                f"panels: unknown metric {quote(str(entry))}{did_you_mean(str(entry), known)}",
            )
