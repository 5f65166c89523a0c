"""A pair of runs: which settings and sources differ, and which run advances."""

import msgspec
import pytest

from rlplay.link.messages import Advance, Failed, Pause, Recorded, Status
from rlplay.trace.records import Changed, Finished, Rewound
from rlplay.trace.update import Update
from rlplay.ui.compare.differences import _difference
from rlplay.ui.compare.two_runs import MomentPair, RunPair, place
from rlplay.ui.session.session import Session
from tests.recorded import synthetic_started, synthetic_update
from tests.ui.stage import CHOSEN as SETTINGS
from tests.ui.stage import Fed
from tests.written import sampled_of, update_with


def a_session(updates, live=True, running=False):
    source = Fed()
    source.live = live
    session = Session(source)
    for number in range(1, updates + 1):
        (finished,) = (r for r in synthetic_update(number) if isinstance(r, Finished))
        session.run.history.add(finished)
    source.status(updates, running=running)
    session.apply(source._queue.get_nowait())
    return session


def advances(pair, count=None):
    return [("AB"[pair.both.index(session)], command) for session, command in pair.advance_commands(count)]


def test_the_run_behind_catches_up_and_level_ones_go_together():
    assert advances(RunPair(a_session(7), a_session(4))) == [("B", Advance("update", 3))]
    assert advances(RunPair(a_session(4), a_session(5)), 1) == [("A", Advance("update", 1))]
    assert advances(RunPair(a_session(4), a_session(4))) == []
    assert advances(RunPair(a_session(4), a_session(4)), 1) == [
        ("A", Advance("update", 1)),
        ("B", Advance("update", 1)),
    ]
    assert advances(RunPair(a_session(7), a_session(4, running=True))) == [("B", Pause())]
    assert advances(RunPair(a_session(2, live=False), a_session(4)), 1) == [("B", Advance("update", 1))]
    assert advances(RunPair(a_session(2, live=False), a_session(4, live=False)), 1) == [], (
        "recordings are what they are"
    )


def test_what_a_run_has_undone_is_compared_no_longer():
    one, other = a_session(4), a_session(4)
    for record in [*synthetic_update(3), *synthetic_update(4)]:
        one.run.add(record)
    pair = RunPair(one, other)
    pair.picked = 4
    pair.follow()
    assert (pair.picked, pair.updates()[0]) == (4, one.run.updates[4])
    one.run.add(Rewound(update=3, abandoned=4, asked=True))
    pair.follow()
    assert (pair.picked, pair.number) == (None, 3)
    for record in synthetic_update(4, seed=1):
        one.run.add(record)
    assert pair.updates()[0] is one.run.updates[4], "not the one that was loaded before"


def test_a_pair_moves_among_the_updates_that_both_have_and_keeps_the_last_ones():
    one, other, loaded = a_session(20), a_session(20), []
    one.source.kept = {number: Update(number) for number in range(1, 21) if number != 6}
    other.source.kept = {number: Update(number) for number in (2, 3, 5, 6, 7, 30)}
    pair = RunPair(one, other)
    moves = [(pair.move(step), pair.number) for step in (-1, -1, -1, -1, -1, 1, 1)]
    assert moves == [(True, 7), (True, 5), (True, 3), (True, 2), (False, 2), (True, 3), (True, 5)]
    one.source.load = lambda number: loaded.append(number) or one.source.kept[number]
    for pair.picked in (1, 2, 3, 4, 5, 2, 1, 0, 20, 21):
        pair.updates()
    assert loaded == [1, 2, 3, 4, 5, 1, 20], "four of each run are kept"
    assert pair.updates() == (None, None), "not finished yet"


def test_one_run_at_two_of_its_updates():
    session = a_session(4)
    for number in (2, 3):
        for record in synthetic_update(number):
            session.run.add(record)
    pair = MomentPair(session, 2, 3)
    assert pair.updates() == (session.run.updates[2], session.run.updates[3])
    assert (pair.marked, pair.values(0), pair.values(1)) == ((2, 3), ["update 2"], ["update 3"])


