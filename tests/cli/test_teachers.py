"""Who taught a token, asked from the shell: what is refused, and what is printed of an engine's answers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from rlplay.printed import Teachers, TeachersCourse
from rlplay.trace.records import Rewound
from rlplay.trace.runfile import RunReader, RunWriter
from tests.cli.command_line import called
from tests.cli.made_up_engine import MadeUpEngine, made_up_engine
from tests.recorded import synthetic_run, synthetic_started, synthetic_update

PLACE = ("--update", "2", "--answer", "3", "--token", "2")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUpEngine:
    """A made-up engine that has the synthetic run."""
    return made_up_engine(monkeypatch, synthetic_run(tmp_path / "run\x1b[31m.rlplay", updates=2))


def test_shares_are_printed_by_answer(engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "teachers", str(engine.run), *PLACE)
    assert (status, err) == (0, "")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert "token 2 of answer 3" in lines[0]
    assert lines[2].startswith("Update 2: .368 → .607")
    names = ("same answer", "same prompt", "other prompts", "earlier updates")
    starts = [next(at for at, line in enumerate(lines) if line.startswith(name)) for name in names]
    assert starts == sorted(starts)
    assert lines[starts[0] + 1].split()[0] == "3"
    assert {lines[at].split()[0] for at in range(starts[1] + 1, starts[2])} == {"2", "4"}, "the first has no share"
    assert lines[-1].split() == ["update", "1", "+.250"]
    assert all(len(line) <= 110 for line in lines)


def test_the_object_has_a_share_for_each_token(engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(capsys, "teachers", str(engine.run), *PLACE, "--json", "--without", "4", "--without", "2")
    found = msgspec.json.decode(out, type=Teachers)
    assert status == 0
    assert (found.target.answer, found.target.token, found.target.candidate) == (2, 1, None)
    assert (found.update, found.by, found.before, found.after) == (2, 2, -1.0, -0.5)
    assert found.predicted == pytest.approx(found.batch + 0.25 - 0.125)
    assert sum(each.sum for each in found.answers) == pytest.approx(found.batch, abs=1e-6)
    assert found.answers[0].answer == 2
    for each in found.answers:
        assert len(each.shares) == len(each.tokens)
        assert sum(each.shares) == pytest.approx(each.sum, abs=1e-6)
        assert abs(each.shares[each.token]) == max(map(abs, each.shares))
    assert found.without is not None
    assert (found.without.answers, found.without.after, found.without.moved) == ([1, 3], -0.75, 0.25)
    with RunReader(engine.run) as reader:
        sampled = reader.load(2).sampled
    assert sampled is not None
    spans = [range(*sampled.offsets[row : row + 2].tolist()) for row in (1, 3)]
    assert engine.asked[-1].tokens == [*spans[0], *spans[1]]


def test_a_candidate_an_earlier_update_and_a_whole_answer(
    engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunReader(engine.run) as reader:
        sampled = reader.load(2).sampled
    assert sampled is not None
    second = int(sampled.top_ids[sampled.offsets[2] + 1, 1])
    called(capsys, "teachers", str(engine.run), *PLACE, "--candidate", f"#{second}", "--by", "1", "--json")
    assert (engine.asked[-1].by, engine.asked[-1].target.answer_ids[-1]) == (1, second)
    called(capsys, "teachers", str(engine.run), *PLACE, "--candidate", sampled.pieces[second])
    assert engine.asked[-1].target.answer_ids[-1] == second
    assert "same answer" not in called(capsys, "teachers", str(engine.run), *PLACE, "--candidate", f"#{second}")[1]
    status, out, _ = called(capsys, "teachers", str(engine.run), *PLACE[:4])
    assert (status, engine.asked[-1].target.places) == (0, list(range(int(np.diff(sampled.offsets)[2]))))
    assert "answer 3, all its tokens" in out


def test_a_held_out_answer(engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]) -> None:
    given = "teachers", str(engine.run), "--update", "2", "--held-out", "2"
    _, out, _ = called(capsys, *given, "--json")
    found = msgspec.json.decode(out, type=Teachers)
    assert (found.target.held_out, found.target.answer, found.target.token) == (2, 1, None)
    assert found.target.text == "3 + 4 = 8<|end|>"
    assert engine.asked[-1].target.answer_ids == [ord(character) for character in found.target.text]
    assert {each.nearness for each in found.answers} == {"other prompts"}
    _, out, _ = called(capsys, *given)
    assert "held-out answer 2 after update 2, all its tokens" in out


def test_a_course_has_a_row_for_each_update(engine: MadeUpEngine, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "teachers", str(engine.run), *PLACE, "--course", "--json")
    course = msgspec.json.decode(out, type=TeachersCourse)
    assert [(each.since, each.update, each.predicted) for each in course.moves] == [(0, 1, 0.375), (1, 3, 0.4375)]
    _, out, _ = called(capsys, "teachers", str(engine.run), *PLACE, "--course")
    assert out.splitlines()[-1].split()[:5] == ["updates", "2–3", ".368", ".607", "+.500"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--update", "3", "--answer", "1"], "has no update 3; it has updates 1 to 2"),
        (["--update", "2", "--answer", "17"], "has answers 1 to 16; there is no answer 17"),
        (["--update", "2", "--answer", "1", "--token", "99"], "tokens; there is no token 99"),
        (["--update", "2", "--answer", "1", "--without", "17"], "there is no answer 17"),
        (["--update", "2", "--answer", "0"], "a whole number, 1 or more"),
        (["--update", "2"], "which answer?"),
        (["--update", "2", "--held-out", "3"], "held-out answers 1 to 2, no 3"),
        (["--update", "1", "--held-out", "1"], "there are no held-out answers up to update 1"),
        ([*PLACE, "--held-out", "1"], "omit --answer, --token and --candidate"),
        ([*PLACE, "--candidate", "never"], "no candidate there is 'never'"),
        ([*PLACE[:4], "--candidate", "3"], "say which token"),
        ([*PLACE, "--course", "--by", "1"], "omit --by and --without"),
        ([*PLACE, "--by", "1", "--without", "1"], "omit --by"),
    ],
)
def test_what_does_not_fit_is_one_line(
    engine: MadeUpEngine, capsys: pytest.CaptureFixture[str], args: list[str], words: str
) -> None:
    status, out, err = called(capsys, "teachers", str(engine.run), *args)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
    assert not engine.asked


@pytest.mark.parametrize("more", [[], ["--course"]])
def test_what_the_engine_refuses_is_one_line(
    engine: MadeUpEngine, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    engine.refused = "TRPO searches for its step"
    assert called(capsys, "teachers", str(engine.run), *PLACE, *more) == (2, "", f"rlplay: {engine.refused}\n")


def test_an_update_without_tokens_names_one_that_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "thin.rlplay"
    writer = RunWriter.create(path, synthetic_started())
    for record in (synthetic_update(1)[-1], *synthetic_update(2)):
        writer.append(record)
    writer.close()
    status, _, err = called(capsys, "teachers", str(path), "--update", "1", "--answer", "1")
    assert status == 2
    assert "of the later updates, 2 is the first" in err


def test_another_trainers_run_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trl.rlplay"
    writer = RunWriter.create(path, synthetic_started(source="TRL 1.16.0 GRPOTrainer"))
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    status, _, err = called(capsys, "teachers", str(path), "--update", "1", "--answer", "1")
    assert status == 2
    assert "cannot be asked: a recording of TRL has no weights and no optimizer" in err


def test_a_run_that_went_back_meanwhile_gives_no_answer(
    engine: MadeUpEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = engine.answers

    def while_it_goes_back(question: object, interrupted: object) -> object:
        writer = RunWriter.reopen(engine.run)
        writer.append(Rewound(update=1, abandoned=2))
        for record in synthetic_update(2, seed=0):
            writer.append(record)
        writer.close()
        return ask(question, lambda: False)

    monkeypatch.setattr(engine, "answers", while_it_goes_back)
    status, out, err = called(capsys, "teachers", str(engine.run), *PLACE)
    assert (status, out) == (2, "")
    assert "went back to before update 2 meanwhile" in err
