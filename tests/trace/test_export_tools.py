"""Exports for tables and for TensorBoard: nothing is missing, nothing is rounded away, nothing needs the whole run."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.export.atomic_output import ExportError
from rlplay.export.tables import export
from rlplay.trace.metrics import describe
from rlplay.trace.records import Evaluated, Sampled
from rlplay.trace.runfile import RunReader, RunWriter
from tests.recorded import synthetic_run, synthetic_started, synthetic_update
from tests.trace.test_clock import finished

UPDATE = 2


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "run.rlplay", updates=3)


def parquet(run: Path, update: int | None) -> Any:
    reading = pytest.importorskip("pyarrow.parquet")
    out = run.with_suffix(".parquet")
    export(run, "parquet", out, update)
    return reading.ParquetFile(out)


def events(folder: Path) -> Iterator[Any]:
    """The events in a folder, by TensorFlow's record format: length, its checksum, the event, its checksum."""
    event = pytest.importorskip("tensorboardX.proto.event_pb2").Event
    (path,) = folder.glob("events.out.tfevents.*")
    data, place = path.read_bytes(), 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        yield event.FromString(data[place + 12 : place + 12 + length])
        place += length + 16


def test_a_table_holds_what_the_lines_hold(run: Path) -> None:
    rows = parquet(run, UPDATE).read().to_pylist(maps_as_pydicts="strict")
    out = run.with_suffix(".jsonl")
    export(run, "jsonl", out, UPDATE)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == len(lines) == 16
    for row, line in zip(rows, lines, strict=True):
        assert row.keys() == line.keys()
        for name, expected in line.items():
            assert _nearly(row[name], expected), name


def _nearly(found: Any, expected: Any) -> bool:
    """Equal up to float32, text and nothing exactly."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_nearly(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(_nearly, found, expected))
    return bool(found == (pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected))


def test_columns_have_the_types_of_the_run_file_and_an_update_is_a_row_group(run: Path) -> None:
    file = parquet(run, None)
    types = {field.name: str(field.type) for field in file.schema_arrow}
    assert types["token_ids"] == "list<element: int32>"
    assert types["advantages"] == "list<element: float>"
    assert types["loss_mask"] == types["is_masked"] == "list<element: bool>"
    assert types["step"] == "int32"
    assert types["prompt"] == "string"
    groups = [file.read_row_group(i, ["step"]).to_pydict()["step"] for i in range(file.num_row_groups)]
    assert groups == [[1] * 16, [2] * 16, [3] * 16]


def test_tensorboard_has_every_number_of_every_update(run: Path, tmp_path: Path) -> None:
    export(run, "tensorboard", tmp_path / "curves")
    first, *found = events(tmp_path / "curves")
    assert first.file_version == "brain.Event:2"
    curves: dict[str, list[tuple[int, float]]] = {}
    for event in found:
        for value in event.summary.value:
            assert describe(value.tag), "a registered name"
            curves.setdefault(value.tag, []).append((event.step, value.simple_value))
    with RunReader(run) as reader:
        history = reader.history()
        assert curves.keys() == set(history.names())
        for name, points in curves.items():
            steps, values = history.series(name)
            assert [step for step, _ in points] == steps
            np.testing.assert_allclose([value for _, value in points], values, rtol=1e-6)
        seconds = [reader.seconds(number) for number in reader.updates()]
        expected = reader.began.timestamp() + np.cumsum(seconds)
    assert [event.wall_time for event in found] == pytest.approx(expected.tolist(), abs=1e-3)


def test_evaluations_thinned_updates_and_numbers_that_are_none_are_in_the_curves(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    numbers: dict[str, Any] = {"prompts": [], "completions": [], "rewards": np.zeros(0, dtype=np.float32)}
    writer.append(Evaluated(update=0, metrics={"eval_reward": float("nan")}, seconds=1.5, **numbers))
    for number in (1, 2):
        writer.append(synthetic_update(number)[-1])  # all that thinning leaves
    writer.close()
    export(writer.path, "tensorboard", tmp_path / "curves")
    _, before, *found = events(tmp_path / "curves")
    assert before.step == 0
    assert np.isnan(before.summary.value[0].simple_value)
    assert [event.step for event in found] == [1, 2]
    with RunReader(writer.path) as reader:
        assert before.wall_time == reader.began.timestamp() + 1.5


def test_another_trainers_steps_are_exported(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    for number in (1, 2):
        for record in [*synthetic_update(number)[:-1], finished(number, (2 * number + 99, 2 * number + 100))]:
            writer.append(record)
    writer.close()
    export(writer.path, "tensorboard", tmp_path / "curves")
    assert [event.step for event in events(tmp_path / "curves")][1:] == [102, 104]
    export(writer.path, "jsonl", tmp_path / "lines.jsonl", UPDATE)
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {(line["step"], line["trainer_step"]) for line in lines} == {(2, 104)}
    assert set(parquet(writer.path, UPDATE).read().column("trainer_step").to_pylist()) == {104}
    export(writer.path, "npz", tmp_path / "arrays.npz", UPDATE)
    with np.load(tmp_path / "arrays.npz") as arrays:
        assert arrays["trainer_steps"].tolist() == [103, 104]


@pytest.mark.parametrize(("kind", "package"), [("parquet", "pyarrow"), ("tensorboard", "tensorboardX")])
def test_a_missing_package_is_named_and_nothing_is_left(
    run: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, package: str
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExportError, match=f"pip install {package}"):
        export(run, kind, run.with_name("out"))
    assert not list(run.parent.glob("out*"))


def test_curves_are_of_the_whole_run_and_replace_nothing(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="--update"):
        export(run, "tensorboard", tmp_path / "out", UPDATE)
    (tmp_path / "curves").mkdir()
    with pytest.raises(ExportError, match="exists already"):
        export(run, "tensorboard", tmp_path / "curves")
    assert not list((tmp_path / "curves").iterdir())
    assert not list(tmp_path.glob("*.partial"))


def test_the_columns_of_the_dataset_are_exported(tmp_path: Path) -> None:
    sampled, *_ = synthetic_update(1)
    assert isinstance(sampled, Sampled)
    odd = [{"answer": 30, "hints": ["a", "b"], "topic": "sums"}, *sampled.columns[1:]]
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    writer.append(msgspec.structs.replace(sampled, columns=odd))
    writer.append(synthetic_update(1)[-1])
    writer.close()
    (first, *_), last = (parquet(writer.path, 1).read().to_pylist(maps_as_pydicts="strict"),) * 2
    assert first["columns"] == {"answer": "30", "hints": '["a","b"]', "topic": "sums"}
    assert last[-1]["columns"] == odd[-1]
    export(writer.path, "jsonl", tmp_path / "out.jsonl", 1)
    assert [json.loads(line)["columns"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [
        odd[group] for group in sampled.group
    ]
    export(writer.path, "npz", tmp_path / "out.npz", 1)
    with np.load(tmp_path / "out.npz") as arrays:
        assert json.loads(str(arrays["columns"])) == odd
