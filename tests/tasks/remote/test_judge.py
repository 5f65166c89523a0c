"""A judge behind an address: what it is sent, what its replies mean, and what happens when it does not reply."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlplay.containment import OwnError
from rlplay.tasks.own_rewards import check_columns, load_reward
from rlplay.tasks.remote import asking
from rlplay.tasks.remote.judge import filled, score_in
from rlplay.tasks.remote.served_file import Served
from rlplay.tasks.task import Example, Task
from rlplay.trusted import consequences, contents, follow, strange
from tests.tasks.remote.server import Server, said, serving

PROMPT = "Rate 0 to 10: {prompt} -> {answer} (right: {truth}) {{x}} {unknown}"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(asking, "_BACKOFF", 0.0)


def written(folder: Path, address: str, **more: Any) -> str:
    """A judge's file, which the user has named."""
    lines = [f"judge: {address}", "model: m", f"prompt: '{PROMPT}'"]
    lines += [f"{key}: {value}" for key, value in more.items()]
    (folder / "kind.yaml").write_text("\n".join(lines))
    follow([str(folder / "kind.yaml")])
    return str(folder / "kind.yaml")


def scored(entry: str, answers: list[str], **columns: list[Any]) -> tuple[Any, dict[str, float], dict[str, list[Any]]]:
    """The scores of answers to one question, what was logged, and the columns beside the answers."""
    metrics, extra = dict[str, float](), dict[str, list[Any]]()

    async def ask() -> Any:
        return await load_reward(entry)(  # type: ignore[misc]
            prompts=[[{"role": "user", "content": "2+2?"}]] * len(answers),
            completions=[[{"role": "assistant", "content": answer}] for answer in answers],
            log_metric=metrics.__setitem__, log_extra=extra.__setitem__, trainer_state=None,
            **columns,
        )  # fmt: skip

    return asyncio.run(ask()), metrics, extra


def by_answer(replies: dict[str, Any]) -> Any:
    """A server that replies to what it finds in the prompt."""

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        return next(reply for word, reply in replies.items() if f"-> {word} (" in body["messages"][-1]["content"])

    return answer


def test_a_judge_is_asked_once_for_each_answer_and_remembered(tmp_path: Path) -> None:
    with serving(by_answer({"4": said("Right.\nScore: 9/10"), "5": said("2.5")})) as server:
        entry = written(tmp_path, server.address, options="{max_tokens: 7}", price="[1, 100]", system="Be strict.")
        scores, metrics, extra = scored(entry, ["4", "5", "4"], truth=[4, 4, 4])
        assert scores == [9.0, 2.5, 9.0]
        assert extra == {"kind said": ["Right.\nScore: 9/10", "2.5", "Right.\nScore: 9/10"]}
        assert metrics.pop("kind/seconds") > 0
        assert metrics == {
            "kind/calls": 2, "kind/cached": 1, "kind/failed": 0, "kind/tokens": 24,
            "kind/cost": pytest.approx((20 + 400) / 1e6),
        }  # fmt: skip
        assert server.paths == ["/v1/chat/completions"] * 2
        body = next(body for body in server.bodies if "-> 4" in body["messages"][1]["content"])
        assert body == {
            "model": "m", "temperature": 0, "max_tokens": 7,
            "messages": [
                {"role": "system", "content": "Be strict."},
                {"role": "user", "content": "Rate 0 to 10: 2+2? -> 4 (right: 4) {{x}} {unknown}"},
            ],
        }  # fmt: skip
        assert not any("authorization" in map(str.lower, each) for each in server.headers)
        again, metrics, _ = scored(entry, ["5", "4"], truth=[4, 4])
        assert again == [2.5, 9.0]
        assert (metrics["kind/calls"], metrics["kind/cached"], metrics["kind/seconds"]) == (0, 2, 0)
        assert len(server.bodies) == 2


def test_no_more_requests_are_open_than_may_be(tmp_path: Path) -> None:
    together = threading.Barrier(3, timeout=20)

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        together.wait()  # fails unless three come at once
        return said("1")

    with serving(answer) as server:
        scores, _, _ = scored(written(tmp_path, server.address, parallel=3), [str(n) for n in range(9)])
        assert (scores, server.most_open) == ([1.0] * 9, 3)


