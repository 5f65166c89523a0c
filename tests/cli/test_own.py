"""The user's own prompts and reward functions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay.scenario.loader import load
from rlplay.tasks.own import OwnError, load_own, load_reward, task_for
from rlplay.tasks.task import Example

CHAT = [{"role": "user", "content": "Hi"}]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", '{"prompt": "1+1?", "answer": "2"}\n\n{"prompt": "2+2?", "answer": "4"}\n'),
        ("rows.json", '[{"prompt": "1+1?", "answer": "2"}, {"prompt": "2+2?", "answer": "4"}]'),
        ("rows.csv", '\ufeffprompt,answer\n1+1?,2\n"2+2?",4\n'),
    ],
)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str, text: str) -> None:
    task = load_own(written(tmp_path, name, text), {})
    assert task.train == [Example("1+1?", {"answer": "2"}), Example("2+2?", {"answer": "4"})]
    assert task.held_out == []


@pytest.mark.parametrize(("rows", "held_out"), [(1, 0), (9, 0), (10, 1), (25, 2), (100, 10)])
def test_the_last_tenth_is_held_out(tmp_path: Path, rows: int, held_out: int) -> None:
    lines = "".join(json.dumps({"prompt": str(n)}) + "\n" for n in range(rows))
    task = load_own(written(tmp_path, "rows.jsonl", lines), {})
    assert [e.prompt for e in task.train + task.held_out] == [str(n) for n in range(rows)]
    assert len(task.held_out) == held_out


def test_chat_messages(tmp_path: Path) -> None:
    path = written(tmp_path, "rows.json", json.dumps([{"prompt": CHAT, "topic": None}]))
    assert load_own(path, {}).train == [Example(CHAT, {"topic": None})]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rows.jsonl", '{"prompt": "a"}\n{"prompt"\n', "rows.jsonl:2: not JSON"),
        ("rows.json", "[\n1,\n}", "rows.json:3: not JSON"),
        ("rows.json", "{}", "one list of rows"),
        ("rows.json", "[]", "no rows"),
        ("rows.csv", "question\nx\n", "row 1 has no 'prompt' column"),
        ("rows.json", '[{"prompt": "a"}, {"prompt": 3}]', "the prompt of row 2"),
        ("rows.json", '[{"prompt": [{"role": "user"}]}]', "messages with role and content"),
        ("rows.txt", "a", "it reads .jsonl, .json, .csv, .parquet"),
    ],
)
def test_bad_data_is_told_in_a_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(OwnError) as caught:
        load_own(written(tmp_path, name, text), {})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(OwnError, match="pip install pyarrow"):
        load_own(written(tmp_path, "rows.parquet", ""), {})


def test_a_reward_function_is_called_as_it_is(tmp_path: Path) -> None:
    path = written(
        tmp_path, "score.py", "def length(completions, **columns):\n    return [len(c) for c in completions]\n"
    )
    assert load_reward(f"{path}:length")(prompts=["p"], completions=["abc"]) == [3]


def test_its_mistakes_name_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", "def f(completions):\n    x = 1\n    return x / 0\n")
    with pytest.raises(OwnError, match=r"score\.py:3: ZeroDivisionError: division by zero"):
        load_reward(f"{path}:f")(completions=["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(:\n", "score.py:1: SyntaxError"),
        ("\nimport no_such_package\n", "score.py:2: ModuleNotFoundError"),
        ("def g(): ...\n", "no function 'f'; it has g"),
        ("f = 3\n", "it has none"),
    ],
)
def test_a_reward_that_cannot_be_loaded(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(OwnError) as caught:
        load_reward(f"{written(tmp_path, 'score.py', text)}:f")
    assert words in str(caught.value)


def changed(name: str, **changes: Any) -> Any:
    return msgspec.structs.replace(load(name), **changes)


def test_own_rewards_replace_the_tasks_and_gold_stays(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", "def f(**_): return []\n")
    task = task_for(changed("learn-to-think", reward=[f"{path}:f"], settings={}))
    assert list(task.rewards) == ["f"]
    assert "correct" in task.gold


def test_prompts_choose_among_the_tasks() -> None:
    task = task_for(load("two-plus-two"))
    assert [example.columns for example in task.train] == [{"answer": 4}]
    with pytest.raises(OwnError, match="has no prompt 'What'"):
        task_for(changed("two-plus-two", prompts=["What"]))


def test_weights_of_rewards_that_are_not_there() -> None:
    with pytest.raises(OwnError, match="reward_weights names 'corect'"):
        task_for(changed("two-plus-two", settings={"reward_weights": {"corect": 1}}))
