"""The real libraries, where they are installed: `pip install 'rlplay[reasoning-gym,textarena,openenv,verifiers]'`."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlplay.containment import OwnError
from rlplay.tasks.library import library_task
from tests.tasks.library.test_adapters import episode, scored

pytestmark = pytest.mark.usefixtures("trusts_all")
SERVER = Path(__file__).parent / "openenv_server.py"


def test_reasoning_gym() -> None:
    pytest.importorskip("reasoning_gym")
    task = library_task("reasoning-gym:chain_sum?size=40&min_terms=2&max_terms=2&min_digits=1&max_digits=1")
    examples = task.train[:10]
    right = [f"<answer>{each.columns['answer']}</answer>" for each in examples]
    *scores, logged = scored(task, "score", examples, right)
    assert (scores, logged) == ([1.0] * 10, {"score/unread": 0.0})
    assert library_task("reasoning-gym:leg_counting?size=12&seed=1") is not None


def test_textarena() -> None:
    pytest.importorskip("textarena")
    task = library_task("textarena:GuessTheNumber-v0?size=12")
    assert "between 1 and 20" in str(task.train[0].prompt)
    halves = episode(task, task.train[0], ["[10]"])
    assert "The target number is" in halves[1]["content"]
    every = [[f"[{n}]" for n in range(1, 21)]] * 2
    for turns in every:
        played = episode(task, task.train[3], turns)
        assert played[-1]["role"] == "assistant"
        assert scored(task, "outcome", [task.train[3]], [played]) == [1.0]
    with pytest.raises(OwnError, match="is not for one player"):
        library_task("textarena:TicTacToe-v0")


@pytest.fixture
def server() -> Iterator[str]:
    """The address of an OpenEnv server."""
    pytest.importorskip("openenv")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)])
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/schema")
            break
        except OSError:
            assert process.poll() is None
            time.sleep(0.1)
    else:
        pytest.fail("the server never answered")
    yield address
    process.terminate()
    process.wait()


def test_openenv(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlplay.tasks.library.openenv.check_address", lambda name: None)
    task = library_task(f"openenv:{server}?size=4")
    assert task.train[0].prompt == [{"role": "user", "content": "Guess my number, 1 to 9."}]
    played = episode(task, task.train[2], ["9", "I say 1", "1"])
    assert played[1]["content"] in ("Lower.", "Right.")
    ((first, second, *_),) = scored(task, "steps", [task.train[2]], [played])
    assert (first[0], second[0]) == (1, 8)
    assert -1 <= first[1] <= 1
    with pytest.raises(OwnError, match="Failed to connect"):
        library_task("openenv:http://127.0.0.1:1")


TASKSET = """
import verifiers.v1 as vf

__all__ = ["Adder"]


class SumData(vf.TaskData):
    answer: str


class Sum(vf.Task[SumData]):
    @vf.reward
    async def right(self, task: SumData, trace: vf.Trace) -> float:
        return float(trace.last_reply == task.answer)

    @vf.reward(weight=0.5)
    async def short(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) < 3)


class Config(vf.TasksetConfig):
    most: int = 5


class Adder(vf.Taskset[Sum, Config]):
    def load(self):
        for a in range(self.config.most):
            for b in range(self.config.most):
                yield Sum(SumData(prompt=f"{a}+{b}?", system_prompt="Add.", answer=str(a + b)), self.config.task)
"""


def test_verifiers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("verifiers.v1")
    (tmp_path / "my_adder.py").write_text(TASKSET)
    monkeypatch.syspath_prepend(tmp_path)
    task = library_task("verifiers:me/my-adder@1?most=4")
    assert len(task.train) + len(task.held_out) == 16
    assert task.train[5].prompt == [{"role": "system", "content": "Add."}, {"role": "user", "content": "1+1?"}]
    logged = dict[str, float]()

    async def ask() -> Any:
        answers = [[{"role": "assistant", "content": text}] for text in ("2", "three")]
        columns = {"task_number": [5, 6], "answer": ["2", "3"]}
        return await task.rewards["rubric"](prompts=[], completions=answers, log_metric=logged.__setitem__, **columns)  # type: ignore[misc]

    assert asyncio.run(ask()) == [1.5, 0.0]
    assert logged == {"my_adder/right": 0.5, "my_adder/short": 0.5}
    with pytest.raises(OwnError, match=r"verifiers:my-adder\?x=1: ValidationError"):
        library_task("verifiers:my-adder?x=1")