def test_what_may_pass_is_tried_again(tmp_path: Path) -> None:
    replies = iter([(503, {}), (429, b"slow down"), said("3")])
    with serving(lambda body: next(replies)) as server:
        scores, metrics, _ = scored(written(tmp_path, server.address, retries=2), ["4"])
        assert (scores, len(server.bodies), metrics["kind/calls"]) == ([3.0], 3, 1)


def test_an_answer_without_a_score_has_no_reward_and_says_why(tmp_path: Path) -> None:
    replies = {"a": said("no idea"), "b": said("1"), "c": said("2"), "d": said("3"), "e": said("4")}
    with serving(by_answer(replies)) as server:
        scores, metrics, extra = scored(written(tmp_path, server.address), list("abcde"))
    assert scores == [None, 1.0, 2.0, 3.0, 4.0]
    assert metrics["kind/failed"] == 1
    assert extra["kind said"][0] == "its reply has no one score from 0 to 10: 'no idea'"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ((401, {"error": "no key"}), 'HTTP 401: {"error": "no key"}'),
        ((500, b"x" * 5000), "HTTP 500: xxx"),
        ((200, b"<html>"), "the reply is not JSON"),
        ((200, {"object": "list"}), "the reply has no choices"),
        (said("\x1b[2J never"), "its reply has no one score"),
    ],
)
def test_too_many_failures_stop_the_run_with_a_line(reply: tuple[int, Any], reason: str, tmp_path: Path) -> None:
    with serving(lambda body: reply) as server:
        entry = written(tmp_path, server.address, retries=1)
        with pytest.raises(OwnError) as error:
            scored(entry, ["4", "5", "6", "7"] * 4)
    words = str(error.value)
    assert words.startswith(f"{entry}: {server.address} gave no score for 16 of 16 answers")
    assert reason in words
    assert words.isprintable()
    assert len(words) < 600


def test_once_it_fails_nothing_more_is_sent(tmp_path: Path) -> None:
    with serving(lambda body: (404, {})) as server:
        with pytest.raises(OwnError, match="HTTP 404"):
            scored(written(tmp_path, server.address, parallel=1), [str(n) for n in range(40)])
        assert len(server.bodies) == 11
    with pytest.raises(OwnError, match="ConnectError"):
        scored(written(tmp_path, server.address, retries=0), ["4"])


def test_a_reply_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    over = threading.Event()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        over.wait(20)
        return said("1")

    with serving(answer) as server:
        try:
            with pytest.raises(OwnError, match=r"no reply within 0\.2 s"):
                scored(written(tmp_path, server.address, seconds=0.2, retries=0), ["4"])
        finally:
            over.set()


def test_nor_is_one_waited_for_that_never_ends(tmp_path: Path) -> None:
    over = threading.Event()

    def drops() -> Iterator[bytes]:
        while not over.wait(0.01):
            yield b" "

    with serving(lambda body: (200, drops())) as server:
        try:
            with pytest.raises(OwnError, match=r"no reply within 0\.3 s"):
                scored(written(tmp_path, server.address, seconds=0.3, retries=0), ["4"])
        finally:
            over.set()


def test_a_reply_has_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_LONGEST", 1000)
    with serving(lambda body: (200, itertools.repeat(b" " * 100))) as server:
        with pytest.raises(OwnError, match="the reply has more than 1,000 bytes"):
            scored(written(tmp_path, server.address), ["4"])
        assert len(server.bodies) == 1


def test_more_than_a_hundred_requests_may_be_open(tmp_path: Path) -> None:
    together = threading.Barrier(110, timeout=20)

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        together.wait()
        return said("1")

    with serving(answer) as server:
        scores, _, _ = scored(written(tmp_path, server.address, parallel=110), [str(n) for n in range(110)])
    assert scores == [1.0] * 110


@pytest.mark.parametrize(
    "usage", ["many", {"prompt_tokens": True, "completion_tokens": -5}, {"prompt_tokens": 10**400}]
)
def test_what_is_no_count_of_tokens_counts_for_nothing(usage: Any, tmp_path: Path) -> None:
    status, reply = said("3")
    with serving(lambda body: (status, reply | {"usage": usage})) as server:
        scores, metrics, _ = scored(written(tmp_path, server.address, price="[1, 1]"), ["4"])
    assert (scores, metrics["kind/tokens"], metrics["kind/cost"]) == ([3.0], 0, 0)


