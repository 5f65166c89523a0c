"""One update beside TRL's GRPOTrainer: same model, prompts, reward and sizes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from rlplay.cli.gpu_report.checks import OK, Line, NotTriedError
from rlplay.cli.gpu_report.played import ANSWERS, BETA, LEARNING_RATE, LENGTH, PROMPTS, TASK, play, uneven, wait
from rlplay.paths import POCKET_PATH
from rlplay.tasks import load_task

_UPDATES, _WARM_UP = 6, 2


def update(device: torch.device, folder: Path) -> Iterator[Line]:
    """The median update of both; rlplay's without run file and snapshots, as TRL writes none."""
    if find_spec("trl") is None or find_spec("datasets") is None:
        raise NotTriedError("TRL is not installed (pip install trl==1.16.0)")
    ours = statistics.median(play(device, folder, _UPDATES).seconds[_WARM_UP:])
    try:
        theirs = statistics.median(_trained(device, folder)[_WARM_UP - 1 :])
    except Exception as error:  # whatever another library raises here is no fault of rlplay
        what = str(error).strip().partition("\n")[0]
        raise NotTriedError(f"TRL {version('trl')} raised {type(error).__name__}: {what}"[:200]) from error
    yield Line(OK, "TRL", (
        f"an update takes {1000 * ours:.0f} ms here, {1000 * theirs:.0f} ms with TRL {version('trl')}: "
        f"{theirs / ours:.2g} times as long"
    ))  # fmt: skip


def _trained(device: torch.device, folder: Path) -> list[float]:
    """Seconds between the ends of TRL's steps."""
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    class Clock(TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_args: Any, **_given: Any) -> None:
            wait(device)
            self.ends.append(time.perf_counter())

    clock, rows = Clock(), [{"prompt": each.prompt} for each in load_task(TASK).train[: PROMPTS * _UPDATES]]
    config = GRPOConfig(
        output_dir=str(folder / "trl"), per_device_train_batch_size=PROMPTS * ANSWERS, num_generations=ANSWERS,
        max_completion_length=LENGTH, beta=BETA, learning_rate=LEARNING_RATE, loss_type="grpo", max_steps=_UPDATES,
        bf16=False, gradient_checkpointing=False, use_cpu=device.type == "cpu", report_to="none", save_strategy="no",
        disable_tqdm=True, logging_steps=1000,
    )  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(POCKET_PATH, padding_side="left")
    GRPOTrainer(
        str(POCKET_PATH), [uneven], config, Dataset.from_list(rows), processing_class=tokenizer, callbacks=[clock]
    ).train()
    return [later - earlier for earlier, later in pairwise(clock.ends)]
