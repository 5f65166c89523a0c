"""Code that a scenario or a run file names runs only if the user has named it, or has said once that it may."""

from __future__ import annotations

import importlib
import py_compile
import shlex
import zipfile
from contextlib import closing
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from rlplay import neighbours
from rlplay.cli import play as cli_play
from rlplay.containment import OwnError
from rlplay.engine import headless
from rlplay.paths import find_run
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Scenario
from rlplay.scenario.trust import code_of
from rlplay.tasks.own_rewards import load_reward
from rlplay.trace.records import Changed
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trusted import agree, contents, follow, strange
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
    monkeypatch.setattr(start, "play", lambda job, *_, **__: found.append(job) or 0)
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
    assert asked == [f"This scenario would run the code of {tmp_path / 'evil.py'}. Trust it?"] * 2
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
    ["--set", "surrogate=evil.py:f"], ["--reward", "a=b/evil.py:f"],
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


@pytest.mark.parametrize("line", [
    ["run", "two-plus-two", "--algorithm", "own.yaml"], ["run", "two-plus-two", "--set", "algorithm = own.yaml"],
    ["algorithms", "own.yaml"],
])  # fmt: skip
def test_who_names_an_algorithm_has_not_named_its_code(
    line: list[str], mark: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = called(capsys, *line)
    assert (status, "evil.py; read that first, then add --trust" in err) == (2, True)
    assert not jobs
    assert not mark.exists()
    called(capsys, *line, "--trust")
    assert mark.exists()


def run_of(folder: Path, scenario: Scenario) -> Path:
    text = msgspec.yaml.encode(scenario).decode()
    RunWriter.create(folder / "a.rlplay", msgspec.structs.replace(synthetic_started(), scenario_text=text)).close()
    return folder / "a.rlplay"


def test_a_run_file_asks_too_and_again_for_what_has_changed(
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
    assert called(capsys, "run", "--resume", str(run), "--trust")[0] == 0
    assert called(capsys, "run", "--resume", str(run))[0] == 0
    with (tmp_path / "evil.py").open("a") as file:
        file.write("# mended\n")
    status, _, err = called(capsys, "run", "--resume", str(run))
    assert (status, "evil.py; read that first" in err) == (2, True)
    assert called(capsys, "run", "--resume", str(run), "--trust")[0] == 0
    assert called(capsys, "run", "--resume", str(run))[0] == 0


def test_a_run_file_asks_for_what_its_changes_name(
    tmp_path: Path, mark: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fine.yaml").write_text(HEAD + "task: arithmetic\n")
    run = run_of(tmp_path, load(tmp_path / "fine.yaml"))
    evil = f"{tmp_path / 'evil.py'}:f"
    for also in ({}, {"surrogate": evil}):
        with RunReader(run) as reader, closing(RunWriter(run)) as writer:
            name, value = ("epsilon", 0.1) if also else ("surrogate", evil)
            writer.append(Changed(update=2, phase="sample", name=name, value=value, previous="ppo", also=also))
            assert reader.timeline().changes
        for line in (["run", "--resume", str(run)], ["resume", str(run)]):
            status, _, err = called(capsys, *line)
            assert (status, "evil.py; read that first, then add --trust" in err) == (2, True)
    assert not jobs
    assert not mark.exists()


def test_a_stages_reward_is_asked_for(
    tmp_path: Path, mark: Path, jobs: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    stages = "task: arithmetic\nstages:\n- {name: a, updates: 1, reward: [evil.py:f]}\n"
    (tmp_path / "theirs.yaml").write_text(HEAD + stages)
    assert called(capsys, "run", "theirs.yaml")[0] == 2
    assert not jobs
    assert not mark.exists()


def test_compiled_files_beside_a_trusted_file_never_run(tmp_path: Path, mark: Path) -> None:
    (tmp_path / "package").mkdir()
    for name in ("helper_x.py", "package/__init__.py", "package/deep.py"):
        file = tmp_path / name
        file.write_text((tmp_path / "evil.py").read_text())
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(file), invalidation_mode=mode)  # which Python takes without a look at the source
        file.write_text("x = 1\n")
    (tmp_path / "score.py").write_text(
        "import helper_x\nfrom package import deep\n\ndef f(completions, **k):\n    return [helper_x.x + deep.x]\n"
    )
    agree(contents([str(tmp_path / "score.py")]))
    assert load_reward(f"{tmp_path / 'score.py'}:f")(completions=["a"]) == [2]
    assert not mark.exists()


@pytest.mark.parametrize(
    "secret", ["in_package.pyc", "on_path.pyc", "cached_on_path", "in_zip", f"native{EXTENSION_SUFFIXES[0]}"]
)
def test_what_has_no_source_never_runs(secret: str, tmp_path: Path, mark: Path) -> None:
    """Python's own finder would take these: from a package's folder, or once the code puts its folder on the path."""
    name, _, suffix = secret.partition(".")
    folder = tmp_path / f"of_{name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    evil = tmp_path / "evil.py"
    place = folder if name == "in_package" else tmp_path
    if name == "cached_on_path":
        (tmp_path / f"{name}.py").write_text(evil.read_text())
        py_compile.compile(
            str(tmp_path / f"{name}.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
        (tmp_path / f"{name}.py").write_text("")
    elif name == "in_zip":
        with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
            archive.write(evil, f"{name}.py")
    else:
        py_compile.compile(str(evil), cfile=str(place / f"{name}.{suffix}"))
    on_path = tmp_path / "lib.zip" if name == "in_zip" else tmp_path
    module = f"of_{name}.{name}" if name == "in_package" else name
    score = tmp_path / "score.py"
    score.write_text(
        f"import sys\n\ndef f(completions, **k):\n    sys.path.insert(0, {str(on_path)!r})\n    try:\n"
        f"        import {module}\n    finally:\n        sys.path.remove({str(on_path)!r})\n    return [1.0]\n"
    )
    agree(contents([str(score)]))
    reward = load_reward(f"{score}:f")
    if name == "cached_on_path":
        assert reward(completions=["a"]) == [1.0], "the source, in which there is nothing"
    else:
        with pytest.raises(OwnError, match=rf"{name} has no source in |No module named '{module}'"):
            reward(completions=["a"])
    assert not mark.exists()


def test_a_package_that_is_a_link_is_imported_from_source(tmp_path: Path, mark: Path) -> None:
    (tmp_path / "task").mkdir()
    package = tmp_path / "elsewhere" / "linked_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    deep = package / "deep.py"
    deep.write_text((tmp_path / "evil.py").read_text())
    py_compile.compile(str(deep), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    deep.write_text("x = 5.0\n")
    (tmp_path / "task" / "linked_package").symlink_to(package)
    score = tmp_path / "task" / "score.py"
    score.write_text("from linked_package.deep import x\n\ndef f(completions, **k):\n    return [x]\n")
    agree(contents([str(score)]))
    assert load_reward(f"{score}:f")(completions=["a"]) == [5.0]
    assert not mark.exists()


def test_a_folder_of_libraries_in_a_users_folder_is_pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = tmp_path / "venv"
    libraries.mkdir()
    py_compile.compile(str(tmp_path / "evil.py"), cfile=str(libraries / "compiled_library.pyc"))
    monkeypatch.syspath_prepend(libraries)
    monkeypatch.setattr(neighbours, "_libraries", {*neighbours._libraries, str(libraries)})
    score = tmp_path / "score.py"
    score.write_text("import compiled_library\n\ndef f(completions, **k):\n    return [compiled_library.f()]\n")
    agree(contents([str(score)]))
    assert load_reward(f"{score}:f")(completions=["a"]) == [None]


def test_what_a_trusted_file_imports_in_secret_is_asked_for(tmp_path: Path, mark: Path) -> None:
    source = "import importlib\n\ndef f(completions, **k):\n    importlib.import_module('evil')\n"
    (tmp_path / "score.py").write_text(source)
    agree(contents([str(tmp_path / "score.py")]))
    with pytest.raises(OwnError, match=r"score.py:4: .*evil.py is not trusted as it is now; read it"):
        load_reward(f"{tmp_path / 'score.py'}:f")(completions=["a"])
    assert not mark.exists()


def test_a_file_that_changes_meanwhile_waits_for_its_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score = tmp_path / "score.py"
    score.write_text("def f(completions, **k):\n    return [1.0]\n")
    agree(contents([str(score)]))
    reward = load_reward(f"{score}:f")
    score.write_text("def f(completions, **k):\n    return [22.0]\n")
    with pytest.raises(OwnError, match="is not trusted as it is now"):
        reward(completions=["a"])
    assert called(capsys, "trust", str(score))[:2] == (0, f"trusted as it is now: {score}\n")
    assert reward(completions=["a"]) == [22.0]
    follow([str(score)])
    score.write_text("def f(completions, **k):\n    return [333.0]\n")
    assert reward(completions=["a"]) == [333.0], "its user has named it, and may mend it while it runs"


def test_who_names_a_file_has_not_named_what_else_lies_in_its_folder(tmp_path: Path, mark: Path) -> None:
    """A library's optional import runs no file there that the named one does not import; nor does a stranger's code."""
    (tmp_path / "beside.py").write_text("x = 2.0\n")
    for name in ("optional_of_a_library.py", "theirs.py"):
        (tmp_path / name).write_text((tmp_path / "evil.py").read_text())
    score = tmp_path / "score.py"
    score.write_text("import beside\n\ndef f(completions, **k):\n    return [beside.x]\n")
    follow([str(score)])
    assert load_reward(f"{score}:f")(completions=["a"]) == [2.0]
    for name in ("optional_of_a_library", "theirs"):
        with pytest.raises(ImportError, match="is not trusted as it is now"):
            importlib.import_module(name)
    assert not mark.exists()


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
    assert strange([place]) == [place]
    agree(contents([place]))
    assert strange([place]) == []


def test_no_bundled_scenario_names_code() -> None:
    from rlplay.scenario.names import bundled

    assert [name for name in bundled() if code_of(load(name))] == []
