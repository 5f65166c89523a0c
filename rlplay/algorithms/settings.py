"""Every setting of a run: its type, default, range and meaning. TRL's names where TRL has one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.choice import Choice
from rlplay.algorithms.divergences import ESTIMATORS
from rlplay.algorithms.knobs import KNOBS, OTHER_NAMES
from rlplay.algorithms.own_choices import OWN, absolute_files, names_file, own_choice
from rlplay.algorithms.ratios import LEVELS, Level
from rlplay.algorithms.returns import RETURNS
from rlplay.algorithms.scales import SCALES
from rlplay.algorithms.schedules import Schedule
from rlplay.algorithms.surrogates import OWN_SURROGATE, SURROGATES, Surrogate
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.plain_yaml import PlainYamlError, plain_yaml
from rlplay.spelling import nearest
from rlplay.trace.kinds import REWARDED, Kind, SomeSettings
from rlplay.trace.numbers import compact, short_exponent
from rlplay.trace.text import quote

ReturnsName = Literal["broadcast", "to_go", "vine", "gae"]
BaselineName = Literal[
    "none", "batch_mean", "group_mean", "leave_one_out", "length_weighted", "greedy", "value",
]  # fmt: skip
LevelName = Literal["token", "sequence", "sequence_sum", "geometric"]
EstimatorName = Literal["k1", "k2", "k3", "full"]
AggregationName = Literal["seq_mean_token_mean", "token_mean", "constant", "seq_mean_token_sum"]
LossType = Literal[
    "policy_gradient", "sigmoid", "hinge", "ipo", "robust", "kto", "simpo", "cpo", "orpo", "sft", "reward",
    "q_learning", "sarsa",
]  # fmt: skip
Stream = Literal["outcome", "process", "process_normalized", "shaping"]
Objectives = Literal["sum_then_normalize", "normalize_then_sum"]
Placement = Literal["none", "loss", "reward", "constraint"]
Anchor = Literal["ref", "old"]
Controller = Literal["fixed", "ziegler", "ppo"]
Labeller = Literal["gold", "user"]
Observing = Literal["full", "light"]

ANY_LOSS = (
    "num_generations", "max_completion_length", "temperature", "top_p", "top_k", "num_iterations",
    "per_device_train_batch_size", "gradient_checkpointing", "learning_rate", "lr_scheduler_type", "warmup_steps",
    "weight_decay", "max_grad_norm",
)  # fmt: skip
"""Options of TRL's trainers that are settings here and mean the same whatever the loss is."""
CHOICES: dict[str, Mapping[str, Choice]] = {
    "returns": RETURNS,
    "baseline": BASELINES,
    "scale_rewards": SCALES,
    "importance_sampling_level": LEVELS,
    "surrogate": SURROGATES,
    "kl_estimator": ESTIMATORS,
    "aggregation": AGGREGATIONS,
}
"""The settings whose values are rows of this package, each with its computation.

A name is also a word of the Literal, unless the setting takes the user's functions, too.
"""

REWARD_MODEL = "reward_model"
"""The name in `reward_weights` for the score of a reward model from an earlier stage."""


