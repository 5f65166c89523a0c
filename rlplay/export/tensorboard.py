"""Every number of a run as events that TensorBoard reads, under the names of `metrics.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlplay.export.atomic_output import ExportError
from rlplay.trace.runfile import RunReader


def write_events(folder: Path, reader: RunReader) -> None:
    """Write a folder for `tensorboard --logdir`: one event for each update of the live branch.

    Its step is the update; of another trainer's run, the step under which that trainer logs it.

    TensorBoard wants a wall time, which a run file does not record per update: it is the start of the run plus the
    seconds that its updates took, without pauses. Raises ExportError if tensorboardX is not installed.
    """
    try:
        with _torch_left_alone():
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event
            from tensorboardX.proto.summary_pb2 import Summary
    except ImportError:
        raise ExportError("writing for TensorBoard needs tensorboardX: pip install tensorboardX") from None
    folder.mkdir()
    writer = EventsWriter(str(folder / "events"))
    now, clock = reader.began.timestamp(), reader.history().clock
    for update, metrics in reader.metrics():
        now += reader.seconds(update)
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in metrics.items()]
        step = clock.place(update) if clock else update
        writer.write_event(Event(wall_time=now, step=step, summary=Summary(value=values)))
    writer.close()


@contextmanager
def _torch_left_alone() -> Iterator[None]:
    """Makes the import of torch fail: tensorboardX would load it, which takes two seconds and is of no use here."""
    modules: dict[str, object] = sys.modules  # type: ignore[assignment]
    loaded = "torch" in modules
    if not loaded:
        modules["torch"] = None
    try:
        yield
    finally:
        if not loaded:
            del modules["torch"]
