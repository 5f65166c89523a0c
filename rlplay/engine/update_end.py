"""The end of an update: its snapshot first, then the record that says so, both while the next update begins.

Who is killed before the record is there has not seen the update end, and a run that is resumed does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from rlplay.engine import ranks
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.trace.records import Finished


class UpdateEnd:
    """The end of the last update, as long as its snapshot is being written. `commit` records it, `warn` says why a
    snapshot is missing: without one the run goes on, and a rewind repeats a little more."""

    def __init__(self, store: SnapshotStore, commit: Callable[[Finished], None], warn: Callable[[str], None]) -> None:
        self._store, self._commit, self._warn = store, commit, warn
        self._end: Finished | None = None

    def begin(self, end: Finished, state: State, kept: bool) -> None:
        """An update has ended; a thread begins with its snapshot if the state is to be `kept`.

        Several processes wait for it at once, and so at the same point.
        """
        if kept:
            with spent_on("snapshot"):
                self._store.begin(state)
        self._end = end
        if not kept or ranks.count() > 1:
            self.close()

    @property
    def is_pending(self) -> bool:
        """Whether `close` has something to record."""
        return self._end is not None

    @property
    def is_due(self) -> bool:
        """Whether it has, and nothing to wait for."""
        return self.is_pending and not self._store.is_writing

    def close(self) -> None:
        """Record the end, once its snapshot is there. Nothing may change the weights, or be recorded, before."""
        if self._end is not None:
            end, self._end = self._end, None
            with self._warned(end.update):
                self._store.finish()
            self._commit(end)

    def keep(self, state: State, always: bool = False) -> None:
        """A snapshot of the state as it is now."""
        with self._warned(state.update):
            self._store.keep(state, always)

    @contextmanager
    def _warned(self, update: int) -> Iterator[None]:
        try:
            with spent_on("snapshot"):
                yield
        except (OSError, SafetensorError) as error:
            self._warn(f"no snapshot of update {update} ({error}); free some disk space to keep them")
