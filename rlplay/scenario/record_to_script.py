"""Turns what a user did in a recorded run into a script that repeats it, bit for bit on the same device.

A run records changed settings, labels, credit that was taken away, and rewinds. With each of them, and whenever the run
went on, it records the colour and the token that the user looked at. Each record has its place between the phases of an
update.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlplay.trace.records import AnyRecord, Changed, Labelled, Looked, Rewound, Withheld
from rlplay.trace.update import PHASES

Entry = dict[str, Any]
_REACHED = {"sampled": 1, "scored": 2, "credited": 3}
"""How many phases of an update are over when a record of this kind exists."""


def script_from(events: Iterable[tuple[str, int, AnyRecord | None]]) -> list[Entry]:
    """The script that repeats the events of `RunReader.events`. Raises ValueError, one line, if no script can."""
    writer = _ScriptWriter()
    for kind, update, record in events:
        writer.add(kind, update, record)
    writer.catch_up()
    return writer.script


class _ScriptWriter:
    """Follows a run and writes its script. The script advances only when it has to do something."""

    def __init__(self) -> None:
        self.script: list[Entry] = []
        self._done = self._phases = 0  # in the script: finished updates, finished phases of the next one
        self._reached = (0, 0, 0)  # in the run: the same, and the optimizer steps of an unfinished fourth phase
        self._stepped = 0  # in the script: optimizer steps of an unfinished phase
        self._lens, self._focus = "auto", (0, 0)
        self._labels: dict[int, dict[int, str]] = {}  # not in the script yet: by update and pair

    def add(self, kind: str, update: int, record: AnyRecord | None) -> None:
        """Take the next event."""
        match record:
            case Changed():
                self._go_to(update - 1, PHASES.index(record.phase))
                self.script.append({"set": {record.name: record.value}})
            case Withheld():
                self._go_to(update - 1, 0)
                self.script.append({"withhold": record.tokens})
            case Labelled():
                self._labels.setdefault(update, {})[record.pair] = record.choice
            case Looked():
                self._look(record)
            case Rewound():
                self._rewind(update)
            case _ if kind in _REACHED:
                self._reached = update - 1, _REACHED[kind], 0
            case _ if kind == "stepped":
                self._reached = update - 1, 3, self._reached[2] + 1
            case _ if kind == "finished":
                self._reached = update, 0, 0

    def catch_up(self) -> None:
        """Advance the script to where the run is."""
        done, phases, steps = self._reached
        if (done, phases) > (self._done, self._phases):
            self._go_to(done, phases)
        if steps > self._stepped and (done, phases) == (self._done, self._phases):
            self._go("step", steps - self._stepped)
            self._stepped = steps

    def _look(self, seen: Looked) -> None:
        place = seen.update - 1, PHASES.index(seen.phase)
        if place > (self._done, self._phases):  # else a setting that waits has already advanced the script
            self._go_to(*place)
        if place == self._reached[:2]:
            self.catch_up()
        if seen.lens != self._lens:
            self.script.append({"lens": seen.lens})
        focus = seen.completion, seen.token
        if focus != self._focus:
            self.script.append({"focus": {"completion": seen.completion, "token": seen.token}})
        self._lens, self._focus = seen.lens, focus

    def _rewind(self, update: int) -> None:
        self.catch_up()
        if (self._done, self._phases) != (update, 0) or self._reached[1:] != (0, 0):
            self.script.append({"rewind": update})
        self._done, self._phases, self._stepped, self._reached = update, 0, 0, (update, 0, 0)
        self._labels = {number: labels for number, labels in self._labels.items() if number <= update}

    def _go_to(self, done: int, phases: int) -> None:
        if (done, phases) < (self._done, self._phases):
            raise ValueError(
                f"in update {done + 1} a setting was changed while another waited for the next update; "
                "a script cannot repeat that"
            )
        for update in sorted(self._labels):
            if self._done < update and (update - 1, 1) < (done, phases):
                self._walk(update - 1, 1)
                labels = self._labels.pop(update)
                self.script.append({"prefer": [labels[pair] for pair in sorted(labels)]})
        self._walk(done, phases)

    def _walk(self, done: int, phases: int) -> None:
        if done > self._done:
            self._go("update", done - self._done)
            self._done, self._phases, self._stepped = done, 0, 0
        if phases > self._phases:
            self._go("phase", phases - self._phases)
            self._phases, self._stepped = phases, 0

    def _go(self, verb: str, count: int) -> None:
        if self.script and verb in self.script[-1]:
            count += self.script.pop()[verb]
        self.script.append({verb: count})
