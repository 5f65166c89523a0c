"""A session by itself: what each event changes, where the screen is in the run, and how it goes through the updates."""

import msgspec
import pytest

from rlplay.link.messages import UNSAID, Abilities, Failed, Loading, LogLine, Recorded, RecordView, Status
from rlplay.scenario.loader import load
from rlplay.trace.history import History
from rlplay.trace.records import Notice, Rewound
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update
from rlplay.ui.session.happenings import Moved, Restored
from rlplay.ui.session.session import Session
from tests.recorded import synthetic_sampling, synthetic_started, synthetic_update
from tests.ui.stage import CHOSEN, Fed
from tests.ui.test_session_parts import change, damaged, session_of

WORLD = msgspec.yaml.encode(load("cliff")).decode()


def notice(level="info", detail=""):
    return Recorded(Notice(update=1, level=level, text="a text", detail=detail))


def status(update=1, running=False, **fields):
    return Status(running, update, "sample", CHOSEN, **fields)


def back(update, abandoned, asked=False):
    return Recorded(Rewound(update=update, abandoned=abandoned, asked=asked))


def finished(*numbers, **attributes):
    """A session whose updates of these numbers are finished."""
    records = [record for number in numbers for record in synthetic_update(number)]
    return session_of(synthetic_started(), *records, **attributes)


def test_each_event_says_what_it_changed():
    session = Session(Fed())
    assert session.take_changes() == {"update", "history", "status"}
    assert (session.undone, session.last_finished, session.seconds) == (0, 0, 0)
    assert session.looked == RecordView("auto", 0, 0)
    begun, *_, sampled = synthetic_sampling(1)
    _, scored, *_, last = synthetic_update(1)
    events = [
        (Loading("reading", 0.5), {"status"}),
        (status(), {"status"}),
        (LogLine("info", "a"), {"log"}),
        (Failed("b", "c"), {"status", "log"}),
        (Recorded(synthetic_started()), {"history", "status"}),
        (Recorded(begun), {"update"}),
        *((Recorded(record), {"history", "update"}) for record in (sampled, scored, last, change(1, 0.1, 0.0))),
        (Recorded(synthetic_update(9)[-1]), {"history"}),
        (notice("error", "d"), {"history", "update", "notice", "log"}),
        (notice("odd"), {"history", "update", "notice", "log"}),
        (back(1, 1), {"history", "update"}),
        (Restored(History(), SettingsTimeline({})), {"history"}),
        (Moved(Update(1), ""), {"update"}),
    ]
    for event, changed in events:
        version = session.version
        session.apply(event)
        assert (session.take_changes(), session.version > version) == (changed, True), event
    assert [(line.level, line.text) for _, line in session.log] == [
        ("info", "a"), ("error", "b\nc"), ("error", "a text\nd"), ("info", "a text"),
    ]  # fmt: skip
    assert [each.level for each in session.notices] == ["error", "odd"]
    assert session.seconds == 2 * last.seconds
    for act, changed in ((session.back_to_live, {"update", "status"}), (session.recover, {"status"})):
        version = session.version
        act()
        assert (session.take_changes(), session.version > version) == (changed, True)


def test_what_is_being_loaded_ends_with_the_first_status_or_a_failure():
    session, recording = Session(Fed()), Fed()
    recording.live = False
    assert session.loading == Loading("starting the engine", 0.0)
    assert Session(recording).loading == Loading("reading the run", 0.0)
    for end in (Loading("reading", 1.0), status(), Failed("gone"), Recorded(synthetic_started())):
        session.apply(Loading("reading", 0.0))
        assert session.loading is not None
        session.apply(end)
        assert session.loading is None
    session.recover()
    assert session.loading == Loading("starting the engine again", 0.0)


def test_the_world_is_that_of_the_newest_start():
    session = Session(Fed())
    assert (session.world, session.step_word) == (None, "token")
    session.apply(Recorded(synthetic_started(scenario_text=WORLD)))
    assert session.world is session.world is not None
    assert session.step_word == session.run.step_word == "move"
    session.apply(Recorded(synthetic_started(scenario_text="not: [a scenario")))
    assert session.world is None


def test_where_the_screen_is_in_the_run():
    session = finished(1, 2, 3)
    assert (session.place, session.older_update, session.branches_at) == ("live", None, 3)
    session.look_at(2)
    assert (session.place, session.older_update, session.branches_at) == ("looking", 2, 2)
    session.back_to_live()
    session.apply(Failed("gone"))
    assert session.place == "ended"
    replay = finished(1, 2, live=False)
    assert (replay.place, replay.older_update) == ("replay", 2)
    replay.apply(status(1))
    assert replay.place == "replay"
    replay.apply(status(2, finished=True))
    assert (replay.place, replay.older_update) == ("end", None)
    assert session_of(live=False).older_update is None


