"""Two processes with a GPU each train as one with a GPU does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from rlplay.processes import launch
from rlplay.trace.records import Sampled
from rlplay.trace.runfile import RunReader
from tests.engine.conftest import REWARD, SMALL
from tests.gpu.play import GPU, micro_model, run
from tests.gpu.processes_script import SETTINGS, UPDATES


def test_two_gpus_give_the_updates_of_one(tmp_path: Path) -> None:
    (tmp_path / "rewards.py").write_text(REWARD)
    assert launch([sys.executable, "-m", "tests.gpu.processes_script", str(micro_model()), str(tmp_path)], 2) == (0, "")
    alone = run(GPU, **SETTINGS).go(UPDATES)
    alone.driver.close()
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    way = UPDATES * SETTINGS["num_minibatches"] * SMALL["learning_rate"]
    for name, value in alone.weights().items():
        assert torch.equal(first[name], second[name])
        assert (first[name] - value).abs().quantile(0.99) <= 1e-3 * way, name
    with RunReader(tmp_path / "run.rlplay") as reader:
        sampled = [record for _, record in reader.follow(0) if isinstance(record, Sampled)]
    for one, other in zip([each for each in alone.of(Sampled) if each.done], sampled, strict=True):
        np.testing.assert_array_equal(one.token_ids, other.token_ids)
