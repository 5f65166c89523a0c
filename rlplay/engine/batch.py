"""A batch of completions as tensors: padded on the right while computing, flat when recorded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine.begun import Begun
from rlplay.engine.model import LanguageModel
from rlplay.engine.transfer import to_device, to_host
from rlplay.tasks.task import Example, Message, heading
from rlplay.tasks.tools import Answering
from rlplay.trace.records import Array, Sampled, Scored, Survey


@dataclass
class Prompts:
    """G prompts, padded on the left. ids, mask: int64 [G, P]."""

    examples: list[Example]
    ids: Tensor
    mask: Tensor
    given: tuple[Tensor, Tensor] | None = None
    begun: list[Begun] | None = None
    """Of prompts that hold turns of an episode: what happened in these."""
    trees: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Passes over them and their completions, laid out for the next model that reads the same (`tree_pass.py`)."""

    @cached_property
    def known(self) -> tuple[Tensor, Tensor]:
        """`ids` and `mask` on the host, read from the device unless they are given."""
        ids, mask = self.given or to_host([self.ids, self.mask])
        return ids, mask

    def row(self, group: int) -> list[int]:
        """The ids of a prompt."""
        ids, mask = self.known
        prompt: list[int] = ids[group][mask[group].bool()].tolist()
        return prompt

    @classmethod
    def of(cls, lm: LanguageModel, examples: list[Example]) -> Prompts:
        """Tokenize and pad `examples`."""
        return cls.padded(lm, examples, [lm.prompt_ids(example) for example in examples])

    @classmethod
    def padded(
        cls, lm: LanguageModel, examples: list[Example], rows: list[list[int]], begun: list[Begun] | None = None
    ) -> Prompts:
        """Ids that completions go on from, padded; row i belongs to `examples[i]`, of episodes to `begun[i]`."""
        width = max(len(row) for row in rows)
        ids = torch.full((len(rows), width), lm.pad_id, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, width - len(row) :] = torch.tensor(row, dtype=torch.long)
            mask[i, width - len(row) :] = 1
        there, where = to_device([ids, mask], lm.device)
        return cls(examples, there, where, (ids, mask), begun)


@dataclass(frozen=True)
class Known:
    """What the host knows of R completions without asking the device: `group`, `ids` and `lengths` on the CPU."""

    group: Tensor
    ids: Tensor
    lengths: Tensor

    def select(self, rows: Tensor) -> Known:
        """The same of the completions `rows`, int64 on the CPU."""
        return Known(self.group[rows], self.ids[rows], self.lengths[rows])


@dataclass
class TokenBatch:
    """What a forward pass needs: completions `ids` [R, L] of `lengths` [R], answering prompts `group` [R].

    How a pass is laid out follows from `known`, which is read from the device unless it is given.
    """

    prompts: Prompts
    group: Tensor
    ids: Tensor
    lengths: Tensor
    given: Known | None = None

    @classmethod
    def of(cls, prompts: Prompts, known: Known) -> TokenBatch:
        """Completions that the host knows, on the device that the prompts are on."""
        group, ids, lengths = to_device([known.group, known.ids, known.lengths], prompts.ids.device)
        return cls(prompts, group, ids, lengths, known)

    @cached_property
    def known(self) -> Known:
        """`group`, `ids` and `lengths` on the host."""
        return self.given or Known(*to_host([self.group, self.ids, self.lengths]))

    def select(self, rows: Tensor) -> TokenBatch:
        """Those of the completions `rows`, int64, alone; of `rows` on the CPU the host knows which these are."""
        (here,), (there,) = to_host([rows]), to_device([rows], self.ids.device)
        known = self.known.select(here)
        return TokenBatch(self.prompts, self.group[there], self.ids[there], self.lengths[there], known)


