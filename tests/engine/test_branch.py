"""A branch: the same run up to an update, then on its own way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlplay.engine.driver import Driver
from rlplay.trace.branch import branch
from rlplay.trace.codec import RECORDS
from rlplay.trace.records import AnyRecord, Changed, Credited, Sampled, Scored, Stepped
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.runfile_format import snapshots_folder

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def never() -> bool:
    return False


def _numbers(path: Path, update: int) -> list[bytes]:
    """The records of an update, without what the clock wrote."""
    with RunReader(path) as reader:
        found = reader.load(update)
    records = (found.sampled, found.scored, found.credited, *found.steps)
    assert [type(r) for r in records[:4]] == [Sampled, Scored, Credited, Stepped]
    return [RECORDS.encode(r) for r in records if r is not None]


def _policy(driver: Driver) -> list[bytes]:
    return [p.detach().numpy().tobytes() for p in driver._state.parameters.values()]


def test_a_branch_without_a_change_repeats_the_run_bit_for_bit(start: Start, tmp_path: Path) -> None:
    driver, _ = start(eval_every=2)
    driver.advance("update", 2, never)
    driver.set({"beta": 0.02})  # at the end of the update that is branched from
    driver.advance("update", 2, never)
    branch(tmp_path / "run.rlplay", 2, tmp_path / "other.rlplay")
    other, _ = start("other.rlplay", resume=True, eval_every=2)
    assert other.status().update == 2
    assert other.status().settings.beta == 0.02
    other.advance("update", 2, never)
    for update in (1, 2, 3, 4):
        assert _numbers(tmp_path / "run.rlplay", update) == _numbers(tmp_path / "other.rlplay", update)
    assert _policy(other) == _policy(driver)


def test_a_branch_with_a_change_differs_from_its_first_update_on(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    driver.advance("update", 3, never)
    branch(tmp_path / "run.rlplay", 1, tmp_path / "other.rlplay")
    other, _ = start("other.rlplay", resume=True)
    other.set({"beta": 0.5})
    other.advance("update", 2, never)
    paths = tmp_path / "run.rlplay", tmp_path / "other.rlplay"
    first, second = (_numbers(path, 2) for path in paths)
    assert first[:2] == second[:2], "the same prompts and the same random numbers behind the same policy"
    assert first[2:] != second[2:]
    assert _numbers(paths[0], 3) != _numbers(paths[1], 3)
    with RunReader(paths[0]) as reader:
        assert reader.changes() == [], "the run that was branched from does not know of it"


@pytest.mark.parametrize("at", [0, 2])
def test_without_its_snapshot_a_branch_repeats_what_led_there(start: Start, tmp_path: Path, at: int) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    driver.set({"learning_rate": 3e-3})
    driver.advance("update", 2, never)
    shutil.rmtree(snapshots_folder(tmp_path / "run.rlplay"))
    branch(tmp_path / "run.rlplay", at, tmp_path / "other.rlplay")
    other, records = start("other.rlplay", resume=True)
    assert other.status().update == at
    assert not any(isinstance(r, Sampled) for r in records), "what it was copied with is not recorded again"
    assert other.status().settings.learning_rate == (3e-3 if at else 1e-3)
    other.advance("update", 3 - at, never)
    if at:
        assert _policy(other) == _policy(driver)
    with RunReader(tmp_path / "other.rlplay") as reader:
        assert reader.updates() == [1, 2, 3]


def test_a_branch_is_a_whole_run_that_outlives_its_parent(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    driver.advance("update", 2, never)
    driver.rewind(1)
    driver.advance("update", 2, never)
    path = tmp_path / "other.rlplay"
    branch(tmp_path / "run.rlplay", 2, path)
    driver.close()
    for left in tmp_path.glob("run.*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    with RunReader(path) as reader:
        assert reader.branched == 2
        assert reader.updates() == reader.detailed() == [1, 2]
        assert [snapshot.update for snapshot in reader.snapshots()] == [2]
        assert reader.history().series("reward")[0] == [1, 2]
        assert reader.history().abandoned("reward") == [], "what the parent gave up is not the branch's"
    other, _ = start("other.rlplay", resume=True)
    other.advance("update", 1, never)
    other.close()
    again, records = start("other.rlplay", resume=True)
    assert again.status().update == 3
    assert not any(isinstance(r, Changed) for r in records)


def test_what_has_not_happened_cannot_be_branched_from(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    driver.advance("phase", 1, never)
    with pytest.raises(RunFileError, match="at update 2; it has reached update 1"):
        branch(tmp_path / "run.rlplay", 2, tmp_path / "other.rlplay")
    assert not (tmp_path / "other.rlplay").exists()
