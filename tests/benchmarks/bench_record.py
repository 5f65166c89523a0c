"""What recording costs a run of TRL's GRPOTrainer or DPOTrainer: seconds in the recorder against those of the training.

Run with `OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_record`; needs `rlplay[parity]`. Random models, 16 answers
to 4 prompts in a step. The ratio is to be at most 1 %.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM

from rlplay.record.trl import RlplayCallback
from tests.record import tiny

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer


def model(hidden: int, layers: int, vocabulary: int) -> Any:
    """A random model."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=4 * hidden, num_hidden_layers=layers,
        num_attention_heads=hidden // 64, num_key_value_heads=hidden // 64, pad_token_id=tiny.PAD,
        eos_token_id=tiny.END, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def trainer(kind: str, asked: argparse.Namespace, folder: Path, callback: RlplayCallback) -> Any:
    """A trainer of random answers."""
    shared = {
        "output_dir": str(folder), "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True,
        "max_steps": asked.steps, "logging_steps": 1, "per_device_train_batch_size": 16, "bf16": False,
    }  # fmt: skip
    own = {"model": model(asked.hidden, asked.layers, asked.vocabulary), "processing_class": tiny.tokenizer()}
    if kind == "grpo":
        args = GRPOConfig(**shared, num_generations=4, max_completion_length=asked.length)
        data = Dataset.from_list(tiny.PROMPTS)
        return GRPOTrainer(args=args, train_dataset=data, reward_funcs=[tiny.length], callbacks=[callback], **own)
    rows = [{"prompt": "ab ", "chosen": "0" * asked.length, "rejected": "c" * asked.length}] * 16
    args = DPOConfig(**shared | {"per_device_train_batch_size": 8})
    return DPOTrainer(
        args=args, train_dataset=Dataset.from_list(rows), ref_model=model(asked.hidden, asked.layers, asked.vocabulary),
        callbacks=[callback], **own,
    )  # fmt: skip


def main() -> None:
    """Train with the recorder, and print both times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4)
    asked = parser.parse_args()
    for kind in ("grpo", "dpo"):
        with tempfile.TemporaryDirectory() as name:
            callback = RlplayCallback(Path(name) / "rec")
            run = trainer(kind, asked, Path(name), callback)
            began = time.perf_counter()
            run.train()
            whole = time.perf_counter() - began
            size = sum(path.stat().st_size for path in (Path(name) / "rec").iterdir())
            step, recording = whole / asked.steps, callback.seconds / asked.steps
            print(
                f"{kind:<5} {step:8.3f} s a step, of which {recording:.4f} s recording: {recording / step:.2%} (< 1 %)"
            )
            print(f"{'':<5} {size / asked.steps / 1024:8.0f} KiB a step")


if __name__ == "__main__":
    main()
