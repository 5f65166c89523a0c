"""The state of the screen as plain data, filled from events and read by panels. No widgets here."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import Any, Literal

import msgspec

from rlplay.algorithms.own import allow_running
from rlplay.health.run import Health
from rlplay.link.messages import UNSAID, Abilities, Failed, Loading, LogLine, Recorded, RecordView, Status
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.world import step_word, world_of
from rlplay.trace.beliefs import Beliefs
from rlplay.trace.history import History
from rlplay.trace.learning import Evaluations
from rlplay.trace.questions import Continued, Estimated, Judged, Peeked, Recalled
from rlplay.trace.records import Changed, Evaluated, Finished, Notice, Rewound, Sampled, Staged, Started
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.settings import Timeline
from rlplay.trace.update import Phase, Update
from rlplay.ui.session.digesting import Digesting
from rlplay.ui.session.happenings import Happening, Moved, Restored, Source
from rlplay.ui.session.probing import Probing
from rlplay.ui.words.narration import Place
from rlplay.ui.words.setting_changes import reverting_changes
from rlplay.worlds.world import World, WorldError

KEPT = 12
"""Updates kept in memory; older ones are read from the run file."""
LOG_LINES = 2000


Part = Literal["update", "look", "history", "status", "log", "notice"]
"""What may have changed since the screen last looked: "update" is the update shown, "look" how it is shown."""


class Session:
    """The state of one run as the screen knows it; `changed` are the parts that have changed since it last looked."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.started: Started | None = None
        self.loading: Loading | None = Loading("starting the engine" if source.live else "reading the run", 0.0)
        self.status: Status | None = None
        self.failed: Failed | None = None
        self.history = History()
        self.health = Health(self.history)
        self.beliefs = Beliefs()
        self.evaluations = Evaluations()
        self.digesting = Digesting(self.health, source, lambda: self.changed.add("status"))
        self.log: deque[tuple[float, LogLine]] = deque(maxlen=LOG_LINES)  # with the time of arrival, since the epoch
        self.notices: list[Notice] = []
        self.new_changes: list[Changed] = []  # changed settings that the screen has not reported yet
        self.reset: list[Changed] = []  # settings reverted by going back, until another update is sampled
        self.probing = Probing()
        self.judged: Judged | None = None  # the last answer about a pair
        self.changed: set[Part] = {"update", "history", "status"}
        self.looking: int | None = None
        self.looked = RecordView("auto", 0, 0)  # the view last recorded in the run
        self.asked: str = ""
        self.stopped = ""  # the error that stopped the engine, until it continues
        self.going_back_to: int | None = None  # the target of going back, until it is reached
        self.undone = 0  # the last undone update, until another is sampled
        self._set_off = 0  # the update at which the engine started running
        self.seconds = 0.0
        self.last_finished = 0
        self.timeline = Timeline({})  # of the settings
        self._updates: OrderedDict[int, Update] = OrderedDict()
        self._newest: Update | None = None
        self._world: tuple[Started | None, World | None] | None = None
        self._looked_at: Update | None = None
        self._problems: dict[int, str] = {}  # of updates that cannot be read

    @property
    def step_word(self) -> str:
        """What the policy samples: "move" in a world, else "token"."""
        return step_word(self.world)

    @property
    def world(self) -> World | None:
        """The world of the run; None if it has none, or one that this rlplay cannot read."""
        if self._world is None or self._world[0] is not self.started:
            try:
                world = None if self.started is None else world_of(scenario_of(self.started))
            except (WorldError, msgspec.MsgspecError):
                world = None
            self._world = self.started, world
        return self._world[1]

    @property
    def shown(self) -> Update | None:
        """The update on the screen: the live one or an older one."""
        return self._newest if self.looking is None else self._looked_at

    @property
    def problem(self) -> str:
        """Why the update on the screen could not be read; empty if it could."""
        return "" if self.shown is None else self._problems.get(self.shown.number, "")

    @property
    def place(self) -> Place:
        """What the screen shows, which decides what keys can do."""
        if self.looking is not None:
            return "looking"
        if self.source.live:
            return "live" if self.failed is None else "ended"
        return "end" if self.status is not None and self.status.finished else "replay"

    @property
    def older_update(self) -> int | None:
        """The number of the update on the screen; None if it is the newest."""
        newest = self.place in ("live", "ended", "end") or self.shown is None
        return None if newest or self.shown is None else self.shown.number

    @property
    def newest(self) -> Update | None:
        """The engine's current update."""
        return self._newest

    @property
    def ended(self) -> Update | None:
        """The last update that has ended, which claims are about; the current one if none has."""
        newest = self._newest
        if newest is None or newest.finished is not None:
            return newest
        return self._updates.get(newest.number - 1, newest)

    @property
    def abilities(self) -> Abilities | None:
        """What another program's trainer can do; None: rlplay's own engine trains, or nothing does."""
        if self.status is None:  # a program that has said nothing yet may not be rlplay's own engine
            return UNSAID if self.source.live and not self.source.own_engine else None
        return self.status.abilities

    @property
    def has_engine(self) -> bool:
        """Whether rlplay's own engine trains: it answers questions, goes back, and branches."""
        return self.source.own_engine

    def cannot(self, verb: str) -> str:
        """Why the program that trains cannot carry out a verb; "" if it can."""
        return "" if self.abilities is None else self.abilities.cannot.get(verb, "")

    @property
    def runs_on(self) -> bool:
        """Whether the engine runs from update to update, too fast to describe its phases."""
        running = self.source.live and self.status is not None and self.status.running
        return running and self.status is not None and self.status.update > self._set_off

    @property
    def settings(self) -> dict[str, Any]:
        """The current settings, including changes that wait for their phase."""
        if self.status is not None and self.status.settings:
            return self.status.settings
        return self.started.settings if self.started is not None else {}

    def settings_of(self, update: Update | None, phase: Phase = "update") -> dict[str, Any]:
        """The settings in a phase of `update`, without later changes; the current ones without an update.

        At the start these are the settings that the first update will have.
        """
        if update is None or not self.timeline.begun:
            return self.settings
        return self.timeline.at(update.number, phase) if update.number else self.settings_after(0)

    def settings_after(self, number: int) -> dict[str, Any]:
        """The settings at the start of the update after `number`; a branch changes these."""
        return self.timeline.at(number + 1, "sample")

    @property
    def changed_at(self) -> list[int]:
        """The updates in which settings changed."""
        return sorted({change.update for change in self.timeline.changes})

    def undoing(self, number: int) -> list[Changed]:
        """The changes of settings that going back to the end of update `number` reverts."""
        return reverting_changes((each for each in self.timeline.after(number) if isinstance(each, Changed)), number)

    @property
    def finished(self) -> int:
        """The last finished update; 0 before the first."""
        return max(self.history.updates, default=0)

    @property
    def branches_at(self) -> int:
        """The update after which a branch starts: the one on the screen if finished, else the last finished one."""
        older = self.older_update
        return self.finished if older is None else min(older, self.finished)

    @property
    def asks(self) -> list[int]:
        """The pairs that wait for the user's labels."""
        there = self.failed is None and self.status is not None and not self.status.running
        return self.status.asks if there and self.status is not None else []

    def apply(self, event: Happening) -> None:
        """Take one event."""
        match event:
            case Loading():
                self.loading = event if event.fraction < 1 else None
                self.changed.add("status")
            case Status():
                if not event.running or self.status is None or not self.status.running:
                    self._set_off = event.update
                self.status, self.loading, self.asked = event, None, ""
                if self.has_engine:  # a recording's functions must not run because somebody looks at it
                    allow_running(event.settings)
                if event.running:
                    self.stopped = ""
                self.changed.add("status")
            case Failed():
                self.failed, self.loading, self.asked, self.going_back_to = event, None, "", None
                self._note(LogLine("error", "\n".join(filter(None, (event.text, event.detail)))))
                self.changed |= {"status", "log"}
            case Judged():
                self.judged = event
            case Peeked() | Continued() | Estimated() | Recalled():
                self.probing.take(event)
            case LogLine():
                self._note(event)
                self.changed.add("log")
            case Restored():
                self._restore(event)
            case Moved():
                self._newest = self._worded(event.update)
                self._problems[event.update.number] = event.problem
                self._arrived(event.update.number)
                self.changed.add("update")
            case Recorded():
                self._record(event)

    def _restore(self, event: Restored) -> None:
        self.history, self.timeline = event.history, event.timeline
        self.health.history = event.history
        self.beliefs.stale = self.evaluations.stale = True
        if event.back_to is not None:
            self.digesting.go_back(event.back_to)
        self.changed.add("history")

    def _record(self, event: Recorded) -> None:
        record = event.record
        if not (isinstance(record, Sampled) and not record.done):
            self.history.add(record)
            self.changed.add("history")
        if isinstance(record, Evaluated):
            self.evaluations.add(record)
        match record:
            case Started():
                self.started, self.failed, self.loading, self.stopped = record, None, None, ""
                self.timeline.begun = record.settings
                self.health.ends = record.ends
                self.changed.add("status")
            case Notice():
                self.notices.append(record)
                if record.level == "error" and self.source.live:
                    self.stopped = record.text
                self._note(LogLine(_level(record), "\n".join(filter(None, (record.text, record.detail)))))
                self.changed |= {"notice", "log"}
            case Staged():
                self.timeline.changes.append(record)
                self.changed.add("update")
            case Changed():
                self.timeline.changes.append(record)
                self.new_changes.append(record)
                self.changed.add("update")
            case Rewound():
                self.stopped = ""
                self._arrived(record.update)
                went_back = record.abandoned > record.update or record.asked
                self.undone = max(self.undone, record.abandoned if went_back else 0)
                self.reset = self.undoing(record.update)
                self.new_changes.extend(self.reset)
                self.timeline.go_back(record.update)
                self.digesting.go_back(record.update)
                self.beliefs.go_back(record.update)
                self.evaluations.go_back(record.update)
                for number in [n for n in self._updates if n > record.update]:
                    del self._updates[number]
                self._newest = Update(0) if record.update == 0 else self.find(record.update)
                if self.looking is not None and self.looking > record.update:
                    self.back_to_live()
                self.changed.add("update")
            case _ if record.update > 0:
                if isinstance(record, Finished):
                    self.seconds += record.seconds
                    self.last_finished = record.update
                self._fill(event)

    def _fill(self, event: Recorded) -> None:
        record = event.record
        update = self._updates.get(record.update)
        begun_again = isinstance(record, Sampled) and update is not None and update.sampled and update.sampled.done
        if update is None or begun_again:
            if not isinstance(record, Sampled):
                return
            update = self._updates[record.update] = Update(record.update, self.step_word)
            self._problems.pop(record.update, None)
            while len(self._updates) > KEPT:
                self._updates.popitem(last=False)
        update.add(record)
        if isinstance(record, Finished):
            self.digesting.take(update)
        if isinstance(record, Sampled):
            self.beliefs.add(record)
            self._newest, self.undone, self.reset = update, 0, []
        if update is self.shown:
            self.changed.add("update")

    def _arrived(self, number: int) -> None:
        if self.going_back_to is not None and number <= self.going_back_to:
            self.going_back_to = None

    def _note(self, line: LogLine) -> None:
        self.log.append((time.time(), line))

    def find(self, number: int) -> Update | None:
        """Update `number`, from memory or from the run file; None if its detail was not kept.

        A damaged update is returned empty, with a `problem`.
        """
        try:
            found = self._updates.get(number) or self.source.load(number)
        except RunFileError as error:
            self._problems[number] = str(error)
            return Update(number, self.step_word)
        return None if found is None else self._worded(found)

    def _worded(self, update: Update) -> Update:
        """An update that was read, which knows what the policy samples only from here."""
        update.step_word = self.step_word
        return update

    def look(self, direction: int) -> bool:
        """Show the update before (−1) or after (+1) the current one; False if there is none.

        Going past the newest returns to live. RunFileError if the run file is damaged.
        """
        here = self.looking if self.looking is not None else (self._newest.number if self._newest else 0)
        newest = self._newest.number if self._newest is not None else 0
        if direction > 0 and here + 1 >= newest:
            moved = self.looking is not None
            self.back_to_live()
            return moved
        numbers = sorted({*self._updates, *self.source.recorded()})
        beyond = [n for n in numbers if (n < here if direction < 0 else here < n < newest)]
        return self.look_at(max(beyond) if direction < 0 else min(beyond)) if beyond else False

    def look_at(self, number: int) -> bool:
        """Show update `number` while the engine continues; False if its detail was not kept."""
        update = self.find(number)
        if update is None:
            return False
        self.looking, self._looked_at = number, update
        self.changed |= {"update", "status"}
        return True

    def back_to_live(self) -> None:
        """Return to the live update."""
        self.looking = self._looked_at = None
        self.changed |= {"update", "status"}

    def recover(self) -> None:
        """Prepare for a restart of the source."""
        self.failed, self.status, self.asked = None, None, ""
        self.loading = Loading("starting the engine again", 0.0)
        self.changed.add("status")

    def take_changes(self) -> set[Part]:
        """What has changed since the last call."""
        changes, self.changed = self.changed, set()
        return changes


def _level(notice: Notice) -> Any:
    return notice.level if notice.level in ("info", "warning", "error") else "info"
