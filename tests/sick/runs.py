"""The sick and the healthy runs: small, seeded, really trained on the bundled model or in a world."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from rlplay.engine import sample as sampling
from rlplay.engine.driver import Driver
from rlplay.engine.snapshots import SnapshotStore
from rlplay.paths import POCKET_PATH
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks import load_task
from rlplay.trusted import follow

REWARDS = Path(__file__).with_name("rewards.py")

SICK_UPDATES, HEALTHY_UPDATES = 10, 30
"""Updates by which the cause should be named, and updates without an alarm."""
SOON = 5
"""Updates of a run whose cause shows at once: the rest of them would only take time."""

SMALL: dict[str, Any] = {
    "algorithm": "grpo", "num_prompts": 8, "num_generations": 6, "max_completion_length": 24, "learning_rate": 4e-4,
}  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One run: `cause` is the name of the finding that should come first; empty for a healthy run."""

    name: str
    cause: str = ""
    reward: tuple[str, ...] = ("right",)
    settings: dict[str, Any] = field(default_factory=dict)
    updates: int = SICK_UPDATES
    task: str = "arithmetic"
    eval_every: int = 0
    scenario: str = ""  # a bundled one in place of the task
    prompts: int = 0  # as many of the task's prompts, again and again
    data: Callable[[], list[dict[str, Any]]] | None = None  # the rows of a dataset in place of the task
    model: Callable[[Path], Path] | None = None  # makes the folder of a model that does not fit
    patch: Callable[[], Any] | None = None  # breaks the engine while the run lasts


def play(sample: Sample, folder: Path, seed: int) -> Path:
    """Train it, unless that was done before, and return its run file."""
    run = folder / f"{sample.name.replace(' ', '-')}-{seed}.rlplay"
    if run.exists():
        return run
    follow([str(REWARDS)])
    driver = Driver(Job(scenario_of(sample, folder, seed), str(run), device="cpu", threads=1), lambda _record: None)
    driver.load(lambda _what, _fraction: None)
    with ExitStack() as broken:
        broken.enter_context(mock.patch.object(SnapshotStore, "begin"))  # nobody goes back in these runs
        if sample.patch is not None:
            broken.enter_context(sample.patch())
        driver.advance("update", sample.updates, lambda: False)
    driver.close()
    return run


def scenario_of(sample: Sample, folder: Path, seed: int) -> Scenario:
    if sample.scenario:
        scenario = load(sample.scenario)
        return msgspec.structs.replace(scenario, seed=seed, settings=scenario.settings | sample.settings, script=[],
                                       eval_every=sample.eval_every, eval_prompts=24)  # fmt: skip
    prompts = None
    if sample.prompts:
        prompts = [example.prompt[-1]["content"] for example in load_task(sample.task).train[: sample.prompts]]
    rows = folder / f"{sample.name.replace(' ', '-')}.jsonl"
    if sample.data is not None:
        rows.write_text("".join(json.dumps(row) + "\n" for row in sample.data()))
    return Scenario(
        name=sample.name, title=sample.name, question="", seed=seed, max_updates=100,
        task=None if sample.data else sample.task, dataset=str(rows) if sample.data else None,
        model="pocket" if sample.model is None else str(sample.model(folder / sample.name.replace(" ", "-"))),
        reward=[f"{REWARDS}:{name}" for name in sample.reward], settings=SMALL | sample.settings,
        eval_every=sample.eval_every, eval_prompts=48, prompts=prompts,
    )  # fmt: skip


def copied(folder: Path, **files: Any) -> Path:
    if not folder.exists():
        shutil.copytree(POCKET_PATH, folder)
        for name, change in files.items():
            path = folder / name.replace("__", ".")
            path.write_text(change(path.read_text()))
    return folder


def _another_end(folder: Path) -> Path:
    """A model that never writes the token that should end its answers."""

    def other(text: str) -> str:
        return json.dumps(json.loads(text) | {"eos_token_id": 0})

    return copied(folder, generation_config__json=other, config__json=other)


CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
NO_TURN = "{% for m in messages %}{{ '<|user|>' + m['content'] + '<|end|>' }}{% endfor %}"


def _chatml(folder: Path) -> Path:
    """The chat template of another model, whose marks the tokenizer does not know."""
    return copied(folder, chat_template__jinja=lambda _: CHATML)


def _no_turn(folder: Path) -> Path:
    """A template that forgets to begin the model's turn."""
    return copied(folder, chat_template__jinja=lambda _: NO_TURN)


def _noisy_sampler() -> Any:
    """Sampling in a precision that is too low, as a quantised inference engine does."""
    plain = sampling.decoder

    def decoder(*given: Any) -> Any:
        growing = plain(*given)
        return _Rounded(growing)

    return mock.patch.object(sampling, "decoder", decoder)


class _Rounded:
    def __init__(self, growing: Any) -> None:
        self._growing = growing

    @property
    def logits(self) -> Any:
        return self._growing.logits.round()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._growing, name)


SICK = (
    Sample("learning rate too large", "step too large", settings={"learning_rate": 1e-2}, updates=SOON),
    Sample("learning rate too small", "step too small", settings={"learning_rate": 1e-7}),
    Sample("too many steps on a batch", "step too large", settings={"num_iterations": 16, "learning_rate": 1e-3},
           updates=SOON),
    Sample("vowels with large steps", "step too large", ("vowels",), settings={"learning_rate": 3e-3},
           task="questions"),
    Sample("reward counts characters", "length", ("length",)),
    Sample("reward pays for brevity", "length", ("shortness",), task="questions", updates=SOON),
    Sample("end token never occurs", "no end", model=_another_end, updates=SOON),
    Sample("template of another model", "template", model=_chatml, updates=SOON),
    Sample("template without a turn", "template", model=_no_turn, updates=SOON),
    Sample("text compared with numbers", "same reward", ("as_text",), updates=SOON),
    Sample("reward too easy", "same reward", ("numbers",), updates=SOON),
    Sample("reward upside down", "inverted", ("inverted",), updates=SOON),
    Sample("answers cut", "truncated", (), task="word_problems",
           settings={"max_completion_length": 14, "reward_weights": {"steps": 1}}, updates=SOON),
    Sample("memorised prompts", "memorised", prompts=4, eval_every=2),
    Sample("flattery", "gamed", (), task="questions",
           settings={"reward_weights": {"praise": 1, "helpful": 0}, "learning_rate": 6e-4}),
    Sample("rounded sampler", "mismatch", patch=_noisy_sampler, updates=SOON),
    Sample("too hot", "temperature", settings={"temperature": 3.0}, updates=SOON),
    Sample("critic that learns nothing", "critic", settings={"algorithm": "ppo", "vf_coef": 0.0}),
    Sample("entropy penalised", "entropy", ("noise",), settings={"entropy_coef": -1.0, "scale_rewards": "none"}),
)  # fmt: skip

HEALTHY = tuple(
    Sample(
        name,
        reward=() if task == "questions" else ("right",),
        updates=HEALTHY_UPDATES,
        settings=settings if scenario else {"num_prompts": 6} | settings,
        scenario=scenario,
        task=task,
        eval_every=5,
    )
    for name, task, scenario, settings in (
        ("sums by GRPO", "arithmetic", "", {}),
        ("sums by RLOO", "arithmetic", "", {"algorithm": "rloo"}),
        ("helpful answers by GRPO", "questions", "", {"reward_weights": {"helpful": 1}}),
        (
            "word problems by Dr. GRPO",
            "word_problems",
            "",
            {"algorithm": "dr-grpo", "max_completion_length": 32, "num_prompts": 8},
        ),
        ("grid world by PPO", "", "grid", {}),
        ("DPO", "", "dpo", {}),
    )
)
