"""Pairs labelled by the user: the engine waits for them, keeps them, and repeats what they led to."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlplay.engine.headless import Player
from rlplay.engine.report import Lines
from rlplay.engine.state import Halt
from rlplay.link.messages import COMMANDS, EVENTS, Prefer, Status
from rlplay.scenario.script import parse
from rlplay.trace.codec import RECORDS
from rlplay.trace.records import AnyRecord, Labelled, Sampled, Scored, Stepped
from rlplay.trace.runfile import RunReader

Start = Callable[..., Any]
GIVEN = {"algorithm": "dpo", "labeller": "user", "num_prompts": 3}


def never() -> bool:
    return False


def _steps(records: list[AnyRecord], update: int) -> list[bytes]:
    return [RECORDS.encode(r) for r in records if isinstance(r, Stepped) and r.update == update]


def _answer(driver: Any, *choices: str) -> None:
    for pair, choice in enumerate(choices):
        driver.prefer(pair, choice)


def test_an_update_waits_until_every_pair_has_a_label(start: Start) -> None:
    driver, records = start(**GIVEN)
    with pytest.raises(ValueError, match="pair 0 waits for no label"):
        driver.prefer(0, "a")
    driver.advance("update", 1, never)
    assert driver.status()[:2] == (0, "score")
    assert driver.asks() == [0, 1, 2]
    assert isinstance(records[-1], Sampled)
    driver.advance("forever", 1, never)
    assert driver.asks() == [0, 1, 2]
    driver.prefer(1, "b")
    driver.prefer(0, "a")
    assert driver.asks() == [2]
    driver.prefer(1, "a")  # on second thoughts
    with pytest.raises(ValueError, match="pair 3 waits for no label"):
        driver.prefer(3, "a")
    driver.prefer(2, "skip")
    assert [(r.pair, r.choice) for r in records if isinstance(r, Labelled)] == [
        (1, "b"), (0, "a"), (1, "a"), (2, "skip"),
    ]  # fmt: skip
    driver.advance("update", 1, never)
    assert driver.status()[0] == 1
    (scored,) = [r for r in records if isinstance(r, Scored)]
    assert scored.roles == ["chosen", "rejected", "chosen", "rejected", "", ""]
    (step,) = [r for r in records if isinstance(r, Stepped)]
    assert step.rows.tolist() == [0, 2, 1, 3]
    assert driver.asks() == []
    driver.close()


def test_labels_are_kept_for_going_back_and_resuming_and_forgotten_when_undone(start: Start, tmp_path: Path) -> None:
    driver, records = start(**GIVEN)
    for choices in ("aba", "bba", "abb"):
        driver.advance("update", 1, never)
        _answer(driver, *choices)
        driver.advance("update", 1, never)
    second = _steps(records, 2)
    driver._store.forget_after(1)  # so that update 2 has to be repeated
    driver.rewind(2)
    assert driver.asks() == []
    driver.rewind(1)
    del records[:]
    driver.advance("update", 1, never)
    assert driver.asks() == [0, 1, 2]
    _answer(driver, *"bba")
    driver.advance("update", 1, never)
    assert _steps(records, 2) == second
    driver.close()
    with RunReader(tmp_path / "run.rlplay") as reader:
        assert "".join(label.choice for label in reader.labels()) == "ababba"
    resumed, _ = start(resume=True, **GIVEN)
    resumed._store.forget_after(1)
    resumed.rewind(2)
    assert resumed.status()[0] == 2
    resumed.close()


def test_an_update_in_which_every_pair_is_left_out_is_asked_again(start: Start) -> None:
    driver, records = start(**GIVEN)
    driver.advance("update", 1, never)
    _answer(driver, "skip", "skip", "skip")
    with pytest.raises(Halt, match="every pair of update 1 was left out"):
        driver.advance("update", 1, never)
    driver.advance("update", 1, never)
    assert driver.asks() == [0, 1, 2]
    driver.set("labeller", "gold")  # or let the gold score decide after all
    driver.advance("update", 1, never)
    assert driver.status()[0] == 1
    driver.close()
    assert [r for r in records if isinstance(r, Scored)][-1].roles.count("chosen") == 3


def test_labels_cross_the_link() -> None:
    assert COMMANDS.decode(COMMANDS.encode(Prefer(2, "skip"))) == Prefer(2, "skip")
    status = Status(False, 0, "score", {}, [0], False, [0, 2])
    assert EVENTS.decode(EVENTS.encode(status)) == status


def test_a_script_labels_pairs_and_is_told_when_it_forgets_to(start: Start) -> None:
    driver, records = start(**GIVEN)
    player = Player(Lines(io.StringIO(), io.StringIO()), None)
    player.play(parse([{"phase": 1}, {"prefer": ["b", "a"]}, {"prefer": "b"}, {"update": 1}]), driver)
    assert driver.status()[0] == 1
    assert [r.choice for r in records if isinstance(r, Labelled)] == ["b", "a", "b"]
    with pytest.raises(ValueError, match="3 pairs of update 2 wait for somebody to choose"):
        player.play(parse([{"update": 2}]), driver)
    driver.close()
    for wrong in ("c", [], ["a", 1], None):
        with pytest.raises(ValueError, match="prefer takes a, b or skip"):
            parse([{"prefer": wrong}])