HEAVIEST = 1e6
"""The largest weight of a reward and the largest reward of a square, by their absolute value."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. `algorithm` names the preset that last set the axes; every axis may differ from it.

    It is "" in the run of another trainer that does not name it.
    """

    algorithm: str = "grpo"
    num_prompts: int = 8
    num_generations: int = 8
    max_completion_length: int = 32
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    exploration_rate: float = 0.1
    dynamic_sampling: bool = False
    candidates: int = 10
    observe: Observing = "full"
    reward_weights: dict[str, float] = {}
    squares: dict[str, float | str] = {}
    reward_stream: Stream = "outcome"
    multi_objective_aggregation: Objectives = "sum_then_normalize"
    overlong_buffer: int = 0
    returns: ReturnsName = "broadcast"
    baseline: BaselineName = "group_mean"
    scale_rewards: str = "group"
    gamma: float = 1.0
    lam: float = 0.95
    vine_samples: int = 9
    importance_sampling_level: LevelName = "token"
    surrogate: str = "ppo"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    delta: float | None = None
    sapo_temperature_pos: float = 1.0
    sapo_temperature_neg: float = 1.05
    vespo_k_pos: float = 2.0
    vespo_lambda_pos: float = 3.0
    vespo_k_neg: float = 3.0
    vespo_lambda_neg: float = 2.0
    kl_placement: Placement = "loss"
    kl_estimator: EstimatorName = "k3"
    kl_anchor: Anchor = "ref"
    beta: float = 0.0
    kl_ctrl: Controller = "fixed"
    target_kl: float = 0.1
    kl_horizon: int = 10000
    use_bias_correction_kl: bool = True
    max_kl: float = 0.01
    cg_iterations: int = 10
    cg_damping: float = 0.1
    line_search_steps: int = 10
    aggregation: AggregationName = "seq_mean_token_mean"
    mask_truncated_completions: bool = False
    top_entropy_quantile: float = 1.0
    off_policy_mask_threshold: float | None = None
    entropy_coef: float = 0.0
    num_iterations: int = 1
    num_minibatches: int = 1
    per_device_train_batch_size: int = 0
    gradient_checkpointing: bool = False
    learning_rate: float = 4e-4
    lr_scheduler_type: Schedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    vf_coef: float = 0.1
    cliprange_value: float = 0.2
    loss_type: LossType = "policy_gradient"
    labeller: Labeller = "gold"
    label_noise: float = 0.0
    label_smoothing: float = 0.0
    simpo_gamma: float = 0.5
    cpo_alpha: float = 1.0
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0
    center_rewards_coefficient: float = 0.0

    @property
    def clip_range(self) -> tuple[float, float]:
        """ε and ε_high, the distances of the clip bounds from 1."""
        return self.epsilon, self.epsilon if self.epsilon_high is None else self.epsilon_high

    @property
    def surrogate_row(self) -> Surrogate:
        """The row of the surrogate; for the user's function `OWN_SURROGATE`, without a computation (`row` has one)."""
        return SURROGATES.get(self.surrogate, OWN_SURROGATE)

    @property
    def level_row(self) -> Level:
        """The row of the ratio's level."""
        return LEVELS[self.importance_sampling_level]

    @property
    def steps(self) -> int:
        """Optimizer steps of an update."""
        return self.num_iterations * self.num_minibatches

    @property
    def reads_reference(self) -> bool:
        """Whether a policy gradient's reward or loss may read the reference's log-probabilities."""
        return (self.beta > 0 and self.kl_placement in ("loss", "reward")) or names_file("surrogate", self.surrogate)

    @property
    def kind(self) -> Kind:
        """What an update learns from."""
        if self.loss_type == "policy_gradient":
            return "learned rewards" if self.reward_weights.get(REWARD_MODEL) else "rewards"
        if self.loss_type in VALUE_LOSSES:
            return "action values"
        if self.loss_type == "sft":
            return "imitation"
        return "reward model" if self.loss_type == "reward" else "pairs"

    @property
    def rewarded(self) -> bool:
        """Whether it learns from rewards; else from answers that are given or compared."""
        return self.kind in REWARDED

    @property
    def axes_known(self) -> bool:
        """Whether the axes are on record; else they have their defaults here, and another trainer made the run."""
        return self.algorithm != ""


UNKNOWN = Settings(algorithm="")
"""The settings of a run that says nothing of them."""


def row(settings: Settings, name: str) -> Any:
    """The row that `settings` choose for `name`: one of `CHOICES`, or one of the user's functions."""
    word = getattr(settings, name)
    return CHOICES[name][word] if word in CHOICES[name] else own_choice(name, word, settings)


_TYPES = get_type_hints(Settings)
_NAMES = Settings.__struct_fields__


def choices(name: str) -> tuple[str, ...]:
    """The allowed words of a setting that takes one of a few words; empty for all others."""
    if name in OWN:
        return tuple(CHOICES[name])
    kind = _TYPES[name]
    return tuple(get_args(kind)) if get_origin(kind) is Literal else ()


def check(name: str, value: Any) -> Any:
    """`value` as the type of setting `name`: "0.1" becomes 0.1, 1 becomes 1.0.

    Raises ValueError, one line with the setting, the allowed values and the given one.
    """
    if name not in KNOBS:
        raise ValueError(unknown(name))
    try:
        checked = msgspec.convert(_parsed(name, value), _TYPES[name], strict=False)
    except msgspec.ValidationError:
        raise ValueError(_wrong_word(name, value)) from None
    if names_file(name, checked):
        checked = absolute_files({name: checked}, Path.cwd())[name]
    elif choices(name) and checked not in choices(name):
        raise ValueError(_wrong_word(name, value))
    knob = KNOBS[name]
    bounded = isinstance(checked, (int, float)) and knob.low is not None and knob.high is not None
    if bounded and not knob.low <= checked <= knob.high:
        raise ValueError(_refusal(name, value))
    numbers = [each for each in checked.values() if isinstance(each, float)] if name in _MAPPINGS else []
    if wrong := [each for each in numbers if not abs(each) <= HEAVIEST]:
        raise ValueError(
            f"{name} takes numbers from {written(-HEAVIEST)} to {written(HEAVIEST)}; got {compact(wrong[0])}"
        )
    return checked


