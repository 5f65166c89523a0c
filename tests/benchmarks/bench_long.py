"""How a recording of long answers opens, and how quickly the screen then answers keys.

    python -m tests.benchmarks.bench_long [--answers 512] [--length 1500] [--candidates 0] [--keys 20]
    python -m tests.benchmarks.bench_long --answers 64 --recorded 3

Everything in a pseudo-terminal, as a user has it: with bytecode on disk, as an installation leaves it. The run has two
updates; opening counts from the command until the answers with their tokens and the words about them are written, a key
from its writing until what it changes has been read. Candidates are what another trainer's recording lacks.

With `--recorded`, the run is a folder of `rlplay.record` with so many updates of two steps, of a trainer such as TRL.
It is opened where nothing was copied yet, then again. Keys are to take 0.1 s there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rlplay.record import Recorder
from rlplay.record.format import part
from rlplay.trace.records import AnyRecord, Array, Credited, Finished, Sampled, Scored, Stepped
from rlplay.trace.runfile import RunWriter
from tests.recorded import synthetic_started
from tests.terminal import Terminal, cpu_seconds, rlplay

OPEN, KEY = 2.0, 0.05
"""The limits, in seconds."""
GENERATIONS = 8
WORDS = ("So", " the", " first", " box", " holds", " 12", " apples", ",", " and", " then", " 7", " more", ".", " We",
         " add", " them", ":", " 19", " =", "\n", " is", " that", " right", "?", " Let", " me", " check", " again",
         " from", " here", "; ", "it", "s", " un", "like", "ly")  # fmt: skip
END = "<|end|>"
CHANGES = {
    "down": r"token [\d,]+ of",
    "right": r"token [\d,]+ of",
    "\x1b[6~": r"token [\d,]+ of",
    "x": r"[Ll]argest|[Ss]mallest|answer \d+ of|clipped|All ",
    "c": r"colour: [\w ,'+]+",
    "o\r": r"by [\w ]+ [↓↑]|reward · advantage",
    "\r": r"▎",
    "[": r"update \d",
    "]": r"update \d",
}
"""Keys, and what shows that their effect has been written."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def write_run(path: Path, answers: int, length: int, candidates: int) -> Path:
    """A run of two updates; answers have between half and one and a half times `length` tokens."""
    writer = RunWriter.create(path, synthetic_started())
    for number in (1, 2):
        for record in update_records(np.random.default_rng(number), number, answers, length, candidates):
            writer.append(record)
    writer.close()
    return path


