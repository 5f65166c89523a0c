"""What every reader of foreign runs offers, and the beginning of such a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.catalogue import AXES, PRESETS
from rlplay.algorithms.own_choices import names_file
from rlplay.algorithms.setting_values import check
from rlplay.scenario.schema import Scenario
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import AnyRecord, Started


class ForeignRunError(ValueError):
    """A run that cannot be read; one line: what, where, what to do."""


class ForeignRun(Protocol):
    """A run of another trainer, which may still grow."""

    path: Path
    """The folder or file that it is read from."""

    def started(self) -> Started:
        """Its beginning. Raises ForeignRunError if there is none yet."""

    def fresh(self) -> list[AnyRecord]:
        """The records that became known since the last call, of many the first; none if there are none.

        Raises ForeignRunError if what there is is damaged.
        """

    def place(self) -> dict[str, Any]:
        """Where to go on another time: after the last update that `fresh` has given in whole."""

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on at such a place."""


def beginning(
    source: str,
    *,
    title: str = "",
    settings: SomeSettings | None = None,
    run_id: str = "",
    seed: int = 0,
    model: str = "",
    parameters: int = 0,
    device: str = "",
    dtype: str = "",
    versions: Mapping[str, str] | None = None,
    stage: str = "",
    ends: Mapping[int, str] | None = None,
) -> Started:
    """The first record of a run of the trainer `source`; its `stage` is what the screen gives its room to."""
    name = source.split(maxsplit=1)[0].lower() or "foreign"
    scenario = Scenario(name=name, title=title or source, question="", stage=stage)
    return Started(
        update=0, run_id=run_id, scenario=scenario.name, scenario_text=msgspec.yaml.encode(scenario).decode(),
        title=scenario.title, settings=known_settings(settings or {}), seed=seed, model=model or "unknown model",
        parameters=parameters, device=device, dtype=dtype, threads=0, versions=dict(versions or {}), source=source,
        ends=dict(ends or {}),
    )  # fmt: skip


def known_settings(wanted: SomeSettings) -> SomeSettings:
    """The settings of `wanted` that rlplay knows and that fit together, with the axes of the algorithm.

    The algorithm is "" unless it is one of rlplay's by name, with all of the axes that are given. Settings that are not
    in the result are not on record.
    """
    algorithm = wanted.get("algorithm")
    named = isinstance(algorithm, str) and algorithm in PRESETS
    settings, taken = resolve({"algorithm": algorithm} if named else {}), set[str]()
    allowed = {name: value for name, value in wanted.items() if name != "algorithm" and _allowed(name, value)}
    for changes in (allowed, *({name: value} for name, value in allowed.items())):
        try:
            settings = apply_all(settings, changes)
        except ValueError:
            continue
        taken |= changes.keys()
        if changes is allowed:  # else they do not fit together, and one by one those that do are taken
            break
    if named and any(name in AXES and name not in taken for name in wanted):  # its loss is another one
        return known_settings({name: value for name, value in wanted.items() if name != "algorithm"})
    known, values = taken | {*AXES} if named else taken, msgspec.structs.asdict(settings)
    return {"algorithm": algorithm if named else ""} | {name: values[name] for name in values if name in known}


def _allowed(name: str, value: Any) -> bool:
    if names_file(name, value):  # a recording is data: it must not name code to run
        return False
    try:
        check(name, value)
    except ValueError:
        return False
    return True
