"""A recording gives the same records however many processes wrote it and however it was read."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlplay.algorithms.setting_values import decoded
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.recording import BEHIND, Recording
from rlplay.record import Recorder
from rlplay.record.format import MAGIC, SUFFIX, Ended, Rollouts, pack, part, read
from rlplay.trace.lenses import LENSES
from rlplay.trace.records import AnyRecord, Changed, Credited, Evaluated, Finished, Notice, Sampled, Stepped
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update
from tests.foreign.same import encoded, parts_of, read_at_once
from tests.record.batches import answers, begun, record, write

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(st.data())
def test_how_many_processes_share_a_batch_does_not_show(data: st.DataObject) -> None:
    groups, size, steps = (data.draw(st.integers(1, 3)) for _ in range(3))
    total = groups * size
    seed = data.draw(st.integers(0, 2**16))
    updates = [answers(seed + number, groups, size, steps) for number in range(2)]
    cuts = sorted(data.draw(st.lists(st.integers(1, total - 1), unique=True, max_size=3))) if total > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder, "one"), updates, [])
        record(Path(folder, "several"), updates, cuts)
        assert encoded(read_at_once(Path(folder, "several"))) == encoded(read_at_once(Path(folder, "one")))


@settings(FEW, max_examples=15)
@given(st.integers(0, 2**16))
def test_a_recording_that_grows_in_any_way_gives_the_same_records(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        source, copy = Path(folder, "source"), Path(folder, "copy")
        record(source, [answers(seed, 2, 2, 1)], [2])
        copy.mkdir()
        wanted, left = read_at_once(source), parts_of(source)
        reader, found = Recording(copy), list[AnyRecord]()
        while any(left.values()):
            name = rng.choice([name for name, rest in left.items() if rest])
            size = rng.randint(1, 900)
            with (copy / name).open("ab") as file:
                file.write(left[name][:size])
            left[name] = left[name][size:]
            if _has_begun(reader):
                found += reader.fresh()
        assert encoded(found) == encoded(wanted)


def test_a_recording_that_grows_byte_by_byte_gives_the_same_records(tmp_path: Path) -> None:
    record(tmp_path / "source", [answers(3, 1, 2, 2)], [1])
    wanted, parts = read_at_once(tmp_path / "source"), parts_of(tmp_path / "source")
    copy = tmp_path / "copy"
    copy.mkdir()
    reader, found = Recording(copy), list[AnyRecord]()
    for place in range(max(map(len, parts.values()))):
        for name, data in parts.items():
            with (copy / name).open("ab") as file:
                file.write(data[place : place + 1])
        if _has_begun(reader):
            found += reader.fresh()
    assert encoded(found) == encoded(wanted)


def _has_begun(reader: Recording) -> bool:
    try:
        reader.started()
    except ForeignRunError:
        return False
    return True


def test_reading_goes_on_after_the_last_whole_update(tmp_path: Path) -> None:
    with begun(tmp_path) as recorder:
        write(recorder, 1, answers(1, 2, 2, 2), range(4))
        recorder.changed(2, "epsilon", 0.01, 0.2)
        write(recorder, 2, answers(2, 2, 2, 2), range(4))
        first = Recording(tmp_path)
        first.fresh()
        place = first.place()
        write(recorder, 3, answers(3, 2, 2, 2), range(4))
        recorder.heldout(3, {"eval_reward": 0.5}, ["p"], ["c"], [1.0])
    second = Recording(tmp_path)
    second.resume(place)
    found = second.fresh()
    assert encoded(found) == encoded(first.fresh())
    assert [type(record) for record in found][-2:] == [Finished, Evaluated]
    whole = [record for record in read_at_once(tmp_path) if record.update == 3]
    assert encoded(found) == encoded(whole), "the changed epsilon holds"
    clipped = next(record for record in found if isinstance(record, Stepped)).clip_state
    assert clipped is not None
    assert np.count_nonzero(clipped)


def test_an_update_brings_its_trainers_steps_if_they_are_on_record(tmp_path: Path) -> None:
    with begun(tmp_path) as recorder:
        recorder.end(1, {"loss": 1.0}, trainer_steps=(1, 2))
        recorder.end(2, {"loss": 1.0})
        with pytest.raises(ValueError, match="trainer_steps are 4 to 3"):
            recorder.end(3, {"loss": 1.0}, trainer_steps=(4, 3))
    found = [record.trainer_steps for record in read_at_once(tmp_path) if isinstance(record, Finished)]
    assert found == [(1, 2), None]
    with part(tmp_path, 0).open("ab") as file:
        file.write(pack(Ended(update=3, metrics={}, seconds=0.0, trainer_steps=(4, 3))))
    with pytest.raises(ForeignRunError, match="trainer_steps are 4 to 3"):
        read_at_once(tmp_path)


def test_an_update_that_was_read_in_part_is_read_again(tmp_path: Path) -> None:
    record(tmp_path / "run", [answers(1, 2, 2, 2), answers(2, 2, 2, 2)], [])
    wanted, data = read_at_once(tmp_path / "run"), parts_of(tmp_path / "run")["part-00000.rlpart"]
    part(tmp_path / "run", 0).write_bytes(data[: len(data) - 300])
    first = Recording(tmp_path / "run")
    assert first.fresh()[-1].update == 2
    part(tmp_path / "run", 0).write_bytes(data)
    second = Recording(tmp_path / "run")
    second.resume(first.place())
    assert encoded(second.fresh()) == encoded([record for record in wanted if record.update == 2])


def test_a_changed_setting_holds_from_its_update_on(tmp_path: Path) -> None:
    every = answers(1, 2, 2, 1)
    with begun(tmp_path) as recorder:
        write(recorder, 1, every, range(4))
        recorder.changed(2, "epsilon", 0.01, 0.2)
        write(recorder, 2, every, range(4))
    before, after = [r for r in read_at_once(tmp_path) if isinstance(r, Stepped)]
    np.testing.assert_array_equal(before.importance_ratio, after.importance_ratio)
    assert before.clip_state is not None
    assert after.clip_state is not None
    assert np.count_nonzero(before.clip_state) < np.count_nonzero(after.clip_state)
    assert [r.value for r in read_at_once(tmp_path) if isinstance(r, Changed)] == [0.01]


@pytest.mark.parametrize(("name", "value"), [("beta", None), ("max_completion_length", "64"), ("epsilon", [0.1] * 99)])
def test_a_change_to_a_value_of_another_type_is_left_out_and_said(tmp_path: Path, name: str, value: Any) -> None:
    with begun(tmp_path) as recorder:
        recorder.changed(1, name, value, 0.2)
        recorder.changed(1, "gamma", 0.5, 1.0)
    reader = Recording(tmp_path)
    timeline = SettingsTimeline(reader.started().settings)
    found = reader.fresh()
    for each in found:
        timeline.add(each)
    notice, changed = found
    assert isinstance(notice, Notice)
    assert isinstance(changed, Changed)
    assert changed.name == "gamma"
    assert f"set {name} to " in notice.text
    assert len(notice.text) < 150
    assert decoded(timeline.at(1)).gamma == 0.5
    assert name not in reader.place()["changed"]


def test_a_process_that_is_gone_stops_the_others_for_a_while_only(tmp_path: Path) -> None:
    every = answers(1, 2, 2, 1)
    with begun(tmp_path, 0, 2) as first, begun(tmp_path, 1, 2) as second:
        write(second, 1, every, range(2, 4))
        reader = Recording(tmp_path)
        reached = []
        for number in range(1, BEHIND + 4):
            write(first, number, every, range(2))
            found = reader.fresh()
            reached.append(max((r.update for r in found if isinstance(r, Finished)), default=None))
    assert reached == [1, *[None] * BEHIND, 2, 3]
    sizes = {r.update: len(r.group) for r in read_at_once(tmp_path) if isinstance(r, Sampled)}
    assert sizes == {1: 4, 2: 2, 3: 2}


def test_a_process_that_keeps_no_answer_of_a_step_takes_part(tmp_path: Path) -> None:
    every = answers(4, 2, 2, 1)
    with begun(tmp_path) as recorder:
        write(recorder, 1, every, range(4))
    wanted = next(r for r in read_at_once(tmp_path) if isinstance(r, Stepped))
    with begun(tmp_path / "few", completions=1) as recorder:
        write(recorder, 1, every, range(4))
        recorder.rollouts(2, prompts=["p", "q"], group=[0, 1], lengths=[1, 1], texts=["a", "b"], rewards={})
        recorder.step(2, 0, 1, rows=[1], logprobs=[-1.0])
    few = [r for r in read_at_once(tmp_path / "few") if isinstance(r, Stepped)]
    assert few[0].tokens == wanted.tokens, "all tokens in the loss, not only those on record"
    assert len(few[1].rows) == 0


def test_what_the_trainer_does_not_know_is_absent(tmp_path: Path) -> None:
    with begun(tmp_path) as recorder:
        recorder.rollouts(1, prompts=["p"], group=[0, 0], lengths=[2, 1], texts=["a", "b", "a"], rewards={})
        recorder.step(1, 0, 1, rows=[0, 1], logprobs=[-1.0, -2.0, -3.0])
        recorder.end(1, {"loss": 0.5})
    sampled, stepped, finished = read_at_once(tmp_path)
    assert isinstance(sampled, Sampled)
    assert isinstance(stepped, Stepped)
    assert np.isnan(sampled.old_logprobs).all()
    assert np.isnan(sampled.entropy).all()
    assert sampled.top_ids.shape == (3, 0)
    assert (sampled.token_ids < 0).all()
    assert sampled.token_ids[0] == sampled.token_ids[2] != sampled.token_ids[1]
    assert np.isnan(stepped.importance_ratio).all()
    assert stepped.clip_state is None
    assert np.isnan(stepped.dloss_dlogp).all()
    assert stepped.tokens is None
    assert isinstance(finished, Finished)
    assert finished.metrics == {"loss": 0.5}


def test_only_a_run_that_names_its_algorithm_has_clipped_tokens(tmp_path: Path) -> None:
    for name, known in (("named", {"algorithm": "grpo"}), ("unnamed", {"surrogate": "ppo"})):
        with Recorder(tmp_path / name) as recorder:
            recorder.begin("my trainer", known)
            recorder.rollouts(
                1, prompts=["p"], group=[0], lengths=[2], texts=["a", "b"], rewards={"r": [1.0]}, advantages=[1.0],
                old_logprobs=[-1.0, -1.0],
            )  # fmt: skip
            recorder.step(1, 0, 1, rows=[0], logprobs=[-0.5, -1.0])
            recorder.end(1, {})
    named, unnamed = (
        next(record for record in read_at_once(tmp_path / name) if isinstance(record, Stepped))
        for name in ("named", "unnamed")
    )
    assert named.clip_state is not None
    assert named.clip_state.tolist() == [1, 0]
    assert unnamed.clip_state is None
    assert unnamed.importance_ratio.tolist() == named.importance_ratio.tolist()


def test_a_folder_without_a_part_says_so(tmp_path: Path) -> None:
    with pytest.raises(ForeignRunError, match="holds no recording yet"):
        Recording(tmp_path).started()
    shutil.copy(__file__, tmp_path / f"part-00000{SUFFIX}")
    with pytest.raises(ForeignRunError, match="is not part of a recording; copy it again"):
        Recording(tmp_path).started()


def test_a_copy_whose_first_part_is_ahead_waits_for_the_others(tmp_path: Path) -> None:
    every = answers(1, 2, 2, 1)
    with begun(tmp_path / "run", 0, 2) as first, begun(tmp_path / "run", 1, 2) as second:
        for number in range(1, 5):
            write(first, number, every, range(2))
            if number < 3:
                write(second, number, every, range(2, 4))
        reader = Recording(tmp_path / "run")
        copied = [record for record in reader.fresh() if isinstance(record, Finished)]
        for number in range(3, 5):
            write(second, number, every, range(2, 4))
        later = reader.fresh()
    assert [record.update for record in copied] == [1, 2]
    assert {r.update: len(r.group) for r in later if isinstance(r, Sampled)} == {3: 4, 4: 4}


def test_a_process_without_answers_holds_up_none_of_the_others_updates(tmp_path: Path) -> None:
    """What it writes later shows that it has none."""
    for rank in (0, 1):
        recorder = begun(tmp_path / "rec", rank=rank, ranks=2)
        for update in range(1, 7):
            if rank == 0 or update < 3:
                write(recorder, update, answers(update, 2, 4, 2), range(4 * rank, 4 * rank + 4))
            else:
                recorder.end(update, {"loss": 1.0})
    records = Recording(tmp_path / "rec").fresh()
    assert [record.update for record in records if isinstance(record, Finished)] == [1, 2, 3, 4, 5, 6]
    assert [len(record.group) for record in records if isinstance(record, Sampled)] == [8, 8, 4, 4, 4, 4]


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_lengths": np.array([2_000_000_000, 1]), "prompt_ids": None, "prompt_texts": None},
        {"lengths": np.array([10**9, 3 * 10**9])}, {"group": np.array([7, 7])}, {"reward_weights": {}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_a_recording_that_does_not_fit_is_refused_in_one_line(wrong: dict[str, Any], tmp_path: Path) -> None:
    begun(tmp_path / "run").close()
    recorder = begun(tmp_path / "good")
    write(recorder, 1, answers(3, 1, 2, 1), range(2))
    frames = [frame for _, frame in read(part(tmp_path / "good", 0))]
    changed = [msgspec.structs.replace(f, **wrong) if isinstance(f, Rollouts) else f for f in frames]
    part(tmp_path / "run", 0).write_bytes(MAGIC + b"".join(map(pack, changed)))
    with pytest.raises(ForeignRunError, match="is damaged") as refused:
        Recording(tmp_path / "run").fresh()
    assert "\n" not in str(refused.value)


def test_a_recording_of_too_many_processes_or_a_pipe_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "run").close()
    (frame,) = [frame for _, frame in read(part(tmp_path / "run", 0))]
    part(tmp_path / "run", 0).write_bytes(MAGIC + pack(msgspec.structs.replace(frame, ranks=2**40)))
    with pytest.raises(ForeignRunError, match="it is of 1099511627776 processes"):
        Recording(tmp_path / "run").fresh()
    part(tmp_path / "run", 0).unlink()
    os.mkfifo(part(tmp_path / "run", 0))
    with pytest.raises(ForeignRunError, match="is no file"):
        Recording(tmp_path / "run").fresh()


def test_a_long_recording_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updates = [answers(number, 3, 2, 2) for number in range(12)]
    record(tmp_path / "run", updates, [1])
    wanted = read_at_once(tmp_path / "run")
    monkeypatch.setattr("rlplay.foreign.recording.AT_ONCE", 700)
    reader, pieces = Recording(tmp_path / "run"), list[list[AnyRecord]]()
    while piece := reader.fresh():
        pieces.append(piece)
    assert len(pieces) > 5
    assert encoded([each for piece in pieces for each in piece]) == encoded(wanted)


def test_a_process_that_is_read_later_is_not_taken_to_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = answers(1, 1, 2, 1), answers(1, 1, 2, 1)
    with begun(tmp_path, 0, 2) as first, begun(tmp_path, 1, 2) as second:
        for number in range(1, 3 * BEHIND):
            write(first, number, few, range(1))
            second.remark(number, random.Random(number).randbytes(900).hex())  # its part is the longer one
            write(second, number, many, range(1, 2))
    wanted = read_at_once(tmp_path)
    assert {len(each.group) for each in wanted if isinstance(each, Sampled)} == {2}
    monkeypatch.setattr("rlplay.foreign.recording.AT_ONCE", part(tmp_path, 0).stat().st_size - 10)
    assert encoded(read_at_once(tmp_path)) == encoded(wanted)


def test_what_is_known_of_the_samplers_weights_and_of_a_teacher(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run") as recorder:
        recorder.begin("Test 1.0", {"algorithm": "prime-rl"})
        for update in (1, 2, 3):
            recorder.rollouts(
                update, prompts=["a"], group=[0, 0], lengths=[2, 1], texts=["x", "y", "z"], rewards={"r": [0.0, 1.0]},
                old_logprobs=[-0.5, -0.5, -1.0], teacher_logprobs=[-0.25, -0.5, -3.0], versions=[update - 1, 0],
            )  # fmt: skip
            recorder.end(update, {"reward": 0.5})
    batches = [each for each in Recording(tmp_path / "run").fresh() if isinstance(each, Sampled | Credited)]
    update = Update(3)
    for each in batches:
        if each.update == 3:
            update.add(each)
    assert LENSES["staleness"].values(update).tolist() == [0, 0, 2]
    assert LENSES["teacher_difference"].values(update).tolist() == [-0.25, 0, 2]
