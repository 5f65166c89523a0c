"""How long an update takes and what its time goes to, how fast sampling is, and how much memory both take."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from rlplay.cli.gpu_report.checks import NOT_TRIED, OK, Line
from rlplay.cli.gpu_report.graph import draw
from rlplay.cli.gpu_report.played import ANSWERS, LENGTH, PROMPTS, prompts, scenario, seconds_of
from rlplay.engine.agreement import settle
from rlplay.engine.driver import Driver
from rlplay.engine.model import LanguageModel, load_model
from rlplay.scenario.schema import Job
from rlplay.trace.records import AnyRecord, Finished

_WARM_UP, _MEASURED = 3, 4
_TOKENS = 64
"""Of each of the 64 answers whose sampling is timed; none ends before."""
_ROUNDS = 3
_WAIT = "called a synchronizing CUDA operation"


def update(device: torch.device, folder: Path) -> Iterator[Line]:
    """The median update of a run with records, run file and snapshots; its waits and its memory."""
    finished: list[Finished] = []

    def keep(record: AnyRecord) -> None:
        if isinstance(record, Finished):
            finished.append(record)

    run = Driver(Job(scenario(folder), str(folder / "time.rlplay"), str(device)), keep)
    run.load(lambda *_: None)
    run.advance("update", _WARM_UP + _MEASURED, lambda: False)
    measured = finished[_WARM_UP:]
    seconds = statistics.median(each.seconds for each in measured)
    parts = {name: statistics.median(each.timings.get(name, 0.0) for each in measured) for name in measured[0].timings}
    largest = sorted((share, name) for name, share in parts.items() if share >= seconds / 100)[::-1]
    words = ", ".join(f"{name} {1000 * share:.0f}" for share, name in largest)
    yield Line(
        OK, "update", f"{1000 * seconds:.0f} ms for {PROMPTS * ANSWERS} answers of {LENGTH} tokens at most: {words}"
    )
    yield _waits(device, lambda: run.advance("update", 1, lambda: False))
    run.close()
    yield _memory(device)


def _waits(device: torch.device, advance: Callable[[], object]) -> Line:
    """How often an update makes the host wait for the device, by torch's own count."""
    if device.type != "cuda":
        return Line(NOT_TRIED, "waits", "a CPU is never waited for")
    try:
        torch.cuda.set_sync_debug_mode("warn")
    except (AttributeError, RuntimeError) as error:
        return Line(NOT_TRIED, "waits", f"torch does not count them here ({type(error).__name__})")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            advance()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    count = sum(str(each.message).startswith(_WAIT) for each in caught)
    return Line(OK, "waits", f"{count} in an update, copies to the host included")


def _memory(device: torch.device) -> Line:
    if device.type != "cuda":
        return Line(NOT_TRIED, "memory", "only a GPU's is counted")
    peak, total = torch.cuda.max_memory_allocated(device), torch.cuda.mem_get_info(device)[1]
    return Line(OK, "memory", f"peak {peak / 2**20:.0f} MiB of {total / 2**30:.0f} GiB, {_weights()} MiB of it weights")


def _weights() -> str:
    lm = load_model("pocket", torch.device("cpu"))
    return f"{sum(p.numel() * p.element_size() for p in lm.policy.parameters()) / 2**20:.0f}"


def sampling(device: torch.device, _folder: Path) -> Iterator[Line]:
    """Tokens per second with a graph, with a cache that grows, and by transformers' `generate`."""
    lm = load_model("pocket", device)
    settle(lm)
    lm.end_ids = frozenset()
    lm.policy.generation_config.eos_token_id = None
    ways: dict[str, Callable[[], object]] = {}
    if lm.fixed:
        ways["with the graph"] = lambda: draw(lm, PROMPTS, ANSWERS, _TOKENS, 0)
    ways["cache that grows"] = lambda: _growing(lm)
    ways["generate"] = lambda: _generate(lm)
    found = {name: PROMPTS * ANSWERS * _TOKENS / _seconds(way, device) for name, way in ways.items()}
    words = ", ".join(f"{name} {rate:,.0f}" for name, rate in found.items())
    yield Line(OK, "sampling", f"tokens/s of {PROMPTS * ANSWERS} answers: {words}")


def _growing(lm: LanguageModel) -> None:
    fixed, lm.fixed = lm.fixed, False
    try:
        draw(lm, PROMPTS, ANSWERS, _TOKENS, 0)
    finally:
        lm.fixed = fixed


@torch.no_grad()
def _generate(lm: LanguageModel) -> None:
    given = prompts(lm, PROMPTS)
    lm.policy.generate(
        input_ids=given.ids.repeat_interleave(ANSWERS, 0), attention_mask=given.mask.repeat_interleave(ANSWERS, 0),
        do_sample=True, top_k=0, max_new_tokens=_TOKENS, pad_token_id=lm.pad_id,
    )  # fmt: skip


def _seconds(way: Callable[[], object], device: torch.device) -> float:
    """The median of a few times, after one that does not count."""
    return statistics.median([seconds_of(way, device) for _ in range(1 + _ROUNDS)][1:])
