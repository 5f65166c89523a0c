"""A micro model in a folder, as any Hugging Face model is, and drivers of small jobs on it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.engine import prepare
from rlplay.engine.agreement import settle
from rlplay.engine.driver import Driver
from rlplay.engine.fit import check_fit
from rlplay.engine.model import LanguageModel, load_model
from rlplay.engine.weights import Weights
from rlplay.paths import POCKET_PATH
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks.task import Task
from rlplay.trace.records import AnyRecord
from rlplay.trusted import follow
from tests.engine import architectures

FROM_REWARDS = [
    name
    for name, preset in PRESETS.items()
    if preset.axes["loss_type"] == "policy_gradient" and not preset.axes["distillation_weight"]
]
"""The policy gradients: presets that learn from rewards, and not from a teacher or from answers that are given or
compared."""

FROM_ANSWERS = [name for name, preset in PRESETS.items()
                if preset.axes["loss_type"] not in ("policy_gradient", *VALUE_LOSSES)]  # fmt: skip
"""The presets that learn from answers that are given or compared."""

KINDS = (
    "grpo", "grpo-process", "gdpo", "gspo", "trpo", "rlhf-ppo", "vineppo", "sft", "reward-model", "dpo", "kto", "orpo",
)  # fmt: skip
"""A preset of every kind: groups, steps, several rewards, whole answers, a trust region, a critic, rollouts, given
answers, a reward model, pairs with a reference, answers without pairs, pairs without a reference."""


def one_of_each_kind(given: Sequence[str | dict[str, Any]]) -> list[Any]:
    """Presets, by name or as settings, as parameters of a test; one that `KINDS` has another one for is slow."""
    presets = [{"algorithm": each} if isinstance(each, str) else each for each in given]
    slow = [[*each] == ["algorithm"] and each["algorithm"] not in KINDS for each in presets]
    return [pytest.param(each, marks=[pytest.mark.slow] * late) for each, late in zip(given, slow, strict=True)]


SMALL: dict[str, Any] = {"num_prompts": 3, "num_generations": 4, "max_completion_length": 10, "learning_rate": 1e-3}


PLAIN = Weights()


ARCHITECTURES = ("llama", "gpt2", "qwen2")
"""Those that tests try which hold for any model; `test_architectures.py` has many more."""


@pytest.fixture(scope="session")
def micro_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder by architecture: two layers, random weights, sharp enough that log-probabilities differ."""

    @cache
    def folder_of(architecture: str) -> Path:
        folder = tmp_path_factory.mktemp(architecture)
        tokenizer = AutoTokenizer.from_pretrained(POCKET_PATH)
        ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("eos", "pad", "bos")}
        model = architectures.make(architecture, len(tokenizer), **ids)
        # An untrained model seldom ends its answer; with more ways to end, lengths differ and not all answers are cut.
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(5, len(tokenizer), 9)]
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return folder_of


@pytest.fixture(scope="session")
def micro_model(micro_models: Callable[[str], Path]) -> Path:
    """The Llama of `micro_models`."""
    return micro_models("llama")


@pytest.fixture(scope="session")
def settled(micro_models: Callable[[str], Path]) -> Callable[[str], LanguageModel]:
    """A model of `micro_models`, by its folder, as it is when it begins to learn: loaded, and compared with itself."""

    @cache
    def of(folder: str) -> LanguageModel:
        lm = load_model(folder, torch.device("cpu"))
        settle(lm)
        return lm

    return of


