"""Trains a tiny model in each of several processes; run by torchrun with a folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.record import test_trl_offline, test_trl_online


def main() -> None:
    """Record each case, and keep what this process computed beside the recording."""
    folder, rank = Path(sys.argv[1]), os.environ["RANK"]
    for name, (kind, options) in test_trl_online.SPLIT.items():
        trainer, spy = test_trl_online.trained(kind, options, folder / name)
        spy.save(folder / name / f"spy-{rank}.pt")
        logs = [log for log in trainer.state.log_history if "train_loss" not in log]
        (folder / name / f"logs-{rank}.json").write_text(json.dumps(logs))
    for name in test_trl_offline.SPLIT:
        _, given = test_trl_offline.trained(name, folder / name)
        given.save(folder / name / f"spy-{rank}.pt")


if __name__ == "__main__":
    main()
