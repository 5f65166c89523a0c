"""What micro-batches, checkpointing, bfloat16 and LoRA cost and save: time and peak memory of an update.

    python -m tests.benchmarks.bench_scale [--sizes 2M 29M 117M 387M] [--device cpu] [--answers 32] [--length 128]

Each way runs in a process of its own, on a Llama of random weights and a reward of the tokens' ids. Time is that of the
faster of two updates without sampling (reference, credit, optimizer step, look); on a CPU, of the processor, which
other work on the machine disturbs least. Memory is the peak of the process less what it held before the model was
loaded; on a GPU, of what torch has allocated. The gradient is that of the first update, and what is printed is its
distance from the plain way's as a share of the latter's length; nothing where other parameters are trained or other
tokens were sampled.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "all at once": {"per_device_train_batch_size": 65536},
    "4 at once": {"per_device_train_batch_size": 4},
    "1 at once": {"per_device_train_batch_size": 1},
    "checkpointing": {"gradient_checkpointing": True},
    "bfloat16": {"dtype": "bfloat16"},
    "LoRA": {"use_peft": True},
    "LoRA, bfloat16, 4 at once, checkpointing": {
        "use_peft": True, "dtype": "bfloat16", "per_device_train_batch_size": 4, "gradient_checkpointing": True,
    },
}  # fmt: skip
SIZES = {"2M": (192, 4, 1024), "29M": (512, 9, 1024), "117M": (768, 12, 16384), "387M": (1024, 24, 32768)}
"""Hidden size, layers and vocabulary of each."""
_OF_THE_MODEL = ("dtype", "use_peft")
_UPDATES = 2
_FIRST, _NEW = "first.pt", "new.pt"
_TIMED = ("reference", "credit", "forward", "backward", "step", "look")

_REWARD = "def uneven(completion_ids, **columns):\n    return [sum(ids) % 7 / 7 for ids in completion_ids]\n"


def saved_model(size: str, folder: Path) -> Path:
    """A Llama of that size with random weights and the bundled tokenizer, which never ends its answer."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from rlplay.paths import POCKET_PATH

    hidden, layers, vocabulary = SIZES[size]
    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=hidden * 8 // 3, num_hidden_layers=layers, vocab_size=vocabulary,
        num_attention_heads=hidden // 64, max_position_embeddings=4096, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(POCKET_PATH).save_pretrained(folder)
    return folder


def measured(way: str, model: Path, device: str, answers: int, length: int) -> dict[str, float | None]:
    """Seconds and megabytes of an update that way, and its estimate; in this process."""
    import torch
    from transformers import AutoConfig

    from rlplay.algorithms.apply import resolve
    from rlplay.engine import stopwatch
    from rlplay.engine.driver import Driver
    from rlplay.engine.estimate import needs
    from rlplay.engine.weights import Weights
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.trace.records import AnyRecord, Finished, Sampled
    from rlplay.trusted import follow

    if device == "cpu":
        stopwatch.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    given = WAYS[way]
    settings = {name: value for name, value in given.items() if name not in _OF_THE_MODEL}
    settings |= {"num_prompts": answers // 8, "num_generations": 8, "max_completion_length": length}
    reward = model / "uneven.py"
    reward.write_text(_REWARD)
    follow([str(reward)])
    scenario = Scenario(
        name="scale", title="", question="", model=str(model), task="arithmetic", reward=[f"{reward}:uneven"],
        settings=settings, eval_every=0, max_updates=_UPDATES,
        **{name: given[name] for name in _OF_THE_MODEL if name in given},
    )  # fmt: skip
    found: list[AnyRecord] = []
    before = _peak(device)
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Job(scenario, f"{folder}/r.rlplay", device, threads=1), found.append)
        driver.load(lambda what, fraction: None)
        driver._store.begin = lambda *given, **named: None  # type: ignore[method-assign]
        driver.advance("update", 1, lambda: False)
        gradient = {name: p.grad for name, p in driver._state.parameters.items() if p.grad is not None}
        tokens = next(r.token_ids for r in found if isinstance(r, Sampled) and r.done)
        torch.save((torch.from_numpy(tokens), gradient), model / _NEW)
        del gradient
        driver.advance("update", _UPDATES - 1, lambda: False)
        peak = _peak(device) - before
        driver.close()
    seconds = min(sum(r.timings[p] for p in _TIMED) for r in found if isinstance(r, Finished))
    estimate = needs(AutoConfig.from_pretrained(model), Weights.of(scenario), resolve(settings)).memory
    return {"seconds": seconds, "megabytes": peak, "estimated": estimate / 2**20, "apart": apart(model)}


def apart(model: Path) -> float | None:
    """How far the new gradient is from the first, as a share of its length; None if they do not compare."""
    import torch

    first, new = model / _FIRST, model / _NEW
    if not first.exists():
        new.rename(first)
        return 0.0
    (tokens, gradient), (others, other) = (torch.load(path, map_location="cpu", mmap=True) for path in (first, new))
    new.unlink()
    if gradient.keys() != other.keys() or not torch.equal(tokens, others):
        return None
    squared = sum(float((gradient[name] - other[name]).float().square().sum()) for name in gradient)
    return math.sqrt(squared / sum(float(each.float().square().sum()) for each in gradient.values()))


def _peak(device: str) -> float:
    """Megabytes at the most so far."""
    if device == "cpu":
        # Not `ru_maxrss`: a process inherits that of the one which started it, and here that one has made the model.
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1]) / 2**10
    import torch

    return torch.cuda.max_memory_allocated() / 2**20


def main() -> None:
    """Print every figure, each beside its ratio to the plain way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=["2M", "29M"])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--answers", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.one[0], Path(given.one[1]), given.device, given.answers, given.length)))
        return
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            model = saved_model(size, Path(folder))
            print(f"{size}: {given.answers} answers of {given.length} tokens on {given.device}", flush=True)
            plain: dict[str, Any] = {}
            for way in given.ways:
                words = ["--one", way, str(model), "--device", given.device, "--answers", str(given.answers)]
                out = subprocess.run(
                    [sys.executable, "-m", "tests.benchmarks.bench_scale", *words, "--length", str(given.length)],
                    check=True, capture_output=True, text=True,
                ).stdout  # fmt: skip
                now = json.loads(out.splitlines()[-1])
                plain = plain or now
                ratio, memory = (now[name] / plain[name] for name in ("seconds", "megabytes"))
                gradient = "" if now["apart"] is None else f"gradient {now['apart']:.1e}"
                print(f"  {way:42} {now['seconds']:7.2f} s {ratio:5.2f}  {now['megabytes']:7.0f} MB {memory:5.2f}  "
                      f"estimated {now['estimated']:7.0f} MB  {gradient}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
