"""One update against TRL's GRPOTrainer: same model, prompts, reward, batch and thread count.

    python -m tests.benchmarks.bench_update [--rounds 3] [--threads 1]

64 completions (8 prompts x 8) of at most 32 tokens, KL to the reference on, float32. "equal" lengths: no token ends a
completion; "natural": the bundled model's own lengths. Every sample is a fresh process, the two alternate, and
medians of the updates after the first two are compared. Times are CPU seconds of the process, which other work on
the machine disturbs least; with one thread that is the wall clock of an idle machine. rlplay's figure includes
recording, snapshots and the run file.
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

UPDATES, WARM_UP = 8, 2
BETA, LEARNING_RATE = 0.04, 1e-6


def correct(completion_ids: list[list[int]], **columns: Any) -> list[float]:
    """A cheap reward that differs between completions."""
    return [sum(ids) % 7 / 7 for ids in completion_ids]


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


def time_trl(model: str) -> list[float]:
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

    clock = Clock()
    rows = Dataset.from_list([{"prompt": e.prompt} for e in load_task("word_problems").train[: 8 * UPDATES]])
    with tempfile.TemporaryDirectory() as out:
        config = GRPOConfig(
            output_dir=out, per_device_train_batch_size=64, num_generations=8, max_completion_length=32, beta=BETA,
            learning_rate=LEARNING_RATE, bf16=False, gradient_checkpointing=False, use_cpu=True, report_to="none",
            max_steps=UPDATES, loss_type="grpo", save_strategy="no", disable_tqdm=True, logging_steps=1000,
        )  # fmt: skip
        trainer = GRPOTrainer(
            model, [correct], config, rows, processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
            callbacks=[clock],
        )  # fmt: skip
        trainer.train()
    return [b - a for a, b in pairwise(clock.ends)]


def time_rlplay(model: str, record: bool) -> list[float]:
    """CPU seconds per update, running free."""
    from rlplay.engine import driver, sample
    from rlplay.scenario.schema import Job, Scenario
    from rlplay.trace.records import Finished

    if not record:
        without_recording(driver, sample)
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as out:
        scenario = Scenario(
            name="bench", title="", question="", model=model, task="word_problems",
            reward=[f"{__file__}:correct"], eval_every=0, max_updates=UPDATES,
            settings={"algorithm": "grpo", "num_prompts": 8, "num_generations": 8, "max_completion_length": 32,
                      "beta": BETA, "learning_rate": LEARNING_RATE},
        )  # fmt: skip
        run = driver.Driver(
            Job(scenario, f"{out}/run.rlplay", device="cpu", threads=int(os.environ["OMP_NUM_THREADS"])),
            lambda record: ends.append(time.process_time()) if isinstance(record, Finished) else None,
        )
        run.load(lambda what, fraction: None)
        run.advance("forever", 1, lambda: False)
    return [b - a for a, b in pairwise(ends)]


def without_recording(driver: Any, sample: Any) -> None:
    """The same training with nothing kept to look at: no candidates, no entropy, no records, no run file."""

    def write(batch: Any, position: int, rows: Any, logprobs: Any, tokens: Any, keep: int) -> None:
        batch.ids[rows, position] = tokens
        batch.old_logprobs[rows, position] = logprobs.gather(-1, tokens[:, None]).squeeze(-1)
        batch.lengths[rows] = position + 1

    sample._write = write
    driver.RunWriter.append = lambda self, record: None


def one(what: str, model: str, threads: int) -> float:
    """Median seconds of one fresh process."""
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "tests.benchmarks.bench_update", "--child", what, "--model", model]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return statistics.median(json.loads(done.stdout.splitlines()[-1])[WARM_UP - 1 :])


def main() -> None:
    """Alternate the three, print medians and ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child")
    parser.add_argument("--model", default="")
    given = parser.parse_args()
    if given.child:
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        times = time_trl(given.model) if given.child == "trl" else time_rlplay(given.model, given.child == "rlplay")
        print(json.dumps(times))
        return
    with tempfile.TemporaryDirectory() as folder:
        for lengths in ("equal", "natural"):
            model = str(model_folder(Path(folder), lengths == "natural"))
            kinds = ("trl", "rlplay", "bare")
            rounds = [[one(kind, model, given.threads) for kind in kinds] for _ in range(given.rounds)]
            trl, rlplay, bare = (statistics.median(column) for column in zip(*rounds, strict=True))
            print(
                f"{lengths:8} lengths: TRL {trl * 1000:.0f} ms, rlplay {rlplay * 1000:.0f} ms: "
                f"{trl / rlplay:.2f}x faster; recording costs {100 * (rlplay / bare - 1):+.0f} % of an update"
            )


if __name__ == "__main__":
    main()
