"""Trains a tiny model in each of several processes; run by torchrun with a folder and the names of cases."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.record.test_trl_online import CASES, SPLIT, trained


def main() -> None:
    """Record each case, and keep what this process computed beside the recording."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        kind, options = (SPLIT | CASES)[name]
        trainer, spy = trained(kind, options, folder / name)
        spy.save(folder / name / f"spy-{os.environ['RANK']}.pt")
        logs = [log for log in trainer.state.log_history if "train_loss" not in log]
        (folder / name / "logs.json").write_text(json.dumps(logs))


if __name__ == "__main__":
    main()
