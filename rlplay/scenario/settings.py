"""Every setting of a run: its type, default, range and meaning. TRL's names where TRL has one."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from rlplay.scenario.knobs import KNOBS

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
