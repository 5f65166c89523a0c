"""Everything that training changes, and what it reads: the state of a run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from rlplay.algorithms.entropy_control import EntropyControl
from rlplay.algorithms.schedules import share
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.lora import FrozenAdapters
from rlplay.engine.master_weights import MasterAdamW
from rlplay.engine.model import LanguageModel, trainable
from rlplay.engine.pair_loss import with_reference
from rlplay.engine.sampler import Sampler
from rlplay.engine.stages import RunStage
from rlplay.engine.world_policy import is_table
from rlplay.tasks.task import Environment, Example, Task
from rlplay.tasks.tools import Tools
from rlplay.trace.records import Choice
from rlplay.worlds.world import World
from rlplay.worlds.world_task import REWARD as REWARD_OF_WORLD
from rlplay.worlds.world_task import world_task

REWARD = "reward."
"""What the names of a reward model's parameters begin with."""


@dataclass(frozen=True)
class Teaching:
    """Who teaches a policy besides itself, if anybody does, and how a teacher's prompt is written.

    `template` says where the prompt goes and where what the teacher alone reads: text of the column
    `privileged_context`, or an answer that succeeded. `begun` are the policy's weights as the run began, by the names
    of its parameters, where a stage begins with them again.
    """

    model: LanguageModel | None = None
    template: str = ""
    privileged_context: str = ""
    begun: Mapping[str, Tensor] = field(default_factory=dict)


class Halt(RuntimeError):
    """Training must not go on: one line that says what is wrong. Raised before the weights are touched."""


@dataclass(frozen=True)
class RunPlan:
    """What does not change during a run."""

    seed: int
    stages: list[RunStage]
    max_updates: int
    eval_every: int
    eval_prompts: int
    eval_generations: int
    remembered: list[Example] = field(default_factory=list)  # what forgetting is measured on


