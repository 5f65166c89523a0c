"""The records that a training loop yields: frozen, columnar, one type for each point worth looking at.

Layout. A batch has G prompts and N completions; completion i answers prompt `group[i]`. Statistics of tokens are
*flat*: one array over the T completion tokens of the whole batch, completion i at `offsets[i]:offsets[i + 1]`.
No padding exists anywhere. `None` means "not computed", never zero; where another trainer made the run, so do NaN, a
K of 0, and `Finished` without rows. Log-probabilities are natural logarithms at
the sampling temperature. Field names follow TRL and prime-rl where they have one.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Choice = Literal["a", "b", "skip"]


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    """Base of all records; `update` counts from 1 (0: before the first update)."""

    update: int


class CorrectionRule(msgspec.Struct, frozen=True):
    """How a loss corrects for a sampler that is not quite the policy: by a factor of each token's loss.

    The factor is the old policy's probability over the sampler's, of the token or (level "sequence") of its answer,
    within bounds: cut to them (outside "truncate"), or 0 outside them ("mask"). A bound that is None is not there.
    Level "geometric" takes the geometric mean over the answer's tokens.
    """

    level: str
    outside: str
    low: float | None
    high: float | None


class Started(Record, frozen=True, kw_only=True):
    """A run began or resumed: everything needed to start it again."""

    run_id: str
    scenario: str  # the name
    scenario_text: str  # the YAML in full
    title: str
    settings: dict[str, Any]
    seed: int
    model: str  # "pocket", a path or a hub name
    parameters: int
    device: str
    dtype: str
    threads: int  # of each process; 0: unknown
    versions: dict[str, str]
    ends: dict[int, str] = {}  # the tokens that end an answer, with their text; empty: unknown
    source: str = ""  # another trainer that made the run, such as "TRL 1.16.0 GRPOTrainer"; empty: rlplay
    processes: int = 1  # that train the run together
    cores: int = 0  # of the CPU that the engine might use; 0: unknown


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """A policy in every situation of a small task, at the sampling temperature.

    Where action values are learned, the policy is the ε-greedy one that makes the moves.
    """

    states: list[str]  # [S]
    actions: list[str]  # [A]
    logprobs: Array  # float32 [S, A]
    values: Array | None = None  # float32 [S] of the value head, where the algorithm trains one
    action_values: Array | None = None  # float32 [S, A] Q(s, a), where the algorithm learns it
    best_values: Array | None = None  # float64 [S] V*(s) by a world's rules and γ, where it is finite


class Sampled(Record, frozen=True, kw_only=True):
    """Phase 1: the completions so far. While `done` is false, each record replaces the one before.

    If an update learns from given answers, the record with `done` holds the policy's statistics of those.
    """

    done: bool
    position: int  # decoded positions so far
    temperature: float
    prompts: list[str]  # [G] the text of the user turn, for headings
    prompt_ids: Array  # int32, flat over the prompts' tokens, template included
    prompt_offsets: Array  # int64 [G + 1]
    prompt_texts: list[str]  # one string per prompt token
    columns: list[dict[str, Any]]  # [G] the dataset's other columns
    group: Array  # int32 [N]
    offsets: Array  # int64 [N + 1]
    token_ids: Array  # int32 [T]; negative where another trainer did not record the id
    texts: list[str]  # [T]; joined, they give the decoded text; "" where a character is not complete yet
    mask: Array  # uint8 [T]; 1 = sampled by the policy, 0 = written by an environment
    old_logprobs: Array  # float32 [T] under the policy that sampled
    entropy: Array  # float32 [T] of its whole next-token distribution, nats
    top_ids: Array  # int32 [T, K] likeliest candidates, best first
    top_logprobs: Array  # float32 [T, K]
    truncated: Array  # uint8 [N]; 1 = ran into max_completion_length (or is still being sampled)
    pieces: dict[int, str]  # text of every id in top_ids and token_ids, decoded alone
    states: dict[int, list[str]] = {}  # by completion: an environment's true state after each turn
    survey: Survey | None = None  # of the policy that sampled
    sampling_logprobs: Array | None = None  # float32 [T] as the sampler computed them, where it is not quite the policy
    sampling_top_logprobs: Array | None = None  # float32 [T, K] the sampler's of the same candidates
    versions: Array | None = None  # int32 [N] updates that the weights had had which sampled the answer
    ends_known: bool = True  # whether another trainer recorded `truncated`; if not, it is 0


class Scored(Record, frozen=True, kw_only=True):
    """Phase 2: rewards. Training uses `rewards`, the weighted sum of `parts`."""

    rewards: Array  # float64 [N], float32 in older runs
    parts: dict[str, Array]  # float64 [N] each, float32 in older runs; NaN where the function returned None
    weights: dict[str, float]
    gold: dict[str, Array]  # scores tracked beside the reward, never trained on
    extra: dict[str, list[Any]] = {}  # [N] each: columns that reward functions have logged
    logged: dict[str, float] = {}  # numbers of the whole batch that they have logged
    roles: list[str] = []  # [N] if answers are compared, not rewarded: "chosen", "rejected", "tie" or "" (skipped)


class Credited(Record, frozen=True, kw_only=True):
    """Phase 3: the credit of each token.

    Where action values are learned, `returns` are their targets, `values` are Q(s, a) just before the move's own step,
    and `advantages` are the TD errors δ = returns − values. A sampled value stands at each token of its step.
    """

    token_rewards: Array | None = None  # float32 [T] the reward stream, with the KL penalty where `beta` is in it
    returns: Array | None = None  # float32 [T]
    baseline: Array | None = None  # float32 [T] what was subtracted
    advantages: Array  # float32 [T] as the objective uses them; of pairs, −∂L/∂ℓ at the start times the tokens in L
    values: Array | None = None  # float32 [T] the value head's before each token; a reward model's after
    ref_logprobs: Array | None = None  # float32 [T] under the frozen reference
    ref_top_logprobs: Array | None = None  # float32 [T, K] the reference's log-probability of the same candidates
    group_mean: Array  # float64 [G] reward, float32 in older runs
    group_std: Array  # float64 [G], ddof = 1; float32 in older runs
    implicit_rewards: Array | None = None  # float32 [T] each token's share of a preference loss's implicit reward
    following: Array | None = None  # float32 [T] the value of what follows a move, before γ; 0: the episode is over
    correction: Array | None = None  # float32 [T] a factor of each token's loss, by `correction_rule`; 0: left out
    correction_rule: CorrectionRule | None = None
    teacher_logprobs: Array | None = None  # float32 [T] under the teacher that the policy is distilled from
    teacher_top_logprobs: Array | None = None  # float32 [T, K] the teacher's of the same candidates


class Stepped(Record, frozen=True, kw_only=True):
    """Phase 4, one optimizer step. Token arrays cover the completions `rows`, in that order, flat."""

    step: int  # from 0 within the update
    epoch: int
    epochs: int
    minibatch: int
    minibatches: int
    rows: Array  # int32 [R]
    logprobs: Array  # float32, before this step's change of the weights
    importance_ratio: Array  # float32
    clip_state: Array | None = None  # int8: 0 inside, +1 clipped high, -1 low (its gradient is really zero)
    dloss_dlogp: Array  # float32, exact derivative of the loss by each token's log-probability; by Q(s, a) of values
    dkl_dlogp: Array | None = None  # float32, the part from a KL term in the loss
    weights: Array | None = None  # float32, each token's weight in the sum of losses; None: an older run
    left_out: Array | None = None  # uint8, index into `LEFT_OUT`: whether the surrogate counted or why not
    kl: Array | None = None  # float32, the per-token KL term as trained (estimator: the settings' `kl_estimator`)
    distillation: Array | None = None  # float32, the divergence from the teacher at each token, as trained
    values: Array | None = None  # float32, the value head now; a reward model's score after each token
    metrics: dict[str, float]
    tokens: int | None = None  # in the loss, if more than those of `rows`, the answers on record
    margins: Array | None = None  # float32 [P] of pairs: reward of completion rows[i] minus that of rows[P + i]


TOO_FAR = "the sampler's probability is too far from the policy's"
LEFT_OUT = (
    "", "its answer was cut", "too low an entropy", "its answer is too far off-policy", TOO_FAR,
    "drawn from the tokens of high covariance",
)  # fmt: skip
"""Why a token's surrogate was left out of the loss; the first entry means that it counted."""
CUT, DECIDED, OFF_POLICY, MISMATCHED, DRAWN = range(1, len(LEFT_OUT))
"""The reasons, as indices of `LEFT_OUT`."""


