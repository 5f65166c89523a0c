"""Learning-rate schedules under transformers' names: the share of `learning_rate` that an optimizer step takes."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["constant", "constant_with_warmup", "linear", "cosine"]


def share(schedule: Schedule, step: int, steps: int, warmup_steps: int) -> float:
    """The factor in [0, 1] for optimizer step `step` (from 0) of `steps`, as `transformers.get_scheduler` has it.

    The warm-up rises from 0 at step 0 to 1 at step `warmup_steps`; "constant" has none. "linear" and "cosine" (half a
    period, Loshchilov and Hutter 2016, arXiv:1608.03983) then fall to 0 at `steps`, and stay there.
    """
    if schedule == "constant":
        return 1.0
    if step < warmup_steps:
        return step / warmup_steps
    if schedule == "constant_with_warmup":
        return 1.0
    done = min(1.0, (step - warmup_steps) / max(1, steps - warmup_steps))
    return max(0.0, 1.0 - done) if schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
