"""Every setting of a run: its type, default, range and meaning. TRL's names where TRL has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

Returns = Literal["broadcast", "to_go", "gae"]
Baseline = Literal["none", "batch_mean", "group_mean", "value"]
Scale = Literal["none", "group", "batch", "whiten"]
Surrogate = Literal["logp", "ppo"]
Placement = Literal["none", "loss", "reward"]
Estimator = Literal["k1", "k2", "k3"]
Aggregation = Literal["seq_mean_token_mean", "token_mean", "constant", "seq_mean_token_sum"]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The knobs. `algorithm` names the preset that filled the axes last; every axis may differ from it."""

    algorithm: str = "grpo"
    num_prompts: int = 8
    num_generations: int = 8
    max_completion_length: int = 32
    temperature: float = 1.0
    candidates: int = 10
    reward_weights: dict[str, float] = {}
    returns: Returns = "broadcast"
    baseline: Baseline = "group_mean"
    scale_rewards: Scale = "group"
    gamma: float = 1.0
    lam: float = 0.95
    surrogate: Surrogate = "ppo"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    kl_placement: Placement = "loss"
    kl_estimator: Estimator = "k3"
    beta: float = 0.0
    use_bias_correction_kl: bool = True
    aggregation: Aggregation = "seq_mean_token_mean"
    num_iterations: int = 1
    num_minibatches: int = 1
    learning_rate: float = 4e-4
    max_grad_norm: float = 1.0
    vf_coef: float = 0.1
    cliprange_value: float = 0.2


@dataclass(frozen=True)
class Knob:
    """How a setting is shown and bounded; `log` steps multiply, others add `step`."""

    name: str
    title: str
    group: Literal["algorithm", "sampling", "credit", "objective", "update"]
    meaning: str
    effect: str
    low: float | None = None
    high: float | None = None
    step: float = 1.0
    log: bool = False


KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob("algorithm", "Algorithm", "algorithm", "Preset that sets the axes below.",
             "Replaces all of credit and objective that tells algorithms apart, KL and passes included."),
        Knob("num_prompts", "Prompts", "sampling", "Different prompts per update.",
             "More: steadier updates, slower.", 1, 1024, 1),
        Knob("num_generations", "Generations", "sampling", "Completions per prompt: the group.",
             "More: a better baseline and fewer groups without signal.", 1, 1024, 1),
        Knob("max_completion_length", "Longest completion", "sampling", "Tokens after which a completion is cut.",
             "Too small cuts answers before their reward.", 1, 8192, 8),
        Knob("temperature", "Temperature", "sampling", "Divides the logits when sampling and when scoring.",
             "Higher: more exploration. Near 0: every sample is the same and nothing can be compared.",
             0.05, 5.0, 0.1),
        Knob("candidates", "Candidates kept", "sampling", "Likeliest tokens recorded at each position.",
             "Only what you can inspect; training does not change.", 1, 4096, 1),
        Knob("reward_weights", "Reward weights", "credit", "Weight of each reward function in the sum.",
             "What is weighted is what is trained."),
        Knob("returns", "Return", "credit", "How reward becomes a return per token.",
             "broadcast: every token gets the sum. to_go: only what follows, discounted. gae: bootstraps from values."),
        Knob("baseline", "Baseline", "credit", "What a return is compared with.",
             "none: only the reward's sign decides. group_mean: better or worse than the siblings."),
        Knob("scale_rewards", "Scale", "credit", "What advantages are divided by.",
             "group: every group counts alike, easy or hard. none: Dr. GRPO's choice."),
        Knob("gamma", "Discount γ", "credit", "How much a later reward counts, per token.",
             "Below 1, early tokens of long answers starve.", 0.0, 1.0, 0.01),
        Knob("lam", "GAE λ", "credit", "0 trusts the value head, 1 trusts the outcome.",
             "Lower: less noise, more bias.", 0.0, 1.0, 0.05),
        Knob("surrogate", "Surrogate", "objective", "The objective per token.",
             "logp: plain policy gradient. ppo: ratio, clipped once it has moved far enough."),
        Knob("epsilon", "Clip ε", "objective", "Lower (and upper) clip distance of the ratio from 1.",
             "Smaller: tokens stop pulling sooner. Does nothing with one optimizer step per batch.",
             0.0, 1.0, 0.05),
        Knob("epsilon_high", "Clip ε high", "objective", "Upper clip distance; empty means the same as ε.",
             "Larger: rare good tokens may rise further.", 0.0, 10.0, 0.05),
        Knob("kl_placement", "KL placement", "objective", "Where the KL penalty acts.",
             "loss: a term of the loss. reward: subtracted from each token's reward."),
        Knob("kl_estimator", "KL estimator", "objective", "k1, k2 or k3 (Schulman), against the reference.",
             "k1 can be negative; in the loss it has no expected gradient on-policy."),
        Knob("beta", "KL weight β", "objective", "Weight of the KL to the reference.",
             "0: free to drift, and to cheat. High: stays near the base model and learns little.",
             0.0, 10.0, 0.05),
        Knob("use_bias_correction_kl", "KL bias correction", "objective", "Multiply the KL term by the ratio.",
             "Keeps the KL gradient unbiased when completions are older than the policy."),
        Knob("aggregation", "Aggregation", "objective", "How token losses become one number.",
             "Decides whether long completions weigh more than short ones."),
        Knob("num_iterations", "Iterations", "update", "Passes over each batch of completions.",
             "More: cheaper data, staler ratios; clipping starts to matter.", 1, 64, 1),
        Knob("num_minibatches", "Minibatches", "update", "Parts each pass is cut into, one optimizer step each.",
             "More: more, noisier steps.", 1, 64, 1),
        Knob("learning_rate", "Learning rate", "update", "Adam's step size.",
             "Too high: the policy collapses. Too low: nothing happens.", 0.0, 1.0, 1.5, True),
        Knob("max_grad_norm", "Gradient clip", "update", "Longest gradient allowed.",
             "Cuts rare huge steps.", 0.0, 1000.0, 0.5),
        Knob("vf_coef", "Value weight", "update", "Weight of the value loss.",
             "Only with a value baseline.", 0.0, 10.0, 0.05),
        Knob("cliprange_value", "Value clip", "update", "How far a new value may leave the one at rollout.",
             "Only with a value baseline.", 0.0, 10.0, 0.05),
    )
}  # fmt: skip

_TYPES = get_type_hints(Settings)


def choices(name: str) -> tuple[str, ...]:
    """The allowed words of a setting that is one of a few words; empty for the others."""
    kind = _TYPES[name]
    return tuple(get_args(kind)) if get_origin(kind) is Literal else ()


def check(name: str, value: Any) -> Any:
    """`value` as setting `name` takes it: "0.1" becomes 0.1, 1 becomes 1.0.

    Raises ValueError with one line that names the setting, what was given and what is allowed.
    """
    if name not in KNOBS:
        raise ValueError(f"unknown setting {name!r}; known: {', '.join(KNOBS)}")
    try:
        checked = msgspec.convert(_parsed(name, value), _TYPES[name], strict=False)
    except msgspec.ValidationError:
        allowed = " | ".join(choices(name)) or str(getattr(_TYPES[name], "__name__", _TYPES[name]))
        raise ValueError(f"{name}={value!r} is not allowed; it takes {allowed}") from None
    knob = KNOBS[name]
    bounded = isinstance(checked, (int, float)) and knob.low is not None and knob.high is not None
    if bounded and not knob.low <= checked <= knob.high:
        raise ValueError(f"{name}={value} is out of range; it takes {knob.low:g} to {knob.high:g}")
    return checked


def _parsed(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if _TYPES[name] == float | None and value.lower() in ("", "none", "null"):
        return None
    if name == "reward_weights":
        try:
            return msgspec.yaml.decode(value)
        except msgspec.DecodeError:
            return value
    return value
