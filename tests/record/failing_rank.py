"""Trains in two processes, of which the second cannot record.

It fails at its beginning ("begin"), on an answer ("_of_answers"), or when a second training continues ("reopen").
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

from accelerate import PartialState

from rlplay.record.recorder import Recorder
from rlplay.record.trl.given import Given
from tests.record import test_trl_offline


def _broken(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


def main(folder: Path, where: str) -> None:
    """Train DPOTrainer for three steps."""
    trainer = test_trl_offline.prepared("dpo", folder)
    if where == "reopen":
        trainer.train()
    second = PartialState().process_index == 1
    owner = Given if where == "_of_answers" else Recorder
    with mock.patch.object(owner, where, _broken if second else getattr(owner, where)):
        trainer.train()
    assert trainer.state.global_step == 3


main(Path(sys.argv[1]), sys.argv[2])