@dataclass
class Passes:
    """How a batch is being trained on: the settings, β, weight of the entropy bonus and pass (from 0) of its steps.

    `logprobs`, `values` and `entropy` [N, L], on the CPU, are each completion's at the last step that saw it, those
    when sampled before one did; `values` None without a value head, `entropy` None once a step has gone by that did
    not compute it.
    `moved` says that a step may have changed a weight: until then the policy has the very weights that sampled.
    `referred` says that the reference is the one that has read the batch: it may move within an update.
    """

    settings: Settings
    beta: float
    entropy_coef: float
    epoch: int
    logprobs: Tensor
    values: Tensor | None
    entropy: Tensor | None
    moved: bool = False
    first_seen: Tensor | None = None
    """The log-probabilities of the first pass's steps, [N, L] on the CPU, where the batch's old ones are not the
    policy's."""
    referred: bool = True
    seed: int = 0  # of the run

    @classmethod
    def begun(cls, batch: Batch, settings: Settings, beta: float, entropy_coef: float) -> Passes:
        """Before the first step, when the policy is still the one that sampled."""
        logprobs, entropy, *values = batch.on_host(
            "old_logprobs", "entropy", *(["values"] if batch.values is not None else [])
        )
        critic = values[0].clone() if values else None
        passes = cls(settings, beta, entropy_coef, 0, logprobs.clone(), critic, entropy.clone())
        passes.first_seen = torch.zeros_like(logprobs) if batch.from_sampler else None
        return passes

    def seen(self, rows: Tensor, logprobs: Tensor, values: Tensor | None, entropy: Tensor | None, first: bool) -> None:
        """Take what an optimizer step has read of the completions `rows`; the `first` reads the policy that sampled."""
        self.logprobs[rows] = logprobs.to(self.logprobs.dtype)
        if self.first_seen is not None and self.epoch == 0:
            self.first_seen[rows] = logprobs.to(self.logprobs.dtype)
        if self.values is not None and values is not None:
            self.values[rows] = values.to(self.values.dtype)
        if self.entropy is not None and entropy is not None:
            self.entropy[rows] = entropy.to(self.entropy.dtype)
        elif not first:
            self.entropy = None