def test_runs_are_identical_as_long_as_tokens_and_numbers_are():
    def pair(*updates):
        sessions = a_session(1), a_session(1)
        for session, update in zip(sessions, updates, strict=True):
            session.source.kept = {1: update}
        return RunPair(*sessions)

    records = synthetic_update(1)
    whole, other = update_with(*records), update_with(*records[:-1], synthetic_update(1, seed=1)[-1])
    again, unfinished = update_with(*records), update_with(*records[:-1])
    assert pair(whole, again).identical
    assert pair(unfinished, update_with(*records[:1])).identical
    elsewhere = update_with(sampled_of(["a"]), records[-1])
    differing = [whole, elsewhere], [whole, other], [whole, unfinished], [unfinished, whole], [Update(1), Update(1)]
    assert not any(pair(*updates).identical for updates in (*differing, [None, whole], [whole, None], [None, None]))


def test_a_run_is_starting_until_it_has_begun_and_said_where_it_is():
    ready = begun()
    ready.apply(Status(False, 0, "sample", SETTINGS))
    assert RunPair(ready, ready).starting == ""
    for other in (begun(), a_session(0)):
        assert (RunPair(ready, other).starting, RunPair(other, ready).starting) == ("B", "A")
        other.apply(Failed("no engine"))
        assert RunPair(ready, other).starting == ""
    assert RunPair(ready, Session(Fed())).differences() == RunPair(Session(Fed()), ready).differences() == []


def test_where_a_run_is_in_words():
    waiting, failed = a_session(3), a_session(3)
    failed.apply(Failed("no engine"))
    said = [place(each) for each in (failed, Session(Fed()), a_session(3), a_session(3, running=True))]
    assert said == ["ended: no engine", "starting the engine 0%", "update 3 · paused", "update 3 · running"]
    assert place(a_session(3, live=False)) == "update 3"
    waiting.apply(Status(False, 3, "score", SETTINGS, asks=[1], waits=True))
    assert place(waiting) == "update 3 · waiting for your labels: press A"
    waiting.apply(Status(False, 3, "score", SETTINGS, asks=[1]))
    assert place(waiting) == "update 3 · paused"


def test_differences_are_those_of_the_update_compared():
    one, other = a_session(4), a_session(4)
    for session in (one, other):
        session.apply(Recorded(synthetic_started()))
    other.run.timeline.add(Changed(update=3, phase="sample", name="beta", value=0.1, previous=0.05))
    pair = RunPair(one, other)
    assert pair.differences() == ["beta 0.05 → 0.1"]
    assert (pair.values(0), pair.values(1), pair.earlier) == (["beta 0.05"], ["beta 0.1"], [])
    pair.picked = 2
    assert pair.differences() == pair.differences(now=True) == []
    other.apply(Status(False, 4, "sample", {**SETTINGS, "beta": 0.3}))
    assert pair.differences(now=True) == ["beta 0.05 → 0.3"]
    early = begun(settings={**SETTINGS, "beta": 0.1})
    early.run.timeline.add(Changed(update=2, phase="sample", name="beta", value=0.05, previous=0.1))
    pair = RunPair(early, one)
    pair.picked = 2
    assert pair.earlier == ["beta"]


TWO = [{"name": "imitate", "updates": 2}, {"name": "compare", "updates": 3}]


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ({"reward": ["a.py:short"]}, {"reward": ["a.py:long"]}, "reward a.py:short → a.py:long"),
        ({"reward": ["a.py:f"]}, {"reward": ["a.py:f", "b.py:g"]}, "reward a.py:f → a.py:f + b.py:g"),
        ({"dataset": "a.jsonl"}, {"dataset": "b.jsonl"}, "dataset a.jsonl → b.jsonl"),
        ({"task": "arithmetic"}, {"dataset": "b.jsonl"}, "task arithmetic → none · dataset none → b.jsonl"),
        ({"task": "arithmetic"}, {"task": "questions"}, "task arithmetic → questions"),
        ({"dataset": "a", "dataset_config": "x"}, {"dataset": "a", "dataset_config": "y"}, "dataset_config x → y"),
        ({"dataset_train_split": "a"}, {"dataset_train_split": "b"}, "dataset_train_split a → b"),
        ({"prompts": ["1"]}, {"prompts": ["2"]}, "prompts differ"),
        ({}, {"prompts": ["2"]}, "prompts none → 1 given"),
        ({"stages": TWO}, {"stages": TWO[1:]}, "stages imitate 2 + compare 3 → compare 3"),
        ({"stages": TWO}, {"stages": [{**TWO[0], "settings": {"beta": 1}}, TWO[1]]}, "stages differ"),
        ({"eval_generations": 1}, {"eval_generations": 8}, "eval_generations 1 → 8"),
    ],
)
def test_where_data_rewards_and_stages_come_from_is_compared(one, other, text):
    pair = RunPair(*(begun(scenario(**fields)) for fields in (one, other)))
    assert " · ".join(pair.differences()) == text
    assert RunPair(*(begun(scenario(**one)) for _ in range(2))).differences() == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model": "other"}, "model pocket → other"),
        ({"seed": 7}, "seed 0 → 7"),
        ({"threads": 8}, "threads 1 → 8"),
        ({"processes": 2}, "processes 1 → 2"),
        ({"versions": {"rlplay": "0.2.0", "torch": "2.6.0"}}, "rlplay 0.1.0 → 0.2.0"),
        ({"settings": {**SETTINGS, "beta": 1.5}, "threads": 8}, "beta 0.05 → 1.5 · threads 1 → 8"),
    ],
)
def test_all_that_answers_depend_on_is_compared(changes, text):
    assert " · ".join(RunPair(begun(), begun(**changes)).differences()) == text


