"""Where the phases of an update end."""

from __future__ import annotations

from rlplay.engine.loop import Moment
from rlplay.trace.records import Credited, Finished, Sampled, Scored, Stepped
from rlplay.trace.settings_timeline import Point, next_point


def point_after(point: Point, moment: Moment) -> Point:
    """What follows the phase that `moment` ends; an update without an optimizer step ends in phase "update"."""
    return (moment.update + 1, "sample") if isinstance(moment, Finished) else next_point(point)


def ends_phase(moment: Moment) -> bool:
    """Whether the record that the loop yielded is the last one of its phase."""
    if isinstance(moment, Stepped):
        return moment.epoch + 1 == moment.epochs and moment.minibatch + 1 == moment.minibatches
    return isinstance(moment, (Scored, Credited, Finished)) or (isinstance(moment, Sampled) and moment.done)