@dataclass
class Batch:
    """N completions of G prompts and what each phase adds. L is the longest completion, K the candidates kept.

    All tensors of tokens are [N, L] with `mask` True on the sampled tokens, the token that ends a turn included;
    values beyond a completion's length mean nothing.
    """

    update: int
    prompts: Prompts
    group: Tensor  # int64 [N]
    ids: Tensor  # int64 [N, L]
    lengths: Tensor  # int64 [N]
    old_logprobs: Tensor  # [N, L]
    entropy: Tensor  # [N, L]
    top_ids: Tensor  # int64 [N, L, K]
    top_logprobs: Tensor  # [N, L, K]
    truncated: Tensor  # bool [N]
    environment: Tensor  # bool [N, L], True on tokens that an environment wrote
    temperature: float
    sampling_logprobs: Tensor | None = None  # [N, L] as the sampler reported them, where it is not quite the policy
    sampling_top_logprobs: Tensor | None = None  # [N, L, K]
    version: int | None = None  # updates that the weights had had which sampled; None: as many as the policy
    staleness: int = 0  # weights that the sampler has had since
    discarded: int = 0  # answers that were too stale, and are not here
    from_sampler: bool = False  # whether `old_logprobs` are the sampler's and not the policy's
    sampler_off: float = 0.0  # how far a ratio between what the sampler reported and its own pass is from 1
    completions: list[str] = field(default_factory=list)  # decoded, as the reward functions see them
    replies: dict[int, list[list[Message]]] = field(default_factory=dict)  # what follows each turn, by completion
    answering: list[Answering] = field(default_factory=list)  # the tool calls of each completion, where there are tools
    states: dict[int, list[str]] = field(default_factory=dict)  # its true states, by completion
    chances: dict[int, Array] = field(default_factory=dict)  # its random numbers, by completion, one for each turn
    survey: Survey | None = None  # of the policy that sampled, where the task is small enough
    # Rewards are float64 on the CPU whatever the device; see `score.py`.
    rewards: Tensor | None = None  # [N], NaN where no function answered
    outcomes: Tensor | None = None  # [N], what of them is for whole answers; NaN where no function scored the whole
    parts: dict[str, Array] = field(default_factory=dict)  # [N] each, NaN where a function did not answer
    weights: dict[str, float] = field(default_factory=dict)  # of the parts
    step_scores: Tensor | None = None  # [N, L], weighted, where `step_ends`
    step_ends: Tensor | None = None  # bool [N, L]
    greedy_rewards: Tensor | None = None  # [G] of each prompt's likeliest completion
    advantages: Tensor | None = None  # [N, L]
    returns: Tensor | None = None  # [N, L]
    values: Tensor | None = None  # [N, L] at rollout
    vine_values: Tensor | None = None  # as rewards, [N, L]: of the state in which a token's step or turn begins
    vine_ends: Tensor | None = None  # bool [N, L], True on the last token of each step or turn
    vine_tokens: int = 0  # sampled for those values
    ref_logprobs: Tensor | None = None  # [N, L]
    exact_kl: Tensor | None = None  # [N, L] KL(sampled from ‖ reference) over the vocabulary
    teacher_logprobs: Tensor | None = None  # [N, L] under the teacher, before the update
    teacher_tokens: TokenBatch | None = None  # the completions after the prompts that the teacher reads; None: the same
    taught: Tensor | None = None  # bool [N] on the CPU, the completions that have a teacher; None: all
    anchor: Tensor | None = None  # [N, L, V] log-probabilities of the policy that an exact KL in the loss is taken to
    retokenized: dict[str, float] = field(default_factory=dict)  # how much is not as sampled, by its metric
    dropped_groups: int = 0  # sampled for this update and left out: no signal
    dropped_tokens: int = 0
    correction: Tensor | None = None  # [N, L] a factor of each token's surrogate, which corrects for the sampler
    rejected: Tensor | None = None  # bool [N, L] on the CPU: tokens too far from the sampler to be learned from
    withheld: Tensor | None = None  # bool [N, L] on the CPU: tokens whose credit is taken away; None: no token's is
    scored: Scored | None = None
    pairs: tuple[Tensor, Tensor] | None = None  # int64 [P] each on the CPU: the chosen answers, and the rejected ones
    passes: Passes | None = None
    step_metrics: list[dict[str, float]] = field(default_factory=list)
    _copies: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    def on_host(self, *names: str) -> list[Tensor]:
        """The fields `names` on the CPU. Those that were not asked for before come in one copy, and are kept: only for
        what is not written to any more."""
        values = {name: getattr(self, name) for name in names}
        missing = [name for name in values if self._copies.get(name, (None,))[0] is not values[name]]
        for name, copy in zip(missing, to_host([values[name] for name in missing]), strict=True):
            self._copies[name] = values[name], copy
        return [self._copies[name][1] for name in names]

    def put(self, **values: Tensor) -> None:
        """Give fields values that are on the CPU, which are then known there as well."""
        for (name, value), there in zip(values.items(), to_device([*values.values()], self.ids.device), strict=True):
            setattr(self, name, there)
            self._copies[name] = there, value

    @property
    def size(self) -> int:
        """Bytes of its tensors."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    @property
    def known_masks(self) -> tuple[Tensor, Tensor]:
        """`mask` and `completion_mask` on the CPU, of completions that are sampled."""
        lengths, environment = self.on_host("lengths", "environment")
        inside = torch.arange(self.ids.shape[1]) < lengths[:, None]
        return inside & ~environment, inside

    @property
    def known_last(self) -> Tensor:
        """`last` on the CPU, of completions that are sampled."""
        return self.ids.shape[1] - 1 - self.known_masks[0].flip(1).int().argmax(1)

    @property
    def mask(self) -> Tensor:
        """bool [N, L], True on sampled tokens."""
        return self.completion_mask & ~self.environment

    @property
    def completion_mask(self) -> Tensor:
        """bool [N, L], True on the tokens of a completion, those of an environment included."""
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.lengths[:, None]

    @property
    def last(self) -> Tensor:
        """int64 [N], the place of each completion's last sampled token, where its outcome arrives."""
        return self.ids.shape[1] - 1 - self.mask.flip(1).int().argmax(1)

    def tokens(self, rows: Tensor | None = None) -> TokenBatch:
        """The completions `rows` (all by default), still L wide, for a forward pass."""
        known = Known(*self.on_host("group", "ids", "lengths"))
        every = TokenBatch(self.prompts, self.group, self.ids, self.lengths, known)
        return every if rows is None else every.select(rows)

    def flat(self, values: Tensor, rows: Tensor | None = None) -> Array:
        """Values [N or R, L, ...] of the completions `rows` (all by default) without padding, in order, as numpy."""
        array: Array = self.flat_each({"": values}, rows)[""]
        return array

    def flat_each(self, values: Mapping[str, Tensor | None], rows: Tensor | None = None) -> dict[str, Any]:
        """The same of several, by their names, which come from the device together; None stays None."""
        names, inside = [name for name, each in values.items() if each is not None], self.known_masks[1]
        here = to_host([each for each in values.values() if each is not None] + ([] if rows is None else [rows]))
        if rows is not None:
            inside = inside[here.pop()]
        return dict.fromkeys(values) | dict(zip(names, _cut(here, inside), strict=True))