def unknown(name: str) -> str:
    """The message for an unknown setting: the likely one, or where to find all."""
    called = (knob for knob, names in OTHER_NAMES.items() if name in names)
    near = next(called, None) or nearest(name, list(KNOBS))
    return f"unknown setting {quote(name)}; " + (f"did you mean {near!r}?" if near else "'rlplay settings' lists all")


def _wrong_word(name: str, value: Any) -> str:
    near = nearest(str(value), choices(name))
    return _refusal(name, value) + (f"; did you mean {near!r}?" if near else "")


def _refusal(name: str, value: Any) -> str:
    return f"{name} is {takes(name)}; got {quote(value)}"


def takes(name: str) -> str:
    """The allowed values of a setting, in words: `a number from 0 to 1, e.g. 0.0004`."""
    kind, knob, default = _TYPES[name], KNOBS[name], Settings.__struct_defaults__[_NAMES.index(name)]
    if words := choices(name):
        return f"one of {', '.join(words)}{', or FILE.py:FUNCTION' if name in OWN else ''}"
    if kind is bool:
        return "on or off"
    if name in _MAPPINGS:
        return _MAPPINGS[name]
    if name == "algorithm":
        return "the name of an algorithm, e.g. grpo"
    assert knob.low is not None
    assert knob.high is not None
    number = "a whole number" if kind is int else "a number"
    example = ", or none" if default is None else f", e.g. {written(default)}" if default else ""
    return f"{number} from {written(knob.low)} to {written(knob.high)}{example}"


_MAPPINGS = {
    "reward_weights": "a weight for each reward by name, e.g. {correct: 1}",
    "squares": "a reward for arms or squares, or one of G, O, #, I (ice) and . for a square, e.g. {b3: -1, d4: .}",
}
"""Settings with a value for each of several names, and what they take."""
_SWITCHES = {"on": True, "yes": True, "off": False, "no": False}
"""Other spellings of true and false."""


def _parsed(name: str, value: Any) -> Any:
    if name in _MAPPINGS and isinstance(value, dict):  # YAML takes an arm called 0 for a number
        return {str(key) if type(key) is int else key: each for key, each in value.items()}
    if not isinstance(value, str):
        return value
    if _TYPES[name] == float | None and value.lower() in ("", "none", "null"):
        return None
    if name in _MAPPINGS:
        with contextlib.suppress(PlainYamlError):
            content = plain_yaml(value)
            return _parsed(name, content) if isinstance(content, dict) else content
    number = {int: int, float: float, float | None: float}.get(_TYPES[name])
    if number is not None:
        with contextlib.suppress(ValueError):  # then the message says what it takes
            return number(value.replace("−", "-"))
    return _SWITCHES.get(value.lower(), value) if _TYPES[name] is bool else value


def _quoted(value: Any) -> str:
    """A value in a mapping; a word in quotes if YAML would take it for something else."""
    return written(value) if not isinstance(value, str) or value.isalpha() or value == "." else json.dumps(value)


def shown(value: Any) -> str:
    """A value as the screen shows it: as `written`, but with on and off."""
    return ("off", "on")[value] if isinstance(value, bool) else written(value)


def written(value: Any) -> str:
    """A value as files and commands write it, with all digits: 0.0004, none, true, {correct: 1}."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_quoted(each)}" for name, each in value.items()) + "}"
    if isinstance(value, float):
        return short if float(short := compact(value)) == value else short_exponent(repr(value))
    return str(value)


_WORDS = {name: words for name in _NAMES if (words := choices(name))}


def decoded(recorded: Mapping[str, Any]) -> Settings:
    """Settings as records and messages hold them; what they lack has its default, an algorithm is then "".

    What this version does not know, a setting or one of its words, is left out. A few microseconds, so that nobody has
    to keep the result. Raises msgspec.ValidationError, a ValueError of one line, if a value has another type.
    """
    known: SomeSettings = {"algorithm": "", **recorded}
    for name in known.keys() - _TYPES.keys():
        del known[name]
    for name, words in _WORDS.items():
        if name in known and known[name] not in words and not names_file(name, known[name]):
            del known[name]
    return exact(known)


def exact(recorded: SomeSettings) -> Settings:
    """Recorded settings to train on. Raises msgspec.ValidationError, a ValueError, if they are not this version's."""
    return msgspec.convert(recorded, Settings)


def fitting(said: SomeSettings) -> SomeSettings:
    """Those of the settings that another program has `said` that have the types of rlplay's."""
    found: SomeSettings = {}
    for name, value in said.items():
        with contextlib.suppress(msgspec.ValidationError):
            decoded({name: value})
            found[name] = value
    return found
