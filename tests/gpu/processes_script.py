"""One of several processes, each on a device of its own of the stand-in; see test_processes.py.

python -m tests.gpu.processes_script MODEL_FOLDER FOLDER DIES NAME…

trains small runs. Process 1 is killed where DIES says: nowhere, after its first optimizer "step", or in the "sum" of
gradients.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from tests.gpu import library

DEVICES = 2


def join(dies: bool = False) -> None:
    """Meet the others, in a process that has not loaded torch; one that `dies` is killed at its first sum."""
    stand_in = library.load()

    from tests.gpu import cuda

    cuda.install(stand_in, DEVICES)

    from rlplay.engine import ranks
    from tests.gpu import pretended_nccl

    pretended_nccl.register(dies)
    ranks._BETWEEN_GPUS, ranks._TRANSFER = pretended_nccl.NAME, timedelta(seconds=1)
    ranks.join(os.environ, "auto")


def train(model: Path, folder: Path, dies: str, names: list[str]) -> None:
    """Leaves what `tests.engine.processes_script.trained` does; or `lost`, if another process has ended."""
    own = os.environ["RANK"] == "1"
    join(own and dies == "sum")

    import pytest

    from rlplay.engine import ranks
    from rlplay.processes import LOST
    from rlplay.trace.records import AnyRecord, Stepped
    from rlplay.trusted import follow
    from tests.engine.conftest import score_by_opinion
    from tests.engine.processes_script import trained

    score_by_opinion(pytest.MonkeyPatch())
    follow([str(folder / "rewards.py")])

    def kill(record: AnyRecord) -> None:
        if own and dies == "step" and isinstance(record, Stepped):
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        for name in names:
            trained(model, folder, name, "auto", kill)
    except ranks.LostProcess as error:
        (folder / "lost").write_text(str(error))
        sys.exit(LOST)


if __name__ == "__main__":
    train(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
