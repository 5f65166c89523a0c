"""The user's own prompts and reward functions."""

from __future__ import annotations

import datetime
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay.containment import OwnError
from rlplay.engine import prepare
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import load
from rlplay.scenario.scenario_task import tasks_for
from rlplay.tasks.dataset_row import read_row
from rlplay.tasks.own_prompts import check_reward_weights, load_own
from rlplay.tasks.own_rewards import load_reward
from rlplay.tasks.task import Example
from tests.cli.command_line import called

pytestmark = pytest.mark.usefixtures("trusts_all")

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
        ("rows.jsonl", '\ufeff{"prompt": "1+1?", "answer": "2"}\n{"prompt": "2+2?", "answer": "4"}\n'),
        ("rows.json", '\ufeff[{"prompt": "1+1?", "answer": "2"}, {"prompt": "2+2?", "answer": "4"}]'),
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
        ("rows.json", '[{"prompt": "a"}, {"prompt": 3}]', "row 2 has a prompt that is neither text"),
        ("rows.json", '[{"prompt": [{"role": "user"}]}]', "messages with role and content"),
        ("rows.txt", "a", "it reads .jsonl, .json, .csv, .parquet"),
        ("rows.jsonl", '\n{"prompt": "a\\ud800"}\n', "row 1 has a column 'prompt' with half a character"),
        ("rows.json", '[{"prompt": [{"role": "user", "content": "\\udfff"}]}]', "'prompt' with half a character"),
        ("rows.json", '[{"prompt": "a", "x\\ud800": 1}]', "half a character (a lone surrogate), which is not text"),
        ("rows.jsonl", f'{{"prompt": "a"}}\n{"[" * 10**5}', "rows.jsonl:2: cannot be read: it is nested too deeply"),
        ("rows.json", "[" * 10**5, "rows.json:1: cannot be read: it is nested too deeply"),
        ("rows.jsonl", f'{{"prompt": "a", "x": {"[" * 200}{"]" * 200}}}', "'x' that is nested more than 100 levels"),
        ("rows.jsonl", f'{{"prompt": "a", "x": {"9" * 5000}}}', "rows.jsonl:1: cannot be read: it contains a number"),
        ("rows.jsonl", f'{{"prompt": "a", "x": {"9" * 20}}}', "'x' with a number of more than 64 bits"),
    ],
)
def test_bad_data_is_reported_in_one_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(OwnError) as caught:
        load_own(written(tmp_path, name, text), {})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (("date32", 10**8), "rows.parquet: cannot be read as Parquet: date value out of range"),
        (("date32", 19_000), ""),
        (("timestamp[us]", 10**15), ""),
        (("timestamp[us]", 10**18), "rows.parquet: cannot be read as Parquet: "),
    ],
)
def test_dates_in_a_column_are_read_or_reported_in_one_line(
    tmp_path: Path, column: tuple[str, int], words: str
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    importlib.import_module("pyarrow.parquet").write_table(
        pyarrow.table({"prompt": ["a"], "when": pyarrow.array([column[1]], column[0])}), tmp_path / "rows.parquet"
    )
    if not words:
        assert load_own(tmp_path / "rows.parquet", {}).train[0].columns["when"].year in (2001, 2022)
        return
    with pytest.raises(OwnError, match=words) as caught:
        load_own(tmp_path / "rows.parquet", {})
    assert "\n" not in str(caught.value)


def test_a_value_that_a_run_file_cannot_hold_is_named_by_its_type() -> None:
    class Timestamp(datetime.datetime):
        """As of a library's nanoseconds."""

    with pytest.raises(ValueError, match=r"has a column 'when' of the type Timestamp, which .*; write it as text"):
        read_row({"prompt": "a", "when": [{"at": Timestamp(2024, 1, 1)}]})


@pytest.mark.parametrize("name", ["self", "n", "name", "function", "completions_"])
def test_a_column_may_have_any_name(tmp_path: Path, name: str) -> None:
    reward = load_reward(f"{written(tmp_path, 'score.py', 'def f(completions, **columns): return [columns]')}:f")
    assert reward(**{"completions": ["a"], name: [1]}) == [{name: [1]}]


def test_what_a_reward_function_says_of_its_mistake_can_be_recorded(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", "def f(completions):\n    raise ValueError('\\x1b]0;owned\\x07\\ud800')\n")
    with pytest.raises(OwnError, match=r"score\.py:2: ValueError: ␛\]0;owned␇◦$"):
        load_reward(f"{path}:f")(completions=["a"])


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
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


FIRST = "def f(completions):\n    return [1.0 for _ in completions]\n"


def test_a_column_it_asks_for_in_vain_is_named_with_those_there_are(tmp_path: Path) -> None:
    text = "def f(completions, solution, style='plain', **others):\n    return [0.0]\n"
    reward = load_reward(f"{written(tmp_path, 'score.py', text)}:f")
    missing = r"score\.py: f takes 'solution', which is not a column of the data; the columns are: answer$"
    with pytest.raises(OwnError, match=missing):
        reward(answer=["2"], completions=["a"])
    assert reward(solution=["2"], completions=["a"]) == [0.0]


def test_a_missing_column_is_refused_before_the_model_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = written(tmp_path, "rows.jsonl", '{"prompt": "1+1=", "answer": "2", "id": 1}\n{"prompt": "2+2="}\n')
    score = written(tmp_path, "score.py", "def f(completions, gold, **others):\n    return [0.0 for _ in gold]\n")
    monkeypatch.setattr(prepare, "load_model", lambda *_: pytest.fail("the model is loaded"))
    status, out, error = called(capsys, "run", "--dataset", str(rows), "--reward", f"{score}:f")
    assert (status, out) == (2, "")
    assert error == f"rlplay: {score}: f takes 'gold', which is not a column of the data; the columns are: answer, id\n"


@pytest.mark.parametrize("text", ["raise SystemExit(0)\n", "def f(**columns):\n    exit()\n"])
def test_a_reward_that_ends_the_program_is_a_mistake_like_any_other(tmp_path: Path, text: str) -> None:
    with pytest.raises(OwnError, match=r"score\.py:\d: SystemExit"):
        load_reward(f"{written(tmp_path, 'score.py', text)}:f")(completions=["a"])


def test_data_in_another_encoding_says_so(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes("prompt\nGrüße\n".encode("latin-1"))
    with pytest.raises(OwnError, match=r"rows\.csv: not UTF-8 text: .* at byte 10; save it as UTF-8$"):
        load_own(tmp_path / "rows.csv", {})


def test_a_mended_file_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", FIRST)
    reward = load_reward(f"{path}:f")
    assert reward(prompts=["p"], completions=["abc"]) == [1.0]
    written(tmp_path, "score.py", FIRST.replace("1.0", "2.0"))
    assert reward(prompts=["p"], completions=["abc"]) == [2.0], "same length, same second"
    written(tmp_path, "score.py", "def f(prompts, **columns):\n    return [len(p) for p in prompts]\n")
    assert reward(prompts=["p"], completions=["abc"]) == [1], "the columns it takes are asked for again"


def test_mistakes_at_run_time_are_reported_in_one_line_and_can_be_corrected(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", FIRST)
    reward = load_reward(f"{path}:f")
    for text, words in (("def f(:\n", "score.py:1: SyntaxError"), ("def g(): ...\n", "no function 'f'; it has g")):
        written(tmp_path, "score.py", text)
        for _ in range(2):
            with pytest.raises(OwnError, match=re.escape(words)) as caught:
                reward(completions=["a"])
            assert "\n" not in str(caught.value)
    written(tmp_path, "score.py", FIRST)
    assert reward(completions=["a"]) == [1.0]


def test_a_file_that_is_being_replaced_is_not_missed(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", FIRST)
    reward = load_reward(f"{path}:f")
    path.unlink()
    assert reward(completions=["a"]) == [1.0]


def test_a_reward_may_define_dataclasses_and_import_what_is_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "rlplay_test_helper.py", "WORTH = 3.0\n")
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport rlplay_test_helper\n"
        "@dataclass\nclass Score:\n    worth: float\n"
        "def f(completions):\n    return [Score(rlplay_test_helper.WORTH).worth for _ in completions]\n"
    )
    assert load_reward(f"{written(tmp_path, 'score.py', text)}:f")(completions=["a"]) == [3.0]
    assert not (tmp_path / "__pycache__" / "score.cpython-311.pyc").exists()


def test_two_rewards_of_one_name_are_refused(tmp_path: Path) -> None:
    entries = [f"{written(tmp_path, name, FIRST)}:f" for name in ("a.py", "b.py")]
    with pytest.raises(OwnError, match=r"two rewards are called 'f': .*a\.py:f and .*b\.py:f"):
        tasks_for(changed("learn-to-think", reward=entries, settings={}))


def test_weights_are_checked_by_name() -> None:
    check_reward_weights({"correct": 1.0}, ["correct", "helpful"])
    with pytest.raises(OwnError, match="reward_weights names 'corect'; the rewards here are correct, helpful"):
        check_reward_weights({"corect": 1.0}, ["correct", "helpful"])


def changed(name: str, **changes: Any) -> Any:
    return msgspec.structs.replace(load(name), **changes)


def test_own_rewards_replace_the_tasks_and_gold_stays(tmp_path: Path) -> None:
    path = written(tmp_path, "score.py", "def f(**_): return []\n")
    task = tasks_for(changed("learn-to-think", reward=[f"{path}:f"], settings={}))[0]
    assert list(task.rewards) == ["f"]
    assert "correct" in task.gold


def test_prompts_choose_among_the_tasks() -> None:
    task = tasks_for(load("two-plus-two"))[0]
    assert [example.columns for example in task.train] == [{"answer": 4}]
    with pytest.raises(OwnError, match="has no prompt 'What'"):
        tasks_for(changed("two-plus-two", prompts=["What"]))


def test_weights_of_rewards_that_are_not_there() -> None:
    with pytest.raises(OwnError, match="reward_weights names 'corect'"):
        tasks_for(changed("two-plus-two", settings={"reward_weights": {"corect": 1}}))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("no_such_package.rewards:f", "no package no_such_package is installed; install it, or name a file"),
        ("no_such_score:f", "no package no_such_score is installed"),
        ("score.txt/x:f", "a reward takes the form MODULE:FUNCTION or FILE.py:FUNCTION"),
        ("json:", "a reward takes the form MODULE:FUNCTION or FILE.py:FUNCTION"),
    ],
)
def test_a_module_that_is_not_there(capsys: pytest.CaptureFixture[str], entry: str, words: str) -> None:
    status, _, err = called(capsys, "run", "two-plus-two", "--reward", entry)
    assert status == 2
    assert words in err
    assert err.count("\n") == 1


def test_a_modules_reward_is_found_from_any_folder() -> None:
    scenario = with_changes(load("two-plus-two"), reward=["math:sqrt"])
    assert scenario.reward == ["math:sqrt"]
