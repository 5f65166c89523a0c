"""A run that grows is followed, whatever writes it: half-written files wait, and files that go change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlplay.cli import foreign as commands
from rlplay.foreign.copy import Copy
from rlplay.trace.runfile import RunReader
from tests.cli.command_line import called
from tests.foreign.grown import (
    Row,
    aged,
    parquet_bytes,
    prime_rl_rows,
    tinker_rows,
    token_rows,
    trl_rows,
    verl_rows,
)
from tests.foreign.same import parts_of
from tests.record.batches import answers, record


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def json_lines(rows: list[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@dataclass(frozen=True)
class Written:
    """How a trainer writes: the name of an update's file, counted from 1, and its bytes."""

    name: str
    content: Callable[[int], bytes]


TRAINERS = {
    "verl": Written("{n}.jsonl", lambda n: json_lines(verl_rows(n))),
    "TRL": Written("completions/completions_{n:05}.parquet", lambda n: parquet_bytes(trl_rows(n))),
    "prime-rl": Written("token_exports/step_{n}/rank_0.jsonl", lambda n: json_lines(prime_rl_rows(n))),
    "tinker-cookbook": Written(
        "iteration_{before:06}/train_rollout_summaries.jsonl", lambda n: json_lines(tinker_rows(n - 1))
    ),
    "token database": Written("tokens/segments/seg-a-{n:06}.parquet", lambda n: parquet_bytes(token_rows(n - 1))),
}


def put(run: Path, trainer: Written, number: int, share: float = 1.0, age: float = 0) -> Path:
    """Write a share of an update's file, whose last change is `age` seconds ago."""
    path = run / trainer.name.format(n=number, before=number - 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = trainer.content(number)
    path.write_bytes(data[: int(len(data) * share)])
    aged(path, age)
    return path


@pytest.mark.parametrize("name", TRAINERS)
def test_a_folder_that_grows(tmp_path: Path, name: str) -> None:
    if name in ("TRL", "token database"):
        pytest.importorskip("pyarrow")
    trainer, run = TRAINERS[name], tmp_path / "run"
    first = put(run, trainer, 1, age=60)
    put(run, trainer, 2, share=0.6)
    copy = Copy(run)
    with RunReader(copy.path) as recorded:
        assert recorded.updates() == ([1] if name != "token database" else []), "half of a file waits"
        put(run, trainer, 2, age=30)
        copy.pull()
        assert recorded.updates() == [1, 2]
        put(run, trainer, 3, share=0.6)
        first.unlink()
        copy.pull()
        again = Copy(run)
        assert again.path == copy.path, "the same run, whatever files have gone"
        assert recorded.updates() == [1, 2]
        put(run, trainer, 3)
        put(run, trainer, 4, age=-5)
        again.pull()
        assert recorded.updates() == [1, 2, 3], "there is a later one, which may not be whole"
        assert {len(recorded.load(n).sampled.group) for n in (1, 2, 3)} == {len(recorded.load(1).sampled.group)}


def test_numbers_that_began_at_0_stay_when_the_first_file_goes(tmp_path: Path) -> None:
    trainer, run = TRAINERS["verl"], tmp_path / "run"
    first = put(run, trainer, 0, age=60)
    put(run, trainer, 1, age=60)
    with RunReader(Copy(run).path) as recorded:
        assert recorded.updates() == [1, 2]
        first.unlink()
        put(run, trainer, 2, age=60)
        Copy(run)
        assert recorded.updates() == [1, 2, 3]
        assert [recorded.history().clock.steps(update) for update in (1, 2, 3)] == [(0, 0), (1, 1), (2, 2)]


def test_a_step_of_prime_rl_is_whole_once_it_is_marked(tmp_path: Path) -> None:
    trainer, run = TRAINERS["prime-rl"], tmp_path / "run"
    for number in (1, 2):
        path = put(run, trainer, number, age=60)
        if number == 1:
            (path.parent / "STABLE").touch()
    copy = Copy(run)
    with RunReader(copy.path) as recorded:
        assert recorded.updates() == [1], "the second process may not have begun its file"
        (path.parent / "STABLE").touch()
        copy.pull()
        assert recorded.updates() == [1, 2]


def test_another_run_in_the_same_folder_is_not_mixed_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer, run = TRAINERS["verl"], tmp_path / "run"
    paths = [put(run, trainer, number, age=60) for number in (1, 2, 3)]
    copy = Copy(run)
    for path in paths[1:]:
        path.unlink()
    status, _, error = called(capsys, "import", str(run))
    assert (status, error.count("\n")) == (2, 1)
    assert "ends at update 1, but its update 3 was read before" in error
    called(capsys, "rm", copy.path.stem, "--yes")
    assert called(capsys, "import", str(run))[0] == 0


def grown(run: Path, name: str) -> Callable[[int], object]:
    """What adds update n to a run."""
    if name != "rlplay.record":
        return lambda number: put(run, TRAINERS[name], number, age=60)

    def add(number: int) -> None:
        whole = run.with_name(f"whole-{number}")
        record(whole, [answers(n, 2, 2, 1) for n in range(number)], [2])
        run.mkdir(exist_ok=True)
        for part, data in parts_of(whole).items():
            (run / part).write_bytes(data)

    return add


@pytest.mark.parametrize("name", [*TRAINERS, "rlplay.record"])
def test_the_command_goes_on_until_it_is_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name in ("TRL", "token database"):
        pytest.importorskip("pyarrow")
    add = grown(tmp_path / "run", name)
    add(1)
    left = iter([2, 3])

    def sleep(_seconds: float) -> None:
        number = next(left, None)
        if number is None:
            raise KeyboardInterrupt
        add(number)

    monkeypatch.setattr(commands, "time", SimpleNamespace(sleep=sleep))
    status, said, error = called(capsys, "import", str(tmp_path / "run"), "--follow")
    assert (status, error.strip()) == (130, "")
    first, *others = said.splitlines()
    assert first.startswith("1 update in ")
    assert [line.split()[:2] for line in others] == [["update", "2"], ["update", "3"]]
