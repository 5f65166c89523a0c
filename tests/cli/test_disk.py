"""How much disk runs take, and deleting them: what belongs to the run and nothing else, and only if it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from rlplay.paths import runs_folder
from rlplay.trace.branch import branch
from rlplay.trace.numbers import byte_size
from rlplay.trace.runfile import RunReader, RunWriter
from tests.cli.command_line import called
from tests.recorded import synthetic_run, synthetic_started


def run_with_snapshots(name: str, sizes: dict[int, int]) -> Path:
    run = synthetic_run(runs_folder() / f"{name}.rlplay", updates=max(sizes, default=1))
    folder = run.with_suffix(".snapshots")
    folder.mkdir()
    writer = RunWriter.reopen(run)
    for update, size in sizes.items():
        path = folder / f"{update:06d}.safetensors"
        path.write_bytes(b"x" * size)
        writer.add_snapshot(update, path, size)
    writer.close()
    return run


def answering(monkeypatch: pytest.MonkeyPatch, answer: bool) -> list[str]:
    """Sit at a terminal and answer every question so; the questions."""
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text: bool(asked.append(text)) or answer)
    return asked


def test_sizes_are_columns_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with_snapshots("a", {1: 1500, 2: 2500})
    (runs_folder() / "broken.rlplay").write_text("no run")
    status, out, _ = called(capsys, "runs", "--sizes")
    head, broken, line, _, total = out.splitlines()
    assert status == 0
    assert head.split()[-2:] == ["file", "snapshots"]
    assert line.endswith(f"{byte_size(run.stat().st_size)}       4 kB")
    assert broken.endswith("6 B        0 B")
    assert total.startswith(f"{byte_size(run.stat().st_size + 4006)} in 2 runs; 'rlplay rm RUN' deletes one")
    assert "snapshots" not in called(capsys, "runs")[1]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (64_200_000, "64.2 MB"),
        (999_600, "1 MB"),
        (4_640_000_000, "4.64 GB"),
    ],
)
def test_a_size_is_three_digits_and_a_decimal_unit(size: int, text: str) -> None:
    assert byte_size(size) == text


def test_rm_asks_and_takes_no_for_an_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with_snapshots("a", {1: 10})
    asked = answering(monkeypatch, False)
    status, out, _ = called(capsys, "rm", "a")
    assert (status, asked) == (0, ["Delete this run?"])
    assert "1 snapshot 10 B" in out
    assert out.endswith("nothing deleted\n")
    assert run.exists()


def test_rm_deletes_the_runs_own_files_and_nothing_beside_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = run_with_snapshots("a", {1: 10, 2: 10}), run_with_snapshots("ab", {1: 10})
    mine = run.with_suffix(".snapshots") / "notes.txt"
    beside = run.with_name("a.rlplay.png")
    mine.write_text("mine")
    (mine.parent / ".tmpA1b2C3").write_text("of a snapshot, from a program that was killed")
    beside.write_text("mine too")
    asked = answering(monkeypatch, True)
    status, out, _ = called(capsys, "rm", "a", str(run))
    assert (status, asked) == (0, ["Delete this run?"]), "a run that is named twice is one run"
    assert out.endswith("deleted a\n")
    left = {path.relative_to(runs_folder()).as_posix() for path in runs_folder().rglob("*") if path.is_file()}
    assert left == {"a.snapshots/notes.txt", "a.rlplay.png", "ab.rlplay", "ab.snapshots/000001.safetensors"}
    mine.unlink()
    assert called(capsys, "rm", "--yes", "ab")[0] == 0
    assert not other.with_suffix(".snapshots").exists()


def test_rm_snapshots_leaves_a_run_that_can_be_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with_snapshots("a", {1: 10, 2: 10})
    status, out, _ = called(capsys, "rm", "a", "--snapshots", "--yes")
    assert status == 0
    assert out.endswith("deleted the snapshots of a\n")
    with RunReader(run) as reader:
        assert reader.updates() == [1, 2]
        assert reader.snapshots() == []
        assert reader._rows("SELECT count(*) FROM snapshots") == [(0,)]


def test_a_row_of_the_file_cannot_name_a_file_elsewhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run, precious = run_with_snapshots("a", {1: 10}), tmp_path / "000009.safetensors"
    precious.write_text("precious")
    writer = RunWriter.reopen(run)
    writer.add_snapshot(9, precious, 8)
    writer.close()
    assert called(capsys, "rm", "a", "--yes")[0] == 0
    assert precious.exists()


def test_a_folder_of_snapshots_that_is_a_link_is_not_followed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = synthetic_run(runs_folder() / "a.rlplay", updates=1)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "000001.safetensors").write_text("precious")
    run.with_suffix(".snapshots").symlink_to(tmp_path / "elsewhere")
    assert called(capsys, "rm", "a", "--yes")[0] == 0
    assert not run.exists()
    assert (tmp_path / "elsewhere" / "000001.safetensors").exists()


def test_a_branch_stays_whole_when_the_run_it_left_is_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with_snapshots("a", {1: 10, 2: 10})
    branch(run, 2, runs_folder() / "b.rlplay")
    assert called(capsys, "rm", "a", "--yes")[0] == 0
    with RunReader(runs_folder() / "b.rlplay") as reader:
        assert [snapshot.path.read_bytes() for snapshot in reader.snapshots()] == [b"x" * 10]


@pytest.mark.parametrize("args", [["--yes"], ["--yes", "--snapshots"]])
def test_a_run_that_another_program_has_open_is_refused(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    run, other = run_with_snapshots("a", {1: 10}), run_with_snapshots("b", {1: 10})
    program = (
        f"from rlplay.trace.runfile import RunWriter; w = RunWriter({str(run)!r}); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "open\n"
        status, _, err = called(capsys, "rm", "b", "a", *args)
        assert status == 2
        assert err == f"rlplay: {run} is open in another program; stop the run or close its screen first\n"
        assert all(each.exists() and list(each.with_suffix(".snapshots").iterdir()) for each in (run, other))
        engine.communicate("\n")
    assert called(capsys, "rm", "b", "a", *args)[0] == 0
    assert run.exists() == ("--snapshots" in args)


def test_what_rm_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    RunWriter.create(runs_folder() / "a.rlplay", synthetic_started()).close()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "outputs").mkdir()
    for named, words in {
        "a": "rm asks before it deletes, and there is no terminal to ask in; add --yes",
        str(tmp_path / "notes.txt"): "notes.txt is not a run file",
        str(tmp_path / "outputs"): "outputs is a folder; name a run file",
        "nothing": "no run 'nothing'",
    }.items():
        status, _, err = called(capsys, "rm", named, *(["--yes"] if named != "a" else []))
        assert status == 2
        assert words in err
        assert err.count("\n") == 1
    assert (tmp_path / "notes.txt").exists()
    assert (runs_folder() / "a.rlplay").exists()


def test_a_run_that_goes_on_while_rm_asks_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, opened = run_with_snapshots("a", {1: 10}), []
    answering(monkeypatch, True)
    monkeypatch.setattr(click, "confirm", lambda _text: bool(opened.append(RunWriter.reopen(run))) or True)
    status, _, err = called(capsys, "rm", "a")
    assert status == 2
    assert "is open in another program" in err
    assert run.exists()
    opened[0].close()
