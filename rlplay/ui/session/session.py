"""The state of the screen as plain data, filled from events and read by panels. No widgets here."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Literal

import msgspec

from rlplay.algorithms.own_choices import allow_running
from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import Settings
from rlplay.health.health_of_run import Health
from rlplay.link.messages import UNSAID, Abilities, Failed, Loading, LogLine, Recorded, RecordView, Status
from rlplay.plain_yaml import PlainYamlError
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.scenario_world import step_word, world_of
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import Judged
from rlplay.trace.records import AnyRecord, Changed, Finished, Notice, Rewound, Sampled, SettingsChange, Started
from rlplay.trace.run import Run
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.update import Phase, Update
from rlplay.ui.session.answers import take_answer
from rlplay.ui.session.digesting import Digesting
from rlplay.ui.session.happenings import Happening, Moved, Restored
from rlplay.ui.session.probing import Probing
from rlplay.ui.session.reaching import Reaching
from rlplay.ui.session.rehearsing import Rehearsing
from rlplay.ui.session.source import Source
from rlplay.ui.session.teachers import Teachers
from rlplay.ui.session.weighing import Weighing
from rlplay.ui.session.writing import Writing
from rlplay.ui.words.changed_settings import reverting_changes
from rlplay.ui.words.narration import Place
from rlplay.worlds.world import World, WorldError

LOG_LINES = 2000


Part = Literal["update", "look", "history", "status", "log", "notice"]
"""What may have changed since the screen last looked: "update" is the update shown, "look" how it is shown."""


class Session:
    """A run as the screen has it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.run = Run(self._load)
        self.loading: Loading | None = Loading("starting the engine" if source.live else "reading the run", 0.0)
        self.status: Status | None = None
        self.failed: Failed | None = None
        self.health = Health(self.run)
        self.digesting = Digesting(self.health, source, lambda: self.touch("status"))
        self.log: deque[tuple[float, LogLine]] = deque(maxlen=LOG_LINES)  # with the time of arrival, since the epoch
        self.notices: list[Notice] = []
        self.new_changes: list[Changed] = []  # changed settings that the screen has not reported yet
        self.reset: list[Changed] = []  # settings reverted by going back, until another update is sampled
        self.probing = Probing()
        self.writing = Writing()
        self.weighing = Weighing()
        self.teachers = Teachers()
        self.judged: Judged | None = None  # the last answer about a pair
        self.reaching: Reaching | None = None  # what was asked last about another reward
        self.rehearsing: Rehearsing | None = None  # the repair that was tried last
        self.version = 0  # another one after every change
        self._changed: set[Part] = {"update", "history", "status"}  # since the main screen last looked
        self.looking: int | None = None
        self.held: Update | None = None  # the update that stays on the screen while the newest begins
        self.looked = RecordView("auto", 0, 0)  # the view last recorded in the run
        self.asked: str = ""
        self.stopped = ""  # the error that stopped the engine, until it continues
        self.going_back_to: int | None = None  # the target of going back, until it is reached
        self.undone = 0  # the last undone update, until another is sampled
        self._set_off = 0  # the update at which the engine started running
        self.seconds = 0.0
        self.last_finished = 0
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
        started = self.run.started
        if self._world is None or self._world[0] is not started:
            try:
                world = None if started is None else world_of(scenario_of(started))
            except (WorldError, PlainYamlError, msgspec.MsgspecError):
                world = None
            self._world = started, world
        return self._world[1]

    @property
    def shown(self) -> Update | None:
        """The update on the screen: the live one or an older one."""
        return self._looked_at if self.looking is not None else self.held or self.run.newest

    @property
    def under_way(self) -> Update | None:
        """The update whose progress the screen shows: the newest, or the older one that the user looks at."""
        return self.run.newest if self.looking is None else self._looked_at

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
    def settings(self) -> Settings:
        """The current settings, including changes that wait for their phase."""
        return decoded(self.on_record())

    def settings_of(self, update: Update | None, phase: Phase = "update") -> Settings:
        """The settings in a phase of `update`, without later changes; the current ones without an update.

        At the start these are the settings that the first update will have.
        """
        return decoded(self.on_record(update, phase))

    def settings_after(self, number: int) -> Settings:
        """The settings at the start of the update after `number`; a branch changes these."""
        return decoded(self.run.timeline.at(number + 1, "sample"))

    def on_record(self, update: Update | None = None, phase: Phase = "update") -> SomeSettings:
        """As `settings_of`, but those alone that are on record: another trainer's run may not have all."""
        if update is not None and self.run.timeline.begun:
            return self.run.timeline.at(update.number, phase) if update.number else self.run.timeline.at(1, "sample")
        if self.status is not None and self.status.settings:
            return self.status.settings
        return {} if self.run.started is None else self.run.started.settings

    @property
    def changed_at(self) -> list[int]:
        """The updates in which settings changed."""
        return sorted({change.update for change in self.run.timeline.changes})

    def undoing(self, number: int) -> list[Changed]:
        """The changes of settings that going back to the end of update `number` reverts."""
        return reverting_changes(
            (each for each in self.run.timeline.after(number) if isinstance(each, Changed)), number
        )

    @property
    def branches_at(self) -> int:
        """The update after which a branch starts: the one on the screen if finished, else the last finished one."""
        older = self.older_update
        return self.run.finished if older is None else min(older, self.run.finished)

    @property
    def asks(self) -> list[int]:
        """The pairs that wait for the user's labels."""
        there = self.failed is None and self.status is not None and not self.status.running
        return self.status.asks if there and self.status is not None else []

    def apply(self, event: Happening) -> None:
        """Take one event."""
        self.version += 1
        match event:
            case Loading():
                self.loading = event if event.fraction < 1 else None
                self.touch("status")
            case Status():
                if not event.running or self.status is None or not self.status.running:
                    self._set_off = event.update
                self.status, self.loading, self.asked = event, None, ""
                if self.has_engine:  # a recording's functions must not run because somebody looks at it
                    allow_running(event.settings)
                if event.running:
                    self.stopped = ""
                self.touch("status")
            case Failed():
                self.failed, self.loading, self.asked, self.going_back_to = event, None, "", None
                self.teachers.end()
                if self.rehearsing is not None:
                    self.rehearsing.end()
                self._note(LogLine("error", "\n".join(filter(None, (event.text, event.detail)))))
                self.touch("status", "log")
            case LogLine():
                self._note(event)
                self.touch("log")
            case Restored():
                self.run.restore(event.history, event.timeline, event.back_to)
                self.touch("history")
            case Moved():
                event.update.step_word = self.step_word
                self.run.newest = event.update
                self._problems[event.update.number] = event.problem
                self._arrived(event.update.number)
                self.touch("update")
            case Recorded():
                self._record(event.record)
            case _:
                take_answer(self, event)

    def colour_shares(self) -> None:
        """Let the tokens of the update whose shares are known have them."""
        looked_at = self.shown, self.run.updates.get(self.teachers.by)
        if True in {self.teachers.colour(each) for each in looked_at}:  # both of them, whichever changed
            self.touch("look")

    def _record(self, record: AnyRecord) -> None:
        if isinstance(record, Rewound):
            self.reset = self.undoing(record.update)
        self.run.add(record)
        update = self.run.updates.get(record.update)
        if not (isinstance(record, Sampled) and not record.done):
            self.touch("history")
        if (update is not None and update is self.shown) or isinstance(record, (SettingsChange, Rewound)):
            self.touch("update")
        match record:
            case Started():
                self.failed, self.loading, self.stopped = None, None, ""
                self.run.step_word = self.step_word
                self.touch("status")
            case Notice():
                self._notice(record)
            case Changed():
                self.new_changes.append(record)
            case Rewound():
                self._went_back(record)
            case Sampled():
                self.undone, self.reset = 0, []
                self._problems.pop(record.update, None)
            case Finished():
                self.seconds += record.seconds
                self.last_finished = record.update
                if update is not None:
                    self.digesting.take(update)
            case _:
                pass

    def _notice(self, notice: Notice) -> None:
        self.notices.append(notice)
        if notice.level == "error" and self.source.live:
            self.stopped = notice.text
        self._note(LogLine(_level(notice), "\n".join(filter(None, (notice.text, notice.detail)))))
        self.touch("notice", "log")

    def _went_back(self, rewound: Rewound) -> None:
        self.stopped = ""
        if self.teachers.at(self.run.rewinds):
            self.colour_shares()
        self._arrived(rewound.update)
        went_back = rewound.abandoned > rewound.update or rewound.asked
        self.undone = max(self.undone, rewound.abandoned if went_back else 0)
        self.new_changes.extend(self.reset)
        if self.looking is not None and self.looking > rewound.update:
            self.back_to_live()

    def _arrived(self, number: int) -> None:
        if self.going_back_to is not None and number <= self.going_back_to:
            self.going_back_to = None

    def _note(self, line: LogLine) -> None:
        self.log.append((time.time(), line))

    def _load(self, number: int) -> Update | None:
        """An update from the source; a damaged one is empty, with a `problem`."""
        try:
            return self.source.load(number)
        except RunFileError as error:
            self._problems[number] = str(error)
            return Update(number)

    def look(self, direction: int) -> bool:
        """Show the update before (−1) or after (+1) the current one; False if there is none.

        Going past the newest returns to live. RunFileError if the run file is damaged.
        """
        newest = self.run.newest.number if self.run.newest is not None else 0
        here = self.looking if self.looking is not None else newest
        if direction > 0 and here + 1 >= newest:
            moved = self.looking is not None
            self.back_to_live()
            return moved
        numbers = sorted({*self.run.updates, *self.source.recorded()})
        beyond = [n for n in numbers if (n < here if direction < 0 else here < n < newest)]
        return self.look_at(max(beyond) if direction < 0 else min(beyond)) if beyond else False

    def look_at(self, number: int) -> bool:
        """Show update `number` while the engine continues; False if its detail was not kept."""
        update = self.run.find(number)
        if update is None:
            return False
        self.looking, self._looked_at = number, update
        self.teachers.colour(update)
        self.touch("update", "status")
        return True

    def back_to_live(self) -> None:
        """Return to the live update."""
        self.looking = self._looked_at = None
        self.touch("update", "status")

    def hold(self, update: Update | None) -> None:
        """Keep `update` on the screen instead of the newest; None: no longer."""
        if update is not self.held:
            self.held = update
            self.touch("update")

    def recover(self) -> None:
        """Prepare for a restart of the source."""
        self.failed, self.status, self.asked = None, None, ""
        self.loading = Loading("starting the engine again", 0.0)
        self.touch("status")

    def touch(self, *parts: Part) -> None:
        """Say that these have changed."""
        self.version += 1
        self._changed.update(parts)

    def take_changes(self) -> set[Part]:
        """What has changed since the last call."""
        changes, self._changed = self._changed, set()
        return changes


def _level(notice: Notice) -> Any:
    return notice.level if notice.level in ("info", "warning", "error") else "info"
