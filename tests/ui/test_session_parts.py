"""What a session is filled from, one piece at a time: its source's events, and what the run file has besides."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from rlplay.link.messages import Failed, Recorded, Status
from rlplay.trace.history import History
from rlplay.trace.questions import Imagined
from rlplay.trace.records import Changed, Evaluated, Finished, Sampled, Staged
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update
from rlplay.ui.moments.answer_pairs import changed_between, first_moment, moments, sections
from rlplay.ui.session import examination
from rlplay.ui.session.examination import examine
from rlplay.ui.session.follow import follow
from rlplay.ui.session.happenings import Restored
from rlplay.ui.session.reading import next_belief, next_evaluation
from rlplay.ui.session.session import Session
from tests.recorded import synthetic_evaluated, synthetic_started, synthetic_update
from tests.ui.stage import Fed
from tests.written import sampled_of, scored_of, update_with


def session_of(*records: Any, kept: dict[int, Update] | None = None, **attributes: Any) -> Session:
    """A session that has heard these records, of a source with these attributes."""
    source = Fed()
    source.kept = kept or {}
    for name, value in attributes.items():
        setattr(source, name, value)
    session = Session(source)
    for record in records:
        session.apply(Recorded(record))
    return session


class Breaking(Fed):
    """A source that ends in an error."""

    def __init__(self, error: Exception, at: str) -> None:
        super().__init__()
        self._error, self._at = error, at

    async def start(self) -> None:
        if self._at == "start":
            raise self._error

    async def events(self) -> Any:
        yield Recorded(synthetic_started())
        if self._at == "events":
            raise self._error


@pytest.mark.parametrize(
    ("source", "live", "text"),
    [
        (Breaking(OSError("no python"), "start"), True, "The engine could not be started: no python"),
        (Breaking(RuntimeError("torn"), "events"), True, "Lost contact with the engine: torn"),
        (Breaking(RuntimeError(), "events"), False, "Cannot read the run: RuntimeError"),
        (Breaking(RuntimeError(), ""), True, "The engine ended unexpectedly; its records are safe on disk."),
    ],
)
async def test_an_end_of_the_source_is_said(source: Fed, live: bool, text: str) -> None:
    source.live = live
    session = Session(source)

    async def heard(event: Any) -> None:
        raise AssertionError

    await follow(session, heard)
    assert session.failed is not None
    assert session.failed.text == text
    assert ("Traceback" in session.failed.detail) == ("RuntimeError" in text or "torn" in text)


async def test_each_status_and_preview_is_heard_once_it_is_applied() -> None:
    source, found = Fed(), []
    session = Session(source)

    async def heard(event: Status | Imagined) -> None:
        found.append((type(event), None if session.status is None else session.status.update))

    source.records([synthetic_started()])
    source.status(3)
    source.put(Imagined({}, 1), Failed("It broke"), None)
    async with asyncio.timeout(3):  # an event lets keys have their turn, and waits for nothing
        await follow(session, heard)
    assert found == [(Status, 3), (Imagined, 3)]
    assert session.failed == Failed("It broke"), "what has been said is not said again"


def damaged(_number: int = 0) -> Any:
    raise RunFileError("damaged")


def sampled(number: int) -> Update:
    record = synthetic_update(number)[0]
    assert isinstance(record, Sampled)
    return update_with(record)


def test_the_river_is_read_one_update_at_a_time_the_newest_first() -> None:
    session = session_of(synthetic_started(), kept={number: sampled(number) for number in (1, 2, 3)})
    session.run.beliefs.stale = True
    read = []
    while next_belief(session):
        read.append(list(session.run.beliefs.missing))
    assert read == [[1, 2, 3], [1, 2], [1], []]
    assert not session.run.beliefs.stale
    session.run.beliefs.stale = True
    session.source.recorded = damaged  # type: ignore[method-assign]
    assert next_belief(session)
    assert not next_belief(session)


@pytest.mark.parametrize("problem", ["", "damaged"])
def test_evaluations_are_read_one_at_a_time_and_one_that_is_damaged_is_left_out(problem: str) -> None:
    found, history = [synthetic_evaluated(number) for number in (2, 4, 6)], History()
    for each in found:
        history.add(each)
    session = session_of(synthetic_started(), evaluated=found, **({"held_out": damaged} if problem else {}))
    session.apply(Restored(history, SettingsTimeline({})))
    read = []
    while next_evaluation(session):
        read.append(list(session.run.evaluations.missing))
    assert read == [[2, 4, 6], [4, 6], [6], []]
    assert session.run.evaluations.problem == problem


def evaluated(number: int, *prompts: str) -> Evaluated:
    return msgspec.structs.replace(
        synthetic_evaluated(number), prompts=list(prompts), completions=["a"] * len(prompts),
        rewards=synthetic_evaluated(number).rewards[: len(prompts)],
    )  # fmt: skip


def test_the_moments_of_a_run() -> None:
    answers = {number: sampled(number) for number in (3, 5, 8)}
    session = session_of(synthetic_started(), *(synthetic_evaluated(n) for n in (0, 4, 8)), kept=answers)
    assert moments(session) == [0, 3, 4, 5, 8]
    assert [first_moment(session, later) for later in (8, 4, 3)] == [0, 0, 0]
    alone = session_of(synthetic_started(), synthetic_evaluated(8), kept=answers)
    assert [first_moment(alone, later) for later in (8, 5, 3)] == [3, 3, 0], "one evaluation is no beginning"


def test_held_out_prompts_of_two_moments() -> None:
    found = [evaluated(0, "P", "Q"), evaluated(4, "Q", "R"), evaluated(8, "S")]
    session = session_of(synthetic_started(), evaluated=found)
    section = sections(session, 0, 5)[0]
    assert ([each.prompt for each in section.asked], section.note) == (
        ["Q"], "evaluated before training and after update 4",
    )  # fmt: skip
    assert sum(section.counts.values()) == 1
    assert "unscored" not in section.counts
    assert sections(session, 4, 8)[0].note == "The two evaluations have no prompt in common."
    assert sections(session, 4, 7)[0].note == "No evaluation since the one after update 4; the next is after update 10."
    late = session_of(synthetic_started(), evaluated=found[1:])
    assert sections(late, 3, 9)[0].note == "No held-out answers are on record up to update 3."
    assert sections(session_of(), 3, 9)[0].note == "No held-out answers are on record up to update 3."
    late.source.held_out = lambda number: found[1] if number == 3 else None  # type: ignore[method-assign]
    assert sections(late, 3, 9)[0].note == "No held-out answers are on record up to update 9."


def written(number: int, *prompts: str, scored: bool = True) -> Update:
    """An update with one answer to each prompt."""
    record = msgspec.structs.replace(sampled_of(*(["a"] for _ in prompts), prompts=prompts), update=number)
    rewards = [scored_of(*(1.0 for _ in prompts), update=number)] if scored else []
    return update_with(record, *rewards)


def test_prompts_that_two_updates_trained_on() -> None:
    kept = {1: written(1, "P", "Q"), 2: written(2, "Q", "R"), 3: written(3, "S"), 4: Update(4)}
    session = session_of(synthetic_started(), kept=kept)
    section = sections(session, 1, 2)[1]
    assert ([each.prompt for each in section.asked], section.note) == (["Q"], "with different random numbers")
    notes = [sections(session, before, after)[1].note for before, after in ((1, 3), (0, 2), (1, 9), (9, 1), (4, 2))]
    assert notes == [
        "The two updates have no prompt in common.", "The start of the run has no training answers.",
        "The answers of update 9 were not kept.", "The answers of update 9 were not kept.",
        "The answers of update 4 were not kept.",
    ]  # fmt: skip


def test_prompts_without_rewards_are_counted_apart() -> None:
    kept = {number: written(number, "P", scored=number == 1) for number in (1, 2)}
    counts = sections(session_of(synthetic_started(), kept=kept), 1, 2)[1].counts
    assert counts["unscored"] == 1 == sum(counts.values())


def change(update: int, value: float, previous: float, name: str = "beta") -> Changed:
    return Changed(update=update, phase="sample", name=name, value=value, previous=previous)


def test_what_changed_between_two_moments() -> None:
    stage = Staged(update=5, index=1, stages=2, name="practice", settings={})
    session = session_of(
        synthetic_started(), change(2, 0.1, 0.0), change(3, 0.2, 0.1), change(4, 0.5, 0.3, "epsilon"), stage,
        change(6, 0.1, 0.2), change(7, 0.3, 0.5, "epsilon"),
    )  # fmt: skip
    staged = "another stage, practice from update 5: its rewards may have another scale"
    said = {borders: changed_between(session, *borders) for borders in ((1, 3), (2, 3), (3, 4), (3, 7), (2, 6), (7, 9))}
    assert "0 → 0.2" in said[1, 3]
    assert "0.1 → 0.2" in said[2, 3]
    assert "0.3 → 0.5" in said[3, 4]
    assert said[3, 7].startswith(staged)
    assert "0.2 → 0.1" in said[3, 7]
    assert "ε" not in said[3, 7], "it is again what it was"
    assert "KL" not in said[2, 6].removeprefix(staged)
    assert "0.3 → 0.5" in said[2, 6]
    assert said[7, 9] == ""
    assert changed_between(session, 4, 5) == staged


def test_an_unfinished_update_is_examined_with_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(synthetic_started())
    assert examine(session) == (None, [])
    records = [record for number in (1, 2, 3) for record in synthetic_update(number)]
    for record in records:
        session.apply(Recorded(record))
        if isinstance(record, Sampled) and record.update == 3:
            break
    run, found = examine(session)
    assert run is not None
    assert (run.last, found) == (2, [])
    monkeypatch.setattr(examination, "findings", lambda run: [run.now.update])
    run, found = examine(session)
    assert run is not None
    assert (run.last, found) == (3, [3]), "what is wrong already is said at once"
    monkeypatch.undo()
    for record in records[-len(synthetic_update(3)) + 1 :]:
        session.apply(Recorded(record))
    assert isinstance(record, Finished)
    run, _ = examine(session)
    assert run is not None
    assert run.last == 3
    session.apply(Recorded(change(3, 0.75, 0.05)))
    run, _ = examine(session)
    assert run is not None
    assert (run.now.update, run.settings.beta) == (3, 0.75), "as the settings were then"
    session.digesting.left = lambda _last: 1  # type: ignore[method-assign]
    assert examine(session) == (None, []), "something has to be read first"
