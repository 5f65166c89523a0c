"""A teacher behind an address: log-probabilities of given answers, by the characters of its own tokens."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from rlplay.containment import OwnError
from rlplay.tasks.own_rewards import load_reward
from rlplay.tasks.remote.teacher import steps_in
from rlplay.trusted import follow
from tests.tasks.remote.server import serving


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def echo(tokens: list[str], values: list[float | None]) -> dict[str, Any]:
    """A completion with the log-probabilities of what was asked, and one token more."""
    return {"choices": [{"text": "".join(tokens), "logprobs": {"tokens": tokens, "token_logprobs": values}}]}


def by_two(body: dict[str, Any]) -> tuple[int, Any]:
    """A server whose tokens are pairs of characters, each as likely as e^-n, n its place; it begins with a mark."""
    text = body["prompt"]
    pairs = [text[n : n + 2] for n in range(0, len(text), 2)]
    values = [None, *(-float(n) for n in range(len(pairs)))]
    return 200, echo(["<s>", *pairs, "!"], [*values, -9.0])


def scored(folder: Path, address: str, answers: list[str], more: str = "") -> tuple[Any, dict[str, float]]:
    path = folder / "teacher.yaml"
    path.write_text(f"teacher: {address}\nmodel: m\nprompt: 'Q: {{prompt}} A:'\n{more}")
    follow([str(path)])
    metrics = dict[str, float]()

    async def ask() -> Any:
        return await load_reward(str(path))(  # type: ignore[misc]
            prompts=["ab"] * len(answers),
            completions=answers,
            log_metric=metrics.__setitem__,
            answer=["x"] * len(answers),
        )

    return asyncio.run(ask()), metrics


def test_the_mean_of_the_answers_tokens(tmp_path: Path) -> None:
    with serving(by_two) as server:
        means, metrics = scored(tmp_path, server.address, ["wxyz", "wx", ""])
        assert (server.paths[0], server.bodies[0]["echo"]) == ("/v1/completions", True)
        assert {body["prompt"] for body in server.bodies} == {"Q: ab A:wxyz", "Q: ab A:wx", "Q: ab A:"}
    assert means == [-4.5, -4.0, None]
    assert metrics["teacher/logprob"] == pytest.approx(-13 / 3)
    assert (metrics["teacher/calls"], metrics["teacher/failed"]) == (3, 0)


def test_each_token_at_its_end(tmp_path: Path) -> None:
    with serving(by_two) as server:
        steps, _ = scored(tmp_path, server.address, ["wxyz", ""], "steps: true\n")
    assert steps == [[(2, -4.0), (4, -5.0)], None]


def test_a_server_without_log_probabilities_is_a_line(tmp_path: Path) -> None:
    reply = {"choices": [{"text": "a", "logprobs": None}]}
    wanted = "not a log-probability of each token of the prompt; it needs echo with logprobs"
    with serving(lambda body: (200, reply)) as server, pytest.raises(OwnError, match=wanted):
        scored(tmp_path, server.address, ["wx"])


def test_a_token_over_the_border_is_not_counted() -> None:
    assert steps_in(echo(["ab", "cd", "e"], [None, -1.0, -2.0]), "abcde", 3) == [(2, -2.0)]


def test_parts_of_a_character_count_where_they_stand() -> None:
    found = steps_in(echo(["a", "�", "�", "b", "c"], [None, -1.0, -2.0, -3.0, -4.0]), "a🙂bc", 1)
    assert found == [(0, -1.0), (0, -2.0), (2, -3.0), (3, -4.0)]


@pytest.mark.parametrize(
    "reply",
    [
        echo(["other", "words"], [None, -1.0]), echo(["ab"], [None, -1.0]), {"choices": [None]}, {"choices": [{}]},
        {"choices": [{"logprobs": {"tokens": 3, "token_logprobs": []}}]},
        *(echo(["ab", "cdefghijk"], [None, value]) for value in (math.nan, -math.inf, -(10**400), True, "1")),
    ],
)  # fmt: skip
def test_a_reply_without_a_number_for_each_token_of_the_text_counts_for_nothing(reply: dict[str, Any]) -> None:
    assert steps_in(reply, "abcdefghijk", 2) is None
