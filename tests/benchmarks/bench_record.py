"""What recording costs a run of each trainer of TRL that rlplay knows, against the same training without the recorder.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_record [--pairs 6] [--steps 4] [TRAINER …]

Needs `rlplay[parity]`. A random model of 11 million parameters, 16 answers of 48 tokens in a step. Trainings with and
without the callback alternate, in processor time, so that what hooks do in the backward pass counts too, and so that
other programs do not. A training's first step is not counted. The cost is to be at most 1 %.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PrinterCallback, TrainerCallback

from rlplay.record.trl import RlplayCallback
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


class Clock(TrainerCallback):  # type: ignore[misc]
    """Processor seconds of all steps but the first."""

    def __init__(self) -> None:
        self.seconds = self._began = 0.0

    def on_step_end(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Begin after the first step."""
        if state.global_step == 1:
            self._began = time.process_time()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """The last callback's: what others do at the end counts."""
        self.seconds = time.process_time() - self._began


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
    pairs = kind in ("DPO", "Reward")
    shared: dict[str, Any] = {
        "output_dir": str(folder), "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True,
        "max_steps": asked.steps + 1, "logging_steps": 1, "bf16": False,
        "per_device_train_batch_size": ANSWERS // 2 if pairs else ANSWERS,
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
            for number in range(ANSWERS)
        ]
    if kind in ("DPO", "KTO"):
        own["ref_model"] = model(asked)
    return getattr(trl, f"{kind}Trainer")(
        model=model(asked, kind == "Reward"), args=getattr(trl, f"{kind}Config")(**shared),
        train_dataset=Dataset.from_list(rows), **own,
    )  # fmt: skip


def seconds(kind: str, asked: argparse.Namespace, records: bool) -> tuple[float, float]:
    """Processor seconds of a step, and those that the recorder counts itself."""
    with tempfile.TemporaryDirectory() as name:
        recorder, clock = RlplayCallback(Path(name) / "rec"), Clock()
        run = trainer(kind, asked, Path(name), [*([recorder] if records else []), clock])
        run.remove_callback(PrinterCallback)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run.train()
        return clock.seconds / asked.steps, recorder.seconds / (asked.steps + 1)


def main() -> None:
    """Print the cost of each trainer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trainers", nargs="*", default=[*ROWS], metavar="TRAINER", help=", ".join(ROWS))
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--steps", type=int, default=4)
    asked = parser.parse_args()
    for kind in asked.trainers:
        seconds(kind, argparse.Namespace(**vars(asked) | {"steps": 1}), records=True)  # loads what is loaded once
        ratios, steps, own = [], [], []
        for pair in range(asked.pairs):
            found = {records: seconds(kind, asked, records) for records in ((True, False), (False, True))[pair % 2]}
            ratios.append(found[True][0] / found[False][0] - 1)
            steps.append(found[False][0])
            own.append(found[True][1] / found[True][0])
        spread = f"{min(ratios):+.2%} to {max(ratios):+.2%}"
        print(
            f"{kind:<7} {statistics.median(steps):6.3f} s a step   cost {statistics.median(ratios):+.2%} ({spread})   "
            f"its own clock {statistics.median(own):.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
