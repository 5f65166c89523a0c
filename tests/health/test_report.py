"""Findings as text for a person and as data for a program."""

from __future__ import annotations

import json
from pathlib import Path

from rlplay.health.digest import AnswerExample, TokenPlace
from rlplay.health.finding import NOT_USED, Finding, Verdict
from rlplay.health.findings_report import WIDTH, Row, heading, laid, rows, shown, summary, usual, written
from rlplay.health.normal import Normal
from rlplay.printed import health_report, json_line

EXAMPLE = AnswerExample(TokenPlace(1, 2), " What is\n2? ", "four\x1b", 0.25, {"answer": "4", "topic": "sums"})
FOUND = Finding(
    "flat", "It is flat", "e " * 80, "well-known", "Do " + "x" * 120, place=TokenPlace(3, 0, 8), examples=(EXAMPLE,)
)


def test_the_heading_counts() -> None:
    assert [heading([FOUND] * count) for count in range(4)] == [
        "No problem found.", "1 problem found.", "2 problems found.", "3 problems found.",
    ]  # fmt: skip


def test_a_finding_in_lines() -> None:
    lines = list(written([FOUND, Finding("kl", "Far", "so", "far", "Go")]))
    assert lines == [
        "1. It is flat",
        "   Evidence  " + " ".join(["e"] * 49),
        " " * 13 + " ".join(["e"] * 31),
        "   Cause     well-known",
        "   Change    Do",
        " " * 13 + "x" * 120,
        "   Look at   update 3, answer 1, token 9",
        "   Answer    What is⏎2? → “four␛” · reward 0.25 · answer = “4” · topic = “sums”",
        "",
        "2. Far",
        "   Evidence  so",
        "   Cause     far",
        "   Change    Go",
        "",
    ]
    assert max(map(len, lines[:3])) == WIDTH
    hyphens = Finding("kl", "Far", "e" * 90 + " one-two", "", "")
    assert list(written([hyphens]))[1:3] == ["   Evidence  " + "e" * 90, " " * 13 + "one-two"], "words stay whole"


def test_long_texts_are_cut() -> None:
    for length, end in ((160, "x" * 160), (161, "x" * 159 + "…")):
        line = shown(AnswerExample(TokenPlace(1, 2), "P", "x" * length, 1.0, {}))
        assert line == f"P → “{end}” · reward 1"


def test_a_finding_as_data() -> None:
    nothing = AnswerExample(TokenPlace(1, 2), "P", "A", None, {})
    finding = Finding("kl", "t", "e", "c", "d", examples=(EXAMPLE, nothing))
    (data,) = json.loads(json_line(health_report(Path("a"), None, [finding])))["findings"]
    assert [each["reward"] for each in data["examples"]] == [0.25, None]
    assert (data["name"], data["place"]) == ("kl", None)
    assert data["examples"][0]["place"] == {"update": 1, "answer": 2, "token": 0}


def test_an_answer_without_a_reward_says_so() -> None:
    assert shown(AnswerExample(TokenPlace(1, 2), "P", "A", None, {})) == "P → “A” · no reward"


def test_dashes_of_one_reason_are_one_row() -> None:
    said = [
        Verdict("A", "1 of 2", ticked=True), Verdict("B", NOT_USED, ticked=False),
        Verdict("C", "not recorded: x", ticked=False, record="log x"), Verdict("D", "needs 2", ticked=False),
        Verdict("E", NOT_USED, ticked=False), Verdict("F", "not recorded: x", ticked=False, record="log x"),
    ]  # fmt: skip
    assert rows(said) == [
        ("✓", "A", "1 of 2"), ("–", "D", "needs 2"), ("–", "C, F", "not recorded: x. Next time, log x."),
        ("–", "B, E", "not used"),
    ]  # fmt: skip
    assert summary([], said) == "No problem found. 1 check passed, 5 cannot tell."
    assert summary([FOUND], said[1:]) == "1 problem found. 0 checks passed, 5 cannot tell."
    assert summary([], said[1:]) == "Nothing can be judged."


def test_claims_stand_in_a_column_and_others_behind_their_titles() -> None:
    rows = [Row("✓", "A", "one two three"), Row("✓", "Bcd", "x\x1b"), Row("–", "Long long title", "one two")]
    assert laid(rows, 14) == [
        [("✓ A  ", "  one two"), ("", "       three")],
        [("✓ Bcd", "  x␛")],
        [("– Long long", ""), ("  title", "  one"), ("", "  two")],
    ]
    assert usual([Normal("T", "why"), Normal("U", "why", sure=False)]) == [
        ("·", "T", "why"), ("·", "U (likely normal)", "why"),
    ]  # fmt: skip
