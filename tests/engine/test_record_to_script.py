"""A recorded run as a script: played, it gives the same numbers bit for bit, those of given-up branches too."""

from __future__ import annotations

import io
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.headless import HeadlessRun
from rlplay.engine.run_report import TextReport
from rlplay.scenario.loader import load
from rlplay.scenario.new_file import from_run, write
from rlplay.scenario.schema import Job
from rlplay.scenario.script import parse
from rlplay.trace.records import AnyRecord
from rlplay.trace.run import Run

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def never() -> bool:
    return False


def numbers(path: Path) -> tuple[list[Any], list[list[Any]]]:
    """Every metric of the live run as stored bits, and those of each part that was given up, oldest first."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT branch, number, name, value FROM metrics ORDER BY branch, number, name").fetchall()
    bits = [(branch, number, name, None if value is None else value.hex()) for branch, number, name, value in rows]
    parts = [[row[1:] for row in bits if row[0] == branch] for branch in sorted({row[0] for row in bits} - {0})]
    return [row[1:] for row in bits if row[0] == 0], parts


def played_again(tmp_path: Path, run: Path) -> tuple[list[dict[str, Any]], Path]:
    """The script that tells the run, and the run file of playing it."""
    path = tmp_path / "again.yaml"
    write(path, from_run(run, path))
    scenario = load(path)
    again = tmp_path / "again.rlplay"
    player = HeadlessRun(TextReport(io.StringIO(), io.StringIO()), None, Run())
    driver = Driver(Job(scenario, str(again), device="cpu", threads=1), player.take)
    driver.load(lambda what, fraction: None)
    player.play(parse(scenario.script), driver)
    driver.close()
    return scenario.script, again


def test_updates_knobs_between_phases_and_ways_back(start: Start, tmp_path: Path) -> None:
    driver, _ = start(eval_every=2)
    driver.advance("update", 2, never)
    driver.set({"beta": 0.05})
    driver.advance("token", 2, never)
    driver.set({"scale_rewards": "none"})  # while it samples: from the next phase on
    driver.advance("update", 1, never)
    driver.advance("phase", 2, never)
    driver.rewind(1)
    driver.set({"algorithm": "dapo"})
    driver.advance("update", 2, never)
    driver.advance("phase", 3, never)
    driver.set({"epsilon": 0.05})
    driver.advance("step", 1, never)
    driver.close()
    script, again = played_again(tmp_path, tmp_path / "run.rlplay")
    assert script == [
        {"update": 2}, {"set": {"beta": 0.05}}, {"phase": 1}, {"set": {"scale_rewards": "none"}}, {"update": 1},
        {"phase": 2}, {"rewind": 1}, {"set": {"algorithm": "dapo"}}, {"update": 2}, {"phase": 3},
        {"set": {"epsilon": 0.05}}, {"step": 1},
    ]  # fmt: skip
    live, given_up = numbers(tmp_path / "run.rlplay")
    assert len(live) > 60
    assert len(given_up) == 1
    assert numbers(again) == (live, given_up)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_can_be_written_as_a_script(start: Start, tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    driver, _ = start(num_iterations=2)
    for _ in range(14):
        match choose.choice(["update", "phase", "phase", "token", "step", "set", "set", "look", "rewind", "resume"]):
            case "set":
                driver.set(choose.choice([{"beta": 0.1}, {"epsilon": 0.1}, {"temperature": 0.8}, {"num_prompts": 2}]))
            case "look":
                driver.look(choose.choice(["auto", "credit", "entropy"]), choose.randint(0, 3), 0)
            case "rewind":
                driver.rewind(choose.randint(0, driver.status().update))
            case "resume":
                driver.close()
                driver, _ = start(resume=True, num_iterations=2)
            case until:
                driver.advance(until, 1, never)
    driver.advance("update", 1, never)
    driver.close()
    _, again = played_again(tmp_path, tmp_path / "run.rlplay")
    live, given_up = numbers(tmp_path / "run.rlplay")
    assert live
    assert numbers(again) == (live, given_up)


def test_where_somebody_looked_is_shown_there(start: Start, tmp_path: Path) -> None:
    driver, _ = start(num_iterations=2)
    driver.look("entropy", 0, 0)
    driver.advance("phase", 1, never)
    driver.look("entropy", 2, 1)
    driver.advance("update", 1, never)
    driver.look("entropy", 2, 1)  # as before
    driver.advance("phase", 3, never)
    driver.advance("step", 1, never)
    driver.look("importance_ratio", 2, 1)
    driver.advance("step", 1, never)
    driver.set({"temperature": 0.9})  # from the next update on
    driver.look("auto", 0, 0)
    driver.close()
    script, again = played_again(tmp_path, tmp_path / "run.rlplay")
    assert script == [
        {"lens": "entropy"}, {"phase": 1}, {"focus": {"completion": 2, "token": 1}}, {"update": 1}, {"phase": 3},
        {"step": 1}, {"lens": "importance_ratio"}, {"phase": 1}, {"set": {"temperature": 0.9}}, {"lens": "auto"},
        {"focus": {"completion": 0, "token": 0}},
    ]  # fmt: skip
    assert numbers(again) == numbers(tmp_path / "run.rlplay")


def test_labels_are_given_again(start: Start, tmp_path: Path) -> None:
    driver, _ = start(algorithm="dpo", labeller="user", num_prompts=3)
    for choices in (("a", "b", "skip"), ("b", "b", "a")):
        driver.advance("update", 1, never)
        for pair in (2, 0, 1):
            driver.prefer(pair, choices[pair])  # type: ignore[arg-type]
        driver.prefer(0, choices[0])  # type: ignore[arg-type]
        driver.advance("update", 1, never)
    driver.close()
    script, again = played_again(tmp_path, tmp_path / "run.rlplay")
    assert script == [
        {"phase": 1}, {"prefer": ["a", "b", "skip"]}, {"update": 1},
        {"phase": 1}, {"prefer": ["b", "b", "a"]}, {"update": 1},
    ]  # fmt: skip
    assert numbers(again) == numbers(tmp_path / "run.rlplay")


def test_two_crossing_changes_are_reported_correctly(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    driver.advance("phase", 1, never)
    driver.set({"algorithm": "dpo"})  # what it learns from waits for the next update
    driver.set({"temperature": 0.9})
    driver.close()
    with pytest.raises(ValueError, match=r"run\.rlplay: in update 1 a setting was changed while another waited"):
        from_run(tmp_path / "run.rlplay", tmp_path / "again.yaml")
