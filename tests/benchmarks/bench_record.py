"""What recording costs a run of each trainer of TRL that rlplay knows, against the same training without the recorder.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_record [--steps 12] [TRAINER …]

Needs `rlplay[parity]`. A random model of 8 million parameters, 16 answers of 48 tokens in a step (RewardTrainer: 32).
Seconds are of a thread's processor time, so what other programs do does not count. What runs in the recorder, its hooks
in the backward pass included, is to be at most 1 % of a step. Two trainings, with and without the callback, also take
their steps in turn, so that each pair has the same load: this shows what the recorder causes elsewhere. Either is the
first once; on a busy machine pairs scatter by several percent all the same. First steps are left out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any
from unittest import mock

import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PrinterCallback, TrainerCallback

from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.guard import Guard
from tests.record import tiny

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import trl

ANSWERS, GENERATIONS = 16, 4
_CHOSEN, _REJECTED = {"chosen": "0123"}, {"rejected": "cdef"}
ROWS: dict[str, dict[str, Any]] = {
    "GRPO": {}, "RLOO": {}, "DPO": _CHOSEN | _REJECTED, "Reward": _CHOSEN | _REJECTED,
    "KTO": {"completion": "0123", "label": True}, "SFT": {"completion": "0123"},
}  # fmt: skip
"""What a row of the dataset of each trainer holds besides the prompt; a text is repeated to the length of an answer."""


class Turns(TrainerCallback):  # type: ignore[misc]
    """Lets two trainings in two threads take their steps in turn, and keeps the processor seconds of each step."""

    def __init__(self, mine: Semaphore, others: Semaphore) -> None:
        self.seconds: list[float] = []
        self._mine, self._others = mine, others
        self._began: float | None = None

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """The step before ends here, with what is done about its log."""
        self._turn()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """The last step ends, with what the callbacks before this one do at the end."""
        self._turn(last=True)

    def _turn(self, last: bool = False) -> None:
        if self._began is not None:
            self.seconds.append(time.thread_time() - self._began)
            self._others.release()
        if not last:
            self._mine.acquire()
            self._began = time.thread_time()


def model(asked: argparse.Namespace, scores: bool = False) -> Any:
    """A random model, or a reward model."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=asked.vocabulary, hidden_size=asked.hidden, intermediate_size=4 * asked.hidden,
        num_hidden_layers=asked.layers, num_attention_heads=asked.hidden // 64, num_key_value_heads=asked.hidden // 64,
        pad_token_id=tiny.PAD, eos_token_id=tiny.END, bos_token_id=None, num_labels=1,
    )  # fmt: skip
    return LlamaForSequenceClassification(config) if scores else LlamaForCausalLM(config)


def trainer(kind: str, asked: argparse.Namespace, folder: Path, callbacks: list[Any]) -> Any:
    """A trainer, on random answers or on given ones."""
    batch = 2 * ANSWERS if kind == "Reward" else ANSWERS  # its step has no head over the vocabulary
    pairs = kind in ("DPO", "Reward")
    shared: dict[str, Any] = {
        "output_dir": str(folder), "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True,
        "max_steps": asked.steps + 1, "logging_steps": 1, "bf16": False,
        "per_device_train_batch_size": batch // 2 if pairs else batch,
    }  # fmt: skip
    own: dict[str, Any] = {"processing_class": tiny.tokenizer(), "callbacks": callbacks}
    if not ROWS[kind]:
        shared |= {"num_generations": GENERATIONS, "max_completion_length": asked.length, "beta": 0.0}
        rows, own["reward_funcs"] = tiny.PROMPTS, [tiny.length]
    else:
        long = {
            name: each * (asked.length // 4) if isinstance(each, str) else each for name, each in ROWS[kind].items()
        }
        rows = [
            {"prompt": "ab " if number % 2 else "ba "} | long | ({"label": number % 2 == 0} if kind == "KTO" else {})
            for number in range(batch)
        ]
    if kind in ("DPO", "KTO"):
        own["ref_model"] = model(asked)
    return getattr(trl, f"{kind}Trainer")(
        model=model(asked, kind == "Reward"), args=getattr(trl, f"{kind}Config")(**shared),
        train_dataset=Dataset.from_list(rows), **own,
    )  # fmt: skip


def both(kind: str, asked: argparse.Namespace, order: tuple[bool, bool]) -> tuple[list[float], list[float], float]:
    """Processor seconds of the steps with the recorder and of those without; and of all that its guard has let run.

    `order` says which of the two trainings is recorded: the first or the second.
    """
    own = [0.0]
    with tempfile.TemporaryDirectory() as name, counted(own):
        turns = Semaphore(1), Semaphore(0)
        callbacks = Turns(*turns), Turns(*turns[::-1])
        runs = [
            trainer(kind, asked, Path(name), [*([RlplayCallback(Path(name) / "rec")] if records else []), callback])
            for records, callback in zip(order, callbacks, strict=True)
        ]
        threads = [Thread(target=run.train) for run in runs]
        for run, thread in zip(runs, threads, strict=True):
            run.remove_callback(PrinterCallback)
            thread.start()
        for thread in threads:
            thread.join()
        recorded, bare = (callbacks[order.index(records)].seconds for records in (True, False))
        return recorded[1:], bare[1:], own[0] / len(recorded)


@contextmanager
def counted(own: list[float]) -> Iterator[None]:
    """Adds the processor seconds of all that the recorder does to the number in `own`."""
    inner = Guard.__call__

    def call(guard: Guard, *given: Any) -> Any:
        began = time.thread_time()
        outermost = not guard._depth
        try:
            return inner(guard, *given)
        finally:
            own[0] += (time.thread_time() - began) * outermost

    with mock.patch.object(Guard, "__call__", call):
        yield


def parser(about: str, trainers: Iterable[str]) -> argparse.ArgumentParser:
    """The options: which trainers, and the sizes of model and batch."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("trainers", nargs="*", default=[*trainers], metavar="TRAINER", help=", ".join(trainers))
    made.add_argument("--hidden", type=int, default=256)
    made.add_argument("--layers", type=int, default=4)
    made.add_argument("--vocabulary", type=int, default=8000)
    made.add_argument("--length", type=int, default=48)
    made.add_argument("--steps", type=int, default=12)
    return made


def main() -> None:
    """Print the cost of each trainer."""
    asked = parser(__doc__, ROWS).parse_args()
    for kind in asked.trainers:
        found = [both(kind, asked, order) for order in ((True, False), (False, True))]
        step = statistics.median(seconds for _, bare, _ in found for seconds in bare)
        costs = [[one / other - 1 for one, other in zip(*each[:2], strict=True)] for each in found]
        first, second = map(statistics.median, costs)
        own = statistics.mean(each[2] for each in found)
        print(
            f"{kind:<7} {step:6.3f} s a step   in the recorder {own * 1000:.1f} ms, {own / step:.2%}   "
            f"cost by pairs {(first + second) / 2:+.2%} (recorded first {first:+.2%}, second {second:+.2%})",
            flush=True,
        )


if __name__ == "__main__":
    main()
