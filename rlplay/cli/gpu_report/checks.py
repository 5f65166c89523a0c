"""The checks of the report: which there are, which share a process, and the lines that they give.

Imports no torch: the command's own process reads this, too.
"""

from __future__ import annotations

from typing import NamedTuple

OK, FAILS, NOT_TRIED = "ok", "FAILS", "not tried"


class Line(NamedTuple):
    """One finding: `status` is OK, FAILS or NOT_TRIED; "" for a fact that is neither right nor wrong."""

    status: str
    name: str
    text: str


class NotTriedError(Exception):
    """A check that says nothing here: one line with the reason."""


class Check(NamedTuple):
    """`place` is MODULE:FUNCTION in this package, a function of the device and a folder that all checks share."""

    name: str
    place: str


REFERENCE = Check("CPU's update", "numbers:reference")
"""What others are compared with; it runs on the CPU."""

GROUPS = (
    (Check("device", "machine:facts"),),  # which says whether there is a GPU
    (Check("capture", "graph:capture"),),
    (
        Check("numbers", "numbers:update"),
        Check("time", "speed:update"),
        Check("sampling", "speed:sampling"),
        Check("tf32", "numbers:tf32"),
        Check("bfloat16", "numbers:bfloat16"),
    ),
    (Check("determinism", "numbers:determinism"),),  # cuBLAS reads its setting once
    (Check("TRL", "trl_update:update"),),  # its Accelerator belongs to the process
    (Check("failed capture", "graph:failed_capture"),),  # after one, a process captures nothing
)
"""The checks that run on the device; each tuple in a process of its own."""