def _cut(values: list[Tensor], inside: Tensor) -> list[Array]:
    """Values [N, L, ...] where `inside`, bool [N, L], as numpy; numbers as float32."""
    cut = [value.numpy()[inside.numpy()] for value in values]
    return [array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array for array in cut]


_RECORDED = (
    "ids", "lengths", "group", "environment", "truncated", "old_logprobs", "entropy", "top_ids", "top_logprobs",
)  # fmt: skip

_REPORTED = ("sampling_logprobs", "sampling_top_logprobs")


def sampled_record(lm: LanguageModel, batch: Batch, done: bool, position: int) -> Sampled:
    """The `Sampled` record of a batch, complete or still being sampled."""
    prompts, (prompt_ids, prompt_mask) = batch.prompts, batch.prompts.known
    here = batch.on_host(*_RECORDED) if done else to_host([getattr(batch, name) for name in _RECORDED])
    reported = {name: getattr(batch, name) if done else None for name in _REPORTED}
    ids, lengths, group, environment, truncated, *values = here
    inside = torch.arange(ids.shape[1]) < lengths[:, None]
    prompt_rows = [row[keep].tolist() for row, keep in zip(prompt_ids.numpy(), prompt_mask.bool().numpy(), strict=True)]
    completion_rows = [row[:n].tolist() for row, n in zip(ids.numpy(), lengths.tolist(), strict=True)]
    mask, old_logprobs, entropy, top_ids, top_logprobs = _cut([~environment, *values], inside)
    kept = np.unique(top_ids).tolist() + [i for row in completion_rows for i in row]
    return Sampled(
        update=batch.update,
        done=done,
        position=position,
        temperature=batch.temperature,
        prompts=[heading(example) for example in prompts.examples],
        prompt_ids=np.concatenate([np.array(row, dtype=np.int32) for row in prompt_rows]),
        prompt_offsets=np.concatenate([[0], np.cumsum([len(row) for row in prompt_rows])]),
        prompt_texts=[text for row in prompt_rows for text in lm.texts(row)],
        columns=[example.columns for example in prompts.examples],
        group=group.numpy().astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths.numpy())]),
        token_ids=np.array([i for row in completion_rows for i in row], dtype=np.int32),
        texts=[text for row in completion_rows for text in lm.texts(row)],
        mask=mask.astype(np.uint8),
        old_logprobs=old_logprobs,
        entropy=entropy,
        top_ids=top_ids.astype(np.int32),
        top_logprobs=top_logprobs,
        truncated=truncated.numpy().astype(np.uint8),
        pieces={i: lm.piece(i) for i in set(kept)},
        states={row: list(path) for row, path in batch.states.items() if any(path)},
        survey=batch.survey,
        versions=None if batch.version is None else np.full(len(group), batch.version, dtype=np.int32),
        **batch.flat_each(reported),
    )


def candidates(lm: LanguageModel, settings: Settings) -> int:
    """K: how many candidates are recorded per position, at most the whole vocabulary."""
    return min(settings.candidates, lm.vocabulary)
