"""A run that went back has what its surviving records say, in every part of it, and nothing of the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlplay.trace.beliefs import Context
from rlplay.trace.history import History
from rlplay.trace.records import (
    AnyRecord,
    Changed,
    Evaluated,
    Finished,
    Rewound,
    Sampled,
    SettingsChange,
    Staged,
    Withheld,
)
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunReader
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import PHASES, Update
from tests.recorded import synthetic_evaluated, synthetic_run, synthetic_sampling, synthetic_started, synthetic_update

Doing = tuple[str, int]
"""What happens next, and a number that says how: the phase of a change, the update to go back to."""

RUNS = st.lists(
    st.tuples(st.sampled_from(["train", "train", "train", "begin", "change", "stage", "evaluate", "rewind"]),
              st.integers(0, 9)),
    max_size=25,
)  # fmt: skip


@cache
def trained(number: int, seed: int) -> list[AnyRecord]:
    return synthetic_update(number, seed, prompts=1, generations=2, length=3)


def records(doings: Sequence[Doing]) -> list[AnyRecord]:
    """What the engine tells of a run in which these things are done."""
    done, found = 0, list[AnyRecord]([synthetic_started()])
    for doing, number in doings:
        seed = len(found)  # nothing that is done again has the same numbers
        match doing:
            case "train":
                done += 1
                found += trained(done, seed)
            case "begin":
                found += synthetic_sampling(done + 1, seed, prompts=1, generations=2, length=3)[: 1 + number % 3]
            case "change":
                phase, value = PHASES[number % len(PHASES)], seed / 100
                found.append(Changed(update=done + 1, phase=phase, name="epsilon", value=value, previous=0.2))
            case "stage":
                found.append(Staged(update=done + 1, index=number, stages=9, name="s", settings={"beta": seed / 100}))
            case "evaluate":
                found.append(msgspec.structs.replace(synthetic_evaluated(done), completions=[f"{seed}", "b"]))
            case "rewind":
                back_to = number % (done + 1)
                found.append(Rewound(update=back_to, abandoned=done, asked=True))
                done = back_to
    return found


def survivors(happened: Sequence[AnyRecord]) -> list[AnyRecord]:
    """The records that no rewind has undone, in order, without the rewinds."""
    left: list[AnyRecord] = []
    for record in happened:
        if isinstance(record, Rewound):
            left = [each for each in left if not undone(each, record.update)]
        else:
            left.append(record)
    return left


def undone(record: AnyRecord, back_to: int) -> bool:
    """Whether going back to the end of an update undoes a record: a change of the next one's first phase stays."""
    waits = isinstance(record, SettingsChange) and record.phase == "sample" and record.update == back_to + 1
    return record.update > back_to and not waits


def added(happened: Sequence[AnyRecord], **how: Any) -> Run:
    run = Run(**how)
    for record in happened:
        run.add(record)
    return run


def numbers(history: History) -> dict[str, Any]:
    """The curves that have points, and the marks of what changed the settings."""
    curves = {name: history.series(name) for name in history.names() if history.series(name)[0]}
    return curves | {"marks": [mark for mark in history.marks if mark.kind == "changed"]}


def whole(update: Update) -> list[object]:
    """Every record of an update."""
    parts = [update.sampled, update.scored, update.credited, *update.steps, update.finished]
    return [id(part) for part in parts if part is not None]


@given(RUNS)
def test_a_run_that_went_back_is_what_its_surviving_records_make(doings: list[Doing]) -> None:
    happened = records(doings)
    left = survivors(happened)
    run, naive = added(happened, kept=99), added(left, kept=99)
    assert numbers(run.history) == numbers(naive.history)
    assert (run.timeline.begun, run.timeline.changes) == (naive.timeline.begun, naive.timeline.changes)
    assert {n: whole(each) for n, each in run.updates.items()} == {n: whole(each) for n, each in naive.updates.items()}
    assert run.beliefs.at(Context()) == naive.beliefs.at(Context())
    assert run.evaluations.learned == naive.evaluations.learned
    last = [0 if each.newest is None else each.newest.number for each in (run, naive)]
    assert last[0] == last[1]
    # And none of them is empty on both sides:
    assert run.history.updates == list(dict.fromkeys(each.update for each in left if isinstance(each, Finished)))
    assert run.finished == max(run.history.updates, default=0)
    assert run.timeline.changes == [each for each in left if isinstance(each, SettingsChange)]
    assert set(run.updates) == {each.update for each in left if isinstance(each, Sampled)}
    assert set(run.beliefs.at(Context())) == {each.update for each in left if isinstance(each, Sampled) and each.done}
    assert set(run.evaluations.learned.updates) == {each.update for each in left if isinstance(each, Evaluated)}


