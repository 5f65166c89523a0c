"""One number of an update from those of its optimizer steps, by the name under which TRL logs them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LAST = ("epoch", "num_tokens", "num_input_tokens_seen", "learning_rate", "kl_coef")
"""How far training is, and what holds at its end."""
_SECONDS = ("timing_s", "timing", "time")
"""What begins the names of verl's seconds, of those of SkyRL, OpenRLHF and NeMo-RL, and of prime-rl and tinker."""
_NO_SUM = {"per", "mean", "avg", "count", "max", "min"}
"""Words in such a name that say that it is no sum, as in NeMo-RL's tokens per second and in tinker's `:mean`."""


def over_steps(name: str, values: Sequence[float]) -> float:
    """The number of an update whose steps had these `values`, at least one, in their order.

    The largest of a maximum, the smallest of a minimum, the sum of seconds, the last of what counts up. Anything else
    is a mean, as TRL makes one of the steps between two logs.
    """
    if name in _LAST:
        return values[-1]
    if _is_seconds(name):
        return sum(values)
    family, _, kind = name.rpartition("/")  # such as completions/max_length, or rewards/max_words/mean
    words = [] if "rewards" in family.split("/") else kind.split("_")
    if "max" in words:
        return max(values)
    return min(values) if "min" in words else sum(values) / len(values)


def _is_seconds(name: str) -> bool:
    first, _, rest = name.partition("/")
    if first in _SECONDS and rest:
        return not _NO_SUM & {*re.split("[/_:]", rest)}
    return name == "step_time" or (first == "perf" and name.endswith("_s"))