class Searched(Record, frozen=True, kw_only=True):
    """Phase 4 of TRPO: one iteration of its search for a step; the `Stepped` record follows the last one."""

    kind: str  # "cg": conjugate gradient for the direction; "line": shorter and shorter steps along it
    iteration: int  # from 1 within its kind
    iterations: int  # upper limit
    residual: float | None  # cg: ‖g − (F + damping)·x‖ / ‖g‖, how far x is from the natural gradient
    step: float  # cg: the length at which x meets the KL limit; line: the share of that length
    kl: float | None  # line: exact KL(old ‖ new) over the vocabulary, mean over sampled tokens, nats
    gain: float  # of the surrogate; cg: to first order, at the KL limit
    accepted: bool


class Finished(Record, frozen=True, kw_only=True):
    """Phase 5: the tokens of the completions `rows` under the new policy, and the update's metrics."""

    rows: Array  # int32 [R]
    logprobs: Array  # float32, flat over rows
    top_logprobs: Array  # float32 [., K] new log-probability of the same candidates
    favourite_ids: Array | None = None  # int32, the token that is now the likeliest; None in older runs
    favourite_logprobs: Array | None = None  # float32, its new log-probability
    pieces: dict[int, str] = {}  # text of each of them that was no candidate
    metrics: dict[str, float]
    timings: dict[str, float]  # seconds by phase
    seconds: float
    survey: Survey | None = None  # of the new policy
    trainer_steps: tuple[int, int] | None = None  # another trainer's numbers of its first and last optimizer step


