"""Trains a small run on the GPUs of the stand-in, one for each process; see test_processes.py.

python -m tests.gpu.processes_script MODEL_FOLDER FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.gpu import library

UPDATES = 2
SETTINGS: dict[str, Any] = {"algorithm": "grpo", "num_minibatches": 2, "beta": 0.1}


def main(model: str, folder: Path) -> None:
    """Leaves the run file, and each process's weights."""
    stand_in = library.load()

    import torch

    from rlplay.engine import ranks
    from rlplay.engine.driver import Driver
    from rlplay.processes import in_several
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.trusted import follow
    from tests.engine.conftest import SMALL
    from tests.gpu import cuda, nccl

    cuda.install(stand_in, devices=2)
    nccl.install()
    if in_several():
        ranks.join(os.environ, "cuda")
    follow([str(folder / "rewards.py")])
    scenario = Scenario(
        name="micro", title="", question="", task="arithmetic", model=model, dtype="float32", max_updates=UPDATES,
        reward=[f"{folder / 'rewards.py'}:uneven"], settings=SMALL | SETTINGS,
    )  # fmt: skip
    driver = Driver(Job(scenario, str(folder / "run.rlplay"), "cuda", threads=1), lambda record: None)
    driver.load(lambda what, fraction: None)
    driver.advance("update", UPDATES, lambda: False)
    rank = os.environ.get("RANK", "0")
    assert {value.device.index for value in driver._state.parameters.values()} == {int(rank)}
    assert driver._state.lm.fixed
    torch.save({name: value.detach().cpu() for name, value in driver._state.parameters.items()}, folder / f"{rank}.pt")
    driver.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
