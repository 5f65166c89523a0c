"""One update against TRL's GRPOTrainer: same model, prompts, reward, batch and thread count; and against arithmetic.

    python -m tests.benchmarks.bench_update [--rounds 3] [--threads 1] [--sizes 29M 117M]

64 completions (8 prompts x 8) of at most 32 tokens, float32. "equal" lengths: no token ends a completion; "natural":
the bundled model's own lengths, both with a KL to the reference in the loss. "late": natural lengths without a KL, and
only one group in eight has rewards that differ, as late in a run.
With `--sizes`, models of random weights as in `bench_scale.py`, with equal lengths and half as many updates.

Every sample is a fresh process, the two alternate, and medians of the updates after the first two are compared. Times
are CPU seconds of the process, which other work on the machine disturbs least; with one thread that is the wall clock
of an idle machine. rlplay's figure includes recording, snapshots and the run file.

The roofline is the time that the update's matrix products would take at the rate of a large one, measured beside it:
every prompt computed once, no padding, and a backward pass for those completions alone that have a gradient. On a CPU
whose float32 products are faster by oneDNN than by MKL, which is what torch takes and TRL with it, there are two.

One thread of an idle AMD EPYC (Zen 5) with 2 cores, where oneDNN multiplies, the median of three rounds: 2.4 times as
fast as TRL with equal lengths, 4.5 with natural ones, 5.0 late, where half of an update is sampling. That is 2.1, 2.1
and 2.5 times the roofline, and .94, .94 and 1.11 times that of torch's own products: beginnings that answers share are
read once. On a busy machine, the 29M weights: 2.2 times as fast as TRL, 1.5 times the roofline.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_scale import SIZES, saved_model

UPDATES, OF_A_SIZE, WARM_UP = 8, 4, 2
LEARNING_RATE = 1e-6
KINDS = {"equal": ("correct", 0.04), "natural": ("correct", 0.04), "late": ("settled", 0.0)}
"""The reward function and the weight β of the KL, by what is measured."""


def correct(completion_ids: list[list[int]], **columns: Any) -> list[float]:
    """A cheap reward that differs between completions."""
    return [sum(ids) % 7 / 7 for ids in completion_ids]


def settled(prompts: list[Any], completion_ids: list[list[int]], **columns: Any) -> list[float]:
    """The same for the first prompt's completions alone; all others earn 1."""
    scores = correct(completion_ids)
    return [score if prompt == prompts[0] else 1.0 for prompt, score in zip(prompts, scores, strict=True)]


def model_folder(folder: Path, natural: bool) -> Path:
    """The bundled model; for equal lengths padding ends a completion, which it never samples."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from rlplay.paths import POCKET_PATH

    model, tokenizer = AutoModelForCausalLM.from_pretrained(POCKET_PATH), AutoTokenizer.from_pretrained(POCKET_PATH)
    if not natural:
        tokenizer.eos_token = tokenizer.pad_token
        model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.pad_token_id
    out = folder / ("natural" if natural else "equal")
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def time_trl(model: str, kind: str, updates: int) -> list[float]:
    """CPU seconds per optimisation step."""
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from rlplay.tasks import load_task

    class Clock(TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            self.ends.append(time.process_time())

    clock, (reward, beta) = Clock(), KINDS[kind]
    rows = Dataset.from_list([{"prompt": e.prompt} for e in load_task("word_problems").train[: 8 * updates]])
    with tempfile.TemporaryDirectory() as out:
        config = GRPOConfig(
            output_dir=out, per_device_train_batch_size=64, num_generations=8, max_completion_length=32, beta=beta,
            learning_rate=LEARNING_RATE, bf16=False, gradient_checkpointing=False, use_cpu=True, report_to="none",
            max_steps=updates, loss_type="grpo", save_strategy="no", disable_tqdm=True, logging_steps=1000,
        )  # fmt: skip
        tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        rewards = [globals()[reward]]
        trainer = GRPOTrainer(model, rewards, config, rows, processing_class=tokenizer, callbacks=[clock])
        trainer.train()
    return [b - a for a, b in pairwise(clock.ends)]


def time_rlplay(model: str, kind: str, updates: int, record: bool) -> list[list[float]]:
    """CPU seconds per update, running free, those that its arithmetic would take at torch's rate and at the fastest,
    and the share of sampling."""
    from rlplay.engine import driver, onednn
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.trace.records import AnyRecord, Credited, Finished, Sampled
    from rlplay.trusted import follow

    follow([__file__])
    if not record:
        without_recording()
    (reward, beta), ends, needed, sampled = KINDS[kind], list[float](), list[float](), list[Sampled]()
    shares: list[float] = []

    def keep(record: AnyRecord) -> None:
        if isinstance(record, Sampled) and record.done:
            sampled.append(record)
        elif isinstance(record, Credited):
            needed.append(products(run._state.lm.policy, sampled[-1], record.advantages, beta))
        elif isinstance(record, Finished):
            ends.append(time.process_time())
            shares.append(record.timings["sample"] / record.seconds)

    with tempfile.TemporaryDirectory() as out:
        scenario = Scenario(
            name="bench", title="", question="", model=model, task="word_problems",
            reward=[f"{__file__}:{reward}"], eval_every=0, max_updates=updates,
            settings={"algorithm": "grpo", "num_prompts": 8, "num_generations": 8, "max_completion_length": 32,
                      "beta": beta, "learning_rate": LEARNING_RATE},
        )  # fmt: skip
        run = driver.Driver(
            Job(scenario, f"{out}/run.rlplay", device="cpu", threads=int(os.environ["OMP_NUM_THREADS"])), keep
        )
        run.load(lambda what, fraction: None)
        run.advance("forever", 1, lambda: False)
    rates = [rate for rate in onednn.rates(time.process_time) if rate is not None]
    rooflines = [[count / rate for count in needed[1:]] for rate in (rates[0], max(rates))]
    return [[b - a for a, b in pairwise(ends)], *rooflines, shares[1:]]


def products(policy: Any, sampled: Any, advantages: Any, beta: float) -> float:
    """Floating-point operations of an update's matrix products: sampling, reference, gradient, and the look after."""
    config, prompts, lengths = policy.config, len(sampled.prompt_ids), sampled.offsets[1:] - sampled.offsets[:-1]
    weights = sum(p.numel() for name, p in policy.named_parameters() if p.ndim == 2 and "embed" not in name)
    head = config.vocab_size * config.hidden_size
    attention = 2 * config.num_hidden_layers * config.hidden_size  # by a token and one before it
    before = sampled.prompt_offsets[1:] - sampled.prompt_offsets[:-1]

    def read(rows: Any) -> float:
        tokens = float(lengths[rows].sum())
        seen = (lengths[rows] * (before[sampled.group[rows]] + lengths[rows] / 2)).sum() + (before**2 / 2).sum()
        return 2 * ((tokens + prompts) * weights + tokens * head + float(seen) * attention)

    pulling = [i for i in range(len(lengths)) if beta or advantages[sampled.offsets[i] : sampled.offsets[i + 1]].any()]
    return 3 * read(slice(None)) + 3 * read(pulling)


