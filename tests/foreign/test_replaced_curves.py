"""Files of curves that are replaced or cut off while they are followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlplay.foreign.curve_files.rows import CurveLog, Row, StartedAgainError, read_rows
from rlplay.foreign.foreign_run import ForeignRunError
from tests.foreign.grown import Row as Logged
from tests.foreign.grown import lines
from tests.foreign.test_curve_files import merged, opened


def changed(log: CurveLog) -> tuple[bool, list[Row]]:
    """Whether the file is another one than before, and its new rows."""
    void: list[bool] = []
    rows = read_rows(log, lambda: void.append(True))
    return bool(void), rows


def losses(count: int, loss: float) -> list[Logged]:
    return [{"step": step, "loss": loss} for step in range(1, count + 1)]


@pytest.mark.parametrize("count", [2, 3, 9])
def test_another_file_is_read_from_its_first_line(count: int, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines(path, losses(3, 1.0))
    log = opened(path)
    assert log.fresh()
    lines(path, losses(count, 22.5))
    assert changed(log) == (True, [Row(step, {"loss": 22.5}) for step in range(1, count + 1)])


def test_a_resumed_run_of_the_same_length_is_another_file(tmp_path: Path) -> None:
    path, rows = tmp_path / "metrics.jsonl", losses(3, 1.0)
    lines(path, rows)
    log = opened(path)
    log.fresh()
    lines(path, [*rows[:2], {"step": 3, "loss": 2.0}, {"step": 4, "loss": 2.0}])
    assert changed(log) == (True, [Row(n, {"loss": loss}) for n, loss in zip((1, 2, 3, 4), (1, 1, 2, 2), strict=True)])


def test_a_copy_with_more_lines_is_the_same_file(tmp_path: Path) -> None:
    path, rows = tmp_path / "metrics.jsonl", losses(3, 1.0)
    lines(path, rows)
    log = opened(path)
    log.fresh()
    lines(tmp_path / "copied", [*rows, {"step": 4, "loss": 2.0}])
    (tmp_path / "copied").replace(path)
    assert changed(log) == (False, [Row(4, {"loss": 2.0})])


def test_numbers_of_the_other_file_stay_where_one_is_cut(tmp_path: Path) -> None:
    trainer, orchestrator = tmp_path / "monitors/file/metrics.jsonl", tmp_path / "run_default/metrics.jsonl"
    for path in (trainer, orchestrator):
        path.parent.mkdir(parents=True)
    for cut, whole in ((trainer, orchestrator), (orchestrator, trainer)):
        lines(whole, [{"step": step, "kept": 1.0} for step in range(1, 6)])
        lines(cut, losses(5, 1.0))
        log = opened(tmp_path)
        log.fresh()
        lines(whole, [{"step": step, "kept": 1.0} for step in range(1, 7)])
        lines(cut, losses(2, 2.0))
        void, rows = changed(log)
        assert void
        assert merged(rows) == {step: {"kept": 1.0} | ({"loss": 2.0} if step < 3 else {}) for step in range(1, 7)}


def test_nothing_of_one_file_is_lost_while_the_other_is_away(tmp_path: Path) -> None:
    trainer, orchestrator = tmp_path / "monitors/file/metrics.jsonl", tmp_path / "run_default/metrics.jsonl"
    for path in (trainer, orchestrator):
        path.parent.mkdir(parents=True)
        lines(path, losses(1, 1.0))
    log = opened(tmp_path)
    orchestrator.rename(tmp_path / "away")
    with pytest.raises(ForeignRunError, match="cannot be read"):
        changed(log)
    (tmp_path / "away").rename(orchestrator)
    assert len(log.fresh()) == 2


def test_columns_in_another_order_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("step,loss,reward\n1,0.5,9\n2,0.5,9\n", encoding="utf-8")
    log = opened(path)
    assert log.fresh()
    path.write_text("step,reward,loss\n1,9,0.5\n", encoding="utf-8")
    assert changed(log) == (True, [Row(1, {"loss": 0.5, "reward": 9.0})])


def test_a_file_that_changes_all_the_time_is_one_clear_line() -> None:
    class Changing:
        path, source, goes_back = Path("night.jsonl"), "JSON lines", False

        def about(self) -> dict[str, object]:
            return {}

        def fresh(self) -> list[Row]:
            raise StartedAgainError

    with pytest.raises(ForeignRunError, match="written anew"):
        changed(Changing())
