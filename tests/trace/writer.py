"""A process that writes a run as fast as it can, says after each commit what it committed, and awaits its end."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from rlplay.trace.records import Finished
from rlplay.trace.runfile import RunWriter
from tests.recorded import synthetic_started, synthetic_update

if __name__ == "__main__":
    run = RunWriter.create(Path(sys.argv[1]), synthetic_started())
    update = synthetic_update(1, prompts=2, generations=2)
    number = 0
    while True:
        number += 1
        for record in update:
            run.append(msgspec.structs.replace(record, update=number))
            if isinstance(record, Finished):
                print(number, flush=True)
