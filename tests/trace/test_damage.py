"""One record or cell of a run file damaged: one line names the update, and everything else can still be read."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.trace.codec import RECORDS
from rlplay.trace.records import AnyRecord, Changed, Sampled, Staged
from rlplay.trace.runfile import RunFileError, RunReader, RunWriter
from tests.recorded import synthetic_evaluated, synthetic_run

Change = Callable[[Any], dict[str, Any]]
CUT: dict[str, tuple[str, ...]] = {
    "sampled": ("group", "offsets", "token_ids", "texts", "mask", "old_logprobs", "entropy", "top_ids", "top_logprobs",
                "truncated", "prompt_ids", "prompt_offsets", "prompt_texts", "columns", "prompts"),
    "scored": ("rewards",),
    "credited": ("advantages", "token_rewards", "returns", "baseline", "ref_logprobs", "ref_top_logprobs",
                 "group_mean", "group_std"),
    "stepped": ("rows", "logprobs", "importance_ratio", "clip_state", "dloss_dlogp", "kl"),
    "finished": ("rows", "logprobs", "top_logprobs", "favourite_ids", "favourite_logprobs"),
    "evaluated": ("prompts", "completions", "rewards"),
}  # fmt: skip
SHORTER = [(kind, field) for kind, fields in CUT.items() for field in fields]
ODD: list[tuple[str, str, Change]] = [
    ("sampled", "an answer to a prompt that is not there", lambda r: {"group": r.group + 100}),
    ("sampled", "an answer to a prompt below 0", lambda r: {"group": r.group - 1}),
    ("sampled", "answers that overlap", lambda r: {"offsets": r.offsets[::-1].copy()}),
    ("sampled", "offsets of real numbers", lambda r: {"offsets": r.offsets.astype(np.float32)}),
    ("sampled", "tokens of real numbers", lambda r: {"token_ids": r.token_ids.astype(np.float64)}),
    ("sampled", "a table of tokens", lambda r: {"token_ids": r.token_ids[:, None]}),
    ("sampled", "one number for all", lambda r: {"entropy": np.float32(1) * np.ones(())}),
    ("sampled", "an answer's states that is not there", lambda r: {"states": {999: ["x"]}}),
    ("sampled", "another update", lambda r: {"update": 7}),
    ("sampled", "a sampler's log-probabilities of fewer tokens", lambda r: {"sampling_logprobs": r.old_logprobs[1:]}),
    ("credited", "a correction of fewer tokens", lambda r: {"correction": r.advantages[1:]}),
    ("scored", "a part of another length", lambda r: {"parts": {"x": np.zeros(1)}}),
    ("scored", "a column of another length", lambda r: {"extra": {"x": [1]}}),
    ("scored", "roles of another length", lambda r: {"roles": ["chosen"]}),
    ("stepped", "an answer that is not there", lambda r: {"rows": r.rows + 1000}),
    ("stepped", "an answer below 0", lambda r: {"rows": r.rows - 1000}),
    ("stepped", "a reason that is not there", lambda r: {"left_out": np.full(len(r.logprobs), 99, np.uint8)}),
    ("stepped", "more margins than pairs", lambda r: {"margins": np.zeros(999, np.float32)}),
    ("finished", "an answer that is not there", lambda r: {"rows": r.rows + 1000}),
    ("finished", "a likeliest token alone", lambda r: {"favourite_logprobs": None}),
    ("finished", "likeliest tokens of real numbers", lambda r: {"favourite_ids": r.favourite_logprobs}),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    run = synthetic_run(tmp_path / "run.rlplay", updates=3)
    writer = RunWriter.reopen(run)
    writer.append(synthetic_evaluated(2))
    writer.append(Changed(update=3, phase="sample", name="beta", value=0.1, previous=0.0))
    writer.close()
    return run


def put(path: Path, kind: str, data: bytes) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE records SET data = ? WHERE number = 2 AND kind = ?", (data, kind))


def altered(path: Path, kind: str, change: Change) -> None:
    with sqlite3.connect(path) as db:
        (data,) = db.execute("SELECT data FROM records WHERE number = 2 AND kind = ?", (kind,)).fetchone()
    record: AnyRecord = RECORDS.decode(zlib.decompress(data))
    put(path, kind, zlib.compress(RECORDS.encode(msgspec.structs.replace(record, **change(record)))))


def refused(path: Path, kind: str) -> None:
    with RunReader(path) as run:
        with pytest.raises(RunFileError, match="update 2 is damaged") as caught:
            run.held_out(2) if kind == "evaluated" else run.load(2)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
        assert run.updates() == [1, 2, 3]
        assert run.load(1).finished is not None
        assert run.load(3).finished is not None
        assert run.latest("reward") is not None
        assert run.history().names()


@pytest.mark.parametrize(("kind", "field"), SHORTER)
def test_a_part_of_another_length(path: Path, kind: str, field: str) -> None:
    altered(path, kind, lambda record: {field: getattr(record, field)[:-1]})
    refused(path, kind)


@pytest.mark.parametrize(("kind", "what", "change"), ODD)
def test_parts_that_do_not_fit_together(path: Path, kind: str, what: str, change: Change) -> None:
    altered(path, kind, change)
    refused(path, kind)


OBJECTS = b"\x05\x92\xa1O\x91\x01" + b"x" * 8
BYTES: dict[str, Any] = {
    "none": b"",
    "nonsense": b"nonsense",
    "an end too soon": zlib.compress(b"x" * 1000)[:10],
    "a number": 3,
    "a text": "text",
    "an empty record": zlib.compress(msgspec.msgpack.encode({})),
    "a list": zlib.compress(msgspec.msgpack.encode([1])),
    "levels of lists": zlib.compress(b"\x91" * 100_000 + b"\xc0"),
    "an array of objects": zlib.compress(
        msgspec.msgpack.encode({"type": "scored", "update": 2, "rewards": msgspec.msgpack.Ext(1, OBJECTS)})
    ),
    "more than there is memory": zlib.compress(bytes(2**20)) * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_record(path: Path, name: str) -> None:
    put(path, "scored", BYTES[name])
    refused(path, "scored")


def test_tokens_that_are_missing_are_missed(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM records WHERE number = 2 AND kind = 'sampled'")
    with RunReader(path) as run:
        with pytest.raises(RunFileError, match="its tokens are missing"):
            run.load(2)
        assert run.detailed() == [1, 3]


@pytest.mark.parametrize("cell", ["'x'", "-5", "x'00ff'", "3000000000", "NULL", "1.5", "9e99"])
@pytest.mark.parametrize(
    "place", ["metrics.number", "metrics.name", "metrics.value", "records.number", "meta.value", "snapshots.path"]
)
def test_a_cell_of_another_type_spoils_no_other(path: Path, place: str, cell: str) -> None:
    table, _, column = place.partition(".")
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO snapshots VALUES (0, 1, 'run.snapshots/000001.safetensors', 5)")
        where = {"metrics": "number = 2 AND name = 'reward'", "records": "number = 2 AND kind = 'scored'",
                 "meta": "key = 'created'", "snapshots": "number = 1"}[table]  # fmt: skip
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = {cell} WHERE {where}")
    with RunReader(path) as run:
        assert run.updates() == [1, 2, 3]
        assert run.load(3).finished is not None
        assert len(run.history().series("reward")[0]) >= 2
        assert [number for number, _ in run.metrics()] in ([1, 2, 3], [0, 1, 2, 3])
        run.snapshots(), run.timeline(), run.events(), run.last_id(), run.latest("reward"), run.branched
        if place == "meta.value" and cell != "NULL":
            with pytest.raises(RunFileError, match="when it was created"):
                _ = run.began


@pytest.mark.parametrize("record", [
    Changed(update=2, phase="tea", name="beta", value=1, previous=0),
    Staged(update=2, index=0, stages=1, name="x", settings={}, phase="tea"),
])  # fmt: skip
def test_a_change_in_no_phase_is_no_setting(path: Path, record: AnyRecord) -> None:
    with RunReader(path) as run, sqlite3.connect(path) as db:
        row = (2, type(record).__name__.lower(), zlib.compress(RECORDS.encode(record)))
        db.execute("INSERT INTO records (number, kind, data) VALUES (?, ?, ?)", row)
        db.commit()
        with pytest.raises(RunFileError, match="update 2 is damaged"):
            run.timeline()
        assert run.load(1).finished is not None


def test_what_is_checked_is_what_is_written(path: Path) -> None:
    """Every array of the records is in one of the cases above, so that none is forgotten when one is added."""
    arrays = {name for name, hint in Sampled.__annotations__.items() if str(hint) == "Array"}
    assert arrays <= set(CUT["sampled"])
