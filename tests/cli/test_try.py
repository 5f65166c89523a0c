"""What a finding advises, tried from the shell: what is printed of an engine's answers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rlplay.cli import repair
from rlplay.health.remedies import trial
from rlplay.printed import Tried
from rlplay.scenario.schema import Job, Scenario
from rlplay.trace.records import AnyRecord
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.runfile import RunWriter
from tests.cli.command_line import called
from tests.cli.made_up_engine import MadeUpEngine, made_up_engine
from tests.health.remedies.made_up_answers import records
from tests.recorded import synthetic_run, synthetic_started


def written(path: Path, updates: list[list[AnyRecord]]) -> Path:
    writer = RunWriter.create(path, synthetic_started())
    for record in [each for some in updates for each in some]:
        writer.append(record)
    writer.close()
    return path


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUpEngine:
    """A made-up engine that has a run most of whose answers are cut."""
    run = written(tmp_path / "cut\x1b[31m.rlplay", [records(number, 0.9) for number in (1, 2, 3, 4)])
    return made_up_engine(monkeypatch, run)


def test_each_change_is_held_against_the_run_as_it_is(engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "try", str(engine.run), "--updates", "2")
    assert status == 0
    assert "\x1b" not in out
    (asked,) = engine.asked
    assert asked == Rehearse(4, 2, [{}, {"max_completion_length": 24}, {"max_completion_length": 48}])
    assert "gone" in out
    assert "Helped: twice the limit of tokens (max_completion_length=24). Did not help: four" in out.replace("\n", " ")
    assert max(map(len, out.splitlines())) <= 80


def test_own_settings_are_tried_in_place_of_the_usual_ones(
    engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("try", str(engine.run), "--set", "learning_rate=0.1", "--set", "max_completion_length=99", "--json")
    status, out, _ = called(capsys, *words)
    assert status == 0
    tried = msgspec.json.decode(out, type=Tried)
    assert engine.asked[0].changes == [{}, {"learning_rate": 0.1}, {"max_completion_length": 99}]
    assert [each.verdict for each in tried.changes] == ["unchanged", "gone", "same"]
    assert [each.helped for each in tried.changes] == [False, True, False]
    assert tried.changes[1].numbers == dict.fromkeys(range(5, 10), 0.0)


@pytest.mark.parametrize("damages", [False, True])
def test_from_a_checkpoint_the_settings_there_are_changed(
    engine: MadeUpEngine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damages: bool
) -> None:
    there = Scenario("", "", "", settings={"max_completion_length": 20}, made_before=3)
    monkeypatch.setattr(repair, "rebuilt_run", lambda *_: Job(there, ""))
    monkeypatch.setattr(trial, "_DAMAGES", {"truncated"} if damages else set())
    _, out, _ = called(capsys, "try", str(engine.run), "--checkpoint", "checkpoint-3")
    assert engine.asked == [Rehearse(3, 5, [{}, {"max_completion_length": 40}, {"max_completion_length": 80}])]
    assert ("the problem began earlier" in out) == damages


def test_the_exit_status_says_that_nothing_helped(engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.helps = False
    status, out, _ = called(capsys, "try", str(engine.run))
    assert status == 1
    assert "Nothing that was tried helped in " in out


def test_a_run_without_a_finding_has_nothing_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = made_up_engine(monkeypatch, synthetic_run(tmp_path / "well.rlplay", updates=2))
    status, out, _ = called(capsys, "try", str(engine.run))
    assert (status, engine.asked) == (4, [])
    assert "nothing to mend" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--finding", "gamed"), "this run has no finding 'gamed'; it has: truncated"),
        (("--set", "beta"), "--set takes name=value"),
        (("--set", "learning_rate=-1"), "learning_rate is a number from 0 to 1"),
        (("--updates", "0"), "--updates"),
    ],
)
def test_bad_input_is_said_in_a_line(
    engine: MadeUpEngine, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    status, _, err = called(capsys, "try", str(engine.run), *words)
    assert (status, engine.asked) == (2, [])
    assert said in err
    assert err.count("\n") == 1