def test_a_run_of_another_program_is_compared_as_far_as_it_is_known():
    assert RunPair(begun("not: [a scenario"), begun("not: [a scenario")).differences() == []
    assert RunPair(begun("- 1"), begun(seed=3)).differences() == ["seed 0 → 3"]


def differing(changes=(), text=None):
    pair = RunPair(begun(text), begun(text))
    for session in pair.both:
        for number in range(1, 5):
            for change in changes if session is pair.both[1] else ():
                if change.update == number:
                    session.apply(Recorded(change))
            for record in synthetic_update(number, seed=int(session is pair.both[1])):
                session.apply(Recorded(record))
        session.apply(Status(False, 4, "sample", SETTINGS))
    return _difference(pair)


def test_settings_that_differed_before_are_not_passed_over():
    changes = [
        Changed(update=2, phase="sample", name="beta", value=0.3, previous=0.05),
        Changed(update=4, phase="sample", name="beta", value=0.05, previous=0.3),
    ]
    assert differing() == "at update 4 the settings are the same"
    assert differing(changes[:1]) == "at update 4, B differs in: beta 0.05 → 0.3"
    assert differing(changes) == "at update 4 the settings are the same; beta differed before"


def test_file_contents_are_not_reported_as_equal():
    own = scenario(dataset="a.jsonl", reward=["a.py:f"])
    assert differing(text=own).endswith("; contents of data and reward files are not compared")
    assert RunPair(begun(), begun(own)).names_files
    assert not RunPair(begun(), Session(Fed())).names_files


def scenario(**fields):
    """The recorded text of a scenario with these fields."""
    every = {"name": "synthetic", "title": "Word problems", "question": "Does it learn?", **fields}
    return msgspec.yaml.encode(every).decode()


def begun(text=None, **changes):
    session = Session(Fed())
    text = {} if text is None else {"scenario_text": text}
    session.apply(Recorded(synthetic_started(**text, **changes)))
    return session


def stepped(updates, each):
    """A recording of so many updates of `each` steps of their trainer."""
    session = a_session(updates, live=False)
    for number in range(1, updates + 1):
        session.run.history.clock.put(number, (each * (number - 1) + 1, each * number))
    session.source.kept = {number: Update(number) for number in range(1, updates + 1)}
    return session


def test_runs_whose_updates_are_of_different_steps_are_compared_at_equal_steps():
    pair = RunPair(stepped(30, 1), stepped(12, 2))
    assert (pair.where, pair.numbers, pair.marked) == ("step 24", (24, 12), (None, None))
    assert [(pair.move(-1), pair.numbers) for _ in range(2)] == [(True, (22, 11)), (True, (20, 10))]
    assert pair.marked == (20, 10)
    pair.picked = 19
    assert pair.numbers == (19, 10)
    for session in pair.both:
        session.run.add(synthetic_started())
    assert _difference(pair).startswith("at step 19")
    assert place(pair.both[1]) == "update 12 · step 24"


def test_runs_of_which_one_names_no_steps_are_compared_at_equal_updates():
    pair = RunPair(stepped(30, 1), a_session(12))
    assert (pair.where, pair.numbers) == ("update 12", (12, 12))
    assert RunPair(stepped(30, 2), stepped(12, 2)).where == "update 12"
