"""The user's dataset as it is: other names of columns, messages, whole texts; system prompts and template arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from transformers import AutoTokenizer

from rlplay.containment import OwnError
from rlplay.engine.model import load_model
from rlplay.paths import POCKET_PATH
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.scenario_task import tasks_for
from rlplay.scenario.stage_settings import stage_settings
from rlplay.tasks.own_prompts import instructed, load_own
from rlplay.tasks.task import Example, Task
from tests.cli.command_line import called

pytestmark = pytest.mark.usefixtures("trusts_all")

GSM8K = [{"question": f"What is {n}+{n}?", "answer": f"{n}+{n} = {2 * n}\n#### {2 * n}"} for n in range(3)]
REWARD = """
def exact(completions, answer, **columns):
    return [float(right.split("#### ")[1] in c[0]["content"]) for c, right in zip(completions, answer)]
"""


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[list[Any]], Path]:
    """Writes a dataset."""

    def write(content: list[Any]) -> Path:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
        return path

    return write


def test_columns_have_the_names_that_the_user_says(rows: Callable[[list[Any]], Path]) -> None:
    task = load_own(rows(GSM8K), {}, columns={"prompt": "question", "gold": "answer"})
    assert task.train[1] == Example("What is 1+1?", {"gold": "1+1 = 2\n#### 2"})
    task = load_own(rows(GSM8K), {}, columns={"prompt": "question", "completion": "answer"})
    assert task.train[1].chosen == "1+1 = 2\n#### 2"


def test_a_prompt_column_that_is_missing(rows: Callable[[list[Any]], Path]) -> None:
    with pytest.raises(OwnError, match=r"row 1 has no 'prompt' column; it has question, answer; --columns prompt=NAME"):
        load_own(rows(GSM8K), {})
    with pytest.raises(OwnError, match=r"row 1 has no 'quest' column, which 'columns' names; it has question, answer$"):
        load_own(rows(GSM8K), {}, columns={"prompt": "quest"})


def test_messages_are_a_conversation_and_the_answer_to_imitate(rows: Callable[[list[Any]], Path]) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    answer = {"role": "assistant", "content": "Hello."}
    task = load_own(rows([{"messages": [*turns, answer], "source": "a"}]), {})
    assert task.train == [Example(turns, {"source": "a", "completion": "Hello."}, chosen="Hello.")]
    assert load_own(rows([{"messages": turns}]), {}).train == [Example(turns, {})]
    for bad in ([answer], [], "Hi", [{"role": "user"}]):
        with pytest.raises(OwnError, match="row 1 has 'messages' that are not a conversation"):
            load_own(rows([{"messages": bad}]), {})


def test_a_text_is_imitated_from_the_token_that_texts_begin_with(rows: Callable[[list[Any]], Path]) -> None:
    example = load_own(rows([{"text": "Once upon a time."}]), {}).train[0]
    assert (example.prompt, example.chosen) == ("", "Once upon a time.")
    lm = load_model("pocket", torch.device("cpu"))
    begins = lm.tokenizer.bos_token_id
    assert lm.prompt_ids(example) == [lm.tokenizer.eos_token_id if begins is None else begins]
    assert lm.prompt_ids(Example("", {})) == [], "a prompt to answer must not be empty"


@pytest.mark.parametrize(
    "row",
    [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hey."}]}, {"text": "Hey."}],
)
def test_they_can_be_learned_from(
    rows: Callable[[list[Any]], Path], row: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--algorithm", "sft", "--updates", "2", "--set", "num_prompts=2", "--out", str(tmp_path / "a.rlplay")]
    status, out, err = called(capsys, "run", "--dataset", str(rows([row] * 3)), *options)
    assert status == 0, err
    assert "log p chosen" in out


def test_gsm8ks_columns_train_from_the_command_line(
    rows: Callable[[list[Any]], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "score.py").write_text(REWARD)
    short = ["--set", "num_prompts=2", "--set", "num_generations=2", "--set", "max_completion_length=6"]
    status, _, err = called(
        capsys, "run", "--dataset", str(rows(GSM8K)), "--columns", "prompt=question", "--reward",
        f"{tmp_path / 'score.py'}:exact", "--system_prompt", "Compute.", "--updates", "1", *short,
        "--out", str(tmp_path / "b.rlplay"),
    )  # fmt: skip
    assert status == 0, err


def test_a_system_prompt_stands_before_prompts_that_have_none() -> None:
    own = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "Hi"}]
    task = Task(train=[Example("1+1=", {}), Example(own, {})], held_out=[Example([own[1]], {})])
    system = {"role": "system", "content": "Be brief."}
    found = instructed(task, "Be brief.")
    assert found.train == [Example([system, {"role": "user", "content": "1+1="}], {}), Example(own, {})]
    assert found.held_out == [Example([system, own[1]], {})]
    scenario = with_changes(load("two-plus-two"), system_prompt="Be brief.")
    assert tasks_for(scenario)[0].train[0].prompt[0] == system


def test_the_chat_template_gets_its_arguments() -> None:
    lm = load_model("pocket", torch.device("cpu"))
    lm.tokenizer = AutoTokenizer.from_pretrained(POCKET_PATH)
    lm.tokenizer.chat_template = "{% if not thinking %}off: {% endif %}{{ messages[0]['content'] }}"
    example = Example([{"role": "user", "content": "Hi"}], {})
    plain = lm.prompt_ids(example)
    lm.chat_template_kwargs = {"thinking": True}
    assert lm.decode(plain) == "off: Hi"
    assert lm.decode(lm.prompt_ids(example)) == "Hi"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": "prompt"}, "columns takes names with the dataset's own, as in prompt=question"),
        ({"columns": "prompt=question"}, "columns belong to a dataset; this scenario has none"),
        ({"chat_template_kwargs": "off"}, "chat_template_kwargs takes names with values"),
        ({"chat_template_kwargs": "{tokenize: true}"}, "chat_template_kwargs cannot set tokenize"),
    ],
)
def test_options_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        with_changes(load("two-plus-two"), **changes)


def test_a_world_takes_no_system_prompt() -> None:
    with pytest.raises(ScenarioError, match="a world has no chat messages: it takes no system_prompt"):
        with_changes(load("grid"), system_prompt="Go.")


def test_a_scenario_may_have_them_and_its_command_repeats_them(
    rows: Callable[[list[Any]], Path], tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    (tmp_path / "score.py").write_text(REWARD)
    rows(GSM8K)
    text = "title: T\nquestion: Q\ndataset: rows.jsonl\nreward: [score.py:exact]\n"
    path.write_text(text + "columns: {prompt: question}\nsystem_prompt: Compute.\n")
    assert load(path).columns == {"prompt": "question"}
    assert tasks_for(load(path))[0].train[0].prompt[0]["content"] == "Compute."
    scenario = with_changes(load(path), columns="prompt=answer", chat_template_kwargs="{enable_thinking: false}")
    assert scenario.chat_template_kwargs == {"enable_thinking": False}
    command = Reproduction(scenario).command(stage_settings(scenario)[0])
    assert "--columns prompt=answer --chat_template_kwargs '{\"enable_thinking\": false}'" in command
    path.write_text(text + "columns: [prompt]\n")
    with pytest.raises(ScenarioError, match=r"mine\.yaml:5: columns takes names"):
        load(path)
    assert msgspec.yaml.decode(msgspec.yaml.encode(scenario))["columns"] == {"prompt": "answer"}
