"""The sampler, where it is not quite the policy: which weights the answers of an update come from.

In practice another program samples, such as vLLM: with its own precision, with weights that are sent to it now and
then, and while the trainer learns from what it wrote before. Here the same is made on purpose. Answers wait in a queue,
a batch for each update of lag, each with the version of the weights that it was begun with; TRL's AsyncGRPO has such a
queue. Only the batch whose turn it is is sampled, from those weights. What would have been sampled and thrown away as
too stale is counted, not computed.

The sampler writes what an update learns from: its answers, a greedy baseline's and those of a vine. Evaluation and
whoever asks about a prefix sample from the policy itself, and pairs come from the reference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine.model import LanguageModel
from rlplay.engine.sampler_model import SamplerModel, precision_apart

PREFIX = "sampler/"
"""What the names of a sampler's tensors in a snapshot begin with."""


class Version(NamedTuple):
    """Weights that the sampler has had: `updates` that these had had, and the number of the sync that brought them."""

    updates: int
    sync: int


@dataclass
class Sampler:
    """What a run must know of the past for its sampler; nothing of it is there as long as the settings ask for none."""

    queue: list[Version] = field(default_factory=list)  # of the batches in flight, the oldest, which is in use, first
    held: Version | None = None  # what the sampler begins a batch with
    at: int = -1  # updates that were finished when the oldest was taken from the queue
    discarded: int = 0  # batches that were too stale then
    weights: dict[int, dict[str, Tensor]] = field(default_factory=dict)  # the policy's, by the updates they had had
    using: LanguageModel | None = None  # with what this update's answers are sampled; None: with the policy
    _model: SamplerModel | None = None

    @property
    def version(self) -> int | None:
        """Updates that the weights had had which this update's answers come from; None: as many as the policy."""
        return self.queue[0].updates if self.using is not None else None

    @property
    def staleness(self) -> int:
        """How many syncs newer the weights are that the sampler has by now."""
        return 0 if self.held is None else self.held.sync - self.queue[0].sync

    def begin(self, lm: LanguageModel, settings: Settings, update: int) -> LanguageModel:
        """What samples the answers of the next update, after `update` others; the same if it is asked again."""
        if not settings.samples_apart:
            self.forget()
            self._model = None
            return lm
        policy = {name: p.detach() for name, p in lm.policy.named_parameters() if p.requires_grad}
        if self.at != update:
            self._go_on(settings, update)
            kept = {version.updates for version in self.queue} | ({self.held.updates} if self.held else set())
            if update in kept and (settings.sampler_lag or settings.weight_sync_steps != 1):
                self.weights[update] = {name: weight.clone() for name, weight in policy.items()}
            self.weights = {updates: weights for updates, weights in self.weights.items() if updates in kept}
        version = self.queue[0].updates
        dtype = precision_apart(lm, settings.sampler_dtype)
        if dtype == "same" and version == update:
            self.using = lm
        else:
            if self._model is None or self._model.dtype != dtype:
                self._model = None  # before the next one takes memory
                self._model = SamplerModel(lm, dtype)
            self.using = self._model.take(policy if version == update else self.weights[version], lm)
        return self.using

    def _go_on(self, settings: Settings, update: int) -> None:
        """One batch leaves the queue, others join it; then those that are too stale are thrown away."""
        every, most = settings.weight_sync_steps, settings.sampler_lag + 1
        lost = self.held is None or self.held.updates not in self.weights
        if lost or (every and update % every == 0):
            self.held = Version(update, 0 if self.held is None else self.held.sync + 1)
        assert self.held is not None
        known = [version for version in self.queue[1:] if version.updates in self.weights]
        self.queue = (known + [self.held] * (most - len(known)))[-most:]
        fresh = [each for each in self.queue if self.held.sync - each.sync <= settings.max_staleness]
        self.discarded, self.queue, self.at = len(self.queue) - len(fresh), fresh or [self.held], update

    def forget(self) -> None:
        """The next batch is begun with the policy as it is then."""
        self.queue, self.weights, self.held, self.using, self.at, self.discarded = [], {}, None, None, -1, 0

    def contents(self, update: int) -> dict[str, Tensor]:
        """What a snapshot after `update` updates holds of it: the past weights that a later batch comes from."""
        if self.held is None or not self.weights:
            return {}
        begun = self.at == update
        later = {version.updates for version in (self.queue if begun else self.queue[1:])} | {self.held.updates}
        numbers = [self.at, self.discarded, *self.held, *(number for version in self.queue for number in version)]
        found = {f"{PREFIX}queue": torch.tensor(numbers)}
        for updates, weights in self.weights.items():
            if updates in later:
                found |= {f"{PREFIX}{updates}/{name}": weight for name, weight in weights.items()}
        return found

    def restore(self, tensors: dict[str, Tensor], device: torch.device) -> None:
        """Be as the snapshot with these tensors says."""
        self.forget()
        if (numbers := tensors.get(f"{PREFIX}queue")) is None:
            return
        self.at, self.discarded, *versions = numbers.tolist()
        self.held, *self.queue = (Version(*pair) for pair in zip(versions[::2], versions[1::2], strict=True))
        for name, tensor in tensors.items():
            if name.startswith(PREFIX) and name != f"{PREFIX}queue":
                updates, _, parameter = name.removeprefix(PREFIX).partition("/")
                self.weights.setdefault(int(updates), {})[parameter] = tensor.to(device)
