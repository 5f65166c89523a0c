"""The user's own task: prompts, verifiers and an environment from one function in a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlplay.containment import OwnError
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.scenario_task import tasks_for
from rlplay.scenario.stage_settings import stage_settings
from rlplay.tasks.own_task import make_task
from rlplay.tasks.task import Example
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called

pytestmark = pytest.mark.usefixtures("trusts_all")

SOURCE = """
from rlplay.tasks import Example, Task

def right(completions, answer, **columns):
    return [float(str(a) in c[-1]["content"]) for c, a in zip(completions, answer)]

def short(completions, **columns):
    return [1 / len(str(c)) for c in completions]

def ask(n):
    return {"prompt": [{"role": "user", "content": f"What is {n}+2?"}], "answer": n + 2}

def sums(lowest, highest):
    return [ask(n) for n in range(lowest, highest)]

def make():
    held_out = [Example([{"role": "user", "content": "What is 9+9?"}], {"answer": 18})]
    return Task(train=sums(0, 6), held_out=held_out, rewards={"right": right}, gold={"short": short})
"""
SHORT = "--set", "num_prompts=2", "--set", "num_generations=2", "--set", "max_completion_length=6"


def file(folder: Path, source: str = SOURCE) -> Path:
    path = folder / "mine.py"
    path.write_text(source)
    return path


def run(folder: Path, capsys: pytest.CaptureFixture[str], *others: str) -> tuple[int, str]:
    out = str(folder / "a.rlplay")
    status, _, err = called(capsys, "run", "--task", f"{file(folder)}:make", "--out", out, *SHORT, *others)
    return status, err


def test_its_rows_are_those_of_a_dataset(tmp_path: Path) -> None:
    task = make_task(f"{file(tmp_path)}:make")
    assert task.name == "make"
    assert task.train[1] == Example([{"role": "user", "content": "What is 1+2?"}], {"answer": 3})
    assert [example.columns for example in task.held_out] == [{"answer": 18}]
    assert (list(task.rewards), list(task.gold), task.environment) == (["right"], ["short"], None)


def test_a_run_learns_from_it_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, capsys, "--updates", "1")
    assert called(capsys, "run", "--resume", str(tmp_path / "a.rlplay"), "--updates", "1")[0] == 0
    with RunReader(tmp_path / "a.rlplay") as reader:
        first, second = reader.load(1), reader.load(2)
        assert reader.latest("eval_reward") is not None
    for update in (first, second):
        assert update.scored is not None
        assert update.sampled is not None
        assert list(update.scored.parts) == ["right"]
        assert list(update.scored.gold) == ["short"]
        assert all("+2?" in prompt for prompt in update.sampled.prompts)


def test_a_mended_verifier_counts_at_once_and_the_prompts_stay(tmp_path: Path) -> None:
    path = file(tmp_path, SOURCE.replace("float(str", "1 / 0 * float(str"))
    task = make_task(f"{path}:make")
    given = {"prompts": [""], "completions": [[{"role": "assistant", "content": "3"}]], "answer": [3]}
    with pytest.raises(OwnError, match=r"mine\.py:5: ZeroDivisionError"):
        task.rewards["right"](**given)
    path.write_text(SOURCE.replace("sums(0, 6)", "sums(3, 4)"))
    os.utime(path, ns=(1, 1))
    assert task.rewards["right"](**given) == [1.0]
    assert len(task.train) == 6
    path.write_text(SOURCE.replace('"right": right', '"other": right'))
    os.utime(path, ns=(2, 2))
    with pytest.raises(OwnError, match="the task no longer has 'right' in its rewards"):
        task.rewards["right"](**given)


def test_a_reward_that_is_also_gold_may_have_weight_0(tmp_path: Path) -> None:
    path = file(tmp_path, SOURCE.replace('"short": short', '"right": right'))
    task = make_task(f"{path}:make")
    assert task.gold["right"] is task.rewards["right"]


def test_its_environment_replies(tmp_path: Path) -> None:
    source = SOURCE.replace("def make", "def answer(example, turns):\n    return turns[-1] + '!'\n\ndef make")
    task = make_task(f"{file(tmp_path, source.replace('gold=', 'environment=answer, gold='))}:make")
    assert task.environment is not None
    assert task.environment(example=None, turns=["so"], chances=[0.5]) == "so!"


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("{}", "make returned dict; it returns a Task"),
        ("1 / 0", "mine.py:17: ZeroDivisionError: division by zero"),
        ("Task(train=[])", "make: the task's train has no prompts"),
        ("Task(train='abc')", "make: train is a list of prompts; got str"),
        ("Task(train=[{'answer': 1}])", "make: train: row 1 has no 'prompt' column"),
        ("Task(train=sums(0, 2), held_out=[3])", "make: held_out: row 1 is not a mapping of columns"),
        ("Task(train=[Example('1+1', {'a': {1, 2}})])", "row 1 has a column 'a' of the type set"),
        ("Task(train=sums(0, 2), rewards=[right])", "make: rewards takes names with functions"),
        ("Task(train=sums(0, 2), rewards={'reward_model': right})", "the name of a trained reward model's score"),
        ("Task(train=sums(0, 2), environment='answer')", "environment is a function"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, returned: str, problem: str) -> None:
    path = file(tmp_path, SOURCE[: SOURCE.index("def make")] + f"def make():\n    return {returned}\n")
    with pytest.raises(OwnError) as raised:
        make_task(f"{path}:make")
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_scenario_names_the_file_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file(tmp_path)
    (tmp_path / "s.yaml").write_text("title: T\nquestion: Q?\ntask: mine.py:make\nsettings: {num_prompts: 2}\n")
    assert with_changes(load(tmp_path / "s.yaml")).task == f"{tmp_path / 'mine.py'}:make"
    monkeypatch.chdir(tmp_path)
    assert len(tasks_for(with_changes(load("s.yaml")))[0].train) == 6
    (tmp_path / "t.yaml").write_text("title: T\nquestion: Q?\ntask: gone.py:make\n")
    with pytest.raises(ScenarioError, match=r"t\.yaml:3: task .*gone\.py:make: there is no file"):
        load("t.yaml")


def test_it_replaces_the_prompts_of_a_scenario(tmp_path: Path) -> None:
    entry = f"{file(tmp_path)}:make"
    scenario = with_changes(load("learn-to-think"), task=entry)
    assert (scenario.task, scenario.script, scenario.prompts) == (entry, [], None)
    task = tasks_for(scenario)[0]
    assert list(task.rewards) == ["right"]
    command = Reproduction(scenario).command(stage_settings(scenario)[0])
    assert f"--task {entry}" in command
    for refused in ({"dataset": "a.jsonl"}, {}):
        with pytest.raises(ScenarioError, match=r"brings its own prompts|is about a world"):
            with_changes(load("learn-to-think" if refused else "grid"), task=entry, **refused)
    with pytest.raises(ScenarioError, match="unknown task 'arithmetics'; did you mean 'arithmetic'"):
        with_changes(load("learn-to-think"), task="arithmetics")
