"""Whether a GPU computes what a CPU does, and what other ways of computing change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from rlplay.cli.gpu_report.checks import FAILS, OK, Line, NotTriedError
from rlplay.cli.gpu_report.played import Played, play, prompts, scenario, seconds_of
from rlplay.engine.arithmetic import compute_as
from rlplay.engine.batch import TokenBatch
from rlplay.engine.model import LanguageModel, load_model
from rlplay.engine.passes import token_logprobs
from rlplay.engine.state import State
from rlplay.engine.weights import Weights
from rlplay.trace.numbers import compact

_CLOSE = 1e-4
"""Nats by which log-probabilities in float32 may differ, as in the check when a model is loaded."""
_STEP = 1e-2
"""Share of the step by which weights may differ. Adam moves a weight by the learning rate however small its gradient
is, so rounding is larger here than in log-probabilities; a mistake is about 1."""
_WIDE = 4096
_FILE = "cpu.npz"


def reference(device: torch.device, folder: Path) -> Iterator[Line]:
    """An update on the CPU, for the others to compare theirs with; gives no line of its own."""
    played = play(device, folder, 1)
    sampled = played.sampled[0]
    arrays: dict[str, Any] = {name: weight.numpy() for name, weight in played.weights().items()}
    np.savez(folder / _FILE, token_ids=sampled.token_ids, old_logprobs=sampled.old_logprobs, **arrays)
    yield from ()


def on_the_cpu(folder: Path) -> dict[str, Any]:
    """What `reference` has kept."""
    if not (folder / _FILE).is_file():
        raise NotTriedError("the update on the CPU that it is compared with failed")
    with np.load(folder / _FILE) as kept:
        return dict(kept)


def update(device: torch.device, folder: Path) -> Iterator[Line]:
    """Tokens, log-probabilities and weights of one update beside those of the CPU."""
    theirs, played = on_the_cpu(folder), play(device, folder, 1)
    sampled = played.sampled[0]
    ids, expected = sampled.token_ids, theirs["token_ids"]
    if not np.array_equal(ids, expected):
        short = min(len(ids), len(expected))
        other = np.flatnonzero(ids[:short] != expected[:short])
        first = int(other[0]) if len(other) else short
        yield Line(FAILS, "tokens", f"token {first + 1} of {len(ids)} is another than the CPU's; so are later numbers")
        return
    yield Line(OK, "tokens", f"all {len(ids)} as on the CPU, from the same seed")
    apart = float(np.abs(sampled.old_logprobs - theirs["old_logprobs"]).max())
    yield Line(OK if apart <= _CLOSE else FAILS, "log-probs", (
        f"up to {compact(apart, 2)} nats from the CPU's; {compact(_CLOSE)} are allowed"
    ))  # fmt: skip
    begun = dict(load_model("pocket", torch.device("cpu")).policy.named_parameters())
    step = _length(torch.from_numpy(theirs[name]) - begun[name].detach() for name in begun)
    share = _length(weight - torch.from_numpy(theirs[name]) for name, weight in played.weights().items()) / step
    yield Line(OK if share <= _STEP else FAILS, "weights", (
        f"{compact(share, 2)} of the step's length from the CPU's; {compact(_STEP)} are allowed"
    ))  # fmt: skip


def _length(tensors: Iterator[Tensor]) -> float:
    return math.sqrt(sum(float(each.double().square().sum()) for each in tensors))


def tf32(device: torch.device, folder: Path) -> Iterator[Line]:
    """By how much TF32 moves log-probabilities."""
    if device.type != "cuda":
        raise NotTriedError("TF32 is CUDA's")
    if torch.cuda.get_device_capability(device)[0] < 8:
        raise NotTriedError("a GPU has TF32 from compute capability 8.0 on")
    lm, plain = load_model("pocket", device), scenario(folder)
    full, exact = _scored(lm, folder), _product_time(device)
    compute_as(msgspec.structs.replace(plain, tf32=True), device)
    try:
        apart, rounded = (_scored(lm, folder) - full).abs(), _product_time(device)
    finally:
        compute_as(plain, device)
    yield Line(OK if apart.isfinite().all() else FAILS, "tf32", (
        f"moves log-probs by up to {_spread(apart)} nats; a large product takes "
        f"{compact(rounded / exact, 2)} of the time"
    ))  # fmt: skip


def _product_time(device: torch.device) -> float:
    """Seconds of a product of two float32 matrices that are large enough to keep a GPU busy, the shortest of a few."""
    matrix = torch.ones(_WIDE, _WIDE, device=device)
    return min(seconds_of(lambda: matrix @ matrix, device) for _ in range(5))


def bfloat16(device: torch.device, folder: Path) -> Iterator[Line]:
    """By how much bfloat16 weights move log-probabilities, and whether an update in them is finite."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise NotTriedError("this GPU has no instructions for bfloat16")
    full, half = (load_model("pocket", device, weights=Weights(dtype=each)) for each in ("float32", "bfloat16"))
    apart = (_scored(half, folder) - _scored(full, folder)).abs()
    loss = play(device, folder, 1, dtype="bfloat16").finished[0].metrics["loss"]
    right = bool(apart.isfinite().all()) and math.isfinite(loss)
    yield Line(OK if right else FAILS, "bfloat16", (
        f"moves log-probs by up to {_spread(apart)} nats; the loss of an update is {'finite' if right else loss}"
    ))  # fmt: skip