def test_a_key_that_the_server_repeats_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    wanted = r"HTTP 401: Wrong key: Bearer \$MY_KEY"
    with serving(lambda body: (401, b"Wrong key: Bearer sk-secret")) as server, pytest.raises(OwnError, match=wanted):
        scored(written(tmp_path, server.address, key="MY_KEY"), ["4"])


@pytest.mark.parametrize("key", ["sk-secret\nsk-other", "sk-secreté"])
def test_what_is_no_key_is_not_sent(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with serving(lambda body: said("1")) as server:
        with pytest.raises(OwnError, match="the environment variable MY_KEY is no key") as error:
            scored(written(tmp_path, server.address, key="MY_KEY"), ["4"])
        assert server.bodies == []
    assert "secret" not in str(error.value)


def test_the_key_goes_to_the_server_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda body: said("1")) as server:
        entry = written(tmp_path, server.address, key="MY_KEY")
        with pytest.raises(OwnError, match="the environment variable MY_KEY is not set"):
            scored(entry, ["4"])
        assert server.bodies == []
        monkeypatch.setenv("MY_KEY", "sk-secret")
        scored(entry, ["4"])
        assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sk-secret" not in path.read_bytes()


def test_nobody_is_asked_whom_the_user_has_not_agreed_to(tmp_path: Path) -> None:
    with serving(lambda body: said("1")) as server:
        path = tmp_path / "judge.yaml"
        path.write_text(f"judge: {server.address}\nkey: MY_KEY\nmodel: m\nprompt: '{{answer}}'\n")
        with pytest.raises(OwnError, match="rlplay trust"):
            load_reward(str(path))
        assert strange([str(path)]) == [str(path)]
        question = consequences([str(path)])
        assert question == f"send prompts and answers to {server.address} with the key $MY_KEY (named in {path})"
        assert list(contents([str(path)]).values()) != [""], "its content is agreed to, and not its name"
        assert server.bodies == []


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ('judge: https://a.example/v1\n"key": MY_KEY', "https://a.example/v1 with the key $MY_KEY"),
        ("judge: https://a.example/v1\nkey : MY_KEY", "https://a.example/v1 with the key $MY_KEY"),
        ("judge: https://a.example/v1\nkey:\n  MY_KEY", "https://a.example/v1 with the key $MY_KEY"),
        ('{judge: "https://a.example/v1", key: MY_KEY}', "https://a.example/v1 with the key $MY_KEY"),
        ('# https://b.example/v1\nteacher: "\\x68ttps://a.example/v1"', "https://a.example/v1"),
        ('judge: "https://b.example,me@a.example/v1"', "https://…@a.example/v1"),
        ('judge: "https://a.example/\\e[2Jv1"', "https://a.example/␛[2Jv1"),
        ("judge: http://a.example/v1\nteacher: http://b.example", "http://a.example/v1 or http://b.example"),
        ("model: m", "no address"),
        ("judge: [", "an address that cannot be read"),
        ("judge: [http://a.example]", "an address that cannot be read"),
        ("- judge: http://a.example", "an address that cannot be read"),
    ],
)
def test_the_question_is_about_what_would_be_sent(content: str, asked: str, tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(content)
    assert consequences([str(path)]) == f"send prompts and answers to {asked} (named in {path})"


def test_a_password_in_an_address_is_refused_and_not_shown(tmp_path: Path) -> None:
    entry = written(tmp_path, "http://me:s3cret@127.0.0.1:1/v1")
    with pytest.raises(OwnError, match=r"http://…@127\.0\.0\.1:1/v1 holds a password") as error:
        load_reward(entry)
    assert "s3cret" not in str(error.value) + consequences([entry])


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    with serving(lambda body: said("7")) as server:
        entry = written(tmp_path, server.address)
        reward = load_reward(entry)
        written(tmp_path, server.address, range="[0, 5]")
        with pytest.raises(OwnError, match="no one score from 0 to 5"):
            asyncio.run(
                reward(prompts=["a"], completions=["b"], log_metric=lambda *_: None, log_extra=lambda *_: None)  # type: ignore[arg-type]
            )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("judge: http://a\nmodel: m", "prompt"),
        ("judge: http://a\nmodel: m\nprompt: x", "no {answer}"),
        ("judge: http://a\nteacher: http://b\nmodel: m\nprompt: '{answer}'", "a judge or a teacher"),
        ("model: m\nprompt: x", "a judge or a teacher"),
        ("judge: ftp://a\nmodel: m\nprompt: '{answer}'", "begins with http"),
        ("judge: http://a\nmodel: m\nprompt: '{answer}'\nrange: [5, 5]", "the lowest and the highest"),
        ("judge: http://a\nmodel: m\nprompt: '{answer}'\nparallel: 0", "parallel is 1 or more"),
        ("judge: http://a\nmodel: m\nprompt: '{answer}'\nkeys: A", "unknown field `keys`"),
        ("judge: [", "not YAML"),
    ],
)
def test_a_bad_file_is_one_line(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(content)
    follow([str(path)])
    with pytest.raises(OwnError, match=problem) as error:
        load_reward(str(path))
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("7", 7.0), (" 7. ", 7.0), ("**7**", 7.0), ("Score: 7/10", 7.0), ("I give 3 of these\n8", 8.0), ("-1", None),
        ("11", None), ("7 or 8", None), ("seven", None), ("", None), ("7\nBecause it is good.", None), ("v2", None),
        ("<think>1 2 3</think>\n4", 4.0), ("3.5", 3.5), ("10", 10.0), ("nan", None), ("1e5", None),
    ],
)  # fmt: skip
def test_the_score_is_the_one_number_of_the_last_line(reply: str, score: float | None) -> None:
    assert score_in(reply, Served("m", "p", "http://a")) == score


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 3, "why": "x"}', 3.0), ('```json\n{"score": "4"}\n```', 4.0), ('{"score": true}', None),
        ('{"other": 3}', None), ("3", None), ('{"score": NaN}', None), ('{"score": 1e999}', None), ("}{", None),
    ],
)  # fmt: skip
def test_or_a_field_of_json(reply: str, score: float | None) -> None:
    assert score_in(reply, Served("m", "p", "http://a", field="score")) == score


