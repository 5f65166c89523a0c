"""Exports hold enough to check a run with nothing of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.export.atomic_output import ExportError
from rlplay.export.tables import export
from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Credited, Finished, Sampled, Stepped
from rlplay.trace.runfile import RunFileError, RunReader, RunWriter
from tests.recorded import synthetic_run, synthetic_started, synthetic_update

UPDATE = 2


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "run.rlplay", updates=3)


def npz(run: Path, update: int | None) -> dict[str, Any]:
    out = run.with_suffix(".npz")
    export(run, "npz", out, update)
    with np.load(out, allow_pickle=False) as file:
        return dict(file)


def json_lines(run: Path, update: int | None) -> list[dict[str, Any]]:
    out = run.with_suffix(".jsonl")
    export(run, "jsonl", out, update)
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_advantages_ratios_clips_gradient_and_loss_can_be_computed_again(run: Path) -> None:
    data = npz(run, UPDATE)
    settings = json.loads(str(data["settings"]))
    epsilon, beta = settings["epsilon"], settings["beta"]
    group, rewards = data["group_id"], data["rewards"]
    weights = json.loads(str(data["reward_weights"]))
    parts = [weights[name] * data[f"rewards/{name}"] for name in weights]
    assert np.allclose(np.nansum(parts, axis=0), rewards)
    mask = data["completion_mask"].astype(bool)
    mean = np.array([rewards[group == g].mean() for g in group])
    std = np.array([rewards[group == g].std(ddof=1) for g in group])
    advantages = np.repeat(((rewards - mean) / (std + 1e-4))[:, None], mask.shape[1], axis=1)
    assert np.allclose(data["advantages"][mask], advantages[mask], atol=1e-4)
    for step in range(2):
        rows = data[f"step_{step}/rows"]
        kept = mask[rows]
        logprobs, ratio = data[f"step_{step}/logprobs"], data[f"step_{step}/importance_ratio"]
        assert np.allclose(np.exp(logprobs - data["old_logprobs"][rows])[kept], ratio[kept], rtol=1e-4)
        a = data["advantages"][rows]
        high, low = (a > 0) & (ratio > 1 + epsilon), (a < 0) & (ratio < 1 - epsilon)
        assert (data[f"step_{step}/clip_state"] == high.astype(int) - low.astype(int))[kept].all()
        gap = data["ref_logprobs"][rows] - logprobs
        kl = np.exp(gap) - gap - 1
        surrogate = np.minimum(ratio * a, np.clip(ratio, 1 - epsilon, 1 + epsilon) * a)
        share = 1 / (len(rows) * kept.sum(axis=1, keepdims=True))
        loss = np.nansum(np.where(kept, share * (beta * kl - surrogate), 0))
        assert loss == pytest.approx(json.loads(str(data[f"step_{step}/metrics"]))["loss"], abs=1e-5)
        pull = share * (np.where(high | low, 0, -ratio * a) + beta * (1 - np.exp(gap)))
        assert np.allclose(data[f"step_{step}/dloss_dlogp"][kept], pull[kept], atol=1e-5)


def test_rectangles_are_padded_with_zeros_and_nan(run: Path) -> None:
    data = npz(run, UPDATE)
    sampled = synthetic_update(UPDATE)[0]
    assert isinstance(sampled, Sampled)
    lengths = np.diff(sampled.offsets)
    assert data["completion_lengths"].tolist() == lengths.tolist()
    padding = np.arange(data["completion_ids"].shape[1]) >= lengths[:, None]
    assert not data["completion_ids"][padding].any()
    assert not data["completion_mask"][padding].any()
    assert np.isnan(data["old_logprobs"][padding]).all()
    assert np.concatenate([row[:n] for row, n in zip(data["completion_ids"], lengths, strict=True)]).tolist() == list(
        sampled.token_ids
    )
    for row in range(len(lengths)):
        prompt = data["prompt_ids"][row][data["prompt_mask"][row] == 1].tolist()
        whole = prompt + data["completion_ids"][row][: lengths[row]].tolist()
        assert data["token_ids"][row].tolist()[: len(whole)] == whole
    assert "values" not in data


def test_a_whole_run_is_one_file(run: Path) -> None:
    assert {name.split("/")[0] for name in npz(run, None)} == {"update_1", "update_2", "update_3"}
    assert len(json_lines(run, None)) == 48


def test_lines_are_aligned_with_the_tokens(run: Path) -> None:
    lines = json_lines(run, UPDATE)
    sampled, _, credited, *_ = synthetic_update(UPDATE)
    assert isinstance(sampled, Sampled)
    assert isinstance(credited, Credited)
    assert [line["sample_idx"] for line in lines] == [0, 1, 2, 3] * 4
    assert [line["group_id"] for line in lines] == sampled.group.tolist()
    advantages = [value for line in lines for value in line["advantages"][line["prompt_len"] :]]
    assert advantages == pytest.approx(credited.advantages)
    for line in lines:
        length, prompt = len(line["token_ids"]), line["prompt_len"]
        arrays = {name: values for name, values in line.items() if isinstance(values, list)}
        assert {len(values) for values in arrays.values()} == {length}
        assert line["loss_mask"] == [False] * prompt + [True] * (length - prompt)
        assert line["advantages"][:prompt] == [None] * prompt
        assert line["values"] is None
        masked = zip(line["is_masked"], line["is_masked_high"], line["is_masked_low"], strict=True)
        assert all(either == (high or low) for either, high, low in masked if either is not None)
    assert lines[0]["completion"] == "[bold]🚀  \x1bthe answer is<|end|>"
    assert lines[0]["rewards"]["format"] is None
    assert lines[-1]["truncated"] is True


def test_a_token_at_the_dual_clip_is_masked_too_but_neither_high_nor_low(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    for record in synthetic_update(UPDATE, steps=1):
        if isinstance(record, Stepped):
            record = msgspec.structs.replace(record, clip_state=np.full_like(record.clip_state, 2))  # noqa: PLW2901
        writer.append(record)
    writer.close()
    for line in json_lines(writer.path, UPDATE):
        for name, wanted in (
            ("clip_state", 2),
            ("is_masked", True),
            ("is_masked_high", False),
            ("is_masked_low", False),
        ):
            assert set(line[name][line["prompt_len"] :]) == {wanted}


def test_the_change_in_probability_is_the_one_on_the_screen(tmp_path: Path) -> None:
    """After minus before; null where the new policy was not asked."""
    *before, finished = synthetic_update(UPDATE)
    assert isinstance(finished, Finished)
    offsets = before[0].offsets  # type: ignore[union-attr]
    few = {"rows": finished.rows[:2], "logprobs": finished.logprobs[: offsets[2]]}
    for name in ("top_logprobs", "favourite_ids", "favourite_logprobs"):
        few[name] = getattr(finished, name)[: offsets[2]]
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    for record in (*before, msgspec.structs.replace(finished, **few)):
        writer.append(record)
    writer.close()
    run = writer.path
    with RunReader(run) as reader:
        update = reader.load(UPDATE)
    change = LENSES["prob_delta"].values(update)
    assert change is not None
    found = [value for line in json_lines(run, UPDATE) for value in line["prob_delta"][line["prompt_len"] :]]
    assert np.isnan(change).any()
    assert [value is None for value in found] == np.isnan(change).tolist()
    assert [value for value in found if value is not None] == pytest.approx(change[~np.isnan(change)].tolist())


def test_an_update_cut_short_leaves_out_what_was_not_computed(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    writer.append(synthetic_update(1)[0])
    writer.close()
    data = npz(writer.path, 1)
    assert "rewards" not in data
    assert not any(name.startswith("step_") for name in data)
    (line, *_) = json_lines(writer.path, 1)
    assert line["reward"] is None
    assert line["trainer_logprobs"] is line["is_masked"] is line["advantages"] is None


def test_an_export_that_cannot_be_done_says_why_and_leaves_nothing(run: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="has no update 9"):
        export(run, "npz", tmp_path / "out.npz", 9)
    assert not list(tmp_path.glob("out*")), "nor half of it"
    before = run.read_bytes()
    with pytest.raises(ExportError, match="exists already"):
        export(run, "jsonl", run)
    assert run.read_bytes() == before
    with pytest.raises(ExportError, match="cannot be written"):
        export(run, "jsonl", tmp_path / "nowhere" / "out.jsonl")


def test_what_a_killed_export_left_is_no_part_of_the_next(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    out = tmp_path / "events"
    left = out.with_name("events.partial")
    left.mkdir()
    (left / "events.out.tfevents.1.of-the-killed").write_text("half")
    export(run, "tensorboard", out)
    assert len(list(out.iterdir())) == 1
    assert not left.exists()


def test_an_update_without_tokens_is_refused(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    writer.append(msgspec.structs.replace(synthetic_update(1)[-1], update=1))
    with pytest.raises(ExportError, match="thinned out"):
        export(writer.path, "jsonl", tmp_path / "out.jsonl", 1)
