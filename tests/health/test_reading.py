"""The health of recorded runs: which updates count, and what the command says."""

from __future__ import annotations

import json

import msgspec

from rlplay.health.health_of_run import examine_run
from rlplay.trace.records import Rewound
from rlplay.trace.runfile import RunWriter
from tests.cli.command_line import called
from tests.health.test_checks import metrics, moved, records
from tests.recorded import SETTINGS, synthetic_run, synthetic_started, synthetic_update


def sick_run(path):
    writer = RunWriter.create(path, synthetic_started())
    for number in (1, 2, 3):
        for record in records(number, finished=moved(1e-3)):
            writer.append(record)
    writer.close()
    return path


def test_the_command_says_what_is_wrong_and_exits_with_1(capsys, tmp_path):
    status, out, _ = called(capsys, "health", str(sick_run(tmp_path / "sick.rlplay")))
    assert status == 1
    assert "sick, update 3: 1 problem found." in out
    assert "1. The steps are too large" in out
    assert "Look at" in out
    status, out, _ = called(capsys, "health", "--json", str(tmp_path / "sick.rlplay"))
    assert status == 1
    found = json.loads(out)["findings"]
    assert found[0]["name"] == "step too large"
    assert set(found[0]["place"]) == {"update", "answer", "token"}


def test_a_run_is_read_from_its_first_and_newest_updates(tmp_path):
    run, found = examine_run(synthetic_run(tmp_path / "run.rlplay", updates=40))
    assert run is not None
    assert [each.update for each in run.digests] == [*range(1, 6), *range(11, 41)]
    assert isinstance(found, list)


def test_a_rewound_run_has_updates_that_do_not_count(capsys, tmp_path):
    path = synthetic_run(tmp_path / "back.rlplay", updates=3)
    writer = RunWriter.reopen(path)
    writer.append(Rewound(update=0, abandoned=3, asked=True))
    writer.close()
    status, out, _ = called(capsys, "health", str(path))
    assert status == 4
    assert out == (
        "back is back at the start: updates 1 to 3 are undone. The file keeps them; rlplay replay draws them grey.\n"
    )


def test_a_run_without_answers_is_examined_by_its_numbers(capsys, tmp_path):
    path = tmp_path / "part.rlplay"
    writer = RunWriter.create(path, synthetic_started())
    for number in (1, 2, 3):
        writer.append(synthetic_update(number)[-1])
    writer.append(Rewound(update=1, abandoned=3, asked=True))
    writer.close()
    status, out, _ = called(capsys, "health", str(path))
    assert status == 0
    assert out.startswith("part, update 1: No problem found. ")


def test_a_run_without_a_finished_update_is_not_back_at_its_start(capsys, tmp_path):
    path = tmp_path / "begun.rlplay"
    RunWriter.create(path, synthetic_started()).close()
    assert called(capsys, "health", str(path))[:2] == (4, "begun has no finished update yet.\n")


def test_numbers_of_which_none_says_anything_are_not_called_healthy(capsys, tmp_path):
    writer = RunWriter.create(tmp_path / "bare.rlplay", synthetic_started(settings={}, source="Test 1.0"))
    writer.append(msgspec.structs.replace(synthetic_update(1)[-1], metrics={"loss": 0.1}))
    writer.append(msgspec.structs.replace(synthetic_update(2)[-1], metrics={"reward": 0.1}))
    writer.close()
    status, out, _ = called(capsys, "health", str(tmp_path / "bare.rlplay"))
    assert (status, out.splitlines()[0]) == (4, "bare, update 2: Nothing can be judged.")
    assert "Next time, record the answers: RlplayCallback in TRL" in " ".join(out.split())


def test_what_is_normal_is_said_for_people_and_programs(capsys, tmp_path):
    chosen = msgspec.to_builtins(SETTINGS) | {"num_minibatches": 1, "beta": 0.0}
    writer = RunWriter.create(tmp_path / "one.rlplay", synthetic_started(settings=chosen))
    for number in range(1, 7):
        for record in records(number, finished=metrics(loss=1e-8, clip_ratio__region_mean=0.0)):
            writer.append(record)
    writer.close()
    _, out, _ = called(capsys, "health", str(tmp_path / "one.rlplay"))
    below = out.splitlines()[out.splitlines().index("Normal") + 1 :]
    assert [line.split("  ")[0] for line in below if line.startswith("·")] == ["· A loss near 0", "· A clip ratio of 0"]
    _, out, _ = called(capsys, "health", "--json", str(tmp_path / "one.rlplay"))
    said = json.loads(out)
    assert [(each["title"], each["sure"]) for each in said["normal"]] == [
        ("A loss near 0", True), ("A clip ratio of 0", True),
    ]  # fmt: skip
    assert {each["title"] for each in said["unknown"]} >= {"Critic", "Clipped tokens"}