def _spread(apart: Tensor) -> str:
    return f"{compact(float(apart.max()), 2)}, on average {compact(float(apart.mean()), 2)}"


@torch.no_grad()
def _scored(lm: LanguageModel, folder: Path) -> Tensor:
    """The log-probabilities [8, 16] that the model gives fixed tokens, the first that the CPU has sampled."""
    ids = torch.from_numpy(on_the_cpu(folder)["token_ids"][: 8 * 16]).long().view(8, 16).to(lm.device)
    rows = torch.arange(8, device=lm.device)
    tokens = TokenBatch(prompts(lm, 8), rows, ids, torch.full_like(rows, 16))
    return token_logprobs(lm, lm.policy, tokens, 1.0).cpu()


def determinism(device: torch.device, folder: Path) -> Iterator[Line]:
    """Whether two runs are equal bit for bit, with deterministic kernels and without, and what these cost."""
    if device.type != "cuda":
        raise NotTriedError("a CPU adds in one order anyway")
    exact = [play(device, folder, 3, full_determinism=True) for _ in range(2)]
    missing = _without_kernel(device, folder)
    plain = [play(device, folder, 3) for _ in range(2)]
    cost = _update_time(exact) / _update_time(plain)
    apart, usual = (_apart(*both) for both in (exact, plain))
    without = f"; torch has no such kernel for {missing}" if missing else ""
    yield Line(OK if not apart else FAILS, "determinism", (
        f"two runs of 3 updates {_differ(apart)} with it, and without {_differ(usual)}; an update takes "
        f"{compact(cost, 2)} times as long with it{without}"
    ))  # fmt: skip


def _differ(apart: float) -> str:
    return f"differ by up to {compact(apart, 2)}" if apart else "are equal bit for bit"


def _apart(one: Played, other: Played) -> float:
    """The largest difference between two runs' weights."""
    weights = other.weights()
    return max(float((weight - weights[name]).abs().max()) for name, weight in one.weights().items())


def _update_time(runs: list[Played]) -> float:
    return statistics.median(seconds for run in runs for seconds in run.seconds[1:])


def _without_kernel(device: torch.device, folder: Path) -> str:
    """The first operation of an update that has no deterministic kernel, by torch's own word; "" if all have one."""

    def strict(_state: State) -> None:
        torch.use_deterministic_algorithms(True)

    try:
        play(device, folder, 1, before=strict, full_determinism=True)
    except RuntimeError as error:
        return str(error).split(maxsplit=1)[0]
    return ""
