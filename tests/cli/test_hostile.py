"""Strings that would command the terminal, in everything that the command line reads, and what it then prints."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from rlplay.cli import doctor
from rlplay.cli import main as cli
from rlplay.cli.types import RUN
from rlplay.engine import headless
from rlplay.engine.run_report import JsonLines, TextReport
from rlplay.paths import runs_folder
from rlplay.scenario.schema import Job, Scenario
from rlplay.scenario.script import parse
from rlplay.scenario.share import Shared
from tests.cli.test_headless import FakeEngine
from tests.hostile import HOSTILE, tame
from tests.poisoned import Poison, hints, lesson, made, records, run_of

ORDERS = ("title", "clipboard", "colour, C1", "cursor", "C0", "turned", "invisible", "tags", "storm", "line breaks")
REFUSED = 2


@pytest.fixture(autouse=True)
def _own_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs a command line; its output is tame, and a mistake is one line. Returns status and output."""

    def call(*args: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(list(args))
        out, err = capsys.readouterr()
        status = int(left.value.code or 0)
        tame(out)
        tame(err)
        assert status in (0, REFUSED), err
        assert status == 0 or err.count("\n") == 1, err
        assert all(line.startswith("rlplay: ") for line in err.splitlines()), err
        return status, out

    return call


WHOLE = {"name": "mine", "title": "T", "question": "Q?", "summary": "S", "task": "word_problems", "seed": 1,
         "settings": {"reward_weights": {"correct": 1}}, "script": [{"say": "x"}]}  # fmt: skip
TEXTS = [field for field, hint in hints(Scenario).items() if "str" in str(hint)]


def written(path: Path, content: Any) -> str:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("field", [*TEXTS, "stage"])
def test_a_scenario_with_a_hostile_field_is_shown_or_refused(field: str, tmp_path: Path, called: Any) -> None:
    for string in HOSTILE.values():
        change: dict[str, Any] = {
            "reward": {"reward": [string]},
            "prompts": {"prompts": [string]},
            "script": {"script": [{"say": string}, {"expect": {"text": string, "metric": "reward", "above": 0}}]},
            "settings": {"settings": {string: string, "reward_weights": {string: 1}}},
            "stages": {"stages": [{"name": string, "updates": 1}]},
            "stage": {"stages": [{"name": "x", "updates": 1, "settings": {string: 1}}]},
        }.get(field, {field: string})
        called("show", written(tmp_path / "mine.yaml", WHOLE | change))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_wrong_command_line_is_reported_in_one_line(name: str, called: Any) -> None:
    word = HOSTILE[name].replace("\0", "")  # which no command line holds
    for line in (
        [word], ["show", word], [f"{word}.yaml"], ["show", f"./{word}"], ["algorithms", word], ["replay", word],
        ["compare", word, word], ["export", word, "--format", "jsonl", "--out", "x"], ["resume", word],
        ["export", "last", "--format", word, "--out", "x"], [f"--{word}"], ["run", "two-plus-two", f"--{word}"],
        *(["run", "two-plus-two", option, value] for option in OPTIONS for value in (word, f"{word}=1", f"x={word}")),
        ["run", f"rlp1-{word}"], ["run", "--resume", word], ["serve", word], ["new", "x", "--from", word],
    ):  # fmt: skip
        if line[-1] != word or not word.isspace():
            status, _ = called(*line)
            assert status == REFUSED, line


OPTIONS = ("--set", "--algorithm", "--seed", "--updates", "--device", "--reward")


def test_runs_with_hostile_texts_and_names_are_listed_exported_and_narrated(tmp_path: Path, called: Any) -> None:
    runs_folder().mkdir(parents=True)
    poison = Poison(*ORDERS)
    odd = run_of(poison, runs_folder() / "a\x1b]0;owned\x07\u202e.rlplay")
    plain = run_of(poison, runs_folder() / "b.rlplay")
    broken = runs_folder() / "c\x1b[31m.rlplay"
    broken.write_bytes(b"no run")
    _, listed = called("runs")
    assert "owned" in listed, "the name of the file"
    assert len(re.findall(r"q\d+z", listed)) >= 4, "texts of both runs"
    for kind in ("html", "npz", "jsonl", "parquet", "tensorboard", "trl"):
        called("export", str(odd), "--format", kind, "--out", str(tmp_path / f"out\x1b]0;owned\x07.{kind}"))
    for line in (
        ["replay", str(odd)], ["compare", str(odd), str(plain)], ["resume", str(odd)], ["new", "x", "--from", "b"],
        ["replay", str(broken)], ["run", "--resume", str(broken)],
    ):  # fmt: skip
        called(*line)
    assert [item.value for item in RUN.shell_complete(None, None, "")] == ["last", "b"]  # type: ignore[arg-type]


def test_a_share_code_for_a_hostile_scenario_is_refused(called: Any) -> None:
    for name, string in HOSTILE.items():
        if name != "surrogate":
            for shared in (
                Shared(string, 0),
                Shared("two-plus-two", 0, None, string),
                Shared("dpo", 0, None, None, {string: 1}),
            ):
                assert called("run", shared.code)[0] == REFUSED
                assert called("show", shared.code)[0] == REFUSED


def test_doctor_tells_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, called: Any) -> None:
    word = HOSTILE["title"] + HOSTILE["turned"]
    for name in ("TERM", "TEXTUAL_THEME", "HF_HOME"):
        monkeypatch.setenv(name, word)
    monkeypatch.setenv("RLPLAY_HOME", f"/nowhere/{word}")
    monkeypatch.setattr(doctor, "_devices", lambda: iter(()))  # importing torch takes seconds
    assert "owned" in called("doctor")[1]


class Loud(FakeEngine):
    """An engine all of whose words are hostile."""

    poison = Poison(*ORDERS)

    def load(self, progress: Callable[[str, float], None]) -> None:
        progress(self.poison.word("loading"), 0.5)
        for record in records(self.poison):
            self.sink(record)


class Terminal(io.StringIO):
    """Standard output on a terminal."""

    encoding: Any = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [TextReport, JsonLines])
def test_a_run_without_a_screen_obeys_none_of_its_words(kind: type[TextReport] | type[JsonLines]) -> None:
    poison = Loud.poison
    out, err = Terminal(), Terminal()
    job = Job(msgspec.structs.replace(made(Scenario), script=[]), poison.word("path"))
    headless.run(job, parse([*lesson(poison), {"update": 2}]), None, kind(out, err), Loud)
    tame(err.getvalue())
    assert poison.fields["Notice.text"] in err.getvalue()
    if kind is TextReport:
        printed = out.getvalue()
        tame(printed.replace("\r\x1b[K", "\n"))
        assert poison.fields["script: question"] in printed
    else:
        tame(out.getvalue())
        objects = [json.loads(line) for line in out.getvalue().splitlines()]
        assert objects[-1]["run"] == poison.word("path")
        assert any(poison.word("Finished.metrics: name") in each.get("metrics", ()) for each in objects)


def test_what_a_reward_function_prints_is_no_part_of_the_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(job: Job, _steps: Any, _updates: Any, report: JsonLines, _engine: Any) -> int:
        print(HOSTILE["title"])
        report.result(True, [], job.run, [])
        return 0

    monkeypatch.setattr(headless, "run", play)
    with pytest.raises(SystemExit):
        cli.main(["run", "two-plus-two", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["passed"] is True
    assert err == "␛]0;owned␇\n"
