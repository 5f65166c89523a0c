"""Each library's environments as tasks, with stand-ins of the libraries."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.containment import OwnError
from rlplay.tasks.library import library_task
from rlplay.tasks.task import Example, Message, Reply, Task
from tests.tasks.library import stand_ins
from tests.tasks.library.stand_ins import Client

pytestmark = pytest.mark.usefixtures("trusts_all")


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    for made in (stand_ins.reasoning_gym, stand_ins.textarena, stand_ins.openenv, stand_ins.verifiers_before):
        for name, module in made().items():
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("rlplay.tasks.library.openenv.check_address", lambda name: None)
    monkeypatch.setattr(Client, "opened", [])


def episode(task: Task, example: Example, turns: list[str]) -> list[Message]:
    """The completion in which the model writes these turns, as long as the environment replies."""
    assert callable(task.environment)
    said: list[Message] = []
    for number, turn in enumerate(turns, start=1):
        said.append({"role": "assistant", "content": turn})
        reply = task.environment(example=example, turns=turns[:number], chances=[0.5] * 9)
        if reply is None:
            break
        assert isinstance(reply, Reply)
        said.append({"role": "user", "content": reply.text})
    return said


def scored(task: Task, name: str, examples: list[Example], completions: list[Any]) -> list[Any]:
    logged = dict[str, float]()
    columns = {key: [each.columns[key] for each in examples] for key in examples[0].columns}
    given = {"prompts": [each.prompt for each in examples], "completions": completions}
    found = task.rewards[name](**given, **columns, log_metric=logged.__setitem__)
    return [*found, *([logged] if logged else [])]


def test_reasoning_gym_asks_and_scores() -> None:
    task = library_task("reasoning-gym:sums?size=20&seed=4&most=5")
    questions = [example.prompt[0]["content"] for example in (*task.train, *task.held_out)]  # type: ignore[index]
    assert len(questions) == len(set(questions)) == 19  # one came twice
    assert len(task.held_out) == 1
    three = task.train[:3]
    right = [example.columns["answer"] for example in three]
    answers = [f"it is <answer>{right[0]}</answer>", f" {right[1]} ", "a hundred"]
    assert scored(task, "score", three, answers) == [1.0, 1.0, 0.0, {"score/unread": pytest.approx(1 / 3)}]
    with pytest.raises(OwnError, match=r"no generator 'sumz'; did you mean 'sums'\?"):
        library_task("reasoning-gym:sumz")
    with pytest.raises(OwnError, match=r"reasoning-gym:sums\?x=1: TypeError: .*unexpected keyword argument 'x'"):
        library_task("reasoning-gym:sums?x=1")


def test_textarena_plays_with_random_numbers_of_its_own() -> None:
    task = library_task("textarena:Dice-v0?size=10&seed=5&sides=4")
    assert [example.columns["seed"] for example in task.train] == list(range(5, 14))
    assert "4 sides" in str(task.train[0].prompt)
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    played = episode(task, task.train[0], ["1", "1", "1"])
    other = episode(task, task.train[1], ["1", "2", "3"])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index, union-attr]
    assert len(played) == 5, "the third turn ends it, without another word"
    thrown = random.Random(5)
    thrown.randint(0, 99)
    numbers = [thrown.randint(1, 4) for _ in range(3)]
    assert [played[1]["content"], played[3]["content"]] == [f"It was {n}." for n in numbers[:2]]
    won = episode(task, task.train[0], [str(n) for n in numbers])
    again = library_task("textarena:Dice-v0?size=10&seed=5&sides=4")
    for one in (task, again):  # another process, or after an undo
        assert scored(one, "outcome", [task.train[0]] * 2, [won, played]) == [1.0, numbers.count(1) / 3]
    assert scored(task, "outcome", [task.train[1]] * 2, [other[:3], []]) == [0.0, 0.0], "cut off before the end"


def test_textarena_plays_against_an_opponent_of_the_users(tmp_path: Path) -> None:
    moves = "def move(observation):\n    return str(1 + observation.count('3'))\n"
    (tmp_path / "bot.py").write_text(f"{moves}\ndef bad(observation):\n    return {{}}[1]\n")
    task = library_task(f"textarena:Pair-v0?size=3&opponent={tmp_path / 'bot.py'}:move")
    assert task.train[0].prompt[0]["content"] == "You are 0. 0."  # type: ignore[index]
    won = episode(task, task.train[0], ["3", "2", "3"])
    assert [message["content"] for message in won] == ["3", "Player 1: [2]", "2", "Player 1: [2]", "3"]
    lost = episode(task, task.train[0], ["3", "3", "1"])
    assert scored(task, "outcome", [task.train[0]] * 2, [won, lost]) == [1.0, -1.0]
    broken = library_task(f"textarena:Pair-v0?size=1&opponent={tmp_path / 'bot.py'}:bad")
    with pytest.raises(OwnError, match=r"bot\.py:5: KeyError"):
        episode(broken, broken.train[0], ["1"])


def test_textarena_refuses_what_it_cannot_play() -> None:
    with pytest.raises(OwnError, match=r"is not for one player.* has to be 2.*add \?opponent=FILE"):
        library_task("textarena:Pair-v0")
    with pytest.raises(OwnError, match=r"no game 'Dice'; did you mean 'Dice-v0'\?"):
        library_task("textarena:Dice")


def test_openenv_is_stepped_and_pays_for_each_step() -> None:
    task = library_task("openenv:http://there:1?size=3&action=word&letters=xyz")
    assert [example.prompt[0]["content"] for example in task.train] == [f"A word with {n}?" for n in "xyz"]  # type: ignore[index]
    said = episode(task, task.train[1], ["yes", '{"word": "no"}', "y"])
    assert [message["content"] for message in said] == ["yes", "yes!", '{"word": "no"}', "no!", "y"]
    assert scored(task, "steps", [task.train[1]], [said]) == [[(3, 1.0), (17, 0.0)]]
    assert Client.opened == ["http://there:1"], "one session, however many episodes"
    whole = library_task("openenv:http://there:1?size=1&action=word&observation=turns")
    assert episode(whole, whole.train[0], ["a"])[1]["content"] == "1"
    with pytest.raises(OwnError, match="no field 'x'; an observation has text, turns"):
        library_task("openenv:http://there:1?observation=x")


def test_verifiers_before_0_4_has_a_dataset_and_a_rubric(monkeypatch: pytest.MonkeyPatch) -> None:
    task = library_task("verifiers:me/my-adder?most=12&size=11")
    assert (len(task.train), len(task.held_out)) == (10, 1)
    assert task.train[4].prompt == [{"role": "system", "content": "Add."}, {"role": "user", "content": "4+1?"}]
    logged = dict[str, float]()
    found: Any = task.rewards["rubric"](
        prompts=[], completions=["5", "4"], row_number=[4, 4], answer=["5", "5"], log_metric=logged.__setitem__
    )
    assert asyncio.run(found) == [2.0, 0.0]
    assert logged == {"my_adder/right": 0.5, "my_adder/turns": 1.0}
    assert library_task("verifiers:me/my-adder?most=12&seed=2").train != task.train
    with pytest.raises(OwnError, match="takes several turns"):
        library_task("verifiers:me/my-adder?most=200")
    monkeypatch.setattr(stand_ins.SingleTurnEnv, "judged", True)
    with pytest.raises(OwnError, match="asks a judge of its own"):
        library_task("verifiers:me/my-adder")
    monkeypatch.delattr(sys.modules["verifiers"], "load_environment")
    with pytest.raises(OwnError, match=r"written for verifiers before 0\.4: pip install 'verifiers<0\.4'"):
        library_task("verifiers:me/my-adder")


def test_a_failing_library_is_one_line_that_names_the_environment() -> None:
    task = library_task("openenv:http://there:1?action=text")
    assert callable(task.environment)
    with pytest.raises(OwnError, match=r"openenv:http://there:1.*KeyError: 'word'"):
        task.environment(example=task.train[0], turns=["a"])