def without_recording() -> None:
    """The same training with nothing kept to look at: no candidates, no entropy, no records, no run file."""
    import torch

    from rlplay.engine.slate import Chosen, Slate
    from rlplay.trace.runfile import RunWriter

    def write(slate: Any, rows: Any, chosen: Chosen) -> Any:
        tokens, going = chosen.tokens, slate.truncated[rows]
        at, own = (rows, slate._place), torch.arange(len(tokens)) if chosen.at is None else chosen.at
        slate.ids[at] = tokens * going
        slate.old_logprobs[at] = chosen.logprobs[own, tokens] * going
        slate.lengths[rows] += going
        return (tokens[:, None] == slate._ends).any(-1)

    Slate.write = write  # type: ignore[method-assign]
    RunWriter.append = lambda self, record: None  # type: ignore[method-assign]


def one(what: str, kind: str, model: str, updates: str, threads: str) -> list[float]:
    """Medians of what `time_rlplay` measures, in a fresh process; 0 if not counted."""
    env = os.environ | {"OMP_NUM_THREADS": threads, "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "tests.benchmarks.bench_update", "--child", what, "--kind", kind]
    command += ["--model", model, "--updates", updates]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return [statistics.median(times[WARM_UP - 1 :]) for times in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    """Measure one way in this process, or compare all of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=[])
    parser.add_argument("--child")
    parser.add_argument("--kind", choices=KINDS, default="equal")
    parser.add_argument("--model", default="")
    parser.add_argument("--updates", type=int, default=UPDATES)
    given = parser.parse_args()
    if given.child:
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        if given.child == "trl":
            times = time_trl(given.model, given.kind, given.updates)
            print(json.dumps([times, *[[0.0] * len(times)] * 3]))
        else:
            print(json.dumps(time_rlplay(given.model, given.kind, given.updates, given.child == "rlplay")))
        return
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            model = saved_model(size, Path(folder) / size)
            report(size, given.rounds, ["equal", str(model), str(OF_A_SIZE), str(given.threads)])
        for kind in () if given.sizes else KINDS:
            model = model_folder(Path(folder), kind != "equal")
            report(kind, given.rounds, [kind, str(model), str(UPDATES), str(given.threads)])


def report(name: str, rounds: int, words: list[str]) -> None:
    """Alternate the three ways to play, and print medians and ratios; `words` are as in `one`."""
    ways = ("trl", "rlplay", "bare")
    found = [[one(what, *words) for what in ways] for _ in range(rounds)]
    columns = [[statistics.median(part) for part in zip(*column, strict=True)] for column in zip(*found, strict=True)]
    (trl, *_), (rlplay, torchs, roofline, sampling), (bare, *_) = columns
    print(
        f"{name:8} TRL {trl * 1000:.0f} ms, rlplay {rlplay * 1000:.0f} ms: {trl / rlplay:.2f}x faster, "
        f"{rlplay / roofline:.2f} times the roofline, {rlplay / torchs:.2f} by torch's own products, "
        f"{sampling:.0%} of it sampling; recording costs {100 * (rlplay / bare - 1):+.0f} %",
        flush=True,
    )


if __name__ == "__main__":
    main()
