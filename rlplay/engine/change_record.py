"""The record of a setting that changed."""

from __future__ import annotations

import msgspec

from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Changed
from rlplay.trace.settings_timeline import Point


def changed(before: Settings, after: Settings, name: str, point: Point) -> Changed:
    """The record of a change that holds from `point` on, with what else the setting `name` brought along."""
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    also = {key: value for key, value in new.items() if value != old[key] and key != name}
    update, phase = point
    return Changed(update=update, phase=phase, name=name, value=new[name], previous=old[name], also=also)