@given(RUNS)
def test_a_table_by_update_loses_what_is_undone(doings: list[Doing]) -> None:
    run = Run()
    table, naive = run.by_update(), dict[int, AnyRecord]()
    for record in records(doings):
        run.add(record)
        if isinstance(record, Rewound):
            naive = {number: each for number, each in naive.items() if number <= record.update}
        else:
            table[record.update] = naive[record.update] = record
        assert table == naive


@example([("train", 0), ("train", 0), ("train", 0), ("train", 0), ("rewind", 1), ("begin", 0)])
@given(RUNS)
def test_claims_are_about_the_last_update_that_ended(doings: list[Doing]) -> None:
    happened = records(doings)
    ended = added(happened, kept=2, load=added(happened, kept=99).updates.get).ended
    finished = [each.update for each in survivors(happened) if isinstance(each, Finished)]
    if finished:
        assert ended is not None
        assert (ended.number, ended.finished is not None) == (finished[-1], True)
    else:
        assert ended is None or ended.finished is None


def test_older_updates_are_loaded_and_named_after_what_the_policy_samples() -> None:
    run = Run({1: Update(1)}.get, kept=2)
    run.step_word = "move"
    for number in (1, 2, 3):
        for record in trained(number, 0):
            run.add(record)
    assert list(run.updates) == [2, 3]
    assert [run.find(number) is run.updates[number] for number in (2, 3)] == [True, True]
    first = run.find(1)
    assert first is not None
    assert (first.number, first.step_word, run.updates[2].step_word) == (1, "move", "move")
    assert run.find(4) is None
    run.add(Rewound(update=1, abandoned=3, asked=True))
    assert run.newest is first


def test_before_the_first_update_there_is_none_to_load() -> None:
    run = added(synthetic_sampling(1)[:1], load=lambda number: pytest.fail(f"update {number}"))
    assert run.ended is run.newest


def test_an_update_that_is_sampled_again_begins_anew() -> None:
    run = added([*trained(1, 0), *trained(2, 0), trained(1, 1)[0]])
    assert run.newest is not None
    assert (run.newest.number, run.newest.scored) == (1, None)
    run = added(synthetic_sampling(1)[:2])
    first = run.newest
    run.add(synthetic_sampling(1)[-1])
    assert run.newest is first


def test_an_update_knows_whose_credit_is_taken_away() -> None:
    withheld = Withheld(update=2, tokens=[0, 3])
    run = added([*trained(1, 0), withheld, *trained(2, 0)])
    assert (run.updates[1].withheld, run.updates[2].withheld) == ([], [0, 3])
    for back, tokens in ((1, [0, 3]), (0, [])):
        run = added([*trained(1, 0), withheld, Rewound(update=back, abandoned=1, asked=True), *trained(2, 0)])
        assert run.updates[2].withheld == tokens


def test_candidates_are_kept_only_where_somebody_wants_them() -> None:
    assert added(trained(1, 0), candidates=False).beliefs.known == 0
    assert added(trained(1, 0)).beliefs.known == 1


def test_what_a_run_file_says_replaces_numbers_and_settings() -> None:
    run = added([*trained(1, 0), *trained(2, 0), synthetic_evaluated(2)])
    history, timeline = History(), SettingsTimeline({"beta": 0.5})
    run.restore(history, timeline)
    assert (run.history, run.timeline) == (history, timeline)
    assert (run.beliefs.stale, run.evaluations.stale, sorted(run.updates)) == (True, True, [1, 2])
    run.restore(history, timeline, back_to=1)
    assert (sorted(run.updates), run.beliefs.known, run.evaluations.learned.updates, run.rewinds) == ([1], 1, [], 1)


def test_a_recorded_run_is_the_same_as_the_one_that_was_heard(tmp_path) -> None:
    with RunReader(synthetic_run(tmp_path / "run.rlplay", updates=3)) as reader:
        read, heard = Run.recorded(reader), added([record for _, record in reader.follow(0)])
        assert read.started == heard.started
        assert numbers(read.history) == numbers(heard.history)
        assert read.timeline.changes == heard.timeline.changes
        assert read.finished == heard.finished == 3
        second = read.find(2)
        assert second is not None
        assert second.sampled is not None
