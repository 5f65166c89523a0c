"""What every task promises: enough prompts, a clean split, rewards that run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlplay.tasks import completion_text, load_task, task_names
from rlplay.tasks.own_prompts import narrowed
from rlplay.tasks.task import heading, total


@pytest.mark.parametrize("name", task_names())
def test_train_and_held_out_are_apart_and_fixed(name: str) -> None:
    task, again = load_task(name), load_task(name)
    assert (task.train, task.held_out) == (again.train, again.held_out)
    train = [str(example) for example in task.train]
    held_out = [str(example) for example in task.held_out]
    assert len(set(train)) == len(train)
    assert len(set(held_out)) == len(held_out)
    assert not {str(example.prompt) for example in task.train} & {str(example.prompt) for example in task.held_out}


@pytest.mark.parametrize(
    ("name", "train", "held_out"), [("arithmetic", 200, 64), ("word_problems", 200, 64), ("questions", 24, 8)]
)
def test_there_are_enough_prompts(name: str, train: int, held_out: int) -> None:
    task = load_task(name)
    assert len(task.train) >= train
    assert len(task.held_out) >= held_out


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("arithmetic", "What is 2+2?"),
        ("word_problems", "Roger has 5 balls and buys 2 cans of 3 balls. How many balls does Roger have?"),
        ("questions", "How do I make tea?"),
        ("questions", "Explain gravity."),
    ],
)
def test_the_prompts_that_lessons_show_are_trained_on(name: str, prompt: str) -> None:
    assert [{"role": "user", "content": prompt}] in [example.prompt for example in load_task(name).train]


def test_a_held_out_prompt_that_is_trained_on_is_no_longer_held_out() -> None:
    task = load_task("arithmetic")
    chosen = [task.held_out[1], task.train[0]]
    narrow = narrowed(task, [heading(example) for example in chosen])
    assert narrow.train == chosen
    assert narrow.held_out == [example for example in task.held_out if example not in chosen]
    assert len(narrow.held_out) == len(task.held_out) - 1


@pytest.mark.parametrize("name", task_names())
def test_every_scorer_scores_every_example(name: str) -> None:
    task = load_task(name)
    examples = task.train + task.held_out
    columns = {key: [example.columns[key] for example in examples] for key in examples[0].columns}
    prompts = [example.prompt for example in examples]
    for scorer in [*task.rewards.values(), *task.gold.values()]:
        scores = scorer(prompts, ["no answer"] * len(examples), **columns)
        assert len(scores) == len(examples)
        known = [total(score) for score in scores if score is not None]
        assert known == [0.0] * len(known) != []
        assert scorer.__doc__


def test_held_out_word_problems_have_new_operands() -> None:
    def operands(prompt: object) -> str:
        return "".join(letter for letter in str(prompt) if letter.isdigit())

    task = load_task("word_problems")
    train = {operands(example.prompt) for example in task.train}
    assert not train & {operands(example.prompt) for example in task.held_out}


def test_unknown_task_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown task 'chess': choose one of arithmetic, word_problems, questions"):
        load_task("chess")


def test_completion_text_joins_only_the_models_own_words() -> None:
    turns = [
        {"role": "assistant", "content": "10"},
        {"role": "user", "content": "Higher."},
        {"role": "assistant", "content": "15"},
    ]
    assert completion_text("10") == "10"
    assert completion_text(turns) == "10\n15"
    assert completion_text([]) == ""


def test_tasks_need_no_torch() -> None:
    check = "import rlplay.tasks, sys; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
