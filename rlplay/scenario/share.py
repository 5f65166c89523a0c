"""Share codes: a bundled scenario, its seed and the settings that differ from it, as one word to share.

A code may also lead to a moment of the scenario's lesson: a step, and the settings that differ from the script there.

A code is `rlp1-` and the base64 (RFC 4648, the URL alphabet, unpadded) of a CRC-32 and a msgpack array; 1 is the
format. A code never names files on a user's disk: models, datasets and rewards are not part of it.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, NamedTuple

import msgspec

from rlplay.algorithms.apply import apply_all
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.own_choices import names_file
from rlplay.algorithms.setting_values import unknown, written
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.names import bundled
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script_settings import settings_at
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import quote

FORMAT = 1
PREFIX = f"rlp{FORMAT}-"
_CODE = re.compile(r"rlp(\d+)-(.*)", re.DOTALL)
_CHECKSUM = 4
_MOMENT = 2  # fields of a moment in a lesson


class ShareError(ValueError):
    """A share code that rlplay cannot use: one line."""


class Moment(NamedTuple):
    """A moment of a lesson: after `step` of its steps, with the settings `changed` there."""

    step: int
    changed: SomeSettings


START = Moment(0, {})


class Shared(msgspec.Struct, frozen=True, array_like=True):
    """The content of a code; None, and settings that it does not name, stay as in the scenario."""

    scenario: str
    seed: int | None = None
    updates: int | None = None
    algorithm: str | None = None
    settings: SomeSettings = {}
    step: int = 0  # steps of the lesson played
    changed: SomeSettings = {}  # settings to change there

    @property
    def moment(self) -> Moment:
        """Where in the lesson it leads."""
        return Moment(self.step, self.changed)

    @property
    def code(self) -> str:
        """The code as text. Without a moment, it ends after the settings."""
        fields = msgspec.structs.astuple(self)
        content = msgspec.msgpack.encode(fields if self.step else fields[:-_MOMENT])
        checked = binascii.crc32(content).to_bytes(_CHECKSUM, "big") + content
        return PREFIX + base64.urlsafe_b64encode(checked).decode().rstrip("=")

    def changes(self, given: dict[str, Any] | None = None) -> dict[str, Any]:
        """The arguments of `with_changes`; `given` are changes on the same command line, which override the code."""
        options = given or {}
        named = {"seed": self.seed, "updates": self.updates, "algorithm": self.algorithm}
        chosen = {name: value for name, value in options.items() if value is not None}
        sets = [f"{name}={written(value)}" for name, value in self.settings.items()]
        return {**options, **named, **chosen, "sets": [*sets, *options.get("sets", ())]}

    def scenario_with(self, given: dict[str, Any] | None = None) -> Scenario:
        """The scenario to play, with the changes `given` on top. Raises ShareError or ScenarioError, one line."""
        if self.scenario not in bundled():
            raise ShareError(
                f"the share code is for the scenario {quote(self.scenario)}, which this rlplay does not have"
            )
        carried = (*self.settings.items(), *self.changed.items())
        if strange := [name for name, _ in carried if name not in KNOBS]:
            raise ShareError(f"the share code does not fit this version of rlplay: {unknown(strange[0])}")
        if any(names_file(name, value) for name, value in (*carried, ("algorithm", self.algorithm))):
            raise ShareError("the share code names a file, and a code may name none; ask for the file and its command")
        try:
            self._check_moment(with_changes(load(self.scenario), **self.changes()))
        except ValueError as error:
            raise ShareError(f"the share code does not fit this version of rlplay: {error}") from None
        return with_changes(load(self.scenario), **self.changes(given))

    def _check_moment(self, scenario: Scenario) -> None:
        steps = len(whole_script(scenario))
        if not 0 <= self.step <= steps:
            raise ValueError(
                f"it leads to step {self.step} of the lesson {quote(self.scenario)}, which has {steps} steps"
            )
        apply_all(settings_at(scenario, self.step), self.changed)


def shared_in(code: str) -> Shared:
    """The content of a code. Raises ShareError, one line, if it is damaged or from a newer rlplay."""
    found = _CODE.fullmatch(code.strip())
    if found is None:
        raise ShareError(f"this is not a share code; one begins with {PREFIX}, and the knobs panel (k) shows it")
    if int(found[1]) != FORMAT:
        raise ShareError(f"the share code has format {found[1]}, and this rlplay reads {FORMAT}; upgrade rlplay")
    damaged = ShareError("the share code is damaged: a character is wrong or missing; copy the whole code again")
    try:
        checked = base64.b64decode(found[2] + "=" * (-len(found[2]) % 4), altchars=b"-_", validate=True)
        content = checked[_CHECKSUM:]
        shared = msgspec.msgpack.decode(content, type=Shared)
    except (ValueError, msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        raise damaged from None
    # Compare the text, because base64 has several spellings of some bytes.
    if binascii.crc32(content).to_bytes(_CHECKSUM, "big") != checked[:_CHECKSUM] or shared.code != code.strip():
        raise damaged
    return shared
