"""Trains in two processes, of which the second cannot record: at its beginning ("open") or on an answer ("answers")."""

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
    second = PartialState().process_index == 1
    owner, name = {"open": (Recorder, "begin"), "answers": (Given, "_of_answers")}[where]
    with mock.patch.object(owner, name, _broken if second else getattr(owner, name)):
        trainer.train()
    assert trainer.state.global_step == 3


main(Path(sys.argv[1]), sys.argv[2])
