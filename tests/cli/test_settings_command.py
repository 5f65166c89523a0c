"""`rlplay settings`: all settings, or one explained."""

from __future__ import annotations

import msgspec
import pytest

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import check, choices, takes
from rlplay.algorithms.settings import Settings
from tests.cli.command_line import called


def test_every_setting_is_listed_with_its_default_its_meaning_and_what_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = called(capsys, "settings")
    assert status == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(msgspec.structs.asdict(Settings())) == set(KNOBS) <= set(lines)
    for name, knob in KNOBS.items():
        assert knob.meaning in lines[name]
        assert takes(name) in lines[name]
    assert "0.0004" in lines["learning_rate"]
    assert lines["lr_scheduler_type"].split()[1] == "constant"


@pytest.mark.parametrize("name", KNOBS)
def test_one_is_explained(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, _ = called(capsys, "settings", name.replace("_", "-"))
    assert status == 0
    said = "".join(out.split())
    for text in (name, takes(name), KNOBS[name].meaning, KNOBS[name].effect):
        assert "".join(text.split()) in said
    assert all(len(line) <= 110 for line in out.splitlines())


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_breaks_no_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _, out, _ = called(capsys, "settings")
    assert max(map(len, out.splitlines())) <= columns
    said = " ".join(out.split())
    for name, knob in KNOBS.items():
        assert f" {knob.meaning} Takes {takes(name)}. " in said


def test_what_a_setting_says_it_takes_it_takes() -> None:
    for name, knob in KNOBS.items():
        for value in [*choices(name), knob.low, knob.high]:
            assert value is None or check(name, value) == value


def test_an_unknown_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = called(capsys, "settings", "bta")
    assert (status, err) == (2, "rlplay: unknown setting 'bta'; did you mean 'beta'?\n")
