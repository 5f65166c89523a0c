"""Only what a user plays, sets or asks for runs the user's functions; what only reads a setting never does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.equations import terms
from rlplay.algorithms.setting_values import check, decoded
from rlplay.cli import main as cli
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import load
from rlplay.scenario.share import Shared, ShareError
from rlplay.trace.records import Changed
from rlplay.trace.runfile import RunWriter
from tests.recorded import SETTINGS, synthetic_started, synthetic_update

HEAD = "title: T\nquestion: Q?\ntask: arithmetic\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder with a function whose file leaves a mark when it runs, and the mark."""
    mark = tmp_path / "it-ran"
    source = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n\n\ndef f(xp, ratio):\n    return ratio\n"
    (tmp_path / "evil.py").write_text(source)
    (tmp_path / "algorithm.yaml").write_text("title: T\nsettings: {surrogate: evil.py:f, scale_rewards: evil.py:f}\n")
    (tmp_path / "theirs.yaml").write_text(
        HEAD + "settings: {surrogate: evil.py:f}\nscript:\n- set: {scale_rewards: evil.py:f}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    return tmp_path, mark


def called(*args: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(list(args))
    return int(left.value.code or 0)


def recorded(folder: Path) -> Path:
    """A run that began with the function, changed to it again, and names the scenario and the algorithm."""
    name = f"{folder / 'evil.py'}:f"
    settings = {**msgspec.to_builtins(SETTINGS), "surrogate": name, "algorithm": str(folder / "algorithm.yaml")}
    text = f"name: theirs\n{HEAD}origin: {folder / 'theirs.yaml'}\nsettings: {{surrogate: '{name}'}}\n"
    started = msgspec.structs.replace(synthetic_started(), settings=settings, scenario_text=text)
    writer = RunWriter.create(folder / "a.rlplay", started)
    for record in synthetic_update(1):
        writer.append(record)
    writer.append(Changed(update=2, phase="sample", name="scale_rewards", value=name, previous="group"))
    writer.close()
    return folder / "a.rlplay"


def with_own_task(folder: Path, algorithm: str = "grpo") -> Path:
    """A run whose scenario names the function as its task."""
    text = f"name: theirs\ntitle: T\nquestion: Q?\ntask: {folder / 'evil.py'}:f\norigin: {folder / 'theirs.yaml'}\n"
    if algorithm == "grpo":
        text += f"tools: ['{folder / 'evil.py'}:f']\nenvironment_factory: {folder / 'evil.py'}:f\n"
    started = synthetic_started(scenario_text=text, settings=msgspec.to_builtins(resolve({"algorithm": algorithm})))
    writer = RunWriter.create(folder / f"{algorithm}.rlplay", started)
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    return writer.path


def checked(folder: Path) -> None:
    assert check("surrogate", "evil.py:f") == f"{folder / 'evil.py'}:f"
    assert check("scale_rewards", "evil.py:f") == f"{folder / 'evil.py'}:f"
    assert check("algorithm", "algorithm.yaml") == str(folder / "algorithm.yaml")


def formula_of_a_recording(folder: Path) -> None:
    assert "which a recording does not run" in terms(decoded({"surrogate": f"{folder / 'evil.py'}:f"}))["S"]


def code(folder: Path) -> None:
    for settings in ({"surrogate": f"{folder / 'evil.py'}:f"}, {"scale_rewards": "evil.py:f"}):
        shared = Shared("learn-to-think", settings=settings).code
        assert called("run", shared) == 2
        with pytest.raises(ShareError):
            Shared("learn-to-think", settings=settings).scenario_with()


def new_from_a_run(folder: Path) -> None:
    assert called("new", "mine", "--from", str(recorded(folder))) == 0
    assert "evil.py:f" in (folder / "mine.yaml").read_text()
    assert called("show", "mine.yaml") == 0


def export(folder: Path) -> None:
    run = recorded(folder)
    assert called("export", str(run), "--format", "jsonl", "--out", str(folder / "out")) == 0
    assert called("runs") == 0


def task_of_a_recording(folder: Path) -> None:
    run, out = with_own_task(folder), str(folder / "out.py")
    assert called("export", str(run), "--format", "trl", "--out", out) == 0
    assert "make_task(" in Path(out).read_text()
    assert called("export", str(with_own_task(folder, "dpo")), "--format", "trl", "--out", out) == 2
    assert called("new", "its", "--from", str(run)) == 0
    assert called("show", "its.yaml") == 0
    assert called("health", str(run)) in (0, 1)


def task_of_a_scenario(folder: Path) -> None:
    (folder / "task.yaml").write_text("title: T\nquestion: Q?\ntask: evil.py:f\ntools: [evil.py:f]\n")
    assert called("show", "task.yaml") == 0
    with_changes(load(folder / "task.yaml"))


def show(_folder: Path) -> None:
    assert called("show", "theirs.yaml") == 0


@pytest.mark.parametrize(
    "reading",
    [
        checked,
        formula_of_a_recording,
        code,
        new_from_a_run,
        export,
        task_of_a_recording,
        task_of_a_scenario,
        show,
    ],
)
def test_what_only_reads_a_setting_runs_nothing(reading: Callable[[Path], None], trap: tuple[Path, Path]) -> None:
    folder, mark = trap
    reading(folder)
    assert not mark.exists()


def test_playing_it_does(trap: tuple[Path, Path]) -> None:
    assert called("algorithms", "algorithm.yaml", "--trust") == 2, "an advantage is not given a ratio"
    assert trap[1].exists()
