"""Code that a scenario or a run file names runs only if the user has named it, or has said once that it may."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from rlplay.cli import play as cli_play
from rlplay.engine import headless
from rlplay.paths import find_run
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Scenario
from rlplay.scenario.trust import code_of, trust, untrusted
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.ui import start
from tests.cli.command_line import called
from tests.recorded import synthetic_started

HEAD = "title: T\nquestion: Q?\n"
NAMES = {
    "reward": "task: arithmetic\nreward: [evil.py:f]\n",
    "module": "task: arithmetic\nreward: ['os:system']\n",
    "environment": "dataset: rows.jsonl\nreward: [evil.py:f]\nenvironment: evil.py:f\n",
    "task": "task: evil.py:f\n",
    "tool": "task: arithmetic\ntools: [evil.py:f]\n",
    "factory": "task: arithmetic\nenvironment_factory: evil.py:f\n",
    "surrogate": "task: arithmetic\nsettings: {surrogate: 'evil.py:f'}\n",
    "advantage": "task: arithmetic\nsettings: {scale_rewards: 'evil.py:f'}\n",
    "algorithm": "task: arithmetic\nsettings: {algorithm: own.yaml}\n",
    "stage": "task: arithmetic\nstages:\n- {name: a, updates: 1, settings: {surrogate: 'evil.py:f'}}\n",
    "script": "task: arithmetic\nscript:\n- set: {surrogate: 'evil.py:f'}\n",
    "learner's step": "task: arithmetic\nscript:\n- you: {say: Press., set: {surrogate: 'evil.py:f'}}\n",
}


@pytest.fixture(autouse=True)
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mark that the code of a stranger leaves when it runs."""
    mark = tmp_path / "it-ran"
    head = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n\n\n"
    code = head + "def f(*a, xp=None, ratio=None, **k):\n    return ratio\n"
    (tmp_path / "evil.py").write_text(code)
    (tmp_path / "own.yaml").write_text("title: T\nsettings: {surrogate: evil.py:f}\n")
    (tmp_path / "rows.jsonl").write_text('{"prompt": [{"role": "user", "content": "x"}]}\n')
    monkeypatch.chdir(tmp_path)
    return mark


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that reach an engine."""
    found: list[Any] = []
    monkeypatch.setattr(headless, "run", lambda job, *_: found.append(job) or 0)
    monkeypatch.setattr(start, "play", lambda job, *_: found.append(job) or 0)
    monkeypatch.setattr(cli_play, "needs_a_terminal", lambda instead: None)
    return found


@pytest.mark.parametrize("kind", NAMES)
def test_a_scenario_asks_before_it_runs_code(
    kind: str, tmp_path: Path, mark: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs.yaml").write_text(HEAD + NAMES[kind])
    for line in (["run", "theirs.yaml"], ["theirs.yaml"], ["demo", "theirs.yaml"], ["serve", "theirs.yaml"]):
        status, out, err = called(capsys, *line)
        assert (status, out, err.count("\n")) == (2, "", 1), line
        assert "read that first, then add --trust" in err
        assert ("os" if kind == "module" else str(tmp_path / "evil.py")) in err
    assert not jobs
    assert not mark.exists()


def test_it_is_asked_once_for_each_content(
    tmp_path: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.yaml").write_text(HEAD + NAMES["reward"])
    assert called(capsys, "run", "theirs.yaml", "--trust")[0] == 0
    assert called(capsys, "run", "theirs.yaml")[0] == 0
    with (tmp_path / "evil.py").open("a") as file:
        file.write("# another\n")
    assert called(capsys, "run", "theirs.yaml")[0] == 2
    asked: list[str] = []
    answers = iter([False, True])
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text: bool(asked.append(text)) or next(answers))
    assert called(capsys, "theirs.yaml")[0] == 2
    assert called(capsys, "theirs.yaml")[0] == 0
    assert called(capsys, "theirs.yaml")[0] == 0
    assert asked == [f"This scenario runs the code of {tmp_path / 'evil.py'}. Trust it?"] * 2
    assert len(jobs) == 4


@pytest.mark.parametrize("changed", ["helper.py", "tools/deep.py", "second.py"])
def test_trust_includes_what_a_file_imports_beside_it(
    changed: str, tmp_path: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools").mkdir()
    files = {
        "evil.py": "import os, helper\ndef f(**k):\n    from tools.deep import x\n",
        "helper.py": "from second import y\n", "second.py": "import helper\n", "tools/deep.py": "x = 1\n",
        "unused.py": "",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "theirs.yaml").write_text(HEAD + NAMES["reward"])
    assert called(capsys, "run", "theirs.yaml", "--trust")[0] == 0
    (tmp_path / "unused.py").write_text("# other\n")
    assert called(capsys, "run", "theirs.yaml")[0] == 0
    (tmp_path / changed).write_text(files[changed] + "# other\n")
    status, _, err = called(capsys, "run", "theirs.yaml")
    assert status == 2
    assert "evil.py (imports helper.py, second.py, tools/deep.py); read that first" in err


@pytest.mark.parametrize("options", [
    ["--reward", "evil.py:f"], ["--reward", "./evil.py:f"], ["--surrogate", "evil.py:f"],
    ["--set", "surrogate=evil.py:f"], ["--algorithm", "own.yaml"], ["--set", "algorithm = own.yaml"],
    ["--reward", "a=b/evil.py:f"],
])  # fmt: skip
def test_what_the_user_names_is_trusted_by_that(
    options: list[str], tmp_path: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a=b").mkdir()
    (tmp_path / "a=b" / "evil.py").write_text((tmp_path / "evil.py").read_text())
    status, _, err = called(capsys, "run", "two-plus-two", *options)
    assert "--trust" not in err
    assert status == 0 or "evil.py" in err, "it was tried, and f is not fit for that"
    assert jobs or status == 2


def run_of(folder: Path, scenario: Scenario) -> Path:
    text = msgspec.yaml.encode(scenario).decode()
    RunWriter.create(folder / "a.rlplay", msgspec.structs.replace(synthetic_started(), scenario_text=text)).close()
    return folder / "a.rlplay"


def test_a_run_file_asks_too_and_its_own_user_may_mend_the_code(
    tmp_path: Path, mark: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs.yaml").write_text(HEAD + NAMES["reward"])
    run = run_of(tmp_path, load(tmp_path / "theirs.yaml"))
    for line in (["run", "--resume", str(run)], ["resume", str(run)]):
        status, _, err = called(capsys, *line)
        assert (status, err.count("\n")) == (2, 1)
        assert "evil.py; read that first, then add --trust" in err
    assert not jobs
    assert not mark.exists()
    assert called(capsys, "run", "two-plus-two", "--reward", "evil.py:f")[0] == 0
    with (tmp_path / "evil.py").open("a") as file:
        file.write("# mended\n")
    assert called(capsys, "run", "--resume", str(run))[0] == 0


SMALL = ["--set", "num_prompts=1", "--set", "num_generations=2", "--set", "max_completion_length=2", "--updates", "1"]


def test_the_command_that_goes_on_after_a_mistake_works_as_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reward = tmp_path / "score.py"
    reward.write_text("def f(completions, **columns):\n    return [1 / 0 for _ in completions]\n")
    status, _, error = called(capsys, "run", "two-plus-two", "--reward", "score.py:f", *SMALL)
    assert status == 2
    assert "score.py:2: ZeroDivisionError" in error
    reward.write_text("def f(completions, **columns):\n    return [1.0 for _ in completions]\n")
    monkeypatch.chdir("/")
    program, *words = shlex.split(error.partition("To continue: ")[2])
    assert program == "rlplay"
    status, _, error = called(capsys, *words, "--updates", "1")
    assert status == 0, error
    with RunReader(find_run("last")) as run:
        assert run.latest("reward") == 1


@pytest.mark.parametrize("content", ["", "[" * 100_000, "[]", '{"x": 3}', "\udcff"])
def test_a_damaged_memory_trusts_nothing(content: str, tmp_path: Path) -> None:
    file = tmp_path / "home" / "trusted.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(content, encoding="utf-8", errors="surrogateescape")
    place = str(tmp_path / "evil.py")
    assert untrusted([place]) == [place]
    trust([place])
    assert untrusted([place]) == []


def test_no_bundled_scenario_names_code() -> None:
    from rlplay.scenario.names import bundled

    assert [name for name in bundled() if code_of(load(name))] == []