@dataclass
class State:
    """The state a snapshot holds. Randomness needs none (see `sample.py`)."""

    lm: LanguageModel
    task: Task
    settings: Settings
    value_head: nn.Linear
    optimizer: torch.optim.Optimizer
    update: int = 0  # updates finished
    stage: int = 0  # index of the stage under way; the reference is the policy as it was when that began
    stages: list[RunStage] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)  # of the stages
    num_tokens: int = 0
    adapted: tuple[float, float] = (0.0, 0.0)  # β as a controller has adapted it, and the setting it started from
    entropy: EntropyControl = field(default_factory=EntropyControl)  # the weight of the entropy bonus, as it adapts
    batch: Batch | None = None  # the one at hand, for questions about it
    parameters: dict[str, Tensor] = field(default_factory=dict)
    reward_model: nn.Module | None = None  # a `RewardModel`, once one is trained
    teaching: Teaching = field(default_factory=Teaching)
    average: Any = None  # of the policy's weights, where that is the teacher
    world: World | None = None  # that the task is about, with its squares as they are `painted`
    plain_world: World | None = None
    painted: dict[str, float | str] = field(default_factory=dict)
    choices: dict[tuple[int, int], Choice] = field(default_factory=dict)  # the user's, by update and pair
    sampler: Sampler = field(default_factory=Sampler)
    withheld: dict[int, list[int]] = field(default_factory=dict)  # tokens whose credit is taken away, by update

    @property
    def max_updates(self) -> int:
        """Updates that the run is planned for."""
        return sum(stage.updates for stage in self.stages)

    @property
    def sampling_lm(self) -> LanguageModel:
        """The model that samples what the update under way learns from, with the sampler's weights as its policy."""
        return self.sampler.using or self.lm

    @property
    def environment(self) -> Environment | Tools | None:
        """What answers the turns of a completion, if anything does; tools for as many rounds as the settings say."""
        given = self.task.environment
        return given.within(self.settings.max_tool_calling_iterations) if isinstance(given, Tools) else given

    def learning_rate(self, step: int) -> float:
        """The learning rate of optimizer step `step` (from 0) of the update under way.

        The schedule is of the stage's planned updates and a function of the place in it alone, so that it is the same
        after a rewind. Where a setting changes the steps of an update, the past counts as if it had always been so.
        """
        s = self.settings
        planned = self.stages[self.stage].updates * s.steps if self.stages else 0
        return s.learning_rate * share(s.lr_scheduler_type, self._place(step), planned, s.warmup_steps)

    def _place(self, step: int) -> int:
        """How many optimizer steps of the stage come before `step` of the update under way."""
        begins = self.stages[self.stage].begins if self.stages else 0
        return (self.update - begins) * self.settings.steps + step

    def move_reference(self, step: int) -> bool:
        """Let the reference follow the policy, if the settings ask for that after `step` of the update under way.

        Its weights become α·θ + (1 − α)·θ_ref (TR-DPO, Gorbatovski et al. 2024, arXiv:2404.09656), as TRL's
        SyncRefModelCallback has it.
        """
        s = self.settings
        used = s.loss_type == "policy_gradient" or with_reference(s.loss_type)
        if not (s.sync_ref_model and used) or (self._place(step) + 1) % s.ref_model_sync_steps:
            return False
        if self.lm.began is None:
            self.lm.began = copy.deepcopy(self.lm.reference)
        mix_weights(self.lm.policy, self.lm.reference, s.ref_model_mixup_alpha)
        return True

    def put_reference(self, weights: Mapping[str, Tensor]) -> None:
        """Give the reference the weights that it had moved to, by its parameters' names; none: those of the start."""
        lm = self.lm
        if not weights:
            if lm.began is not None:
                copy_weights(lm.began, lm.reference)
            lm.began = None
            return
        if lm.began is None:
            lm.began = copy.deepcopy(lm.reference)
        with torch.no_grad():
            for name, parameter in lm.reference.named_parameters():
                parameter.copy_(weights[name])

    def repaint(self) -> None:
        """Take a world's squares as the settings paint them now; an update begins with it."""
        if self.plain_world is None or self.settings.squares == self.painted:
            return
        self.world, self.painted = self.plain_world.repainted(self.settings.squares), self.settings.squares
        painted = world_task(self.world)
        rewards = painted.rewards if REWARD_OF_WORLD in self.task.rewards else self.task.rewards
        self.task = msgspec.structs.replace(painted, rewards=rewards)

    @torch.no_grad()
    def cross(self, stage: int) -> None:
        """Go over into a stage: as `hand_on`, but a stage that restarts has the policy as its teacher before."""
        if self.stages and self.stages[stage].restart:
            assert self.teaching.model is not None
            copy_weights(self.lm.policy, self.teaching.model.policy)
            for name, parameter in self.lm.policy.named_parameters():
                if name in self.teaching.begun:
                    parameter.copy_(self.teaching.begun[name])
        self.hand_on(stage)

    def hand_on(self, stage: int) -> None:
        """A stage begins: the policy becomes the reference; value head, optimizer and controllers begin anew; its task
        becomes the one at hand.

        Not the base model but the policy at a stage's start is what the KL of RLHF (Ouyang et al. 2022,
        arXiv:2203.02155) and the log-ratios of DPO (Rafailov et al. 2023, arXiv:2305.18290) are taken to, and what
        pairs are sampled from. A reward model goes on as it is. A sampler begins with the policy, too.
        """
        if self.tasks:
            self.task = self.tasks[stage]
        copy_weights(self.lm.policy, self.lm.reference)
        self.lm.began = None
        if isinstance(self.lm.reference, FrozenAdapters):
            self.lm.reference.off = False
        forget_values(self.value_head)
        self.optimizer = new_optimizer(self.parameters, self.settings)
        self.adapted, self.entropy = (0.0, 0.0), EntropyControl()
        self.sampler.forget()
        self.average = None
        self.stage = stage

    def adopt(self, model: nn.Module) -> None:
        """Train a reward model along with the rest, where a loss reaches it."""
        self.reward_model = model
        new = {f"{REWARD}{name}": p for name, p in model.named_parameters()}
        self.parameters |= new
        for group in _groups(new):
            self.optimizer.add_param_group(group)

    def without_reward_model(self) -> None:
        """Forget the reward model; the optimizer is the caller's to renew."""
        self.reward_model = None
        self.parameters = {name: p for name, p in self.parameters.items() if not name.startswith(REWARD)}

    def unlabelled(self, update: int, pairs: list[int]) -> list[int]:
        """Those of the `pairs` of `update` that the user has not labelled yet."""
        return [pair for pair in pairs if (update, pair) not in self.choices]

    @property
    def kl_coef(self) -> float:
        """β as it is used now: the setting, or what a controller has made of it since it was set."""
        adapted, start = self.adapted
        return adapted if self.settings.kl_ctrl != "fixed" and start == self.settings.beta else self.settings.beta

    @property
    def entropy_coef(self) -> float:
        """The weight of the entropy bonus in the next optimizer step."""
        return self.entropy.used(self.settings)

    @classmethod
    def fresh(cls, lm: LanguageModel, task: Task, settings: Settings) -> State:
        """The state before the first update: the value head answers 0 everywhere, Adam has seen nothing.

        A table's head has no bias, which would move V on squares that no episode has visited.
        """
        head = nn.Linear(lm.hidden_size, 1, bias=not is_table(lm.policy), device=lm.device)
        forget_values(head)
        parameters = trainable(lm, head)
        return cls(lm, task, settings, head, new_optimizer(parameters, settings), parameters=parameters)


def new_optimizer(parameters: dict[str, Tensor], settings: Settings) -> torch.optim.Optimizer:
    """AdamW (Loshchilov and Hutter 2017, arXiv:1711.05101); without weight decay it is Adam (arXiv:1412.6980)."""
    if any(p.dtype == torch.bfloat16 for p in parameters.values()):
        return MasterAdamW(_groups(parameters), settings.learning_rate)
    fused = all(p.device.type in ("cpu", "cuda", "mps") for p in parameters.values())
    return torch.optim.AdamW(_groups(parameters), lr=settings.learning_rate, weight_decay=0.0, fused=fused)


def _groups(parameters: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """The parameters that decay, which are the matrices, and those that never do: biases and norms, as in TRL."""
    matrices = [p for p in parameters.values() if p.ndim > 1]
    others = [p for p in parameters.values() if p.ndim <= 1]
    both = {"params": matrices, "decays": True}, {"params": others, "decays": False}
    return [group for group in both if group["params"]]


@torch.no_grad()
def forget_values(value_head: nn.Linear) -> None:
    """Let the value head answer 0 everywhere."""
    for parameter in value_head.parameters():
        parameter.zero_()


@torch.no_grad()
def copy_weights(source: Any, target: Any) -> None:
    """Give a model of the same kind the weights of another, but for those that both share."""
    for (_, old), (_, new) in zip(target.named_parameters(), source.named_parameters(), strict=True):
        if old is not new:
            old.copy_(new)


@torch.no_grad()
def mix_weights(source: Any, target: Any, alpha: float) -> None:
    """Move a model towards another of the same kind: by a share of `alpha` of the way, each weight by itself."""
    for own, new in zip(target.parameters(), source.parameters(), strict=True):
        own.mul_(1.0 - alpha).add_(new, alpha=alpha)
