"""Files of curves as their own libraries wrote them (`write_curves.py`), and damaged, hostile and half-written ones."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import sqlite3
import struct
import zlib
from pathlib import Path

import pytest

from rlplay.foreign.curve_files.curve_run import CurveRun
from rlplay.foreign.curve_files.event_files import EventFiles
from rlplay.foreign.curve_files.formats import curve_log
from rlplay.foreign.curve_files.rows import CurveLog, Row
from rlplay.foreign.curve_files.wandb_files import WandbFile
from rlplay.foreign.curve_files.wire import fields
from rlplay.foreign.foreign_run import ForeignRunError
from tests.foreign.grown import lines

CURVES = Path(__file__).parent / "curves"
STEPS = 6
OPTIONS = {"algorithm": "", "learning_rate": 1e-6, "num_generations": 8, "temperature": 0.7}


def opened(path: Path) -> CurveLog:
    log = curve_log(path)
    assert log is not None
    return log


def merged(rows: list[Row]) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for step, scalars in rows:
        found.setdefault(step, {}).update(scalars)
    return found


def trackio(folder: Path) -> Path:
    path = folder / "project.db"
    path.write_bytes(gzip.decompress((CURVES / "project.db.gz").read_bytes()))
    return path


@pytest.mark.parametrize("name", ["tensorboardX", "tensorboard", "wandb", "trackio"])
def test_numbers_are_as_the_library_wrote_them(name: str, tmp_path: Path) -> None:
    path = trackio(tmp_path) / "second" if name == "trackio" else CURVES / name
    found = merged(opened(path).fresh())
    assert sorted(found) == list(range(1, STEPS + 1))
    for step, scalars in found.items():
        assert scalars["train/reward"] == step / 8
        assert scalars["train/loss"] == -step / 64
        assert scalars["train/grad_norm"] == pytest.approx(1 / step, rel=1e-7)
    if name != "tensorboard":
        assert math.isnan(found[STEPS]["train/kl"])


def test_only_numbers_are_read() -> None:
    found = merged(opened(CURVES / "wandb").fresh())
    assert found[2]["nested/inner"] == 2
    assert not [name for scalars in found.values() for name in scalars if name.startswith(("completions", "note", "_"))]


@pytest.mark.parametrize(("name", "title"), [
    ("tensorboardX", "TensorBoard · tensorboardX"),
    ("wandb", "W&B · project · night"),
    ("trackio", "trackio · project · second"),
])  # fmt: skip
def test_options_of_the_trainer_are_settings(name: str, title: str, tmp_path: Path) -> None:
    started = CurveRun(opened(trackio(tmp_path) / "second" if name == "trackio" else CURVES / name)).started()
    assert (started.title, started.model) == (title, "org/model")
    assert started.settings == OPTIONS


def test_verl_writes_null_for_nan() -> None:
    found = merged(opened(CURVES / "verl.jsonl").fresh())
    assert found[0] == {"val-core/gsm8k/acc/mean@1": 0.25}
    assert found[2]["critic/score/mean"] == 0.25
    assert math.isnan(found[STEPS]["actor/grad_norm"])


def test_a_growing_file_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    for source in (
        CURVES / "verl.jsonl",
        next((CURVES / "tensorboardX").iterdir()),
        CURVES / "wandb/run-abcd1234.wandb",
    ):
        whole, path = source.read_bytes(), tmp_path / source.name
        path.write_bytes(whole[: len(whole) // 3])
        log, found = opened(path), list[Row]()
        for end in range(len(whole) // 3, len(whole) + 1, 7):
            path.write_bytes(whole[:end])
            found += log.fresh()
        path.write_bytes(whole)
        found += log.fresh()
        assert repr(found) == repr(opened(source).fresh())  # NaN is not equal to itself
        assert log.fresh() == []


def test_rows_of_trackio_come_once(tmp_path: Path) -> None:
    path = trackio(tmp_path)
    log = opened(path / "first")
    assert len(log.fresh()) == STEPS
    assert log.fresh() == []
    with sqlite3.connect(path) as database:
        (run,) = database.execute("SELECT run_id FROM metrics WHERE run_name = 'first'").fetchone()
        new = (run, "t", "first", 9, json.dumps({"train/reward": "NaN", "train/global_step": 9}))
        database.execute("INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)", new)
    (row,) = log.fresh()
    assert row.step == 9
    assert math.isnan(row.scalars["train/reward"])


def test_old_databases_of_trackio_have_no_ids(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.db") as database:
        database.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT)")
        database.execute("INSERT INTO metrics VALUES (1, 'only', 3, '{\"loss\": 2.0}')")
    assert opened(tmp_path).fresh() == [Row(3, {"loss": 2.0})]


def test_a_damaged_file_is_one_clear_line(tmp_path: Path) -> None:
    events, run = next((CURVES / "tensorboardX").iterdir()), CURVES / "wandb/run-abcd1234.wandb"
    for source in (events, run):
        for place in (40, 200, 700):
            damaged = bytearray(source.read_bytes())
            damaged[place] ^= 0x10
            path = tmp_path / source.name
            path.write_bytes(damaged)
            with pytest.raises(ForeignRunError, match=r"^[^\n]*damaged[^\n]*$"):
                opened(path).fresh()


def test_lengths_that_lie_cost_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(struct.pack("<QI", 2**62, 0) + b"x" * 64)
    with pytest.raises(ForeignRunError, match="damaged"):
        EventFiles(path).fresh()
    chunk = bytes([0xFF] * 12)  # a field whose length has no end
    path = tmp_path / "run-x.wandb"
    path.write_bytes(b":W&B\xe1\xbe\x00" + struct.pack("<IHB", zlib.crc32(b"\x01" + chunk), len(chunk), 1) + chunk)
    with pytest.raises(ForeignRunError, match="damaged"):
        WandbFile(path).fresh()
    with pytest.raises(ValueError, match="longer than its message"):
        list(fields(b"\x0a\xff\xff\xff\xff\x0f"))


@pytest.mark.parametrize("line", ['{"step": 1, "data": ' + "[" * 100_000, "[1]", "{", "nonsense"])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"
    path.write_text('{"step": 1, "data": {"loss": 1}}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(ForeignRunError, match=r"night\.jsonl is damaged"):
        opened(path).fresh()


@pytest.mark.parametrize("step", [-1, 1.5, 10**12, True, None, "1", math.nan, [1]])
def test_what_is_no_step_is_left_out(step: object, tmp_path: Path) -> None:
    lines(tmp_path / "metrics.jsonl", [{"step": 1, "loss": 1.0}, {"step": step, "loss": 2.0}])
    assert opened(tmp_path).fresh() == [Row(1, {"loss": 1.0})]


def test_a_view_in_a_database_computes_nothing(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "evil.db") as database:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'a' AS run_name"
        database.execute(f"CREATE VIEW metrics AS {endless}, x AS step, '{{}}' AS metrics FROM n")
    assert curve_log(tmp_path) is None


def test_trainer_state_is_the_newest_of_a_folder(tmp_path: Path) -> None:
    def write(name: str, last: int) -> None:
        history = [{"step": step, "epoch": step / 10, "reward": step / 8} for step in range(1, last + 1)]
        history.append({"step": last, "eval_loss": 1.0, "eval_runtime": "soon"})
        path = tmp_path / name / "trainer_state.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"log_history": history, "global_step": last}), encoding="utf-8")

    write("checkpoint-2", 2)
    log = opened(tmp_path)
    assert log.fresh() == [
        Row(1, {"epoch": 0.1, "reward": 0.125}), Row(2, {"epoch": 0.2, "reward": 0.25}), Row(2, {"eval_loss": 1.0}),
    ]  # fmt: skip
    assert log.fresh() == []
    shutil.rmtree(tmp_path / "checkpoint-2")
    with pytest.raises(ForeignRunError, match="any more"):
        log.fresh()
    (tmp_path / "trainer_state.json").write_text('{"log_history": 3}', encoding="utf-8")
    with pytest.raises(ForeignRunError, match="state of a trainer"):
        opened(tmp_path).fresh()


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text('step,loss,"a, b",note\n1,0.5,nan,x\n2,,2,"y"\n3,0.', encoding="utf-8")
    log = opened(path)
    first, second = log.fresh()
    assert first.scalars["loss"] == 0.5
    assert math.isnan(first.scalars["a, b"])
    assert second == Row(2, {"a, b": 2.0})
    path.write_text(path.read_text(encoding="utf-8") + "25,1,z\n", encoding="utf-8")
    assert log.fresh() == [Row(3, {"loss": 0.25, "a, b": 1.0})]
