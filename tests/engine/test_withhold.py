"""Credit that is taken away stays away: in every replay of the update, and in a script of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.engine.driver import Driver
from rlplay.scenario.script import parse
from rlplay.trace.branch import branch
from rlplay.trace.records import AnyRecord, Credited, Withheld
from rlplay.trace.runfile import RunReader
from tests.engine.test_record_to_script import numbers, played_again
from tests.engine.test_take_away import ask, last_sampled, q, same, taken, weights_of

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
FAST = {"learning_rate": 1e-2, "num_iterations": 2}


def never() -> bool:
    return False


@pytest.fixture
def without(start: Start, tmp_path: Path) -> tuple[Driver, list[AnyRecord], list[int]]:
    """A run whose second update goes without the credit of some tokens, and which is at its end."""
    driver, records = start(**FAST)
    driver.advance("update", 2, never)
    tokens = taken(last_sampled(records, 2))
    driver.rewind(1)
    driver.withhold(2, tokens)
    driver.advance("update", 1, never)
    return driver, records, tokens


def advantages(records: list[AnyRecord], update: int) -> Any:
    return [each for each in records if isinstance(each, Credited) and each.update == update][-1].advantages


def test_the_run_goes_on_where_the_question_said(start: Start) -> None:
    driver, records = start(**FAST)
    driver.advance("update", 2, never)
    sampled = last_sampled(records, 2)
    tokens, before = taken(sampled), advantages(records, 2)
    target, answer = ask(driver, sampled, tokens)
    driver.rewind(1)
    driver.withhold(2, tokens)
    driver.advance("update", 1, never)
    assert np.array_equal(last_sampled(records, 2).token_ids, sampled.token_ids)
    assert answer.without == q(driver, target, sampled.temperature) != answer.after
    others = np.setdiff1d(np.arange(len(before)), tokens)
    assert not advantages(records, 2)[tokens].any()
    assert np.array_equal(advantages(records, 2)[others], before[others])
    _, again = ask(driver, last_sampled(records, 2), tokens)
    assert again.without == again.after == answer.without


@pytest.mark.parametrize("way", ["undo", "resume", "killed", "branch"])
def test_every_replay_heeds_it(
    start: Start, without: tuple[Driver, list[AnyRecord], list[int]], tmp_path: Path, way: str
) -> None:
    driver, records, tokens = without
    end = weights_of(driver)
    match way:
        case "undo":
            driver.advance("update", 1, never)
            driver.rewind(1)
            driver.advance("update", 1, never)
        case "resume":
            driver.close()
            for snapshot in (tmp_path / "run.snapshots").glob("*"):
                snapshot.unlink()
            driver, records = start(resume=True, **FAST)
            driver.advance("update", 2, never)
        case "killed":
            driver.rewind(1)
            driver.advance("phase", 2, never)
            driver, records = start(resume=True, **FAST)
            driver.advance("update", 1, never)
        case "branch":
            driver.close()
            for number, (parent, child) in enumerate([("run", "one"), ("one", "two")]):
                branch(tmp_path / f"{parent}.rlplay", 1, tmp_path / f"{child}.rlplay")
                driver, records = start(run=f"{child}.rlplay", resume=True, **FAST)
                driver.advance("update", number, never)
                driver.close()
    if way != "resume":
        assert same(end, weights_of(driver))
        assert not advantages(records, 2)[tokens].any()
    with RunReader(tmp_path / ("two.rlplay" if way == "branch" else "run.rlplay")) as reader:
        kept = {each.update: each.tokens for each in reader.every(Withheld)}
    assert kept == ({} if way == "resume" else {2: tokens})


def test_going_back_further_forgets_it(without: tuple[Driver, list[AnyRecord], list[int]]) -> None:
    driver, records, tokens = without
    driver.rewind(0)
    driver.advance("update", 2, never)
    assert advantages(records, 2)[tokens].any()


def test_it_can_be_given_back(without: tuple[Driver, list[AnyRecord], list[int]]) -> None:
    driver, records, tokens = without
    driver.rewind(1)
    driver.withhold(2, [])
    driver.advance("update", 1, never)
    assert advantages(records, 2)[tokens].any()


def test_it_is_in_the_script_of_the_run(without: tuple[Driver, list[AnyRecord], list[int]], tmp_path: Path) -> None:
    driver, _, tokens = without
    driver.advance("update", 1, never)
    driver.close()
    script, again = played_again(tmp_path, tmp_path / "run.rlplay")
    assert script == [{"update": 2}, {"rewind": 1}, {"withhold": tokens}, {"update": 2}]
    assert numbers(again) == numbers(tmp_path / "run.rlplay")


def test_only_the_next_update_can_go_without(start: Start) -> None:
    driver, records = start(**FAST)
    for update, tokens, why in ((2, [0], "end of update 1"), (1, [2, 1], "ascending")):
        with pytest.raises(ValueError, match=why):
            driver.withhold(update, tokens)
    driver.advance("phase", 1, never)
    with pytest.raises(ValueError, match="end of update 0"):
        driver.withhold(1, [0])
    driver.advance("update", 1, never)
    with pytest.raises(ValueError, match="end of update 0"):
        driver.withhold(1, [0])
    assert not any(isinstance(each, Withheld) for each in records)


def test_tokens_that_the_update_lacks_stop_it_in_a_line(start: Start) -> None:
    driver, _ = start(**FAST)
    driver.withhold(1, [100_000])
    with pytest.raises(RuntimeError, match="no token 100000"):
        driver.advance("update", 1, never)
    driver.withhold(1, [])
    driver.advance("update", 1, never)
    assert driver.status().update == 1


@pytest.mark.parametrize("wrong", [None, 3, ["a"], [True], "1"])
def test_a_script_names_places(wrong: Any) -> None:
    with pytest.raises(ValueError, match="list of places"):
        parse([{"withhold": wrong}])
