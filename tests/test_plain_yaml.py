"""YAML of strangers: what multiplies, exhausts the stack or means another type is refused before it costs a thing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from rlplay.algorithms.setting_values import check
from rlplay.plain_yaml import DEEPEST, LONGEST, PlainYamlError, plain_yaml
from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.share import Shared, ShareError
from rlplay.ui.probe.columns import read_columns
from tests.cli.command_line import called

HEAD = "title: T\nquestion: Q\ntask: arithmetic\n"
ALIASES = "x:\n  k0: &i0 [1, 1]\n" + "".join(f"  k{i}: &i{i} [{', '.join([f'*i{i - 1}'] * 9)}]\n" for i in range(1, 9))
MERGES = "x:\n  m0: &m0 {a: 1}\n" + "".join(f"  m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}]}}\n" for i in range(1, 25))

REFUSED = {
    "aliases": (ALIASES, "more than 50,000 values"),
    "an alias of many for a number": (ALIASES + "seed: *i8\n", "more than 50,000 values"),
    "merge keys": (MERGES, "more than 50,000 values"),
    "a loop": ("x: &x [*x]", "a node that contains it"),
    "a loop of merges": ("x: &x\n  <<: *x", "a node that contains it"),
    "lists in lists": ("[" * 100_000, f"nested more than {DEEPEST} levels"),
    "mappings in mappings": ("{a: " * 20_000, f"nested more than {DEEPEST} levels"),
    "blocks in blocks": ("- " * 1_000, f"nested more than {DEEPEST} levels"),
    "keys of keys": ("? " * 1_000, f"nested more than {DEEPEST} levels"),
    "a number of thirty digits": ("x: " + "9" * 30, "more than 64 bits"),
    "a number of 5,000 digits": ("x: " + "9" * 5_000, "a number has 5,000 characters"),
    "a hexadecimal number": ("x: 0x" + "f" * 5_000, "a number has 5,002 characters"),
    "hours and minutes": ("x: " + ":".join(["59"] * 5_000), "a number has"),
    "half a character": ('x: "\\ud800"', "a lone surrogate"),
    "an object": ("!!python/object/apply:os.system ['true']", "is none that rlplay reads"),
    "a date": ("!!timestamp 2024-01-01", "is none that rlplay reads"),
    "bytes": ("!!binary aGk=", "is none that rlplay reads"),
    "a set": ("!!set {a}", "is none that rlplay reads"),
    "no number": ("!!int ''", "is not of the type int"),
    "no truth": ("!!bool perhaps", "is not of the type bool"),
    "a key twice": ("{a: 1, a: 2}", "'a' appears twice"),
    "a list as a key": ("? [a]\n: 1", "not YAML"),
    "too long a text": ("x: " + "y" * LONGEST, "are the most"),
    "no YAML": ("[", "not YAML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_a_line_at_once(name: str) -> None:
    text, words = REFUSED[name]
    begun = time.process_time()
    with pytest.raises(PlainYamlError, match=words.replace("(", r"\(")) as caught:
        plain_yaml(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("", None),
        ("a: [1, -2.5, .inf, true, ~, '3', 2020-01-02]", {"a": [1, -2.5, float("inf"), True, None, "3", "2020-01-02"]}),
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: *a", {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"x": 1}}),
        ("[" * DEEPEST + "]" * DEEPEST, None),
    ],
)
def test_what_is_plain_is_read(text: str, content: Any) -> None:
    found = plain_yaml(text)
    assert content is None or found == content


@pytest.mark.parametrize("value", ["[" * 100_000, "{a: " * 20_000, "9" * 5_000, "&x [*x]"])
def test_every_way_in_refuses_it(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="reward_weights is a weight"):
        check("reward_weights", value)
    with pytest.raises(ShareError):
        Shared("two-plus-two", settings={"reward_weights": value}).scenario_with()
    assert read_columns(f"a: {value}") == "write columns as name: value, separated by commas, for example answer: 4"
    path = tmp_path / "mine.yaml"
    path.write_text(f"{HEAD}settings:\n  reward_weights: '{value}'\n")
    with pytest.raises(ScenarioError, match=r"mine.yaml:5: reward_weights is a weight"):
        load(path)
    algorithm = tmp_path / "own.yaml"
    algorithm.write_text(f"title: T\nsettings: {{beta: {value}}}\n")
    for option in ("--set", "reward_weights="), ("--chat_template_kwargs", ""), ("--algorithm", str(algorithm)):
        word = option[1] if option[0] == "--algorithm" else option[1] + value
        status, _, err = called(capsys, "run", "two-plus-two", option[0], word)
        assert (status, err.count("\n")) == (2, 1)
        assert len(err) < 1_500


@pytest.mark.parametrize("weight", [".inf", "-.inf", ".nan", "1.0e+308", "-2000000"])
def test_a_weight_that_no_number_survives_is_refused_when_read(weight: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{HEAD}settings:\n  reward_weights: {{correct: {weight}}}\n")
    with pytest.raises(ScenarioError, match=r"mine.yaml:5: reward_weights takes numbers from -1e6 to 1e6"):
        load(path)


@pytest.mark.parametrize(
    "line",
    [
        ["run", "two-plus-two", "--seed", "9" * 30],
        ["run", "two-plus-two", "--seed", "9" * 5_000],
        ["run", "two-plus-two", "--updates", "9" * 30],
        ["run", "two-plus-two", "--set", "num_prompts=" + "9" * 5_000],
        ["export", "last", "--update", "9" * 5_000, "--format", "jsonl", "--out", "x"],
        ["serve", "--port", "٣"],
        ["run", "two-plus-two", "--device", "cuda:٣"],
        ["show", "seed.yaml"],
        ["show", "long.yaml"],
    ],
)
def test_a_number_out_of_range_is_refused_in_a_line(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seed.yaml").write_text(f"{HEAD}seed: {'9' * 30}\n")
    (tmp_path / "long.yaml").write_text(f"{HEAD}max_updates: {'9' * 5_000}\n")
    status, out, err = called(capsys, *line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert len(err) < 1_500
    assert "sys." not in err