def update_records(
    rng: np.random.Generator, number: int, answers: int, length: int, candidates: int
) -> list[AnyRecord]:
    """The records of update `number`, with random tokens and numbers."""
    prompts = answers // GENERATIONS
    lengths = rng.integers(length // 2, length + length // 2, answers)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    total, group = int(offsets[-1]), np.repeat(np.arange(prompts, dtype=np.int32), GENERATIONS)
    ids = rng.integers(0, len(WORDS), total).astype(np.int32)
    ids[offsets[1:] - 1] = len(WORDS)
    table = [*WORDS, END]
    rewards = (rng.random(answers) < 0.5).astype(np.float64)
    mean = rewards.reshape(prompts, -1).mean(axis=1)
    std = rewards.reshape(prompts, -1).std(axis=1, ddof=1)
    own = ((rewards - mean[group]) / (std[group] + 1e-4)).astype(np.float32)
    advantages, old = np.repeat(own, lengths), _logprobs(rng, total)
    drift = rng.normal(0, 0.05, total).astype(np.float32)
    top = np.argsort(rng.random((total, len(WORDS))), axis=1)[:, :candidates].astype(np.int32)
    likely = np.sort(_logprobs(rng, total * candidates).reshape(total, candidates))[:, ::-1]
    metrics = {"reward": float(rewards.mean()), "completions/mean_length": float(lengths.mean()), "kl": 0.01,
               "loss": 0.0, "entropy": 0.4, "num_tokens": float(total * number)}  # fmt: skip
    return [
        Sampled(
            update=number, done=True, position=int(lengths.max()), temperature=1.0,
            prompts=[f"How many apples are there in {n} boxes?" for n in range(prompts)],
            prompt_ids=np.zeros(prompts, dtype=np.int32), prompt_offsets=np.arange(prompts + 1, dtype=np.int64),
            prompt_texts=["?"] * prompts, columns=[{"answer": n} for n in range(prompts)], group=group,
            offsets=offsets, token_ids=ids, texts=[table[i] for i in ids.tolist()],
            mask=np.ones(total, dtype=np.uint8), old_logprobs=old,
            entropy=rng.random(total, dtype=np.float32), top_ids=top, top_logprobs=likely,
            truncated=np.zeros(answers, dtype=np.uint8), pieces=dict(enumerate(table)),
        ),
        Scored(update=number, rewards=rewards, parts={"correct": rewards}, weights={"correct": 1.0}, gold={}),
        Credited(
            update=number, token_rewards=None, returns=None, baseline=None, advantages=advantages, values=None,
            ref_logprobs=old + drift, ref_top_logprobs=None, group_mean=mean, group_std=std,
        ),
        Stepped(
            update=number, step=0, epoch=0, epochs=1, minibatch=0, minibatches=1,
            rows=np.arange(answers, dtype=np.int32), logprobs=old, importance_ratio=np.ones(total, dtype=np.float32),
            clip_state=np.zeros(total, dtype=np.int8), dloss_dlogp=-advantages / total, kl=None, values=None,
            metrics=metrics,
        ),
        Finished(
            update=number, rows=np.arange(answers, dtype=np.int32), logprobs=old + drift, top_logprobs=likely,
            metrics=metrics, timings={"sample": 60.0}, seconds=90.0,
        ),
    ]  # fmt: skip


def write_recording(folder: Path, updates: int, answers: int, length: int) -> Path:
    """What a trainer with a sampler of its own and a reference records of such updates, with two optimizer steps."""
    with Recorder(folder, completions=answers) as recorder:
        recorder.begin(
            "TRL 1.16.0 GRPOTrainer", {"algorithm": "grpo", "num_iterations": 2, "num_generations": GENERATIONS}
        )
        for number in range(1, updates + 1):
            rng = np.random.default_rng(number)
            sampled, scored, credited, stepped, finished = update_records(rng, number, answers, length, 0)
            assert isinstance(sampled, Sampled)
            assert isinstance(scored, Scored)
            assert isinstance(credited, Credited)
            assert isinstance(stepped, Stepped)
            assert isinstance(finished, Finished)
            recorder.rollouts(
                number, prompts=sampled.prompts, group=sampled.group, lengths=np.diff(sampled.offsets),
                texts=sampled.texts, rewards=scored.parts, columns=sampled.columns, token_ids=sampled.token_ids,
                truncated=sampled.truncated, old_logprobs=sampled.old_logprobs, entropy=sampled.entropy,
                sampling_logprobs=sampled.old_logprobs, ref_logprobs=credited.ref_logprobs,
                advantages=credited.advantages, prompt_ids=sampled.prompt_ids,
                prompt_lengths=[1] * len(sampled.prompts), prompt_texts=sampled.prompt_texts,
            )  # fmt: skip
            for step, logprobs in enumerate((stepped.logprobs, finished.logprobs)):
                recorder.step(
                    number, step, 2, rows=stepped.rows, logprobs=logprobs, dloss_dlogp=stepped.dloss_dlogp,
                    tokens=len(sampled.texts), metrics={"loss": 0.0},
                )  # fmt: skip
            recorder.end(number, finished.metrics, finished.seconds, (2 * number - 1, 2 * number))
    return folder


def _logprobs(rng: np.random.Generator, count: int) -> Array:
    return -rng.exponential(0.5, count).astype(np.float32)


def opened(run: Path, env: dict[str, str]) -> tuple[float, float, Terminal]:
    """Seconds until the newest update is on the screen, those that the program computed, and the program."""
    terminal = Terminal(rlplay("replay", str(run)), env=env)
    terminal.wait_for(r"token 1 of", timeout=120)
    return time.monotonic() - terminal.started, cpu_seconds(terminal), terminal


def key_seconds(terminal: Terminal, key: str, pattern: str) -> float:
    """From a key's writing until what it changes has been read."""
    received, began = b"", time.perf_counter()
    terminal.press(key)
    while not re.search(pattern, _ESCAPES.sub("", received.decode(errors="replace"))):
        received += terminal.receive(0.002)
        if time.perf_counter() - began > 10:
            raise AssertionError(f"{key!r} never showed {pattern!r}")
    return time.perf_counter() - began


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=512)
    parser.add_argument("--length", type=int, default=1500)
    parser.add_argument("--candidates", type=int, default=0)
    parser.add_argument("--keys", type=int, default=20, help="times each key is pressed")
    parser.add_argument("--opens", type=int, default=5, help="times the run is opened")
    parser.add_argument("--recorded", type=int, default=0, metavar="UPDATES", help="a folder with so many updates")
    asked = parser.parse_args()
    limit = 2 * KEY if asked.recorded else KEY
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {"RLPLAY_HOME": home, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
        if asked.recorded:
            run = write_recording(Path(home) / "run", asked.recorded, asked.answers, asked.length)
            size = os.path.getsize(part(run, 0)) / asked.recorded
        else:
            run = write_run(Path(home) / "long.rlplay", asked.answers, asked.length, asked.candidates)
            size = os.path.getsize(run) / 2
        print(f"{asked.answers} answers × {asked.length} tokens, {size / 1e6:.1f} MB an update")
        for what in ("first opened", "opened again") if asked.recorded else ("open",):
            opens = []
            for _ in range(asked.opens + 1):  # the first one writes bytecode
                if what == "first opened":
                    shutil.rmtree(Path(home) / "runs", ignore_errors=True)
                seconds, computed, terminal = opened(run, env)
                opens.append((seconds, computed))
                terminal.close()
            report(f"{what}, median", statistics.median(seconds for seconds, _ in opens[1:]), OPEN)
            report(f"{what}, processor time, median", statistics.median(computed for _, computed in opens[1:]), OPEN)
        *_, terminal = opened(run, env)
        times: dict[str, list[float]] = {key: [] for key in CHANGES}
        computed: dict[str, list[float]] = {key: [] for key in CHANGES}
        for _ in range(asked.keys):
            for key, pattern in CHANGES.items():
                before = cpu_seconds(terminal)
                times[key].append(key_seconds(terminal, key, pattern))
                terminal.settle(0.15)
                computed[key].append(cpu_seconds(terminal) - before)
        terminal.close()
        for key, taken in times.items():
            report(f"key {key!r}, 95th percentile", percentile(taken), limit)
            report(f"key {key!r}, processor time in all, median", statistics.median(computed[key]), limit)
        report("all keys, median", statistics.median(itertools.chain(*times.values())), limit)
        report("all keys, 95th percentile", percentile(itertools.chain(*times.values())), limit)


def percentile(times: Iterable[float]) -> float:
    """The 95th."""
    ascending = sorted(times)
    return ascending[int(len(ascending) * 0.95)]


def report(what: str, seconds: float, limit: float) -> None:
    """One line: the figure, and how much of its limit it takes."""
    print(f"{what:40} {seconds * 1000:7.0f} ms  {seconds / limit:5.2f} of the limit", flush=True)


if __name__ == "__main__":
    main()