class Evaluated(Record, frozen=True, kw_only=True):
    """Held-out prompts, which are never trained on, with the policy's answers after `update`."""

    metrics: dict[str, float]
    prompts: list[str]
    completions: list[str]
    rewards: Array  # float64 [N], float32 in older runs
    columns: list[dict[str, Any]] = []  # [N] the dataset's other columns of each prompt; empty: an older run
    seconds: float


class Logged(Record, frozen=True, kw_only=True):
    """Numbers of an update that another file of the run has, such as TensorBoard's: `tensorboard/NAME`."""

    metrics: dict[str, float]


class Changed(Record, frozen=True, kw_only=True):
    """A setting changed; the new value holds from `phase` of update `update` on."""

    phase: str
    name: str
    value: Any
    previous: Any
    also: dict[str, Any] = {}  # other settings that changed with it: the axes of an algorithm


class Labelled(Record, frozen=True, kw_only=True):
    """The user chose the better answer of a pair: the first (a), the second (b), or neither (skip)."""

    pair: int
    choice: Choice


class Withheld(Record, frozen=True, kw_only=True):
    """The credit of tokens is taken away in update `update`, which begins next; every replay of it leaves it out.

    A later record for the same update takes the place of an earlier one; without tokens it gives the credit back.
    """

    tokens: list[int]  # places in the flat token arrays of the update, ascending
    phase: str = "sample"  # as in `Changed`


class Looked(Record, frozen=True, kw_only=True):
    """What the user looked at when they did the next thing, in `phase` of update `update`; recorded if it changed."""

    phase: str
    lens: str  # the colour: a lens, or "auto"
    completion: int  # of the update's batch
    token: int  # of that completion


class Staged(Record, frozen=True, kw_only=True):
    """A stage of a pipeline begins with update `update`: it keeps the policy, which becomes the reference."""

    index: int  # from 0
    stages: int
    name: str
    settings: dict[str, Any]  # all settings, replacing the earlier ones
    phase: str = "sample"  # as in `Changed`


class Rewound(Record, frozen=True, kw_only=True):
    """The run went back to the state after update `update`; later updates now belong to an abandoned branch."""

    abandoned: int  # the update that the run had reached
    asked: bool = False  # somebody went back, if only from an unfinished update; else a run was resumed


class Notice(Record, frozen=True, kw_only=True):
    """Something the user should know: level "info", "warning" or "error"."""

    level: str
    text: str  # what happened, where, what to do: one or two lines
    detail: str = ""


AnyRecord = (
    Started
    | Sampled
    | Scored
    | Labelled
    | Withheld
    | Looked
    | Credited
    | Searched
    | Stepped
    | Finished
    | Evaluated
    | Logged
    | Changed
    | Staged
    | Rewound
    | Notice
)

OF_TOKENS: dict[type[Record], tuple[str, ...]] = {
    Sampled: (
        "token_ids", "texts", "mask", "old_logprobs", "entropy", "top_ids", "top_logprobs", "sampling_logprobs",
        "sampling_top_logprobs",
    ),
    Credited: (
        "token_rewards", "returns", "baseline", "advantages", "values", "ref_logprobs", "ref_top_logprobs",
        "implicit_rewards", "following", "correction", "teacher_logprobs", "teacher_top_logprobs",
    ),
    Stepped: (
        "logprobs", "importance_ratio", "clip_state", "dloss_dlogp", "dkl_dlogp", "weights", "left_out", "kl",
        "distillation", "values",
    ),
    Finished: ("logprobs", "top_logprobs", "favourite_ids", "favourite_logprobs"),
}  # fmt: skip
"""The fields of each record that are flat over tokens."""

WithMetrics = Finished | Evaluated | Logged
"""A record whose numbers are those of an update."""
SettingsChange = Changed | Staged
"""An event that changes settings."""


def spans(offsets: Array, rows: Array) -> Array:
    """Indices of the flat token arrays that belong to the completions `rows`, in that order: int64 [sum of lengths]."""
    starts, lengths = offsets[rows], offsets[np.asarray(rows) + 1] - offsets[rows]
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(lengths.sum(), dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths))
