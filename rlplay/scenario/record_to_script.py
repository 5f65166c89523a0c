"""What a person did in a recorded run as a script that does it again, bit for bit on the same device.

Recorded are the settings turned, the labels given, the ways back, and the colour and the token that were looked at when
any of these was done or the run went on: each with its place between the phases of an update.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlplay.trace.records import AnyRecord, Changed, Labelled, Looked, Rewound
from rlplay.trace.update import PHASES

Entry = dict[str, Any]
_REACHED = {"sampled": 1, "scored": 2, "credited": 3}
"""Phases of an update that are over once such a record is there."""


def retold(course: Iterable[tuple[str, int, AnyRecord | None]]) -> list[Entry]:
    """The script for what happened, as `RunReader.course` gives it. Raises ValueError, one line, if there is none."""
    teller = _Teller()
    for kind, update, record in course:
        teller.hear(kind, update, record)
    teller.catch_up()
    return teller.script


class _Teller:
    """Follows a run and keeps a script behind it: the script goes on only where something is to be done."""

    def __init__(self) -> None:
        self.script: list[Entry] = []
        self._done = self._phases = 0  # where the script stands: updates finished, phases of the next one that are over
        self._reached = (0, 0, 0)  # where the run stands: the same, and optimizer steps of a fourth phase under way
        self._stepped = 0  # optimizer steps of the phase under way that the script has taken
        self._lens, self._focus = "auto", (0, 0)
        self._labels: dict[int, dict[int, str]] = {}  # not in the script yet: by update and pair

    def hear(self, kind: str, update: int, record: AnyRecord | None) -> None:
        """Take what happened next."""
        match record:
            case Changed():
                self._go_to(update - 1, PHASES.index(record.phase))
                self.script.append({"set": {record.name: record.value}})
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
        """Go as far as the run went."""
        done, phases, steps = self._reached
        if (done, phases) > (self._done, self._phases):
            self._go_to(done, phases)
        if steps > self._stepped and (done, phases) == (self._done, self._phases):
            self._go("step", steps - self._stepped)
            self._stepped = steps

    def _look(self, seen: Looked) -> None:
        place = seen.update - 1, PHASES.index(seen.phase)
        if place > (self._done, self._phases):  # else a setting that waits has taken the script further already
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
                "a script cannot tell that"
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
