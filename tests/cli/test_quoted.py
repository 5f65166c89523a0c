"""Errors quote at most 80 characters of a value that somebody else wrote, whichever way it came in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlplay.algorithms.knobs import KNOBS
from rlplay.cli import main as cli
from rlplay.containment import OwnError
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import VERBS
from rlplay.scenario.share import Shared, ShareError, shared_in
from rlplay.tasks.own_prompts import load_own
from rlplay.trace.text import QUOTED, brief, brief_words, quote
from tests.fuzz import in_brief

ALPHABET = "".join(chr(0x21 + n % 0x5A) for n in range(7, 5_000, 7))
"""Without a blank, and no two parts of it are alike soon."""
LONG: dict[str, Any] = {
    "text": ALPHABET.replace("\\", "").replace("'", "").replace('"', ""),
    "one letter": "x" * 1_000,
    "brackets": "[" * 1_000,
    "braces": "{a: " * 200,
    "digits": "9" * 5_000,
    "a list": list(range(1_000, 1_100)),
    "nested": [[[[["word"] * 40]]]],
    "a mapping": {f"key{n}": n for n in range(60)},
    "a key": {"k" * 1_000: 1},
}
QUICK = "brackets", "nested"


def said_briefly(said: str, value: Any) -> None:
    """AssertionError if more than `QUOTED` characters of the value are in what was said."""
    in_brief(said)
    for text in (str(value), repr(value)):
        # What is quoted begins with the value's beginning or ends with its end.
        ends = [*range(min(200, len(text) - QUOTED)), len(text) - QUOTED - 1]
        assert not any(text[at : at + QUOTED + 1] in said for at in ends), said[:300]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Runs a command line and returns the line that refuses it; "" if nothing is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlplay.engine.headless.run", lambda *_: 0)

    def call(*words: str) -> str:
        with pytest.raises(SystemExit) as left:
            cli.main(list(words))
        said = capsys.readouterr().err
        assert left.value.code in (0, 2), said
        assert said.count("\n") == (left.value.code == 2), said
        return said

    return call


def written(path: Path, content: Any) -> str:
    path.write_text(yaml.safe_dump(content, width=10**6), encoding="utf-8")
    return str(path)


WHOLE = {"title": "T", "question": "Q?", "task": "word_problems"}


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in LONG]
)
def test_in_a_scenario(name: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    value, path = LONG[name], tmp_path / "mine.yaml"
    fields = [field for field in Scenario.__struct_fields__ if field != "origin"]
    changes: list[dict[Any, Any]] = [{field: value} for field in fields]
    changes += [{"settings": {knob: value}} for knob in KNOBS]
    changes += [{"script": [{verb: value}]} for verb in VERBS]
    changes += [{"stages": [{"name": "x", "updates": 1, "settings": {"beta": value}}]}, {"world": {"map": value}}]
    if isinstance(value, str):
        changes += [{value: 1}, {"settings": {value: 1}}, {"script": [{value: 1}]}, {"stages": [{value: 1}]}]
    count = 0
    for change in changes:
        said = refused("show", written(path, WHOLE | change))
        said_briefly(said, value)
        count += bool(said)
    assert count > len(KNOBS)


@pytest.mark.parametrize("name", [name for name in LONG if isinstance(LONG[name], str)])
def test_in_the_text_of_a_file(name: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    value, path = LONG[name], tmp_path / "mine.yaml"
    shapes = "{0}", "*{0}", "&{0} *{0}", "!{0} x", "title: {0}: {0}", "%{0}", "'{0}"
    for text in [shape.format(value) for shape in shapes]:
        path.write_text(text)
        for line in (["show", str(path)], ["algorithms", str(path)], ["run", "two-plus-two", "--algorithm", str(path)]):
            said = refused(*line)
            assert said
            said_briefly(said, value)


@pytest.mark.parametrize("name", [name for name in LONG if isinstance(LONG[name], str)])
def test_on_the_command_line(name: str, refused: Callable[..., str]) -> None:
    value = LONG[name]
    for words in (
        [value], ["show", value], [f"{value}.yaml"], ["algorithms", value], ["replay", value],
        ["compare", value, value],
        ["export", value, "--format", "jsonl", "--out", "x"], ["export", "last", "--format", value, "--out", "x"],
        [f"--{value}"], ["run", "two-plus-two", f"--{value}"], ["list", value], ["settings", value], ["new", value],
        ["new", "x", "--from", value], ["run", f"rlp1-{value}"], ["run", "--resume", value], ["import", value],
        ["health", value], ["attach", value], ["rm", value], ["serve", "--port", value],
        *(["run", "two-plus-two", option, each] for option in OPTIONS for each in (value, f"{value}=1", f"x={value}")),
        *(["run", "two-plus-two", "--set", f"{knob}={value}"] for knob in KNOBS),
    ):  # fmt: skip
        said_briefly(refused(*words), value)


OPTIONS = "--set", "--algorithm", "--seed", "--updates", "--device", "--reward", "--columns", "--chat_template_kwargs"


@pytest.mark.parametrize("name", LONG)
def test_in_a_share_code(name: str) -> None:
    value = LONG[name]
    shared = [Shared("two-plus-two", 0, None, None, {"beta": value}), Shared("two-plus-two", 0, None, value)]
    shared += [Shared(value, 0), Shared("two-plus-two", 0, None, None, {value: 1})] if isinstance(value, str) else []
    for each in shared:
        with pytest.raises((ShareError, ValueError)) as caught:
            shared_in(each.code).scenario_with()
        said_briefly(str(caught.value), value)


@pytest.mark.parametrize("name", LONG)
def test_in_a_data_set(name: str, tmp_path: Path) -> None:
    value, path = LONG[name], tmp_path / "rows.jsonl"
    rows: list[Any] = [value, {"prompt": value, "chosen": 1}, {"chosen": value}, {"messages": value}]
    rows += [{value: 1}, {"prompt": "x", value: "\ud800"}] if isinstance(value, str) else []
    texts = [json.dumps(row) for row in rows] + ([value] if isinstance(value, str) else [])
    for text in texts:
        path.write_text(text)
        for columns in ({}, {"prompt": "k" * 5_000}):
            with pytest.raises(OwnError) as caught:
                load_own(path, {}, columns=columns)
            said_briefly(str(caught.value), value)
            said_briefly(str(caught.value), "k" * 5_000)


def test_what_is_cut_keeps_its_beginning_and_its_end() -> None:
    assert brief("x" * QUOTED) == "x" * QUOTED
    cut = quote("begin" + "x" * 200 + "end")
    assert len(cut) == QUOTED
    assert cut.startswith("'begin")
    assert cut.endswith("end'")
    assert "…" in cut
    assert brief_words(f"found {'y' * 200}, and more") == f"found {brief('y' * 200 + ',')} and more"
