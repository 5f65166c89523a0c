"""What the screen's process does while nobody presses a key: it imports what may open, and it collects garbage.

Python, up to 3.13, goes through all objects whenever a quarter more have come. A dialogue makes ten thousand, so that
happened while it opened, for 30 to 50 ms. Here only young objects are collected at any time; the others wait for a
pause.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from importlib import import_module

from rlplay.ui.rooms import modules

PAUSE = 1.0
"""Seconds without a key or a mouse button after which the user is thinking or reading."""
EVERY = 60.0
"""Seconds after which the garbage is collected again although nobody has pressed a key: updates make some, too."""
AT_LEAST = 20.0
"""Seconds after which it is collected although keys never pause: a closed dialogue is up to a megabyte of garbage."""
YOUNG = 5000, 5, 1000
"""Objects before a collection of the youngest; such collections before one of the next, and those before one of all."""


class IdleTasks:
    """One thing at a time, so that a key pressed meanwhile waits for one of them at most."""

    def __init__(self, at_home: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        """`at_home` says whether no dialogue is open."""
        self._at_home, self._clock = at_home, clock
        self._pressed = self._collected = clock()
        self._modules = ["rlplay.ui.command_palette", *modules()]
        self._settled = False

    def begin(self) -> None:
        """Objects made at start-up live until the end: collections leave them out."""
        gc.set_threshold(*YOUNG)
        gc.freeze()

    def end(self) -> None:
        """The user has pressed something."""
        self._pressed = self._clock()

    def look(self) -> None:
        """Do the next thing, if there is time; to be called a few times a second."""
        now = self._clock()
        if now - self._pressed < PAUSE:
            if now - self._collected > AT_LEAST:
                self._collected = now
                gc.collect()
            return
        self._modules = [each for each in self._modules if each not in sys.modules]
        if self._modules:
            import_module(self._modules.pop(0))
        elif self._pressed > self._collected or now - self._collected > EVERY or self._settles():
            self._collected = now
            gc.collect()
            if self._settles():
                self._settled = True
                gc.freeze()

    def _settles(self) -> bool:
        """Whether the dialogues are imported, none is open, and what there is has not been set aside yet."""
        return not self._settled and self._at_home()
