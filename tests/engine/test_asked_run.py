"""The engine of a recorded run that is only asked: it answers, and the run stays as it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlplay import paths
from rlplay.engine.asked_run import asked_run
from rlplay.engine.driver import Driver
from rlplay.scenario.schema import Job
from rlplay.trace.questions import Prefix, Recall, Recalled
from rlplay.trace.records import AnyRecord
from rlplay.trace.runfile import RunReader
from rlplay.trace.runfile_format import snapshots_folder

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
QUESTION = Recall(Prefix("Tom has 3 apples.", plain=True), [5, 6])


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def never() -> bool:
    return False


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder and in those below it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def recalled(driver: Driver) -> Recalled:
    """What the driver answers at last."""
    last = list(driver.answers(QUESTION, never))[-1]
    assert isinstance(last, Recalled)
    return last


def asked(driver: Driver) -> Job:
    """The job that resumes the driver's run."""
    return msgspec.structs.replace(driver._job, resume=True)


def silent(_what: str, _share: float) -> None:
    pass


def test_a_question_leaves_a_closed_run_as_it_is(start: Start, tmp_path: Path) -> None:
    driver, _ = start("runs/run.rlplay")
    driver.advance("update", 3, never)
    there = recalled(driver)
    driver.close()
    snapshots_folder(tmp_path / "runs" / "run.rlplay").joinpath("000009.partial").write_bytes(b"of another program")
    before = contents(tmp_path / "runs")
    with asked_run(asked(driver), silent) as engine:
        assert engine.status().update == 3
        assert recalled(engine) == there
        assert there.updates == [0, 1, 2, 3]
    assert contents(tmp_path / "runs") == before
    assert not list((paths.home() / "scratch").iterdir())


def test_a_run_may_go_on_and_back_while_it_is_asked(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 3, never)
    there = recalled(driver)
    driver.advance("phase", 2, never)
    with asked_run(asked(driver), silent) as engine:
        driver.rewind(1)
        driver.set({"learning_rate": 1e-2})
        driver.advance("update", 2, never)
        assert recalled(engine) == there
    assert recalled(driver).probabilities[3] != there.probabilities[3]
    driver.close()


def test_a_last_update_without_snapshot_is_repeated(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    driver.advance("update", 3, never)
    there = recalled(driver)
    driver.close()
    with RunReader(tmp_path / "run.rlplay") as reader:
        reader.snapshots()[-1].path.unlink()
    with asked_run(asked(driver), silent) as engine:
        assert engine.status().update == 3
        repeated = recalled(engine)  # by the same weights, elsewhere in memory
        assert repeated.probabilities[-1] == pytest.approx(there.probabilities[-1], rel=1e-5)
        assert repeated.probabilities[-1] != pytest.approx(there.probabilities[-2], rel=1e-5)


def test_where_nothing_can_be_linked_snapshots_are_copied(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver, _ = start()
    driver.advance("update", 2, never)
    driver.close()
    copied: list[Any] = []

    def refuse(*_: object) -> None:
        raise OSError(18, "another file system")

    def copy(source: Path, target: Path) -> None:
        copied.append(source.name)
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr("os.link", refuse)
    monkeypatch.setattr(shutil, "copyfile", copy)
    with asked_run(asked(driver), silent) as engine:
        assert recalled(engine).updates == [0, 1, 2]
    assert copied == ["000001.safetensors", "000002.safetensors"]
