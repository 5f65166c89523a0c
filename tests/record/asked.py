"""A run of TRL that is asked who taught a token, and the same shares by autograd in float64."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from rlplay.foreign.recording import Recording
from rlplay.trace.records import Array, Sampled
from rlplay.trace.teachers import Target, Taught, Teach
from tests.record.watched import Run

Weights = dict[str, Tensor]


@dataclass
class Step:
    """An optimizer step: weights and first moments before it, weights and second moments after it."""

    before: Weights
    moments: Weights
    rate: float
    count: int
    after: Weights = field(default_factory=dict)
    squares: Weights = field(default_factory=dict)


class Asking(TrainerCallback):  # type: ignore[misc]
    """Asks after some optimizer steps, by the first token of the first answer, and keeps what the last update did."""

    def __init__(self, run: Run, folder: Path, at: tuple[int, ...], interrupted: bool = False) -> None:
        self._run, self._folder, self._at, self._interrupted = run, folder, at, interrupted
        self.answers: list[Taught] = []
        self.steps: list[Step] = []
        run.trainer.add_callback(self)

    @property
    def last(self) -> Taught:
        return self.answers[-1]

    def recorded(self, kind: type) -> list[Any]:
        """The records of the update that was asked about last."""
        records = Recording(self._folder).fresh()
        return [each for each in records if isinstance(each, kind) and each.update == self.last.update]

    def on_pre_optimizer_step(
        self, _args: Any, state: Any, _control: Any, model: Any, optimizer: Any, **_: Any
    ) -> None:
        group, moments = optimizer.param_groups[0], _moments(model, optimizer, "exp_avg")
        self.steps.append(Step(_copy(model), moments, group["lr"], state.global_step + 1))

    def on_step_end(self, _args: Any, _state: Any, _control: Any, model: Any, optimizer: Any, **_: Any) -> None:
        self.steps[-1].after, self.steps[-1].squares = _copy(model), _moments(model, optimizer, "exp_avg_sq")

    def on_log(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        if state.global_step in self._at:
            observed = self._run.callback._observed
            assert observed is not None
            update = observed.finished
            answer = observed.teachers.taught(Teach(self._target(update), update, update), lambda: self._interrupted)
            self.answers.append(answer)

    def _target(self, update: int) -> Target:
        (sampled,) = [r for r in Recording(self._folder).fresh() if isinstance(r, Sampled) and r.update == update]
        group, answer = sampled.group[0], sampled.token_ids[: sampled.offsets[1]].tolist()
        prompt = sampled.prompt_ids[sampled.prompt_offsets[group] : sampled.prompt_offsets[group + 1]].tolist()
        return Target(prompt, answer, [0])


def _copy(model: Any) -> Weights:
    return {name: each.detach().double().clone() for name, each in model.named_parameters()}


def _moments(model: Any, optimizer: Any, which: str) -> Weights:
    state = optimizer.state
    return {
        name: state[each][which].double().clone() if which in state.get(each, {}) else torch.zeros_like(each).double()
        for name, each in model.named_parameters()
    }


class Exact:
    """A model in float64, at weights that were kept, with its own head."""

    def __init__(self, model: Any, temperature: float) -> None:
        self._model = type(model)(copy.deepcopy(model.config)).double().eval()
        self._temperature = temperature

    def slopes(
        self, weights: Weights, prompt: list[int], answer: list[int], places: list[int]
    ) -> tuple[float, Weights]:
        """The log-probability of these tokens of an answer, and its derivative by each weight."""
        self._model.load_state_dict(weights, strict=False)
        self._model.zero_grad()
        logits = self._model(input_ids=torch.tensor([prompt + answer])).logits[0] / self._temperature
        scores = logits.log_softmax(-1)
        value = sum(scores[len(prompt) + place - 1, answer[place]] for place in places)
        value.backward()
        return float(value.detach()), {name: each.grad.clone() for name, each in self._model.named_parameters()}

    def first_order(self, target: Target, steps: list[Step]) -> float:
        """How far the steps moved a target, each by its own weights."""
        moved = 0.0
        for step in steps:
            _, slope = self.slopes(step.before, target.prompt_ids, target.answer_ids, target.places)
            moved += dot(slope, {name: step.after[name] - step.before[name] for name in slope})
        return moved

    def shares(self, target: Target, step: Step, pulls: Array, clip: float) -> Array:
        """The shares of the target's answer in an update of one step that learned from it.

        Each is by the token's own gradient; `pulls` are the loss's derivatives, and `clip` makes gradients shorter.
        """
        _, slope = self.slopes(step.before, target.prompt_ids, target.answer_ids, target.places)
        scaled = {
            name: each / ((step.squares[name] / (1 - 0.999**step.count)).sqrt() + 1e-8) for name, each in slope.items()
        }
        own = [
            dot(self.slopes(step.before, target.prompt_ids, target.answer_ids, [place])[1], scaled)
            for place in range(len(pulls))
        ]
        return pulls * own * (-step.rate * 0.1 * clip / (1 - 0.9**step.count))


def dot(one: Weights, other: Weights) -> float:
    return sum(float((each * other[name]).sum()) for name, each in one.items())
