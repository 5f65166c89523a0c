"""Whether sampling's CUDA graph is captured, and what the engine does where a capture fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlplay.cli.gpu_report.checks import FAILS, NOT_TRIED, OK, Line, NotTriedError
from rlplay.cli.gpu_report.numbers import on_the_cpu
from rlplay.cli.gpu_report.played import play, prompts
from rlplay.engine.agreement import settle
from rlplay.engine.model import LanguageModel, load_model
from rlplay.engine.sample import sample
from rlplay.engine.state import State

_SHAPES = (4, 4, 24), (8, 8, 100)
"""Prompts, answers to each, tokens: with caches of different sizes."""


def capture(device: torch.device, _folder: Path) -> Iterator[Line]:
    """At load, and for two shapes of batches."""
    lm = load_model("pocket", device)
    settle(lm)
    if device.type != "cuda":
        yield Line(NOT_TRIED, "capture", "a graph of the steps of sampling is CUDA's")
        return
    yield Line(OK if lm.fixed else FAILS, "capture", "; ".join(lm.remarks) or "the log says nothing")
    if not lm.fixed:
        return
    lm.remarks.clear()
    for number, (count, generations, length) in enumerate(_SHAPES):
        draw(lm, count, generations, length, number)
    words = " and ".join(f"{count * each} answers of {length} tokens" for count, each, length in _SHAPES)
    right = lm.fixed and not lm.remarks
    yield Line(
        OK if right else FAILS, "two shapes", words if right else "; ".join(lm.remarks) or "the graph was given up"
    )


def draw(lm: LanguageModel, count: int, generations: int, length: int, number: int) -> None:
    """Sample one batch, the same for the same `number`."""
    drawing = sample(
        lm, prompts(lm, count), generations=generations, length=length, temperature=1.0, keep=5, seed=0, update=number
    )
    for _ in drawing:
        pass


def failed_capture(device: torch.device, folder: Path) -> Iterator[Line]:
    """What the engine does where a capture fails in the middle of a run, as by an operation that waits for the GPU."""
    if device.type != "cuda":
        raise NotTriedError("a graph of the steps of sampling is CUDA's")

    def disturb(state: State) -> None:
        def wait_inside(*_: Any) -> None:
            if torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()

        state.lm.remarks.clear()
        state.lm.policy.register_forward_pre_hook(wait_inside)

    played = play(device, folder, 2, before=disturb)
    said = "; ".join(played.remarks)
    same = np.array_equal(played.sampled[0].token_ids, on_the_cpu(folder)["token_ids"])
    if played.state.lm.fixed:
        yield Line(FAILS, "failed capture", "no capture was tried in two updates")
    elif not same:
        yield Line(FAILS, "failed capture", f"two updates went on, with other tokens than the CPU's; {said}")
    else:
        yield Line(OK, "failed capture", f"two updates go on, tokens as on the CPU; {said}")