def test_looking_goes_through_the_updates_and_past_the_newest_to_the_present_one():
    session = finished(6, 7)
    session.source.kept = {number: Update(number) for number in (2, 4, 9)}
    assert not session.look(1)
    steps = [(session.look(step), session.looking) for step in (-1, -1, -1, -1, 1, 1, 1, 1)]
    assert steps == [
        (True, 6), (True, 4), (True, 2), (False, 2), (True, 4), (True, 6), (True, None), (False, None),
    ]  # fmt: skip
    session.take_changes()
    assert session.look_at(2)
    assert session.take_changes() == {"update", "status"}
    assert not session.look_at(3)
    assert session.shown is session.source.kept[2]
    for update, looking in ((2, 2), (1, None)):
        session.apply(back(update, 7))
        assert session.looking == looking
    assert not session_of().look(-1)


def test_an_update_that_cannot_be_read_has_a_problem_until_it_is_sampled_anew():
    session = finished(2, load=damaged)
    assert session.problem == session_of().problem == ""
    session.look_at(1)
    assert (session.shown.number, session.problem) == (1, "damaged")
    session.apply(Recorded(synthetic_update(1)[0]))
    assert session.problem == ""


def test_going_back_reverts_settings_and_is_undone_until_the_next_update():
    session = finished(1, 2)
    session.apply(Recorded(change(3, 0.1, 0.05)))
    assert [each.value for each in session.new_changes] == [0.1]
    for target, reached in ((0, False), (1, True)):
        session.going_back_to = target
        session.apply(back(1, 2))
        assert (session.going_back_to is None) == reached
    assert session.undone == 2
    assert [each.value for each in session.new_changes] == [0.1, 0.05]
    for going, undone in ((back(1, 1), 2), (back(1, 1, asked=True), 2), (back(0, 1), 2)):
        session.apply(going)
        assert session.undone == undone
    session.apply(Recorded(synthetic_update(1)[0]))
    assert (session.undone, session.reset) == (0, [])
    session.apply(back(1, 1))
    assert session.undone == 0, "a resumed run has undone nothing"
    session.apply(back(1, 1, asked=True))
    assert session.undone == 1


def test_an_engine_runs_on_after_the_update_with_which_it_set_off():
    session = session_of(synthetic_started())
    assert not session.runs_on
    for update, running, runs_on in ((3, True, False), (4, True, True), (4, False, False), (4, True, False)):
        session.apply(status(update, running))
        assert session.runs_on == runs_on
    session.apply(status(5, True))
    session.source.live = False
    assert not session.runs_on


def test_pairs_wait_for_labels_while_the_engine_does():
    session = session_of(synthetic_started())
    assert session.asks == []
    session.apply(status(asks=[3]))
    assert session.asks == [3]
    session.apply(status(running=True, asks=[3]))
    assert session.asks == []
    session.apply(status(asks=[3]))
    session.apply(Failed("gone"))
    assert session.asks == []


@pytest.mark.parametrize(("live", "own", "unsaid"), [(True, True, False), (True, False, True), (False, False, False)])
def test_what_a_trainer_cannot_do_is_unsaid_until_it_says_it(live, own, unsaid):
    session = session_of(live=live, own_engine=own)
    assert (session.abilities is UNSAID) == unsaid
    assert session.cannot("undo") == ""
    session.apply(status(abilities=Abilities("TRL", {"undo": "no snapshots"}, [])))
    assert (session.cannot("undo"), session.cannot("pause")) == ("no snapshots", "")


def test_an_error_stops_a_live_engine_until_it_runs_again():
    session = session_of(synthetic_started())
    for level, stopped in (("warning", ""), ("error", "a text")):
        session.apply(notice(level))
        assert session.stopped == stopped
    session.apply(status())
    assert session.stopped == "a text"
    session.apply(status(running=True))
    assert session.stopped == ""
    recording = session_of(synthetic_started(), live=False)
    recording.apply(notice("error"))
    assert recording.stopped == ""


@pytest.mark.parametrize("own", [True, False])
def test_only_what_rlplays_own_engine_runs_may_run_here_too(own, monkeypatch):
    allowed = []
    monkeypatch.setattr("rlplay.ui.session.session.allow_running", allowed.append)
    session_of(own_engine=own).apply(status())
    assert allowed == [CHOSEN] * own


def test_settings_of_every_moment():
    session = session_of()
    assert session.on_record() == {}
    session = session_of(synthetic_started(), change(1, 0.1, 0.05), change(3, 0.2, 0.1))
    assert session.changed_at == [1, 3]
    assert session.settings.beta == 0.05, "nothing has been said since the start"
    session.apply(Status(False, 3, "sample", {**CHOSEN, "beta": 0.3}))
    assert session.settings.beta == 0.3
    assert [session.settings_of(Update(number)).beta for number in (0, 1, 2, 3)] == [0.1, 0.1, 0.1, 0.2]
    assert [session.settings_after(number).beta for number in (0, 1, 2, 3)] == [0.1, 0.1, 0.2, 0.2]


def test_finished_updates_go_to_the_health():
    session = finished(1)
    assert session.health.knows(1)
    session.apply(Recorded(synthetic_update(2)[-1]))
    assert (session.last_finished, session.health.knows(2)) == (2, False)
