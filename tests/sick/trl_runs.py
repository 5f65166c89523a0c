"""Runs of TRL's trainers on the bundled model, recorded by the callback and sabotaged where TRL lets one."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    PrinterCallback,
)

from rlplay.api.recorded import open_run
from rlplay.paths import POCKET_PATH
from rlplay.record.trl import RlplayCallback
from rlplay.tasks import load_task
from rlplay.tasks.for_trl import prompts
from tests.sick.case import Made, Make, Numbers, curves, ends
from tests.sick.rewards import right

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import trl

SHARED: dict[str, Any] = {
    "logging_steps": 1, "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True, "bf16": False,
    "lr_scheduler_type": "constant",
}  # fmt: skip
SAMPLING: dict[str, Any] = {
    "per_device_train_batch_size": 36, "num_generations": 6, "max_completion_length": 12, "learning_rate": 3e-4,
}  # fmt: skip


def _model(dtype: torch.dtype = torch.float32) -> Any:
    return AutoModelForCausalLM.from_pretrained(POCKET_PATH, dtype=dtype)


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def pairs(swapped: bool = False, near: bool = False) -> list[dict[str, Any]]:
    """A right and a wrong sum. `near`: they share most of their tokens."""
    rows = []
    for place, example in enumerate(load_task("arithmetic").train):
        answer = example.columns["answer"]
        texts = [str(answer), str(answer + 1 + place % 3)]
        if near:
            texts = [f"{text}. The answer is {text}." for text in texts]
        good, bad = reversed(texts) if swapped else texts
        rows.append({"prompt": example.prompt, "chosen": _said(good), "rejected": _said(bad)})
    return rows


def single() -> list[dict[str, Any]]:
    """Right and wrong sums, one by one."""
    return [
        {"prompt": row["prompt"], "completion": row[side], "label": side == "chosen"}
        for row in pairs() for side in ("chosen", "rejected")
    ]  # fmt: skip


def given() -> list[dict[str, Any]]:
    """Right sums to imitate."""
    return [{"prompt": row["prompt"], "completion": row["chosen"]} for row in pairs()]


def sampled(
    steps: int, *proof: str, trainer: Any = trl.GRPOTrainer, config: Any = trl.GRPOConfig, task: str = "arithmetic",
    before: Callable[[Any], Any] | None = None, after: Callable[[Path, Any], Numbers] | None = None,
    dtype: torch.dtype = torch.float32, lora: bool = False, reward: Any = right, **options: Any,
) -> Make:  # fmt: skip
    """A trainer that samples. `before` breaks it; `after` measures what that did in the run, given what it returned."""

    def make(place: Path, seed: int) -> Made:
        args = config(output_dir=str(place / "out"), max_steps=steps, seed=seed, **(SHARED | SAMPLING | options))
        made = trainer(
            model=_model(dtype), reward_funcs=[reward], args=args,
            train_dataset=Dataset.from_list(prompts(load_task(task), 400)),
            processing_class=AutoTokenizer.from_pretrained(POCKET_PATH), callbacks=[RlplayCallback(place / "run")],
            peft_config=LoraConfig(r=8, lora_alpha=16, target_modules="all-linear") if lora else None,
        )  # fmt: skip
        return _trained(made, place, before, after, proof)

    return make


def learned(
    trainer: Any, config: Any, data: Callable[[], list[dict[str, Any]]], steps: int, *proof: str,
    before: Callable[[Any], Any] | None = None, after: Callable[[Path, Any], Numbers] | None = None, **options: Any,
) -> Make:  # fmt: skip
    """A trainer that learns from answers that are given."""

    def make(place: Path, seed: int) -> Made:
        own = {"per_device_train_batch_size": 16, "learning_rate": 1e-4, "max_steps": steps, "seed": seed} | options
        if trainer is trl.RewardTrainer:
            torch.manual_seed(seed)
            model = AutoModelForSequenceClassification.from_pretrained(POCKET_PATH, num_labels=1, dtype=torch.float32)
            model.config.pad_token_id = 0
        else:
            model = _model()
        made = trainer(
            model=model, args=config(output_dir=str(place / "out"), **(SHARED | own)),
            train_dataset=Dataset.from_list(list(itertools.chain(data(), data()))),
            processing_class=AutoTokenizer.from_pretrained(POCKET_PATH), callbacks=[RlplayCallback(place / "run")],
        )  # fmt: skip
        return _trained(made, place, before, after, proof)

    return make


def _trained(
    trainer: Any, place: Path, before: Callable[[Any], Any] | None, after: Callable[[Path, Any], Numbers] | None,
    proof: tuple[str, ...],
) -> Made:  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    start = weights(trainer.model)
    broken = before(trainer) if before is not None else None
    trainer.train()
    moved = {"weights moved by": float((weights(trainer.model) - start).norm() / start.norm())}
    own = after(place / "run", broken) if after is not None else {}
    return place / "run", ends(curves(place / "run"), *proof) | moved | own


def weights(model: Any) -> torch.Tensor:
    """All weights in one vector."""
    return torch.cat([p.detach().float().flatten().clone() for p in model.parameters()])


# What breaks a trainer.


def hot(trainer: Any) -> None:
    """The sampler's temperature is 2, while log-probs are computed at 1."""
    trainer.generation_config.temperature = 2.0


def noisy_reference(trainer: Any) -> None:
    """The reference is not the model that training starts from."""
    with torch.no_grad():
        for weight in trainer.ref_model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))


def frozen_adapter(trainer: Any) -> None:
    """The half of the adapter that is 0 cannot learn, so its product stays 0."""
    for name, weight in trainer.model.named_parameters():
        if "lora_B" in name:
            weight.requires_grad_(False)


def one_norm(trainer: Any) -> None:
    """All is frozen but the scale of the last norm."""
    for name, weight in trainer.model.named_parameters():
        weight.requires_grad_(name.endswith("model.norm.weight"))


def pad_is_end(trainer: Any) -> list[float]:
    """The pad token is the end token, and the collator leaves pad tokens out of the loss. Returns the share of answers
    whose end is in the loss, by batch."""
    words, plain = trainer.processing_class, trainer.data_collator
    words.pad_token = words.eos_token
    inner, found = DataCollatorForLanguageModeling(words, mlm=False), []

    def collate(rows: list[dict[str, Any]]) -> Any:
        batch = plain(rows)
        ids = batch["input_ids"].where(batch["attention_mask"].bool(), words.eos_token_id)
        labels = inner.torch_call([{"input_ids": row} for row in ids])["labels"]
        batch["labels"] = batch["labels"].where(labels != -100, -100)
        found.append(float((batch["labels"] == words.eos_token_id).any(1).float().mean()))
        return batch

    trainer.data_collator = collate
    return found


# What the breaking did.


def ends_in_loss(_run: Path, shares: list[float]) -> Numbers:
    """The share of answers whose end token was trained."""
    return {"answers whose end is in the loss": max(shares)}


def surprise(run: Path, _: Any) -> Numbers:
    """Mean -log p of the sampled tokens, and mean entropy; a sampler's own answers have both equal."""
    with open_run(run) as recorded:
        tokens = recorded.tokens(recorded.updates[-1])
        mine = tokens["loss_mask"]
        return {"mean -log p": float(-tokens["trainer_logprobs"][mine].mean()),
                "mean entropy": float(tokens["entropy"][mine].mean())}  # fmt: skip
