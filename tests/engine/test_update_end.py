"""A snapshot is written while the next update samples, and the end of its update is on record after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rlplay.engine import snapshots
from rlplay.trace.records import AnyRecord, Finished, Notice, Sampled
from rlplay.trace.runfile import RunReader

Start = Callable[..., tuple[Any, list[AnyRecord]]]


class Disk:
    """A disk that writes a snapshot only once it may; one that is full, if it is `full`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, full: bool = False) -> None:
        self.full = full
        self.free = threading.Event()
        self.asked = threading.Event()
        self._write = snapshots.save_file
        monkeypatch.setattr(snapshots, "save_file", self.write)

    def write(self, tensors: dict[str, torch.Tensor], path: Path) -> None:
        self.asked.set()
        assert self.free.wait(60)
        if self.full:
            raise OSError("no space left on device")
        self._write(tensors, path)


def play_on(driver: Any, records: list[AnyRecord], disk: Disk, moments: int) -> list[int]:
    """Play two updates; the disk is free once the second one has had so many `moments`. Returns how many updates were
    seen to have ended at each of them."""
    seen: list[int] = []

    def interrupted() -> bool:
        if disk.asked.is_set() and not disk.free.is_set():
            seen.append(sum(isinstance(record, Finished) for record in records))
            if len(seen) > moments:
                disk.free.set()
        return False

    driver.advance("update", 2, interrupted)
    return seen


def test_the_next_update_samples_meanwhile_and_the_end_is_told_after_the_snapshot(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    driver, records = start()
    kept: list[list[int]] = []

    def sink(record: AnyRecord) -> None:
        records.append(record)
        if isinstance(record, Finished):
            kept.append(driver._store.kept())

    driver._sink = sink
    assert play_on(driver, records, disk, 3) == [0, 0, 0, 0]
    assert kept == [[1], [1, 2]]
    ends = [r for r in records if isinstance(r, Finished) or (isinstance(r, Sampled) and r.done)]
    order = [type(record) for record in ends]
    assert order == [Sampled, Finished, Sampled, Finished]
    with RunReader(driver._writer.path) as reader:
        assert [(name, number) for name, number, _ in reader.events() if name in ("sampled", "finished")] == [
            ("sampled", 1), ("finished", 1), ("sampled", 2), ("finished", 2),
        ]  # fmt: skip


def test_a_late_snapshot_has_the_weights_of_its_update(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = start(run="one.rlplay")
    one.advance("update", 1, lambda: False)
    weights = {name: p.detach().clone() for name, p in one._state.parameters.items()}
    disk = Disk(monkeypatch)
    driver, records = start()
    play_on(driver, records, disk, 5)
    held = load_file(driver._store.path(1))
    assert all(torch.equal(held[name], weight) for name, weight in weights.items())
    assert not all(torch.equal(held[name], p) for name, p in driver._state.parameters.items())


def test_a_full_disk_is_told_before_the_end_and_the_run_goes_on(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, full=True)
    driver, records = start()
    play_on(driver, records, disk, 2)
    told = [record for record in records if isinstance(record, Notice | Finished)]
    assert [(type(record), record.update) for record in told] == [
        (Notice, 1), (Finished, 1), (Notice, 2), (Finished, 2),
    ]  # fmt: skip
    assert "no snapshot of update 1 (no space left on device)" in told[0].text  # type: ignore[union-attr]


def test_whoever_looks_at_the_next_answers_has_seen_the_update_end(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 1, lambda: False)
    driver.advance("token", 1, lambda: False)
    ended, look = records[-2:]
    assert isinstance(ended, Finished)
    assert isinstance(look, Sampled)
    assert not look.done


def test_a_run_that_stops_or_fails_has_its_last_end(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the next update fails before it records anything."""
    driver, records = start()
    moments: list[int] = []

    def fails(*_: object, **__: object) -> None:
        moments.append(1)
        raise RuntimeError("a fault in sampling")

    def interrupted() -> bool:
        if driver.status().update == 1:
            monkeypatch.setattr("rlplay.engine.rollouts.sample", fails)
        return False

    with pytest.raises(RuntimeError, match="a fault in sampling"):
        driver.advance("update", 2, interrupted)
    assert moments
    assert [record.update for record in records if isinstance(record, Finished)] == [1]
    assert driver._store.kept() == [1]
    monkeypatch.undo()
    driver.advance("update", 1, lambda: False)
    whole, expected = start(run="whole.rlplay")
    whole.advance("update", 2, lambda: False)
    for one, other in zip(*([r for r in each if isinstance(r, Finished)] for each in (records, expected)), strict=True):
        np.testing.assert_array_equal(one.logprobs, other.logprobs)