def test_a_template_does_not_look_into_what_fills_it() -> None:
    assert filled("{a} {b} {a.__class__} {c}", {"a": "{b}", "b": 2}) == "{b} 2 {a.__class__} {c}"


def test_it_takes_the_columns_of_any_data(tmp_path: Path) -> None:
    entry = written(tmp_path, "http://127.0.0.1:1/v1")
    check_columns(Task(train=[Example("p", {})], rewards={"kind": load_reward(entry)}))


def test_where_nothing_can_be_written_it_is_remembered_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "file" / "home"))
    servers: list[Server] = []
    with serving(lambda body: said("1")) as server:
        servers.append(server)
        entry = written(tmp_path, server.address)
        for _ in range(2):
            assert scored(entry, ["4"])[0] == [1.0]
        assert len(server.bodies) == 1


def test_nor_is_a_reply_lost_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def full(*arguments: Any, **named: Any) -> sqlite3.Connection:
        made = connect(*arguments, **named)
        made.execute("PRAGMA max_page_count=3")
        return made

    monkeypatch.setattr(sqlite3, "connect", full)
    with serving(lambda body: said("1" + " " * 20_000)) as server:
        entry = written(tmp_path, server.address)
        for _ in range(2):
            assert scored(entry, ["full"])[0] == [1.0]
        assert len(server.bodies) == 1


@pytest.mark.parametrize("damage", [b"\xff\x00", None, "{"])
def test_a_damaged_reply_is_asked_for_again(damage: Any, tmp_path: Path) -> None:
    with serving(lambda body: said("1")) as server:
        entry = written(tmp_path, server.address)
        scored(entry, ["4"])
        with closing(sqlite3.connect(tmp_path / "home" / "replies.sqlite3")) as table:
            assert table.execute("UPDATE replies SET reply = ?", (damage,)).rowcount == 1
            table.commit()
        assert scored(entry, ["4"])[0] == [1.0]
        assert len(server.bodies) == 2
