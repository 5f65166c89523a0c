"""Runs of TRL that are recorded and saved while they train, and what rlplay makes of them again."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from msgspec.structs import replace as replace_struct
from safetensors.torch import load_file

from rlplay.engine.credit_phase import credit
from rlplay.engine.driver import Driver
from rlplay.engine.from_checkpoint.checks import recorded_batch
from rlplay.engine.from_checkpoint.rebuild import Rebuilt, rebuild
from rlplay.engine.optimize import optimize
from rlplay.engine.passes import token_logprobs
from rlplay.engine.policy_gradient import gradients
from rlplay.engine.score import score
from rlplay.engine.state import State
from rlplay.engine.teacher_forcing import observed
from rlplay.foreign.copy import run_file
from rlplay.foreign.from_checkpoint.plan import Plan, plan
from rlplay.record.trl import RlplayCallback
from rlplay.tasks.dataset_row import read_row
from rlplay.tasks.task import Example
from rlplay.trace.update import Update
from rlplay.trusted import follow, place
from tests.record import tiny

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import trl

REWARDS = [f"{Path(tiny.__file__)}:digits", f"{Path(tiny.__file__)}:length"]
SHARED: dict[str, Any] = {
    "per_device_train_batch_size": 8, "max_steps": 4, "logging_steps": 1, "learning_rate": 0.01, "seed": 3,
    "report_to": [], "use_cpu": True, "save_strategy": "steps", "save_steps": 1, "disable_tqdm": True, "bf16": False,
    "gradient_checkpointing": False,
}  # fmt: skip
GROUPED: dict[str, Any] = {"num_generations": 4, "max_completion_length": 5, "temperature": 0.9, "beta": 0.05}


def trained(folder: Path, data: list[dict[str, Any]], kind: str = "GRPO", talker: bool = False, **options: Any) -> Path:
    """The output folder of a run with a checkpoint after each step; its model is in `folder`/model."""
    tokenizer, given = tiny.talker() if talker else tiny.tokenizer(), {}
    if kind in ("GRPO", "RLOO"):
        options, given = GROUPED | options, {"reward_funcs": [tiny.digits, tiny.length]}
    if "peft_config" in options:
        given["peft_config"] = options.pop("peft_config")
    model = tiny.model(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    args = getattr(trl, f"{kind}Config")(output_dir=str(folder / "out"), **(SHARED | options))
    trainer = getattr(trl, f"{kind}Trainer")(
        model=model, args=args, train_dataset=Dataset.from_list(data), processing_class=tokenizer,
        callbacks=[RlplayCallback()], **given,
    )  # fmt: skip
    trainer.train()
    return folder / "out"


def rebuilt(out: Path, step: int, home: Path, rewards: list[str] = REWARDS, **options: Any) -> Rebuilt:
    """The run that goes on at a step, in the folder `home`."""
    return made_of(plan(run_file(out), out / f"checkpoint-{step}", rewards, **options), home / f"again-{step}.rlplay")


def made_of(found: Plan, run: Path) -> Rebuilt:
    """The run of a plan, whose rewards the user has named."""
    follow(place(entry) for entry in found.rewards)
    return rebuild(found, run, "cpu")


def loaded(made: Rebuilt) -> Driver:
    """A driver at the place where the trainer was."""
    driver = Driver(made.job, lambda _: None)
    driver.load(lambda *_: None)
    return driver


def learn(state: State, update: Update, seed: int = 0) -> None:
    """One update on recorded answers as if the policy had sampled them: scored, credited and learned from here."""
    assert update.sampled is not None
    examples = [
        Example(text, columns) for text, columns in zip(update.sampled.prompts, update.sampled.columns, strict=True)
    ]
    batch = recorded_batch(state.lm, update.sampled, examples)
    with torch.no_grad():
        old = token_logprobs(state.lm, state.lm.policy, batch.tokens(), batch.temperature)
    state.batch = batch = replace(observed(state.lm, batch, 4), old_logprobs=old, temperature=batch.temperature)
    score(batch, state)
    credit(batch, state)
    for _ in optimize(batch, len(batch.group), lambda rows: gradients(batch, rows, state), state, seed):
        pass


def learn_given(driver: Any, rows: list[dict[str, Any]]) -> None:
    """One update of the engine's own on these rows with given answers, which are all that there are to draw from."""
    state = driver._state
    state.tasks = [replace_struct(task, train=[read_row(row) for row in rows], held_out=[]) for task in state.tasks]
    state.task = state.tasks[0]
    driver.advance("update", 1, lambda: False)


def stored(checkpoint: Path, name: str = "model.safetensors") -> dict[str, torch.Tensor]:
    """The weights in a checkpoint, by name."""
    return load_file(checkpoint / name)