@pytest.fixture(autouse=True)
def _settled_once(
    settled: Callable[[str], LanguageModel], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run gets a copy of its micro model: loading and comparing them anew for each would take a third of the time."""
    copies: list[LanguageModel] = []
    fitting = _fitting()

    def load(
        name: str, device: torch.device, progress: Callable[[str], object], weights: Weights, first: Any
    ) -> LanguageModel:
        micro = Path(name).parent == tmp_path_factory.getbasetemp() and device.type == "cpu"
        if not micro or replace(weights, seed=0) != PLAIN:
            return load_model(name, device, progress, weights, first)
        lm = settled(name)
        policy, reference = copy.deepcopy(lm.policy), copy.deepcopy(lm.reference)
        tokenizer = copy.copy(lm.tokenizer)
        copies.append(replace(lm, policy=policy, reference=reference, tokenizer=tokenizer, remarks=[*lm.remarks]))
        return copies[-1]

    def settle_others(lm: LanguageModel) -> None:
        if not any(lm is each for each in copies):
            settle(lm)

    monkeypatch.setattr(prepare, "load_model", load)
    monkeypatch.setattr(prepare, "settle", settle_others)
    monkeypatch.setattr(prepare, "check_fit", fitting)


@cache
def _fitting() -> Callable[[LanguageModel, Task, int], None]:
    """`check_fit`, but for what fitted before."""
    fitted: set[tuple[str, str, int]] = set()

    def check(lm: LanguageModel, task: Task, max_completion_length: int) -> None:
        examples = repr([example.prompt for example in (*task.train, *task.held_out)])
        known = lm.tokenizer.name_or_path, examples, max_completion_length
        if known not in fitted:
            check_fit(lm, task, max_completion_length)
            fitted.add(known)

    return check


REWARD = """
def uneven(completion_ids, **columns):
    return [sum(ids) % 7 / 7 for ids in completion_ids]

def halves(completions, completion_ids, **columns):
    texts = [c[0]["content"] for c in completions]
    return [[(len(t) // 2, len(t) % 3 / 2), (len(t), sum(ids) % 5 / 5)] for t, ids in zip(texts, completion_ids)]

def seldom(completion_ids, **columns):
    return [float(sum(ids) % 4 == 0) for ids in completion_ids]

def same(completions, **columns):
    return [0.97] * len(completions)

def some_groups(prompts, completion_ids, **columns):
    even = {p: i % 2 for i, p in enumerate(dict.fromkeys(str(prompt) for prompt in prompts))}
    return [0.4 if even[str(p)] else sum(ids) % 7 / 7 for p, ids in zip(prompts, completion_ids)]

def choosy(completion_ids, **columns):
    return [None if sum(ids) % 3 == 0 else sum(ids) % 7 / 7 for ids in completion_ids]
"""
"""Rewards that an untrained model earns unevenly, for the whole, for each half and seldom; always; not every time.

And for `some_groups` only: in every second group all answers earn the same."""


def opinion(completion_ids: list[list[int]], **_columns: Any) -> list[float]:
    """A score by which almost any two answers differ, those of an untrained model too."""
    return [sum(ids) % 997 / 997 for ids in completion_ids]


def score_by_opinion(patch: pytest.MonkeyPatch) -> None:
    """Let `opinion` be the tasks' gold score, their own being 0 for whatever an untrained model says."""
    for task, gold in (("arithmetic", "correct"), ("open_questions", "helpful")):
        patch.setattr(import_module(f"rlplay.tasks.{task}"), gold, opinion)


@pytest.fixture
def opinionated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated labeller goes by `opinion`."""
    score_by_opinion(monkeypatch)


@pytest.fixture
def start(micro_models: Callable[[str], Path], tmp_path: Path) -> Callable[..., tuple[Driver, list[AnyRecord]]]:
    """Makes a loaded driver of a small job and the list its records go to; other keywords are settings."""

    def make(
        run: str = "run.rlplay",
        resume: bool = False,
        eval_every: int = 0,
        reward: str = "uneven",
        architecture: str = "llama",
        scenario: dict[str, Any] | None = None,
        **settings: Any,
    ) -> tuple[Driver, list[AnyRecord]]:
        (tmp_path / "uneven.py").write_text(REWARD)
        follow([str(tmp_path / "uneven.py")])
        played = Scenario(
            name="micro", title="Micro", question="", eval_every=eval_every, eval_prompts=4,
            settings=SMALL | settings,
            **{"reward": [f"{tmp_path / 'uneven.py'}:{name}" for name in reward.split("+")], "max_updates": 4}
            | {"task": "arithmetic"}
            | ({} if "model" in (scenario or {}) else {"model": str(micro_models(architecture))}) | (scenario or {}),
        )  # fmt: skip
        records: list[AnyRecord] = []
        driver = Driver(Job(played, str(tmp_path / run), device="cpu", threads=1, resume=resume), records.append)
        driver.load(lambda what, fraction: None)
        return driver, records

    return make
