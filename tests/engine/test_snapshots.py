"""Which snapshots are kept, and what a damaged one says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from rlplay.engine import snapshots
from rlplay.engine.snapshots import SnapshotStore, restore, to_drop
from rlplay.trace.runfile import RunWriter
from rlplay.trace.runfile_format import RunFileError
from tests.recorded import synthetic_run


@given(st.integers(1, 200), st.integers(1, 50))
def test_the_newest_stays_the_budget_holds_and_the_past_gets_sparser(count: int, room: int) -> None:
    kept: dict[int, int] = {}
    for update in range(1, count + 1):
        kept[update] = 10
        for victim in to_drop(kept, room * 10):
            del kept[victim]
    assert count in kept
    assert sum(kept.values()) <= max(room, 1) * 10
    if count > 4 * room and room >= 8:
        updates = sorted(kept)
        holes = [b - a for a, b in pairwise(updates)]
        assert max(holes[len(holes) // 2 :]) <= max(holes[: len(holes) // 2])


def test_what_a_killed_program_has_left_of_a_snapshot_is_removed(tmp_path: Path) -> None:
    run, folder = synthetic_run(tmp_path / "run.rlplay", updates=1), tmp_path / "run.snapshots"
    folder.mkdir()
    for name in ("000001.safetensors", "000002.partial", ".tmpA1b2C3", "notes.txt"):
        (folder / name).write_text("x")
    writer = RunWriter.reopen(run)
    SnapshotStore(writer, run, [])
    writer.close()
    assert {path.name for path in folder.iterdir()} == {"000001.safetensors", "notes.txt"}


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """A stranger's run file may bring a link to the snapshots of another run, which would be thinned out."""
    run, victim = synthetic_run(tmp_path / "run.rlplay", updates=1), tmp_path / "victim.snapshots"
    victim.mkdir()
    (victim / "000002.safetensors").write_text("x")
    (tmp_path / "run.snapshots").symlink_to(victim)
    with pytest.raises(RunFileError, match=r"run\.snapshots is a link to another folder"):
        SnapshotStore(RunWriter.reopen(run), run, [])
    assert (victim / "000002.safetensors").exists()


def test_a_damaged_snapshot_and_one_of_another_model_are_refused_in_one_line(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    driver, _ = start()
    driver.advance("update", 1, lambda: False)
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"not a snapshot")
    with pytest.raises(ValueError, match="cannot be read"):
        restore(driver._state, damaged, 1)
    (kept,) = (tmp_path / "run.snapshots").glob("*.safetensors")
    name = next(iter(driver._state.parameters))
    driver._state.parameters[f"{name}.more"] = driver._state.parameters[name]
    with pytest.raises(ValueError, match="does not fit this model"):
        restore(driver._state, kept, 1)
    del driver._state.parameters[f"{name}.more"], driver._state.parameters["value.bias"]
    with pytest.raises(ValueError, match=r"does not fit this model \(value.bias\)"):
        restore(driver._state, kept, 1)


def test_a_gpus_tensors_are_copied_in_few_parcels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each copy waits for the device, and takes as much of its memory once more."""
    sizes, parcels = {"a": 10, "b": 14, "c": 2, "large": 100, "d": 3}, list[list[int]]()
    tensors = {name: torch.randn(size) for name, size in sizes.items()} | {"e": torch.randn(6, 4).t()}

    def packed(values: list[torch.Tensor]) -> list[torch.Tensor]:
        """As from a GPU: pieces of one copy."""
        parcels.append([len(value.flatten()) for value in values])
        flat = torch.cat([value.flatten() for value in values])
        pieces = flat.split([value.numel() for value in values])
        return [piece.view(value.shape) for piece, value in zip(pieces, values, strict=True)]

    monkeypatch.setattr(snapshots, "_AT_ONCE", 4 * 26)
    monkeypatch.setattr(snapshots, "to_host", packed)
    snapshots._written(snapshots._on_host(tensors), tmp_path / "a.safetensors")
    assert parcels == [[10, 14, 2], [100], [3], [24]]
    held = load_file(tmp_path / "a.safetensors")
    assert held.keys() == tensors.keys()
    assert all(torch.equal(held[name], tensor) for name, tensor in tensors.items())
