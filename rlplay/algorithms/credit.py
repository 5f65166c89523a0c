"""From the stream of token rewards to an advantage for every token, by the choices of the settings."""

from __future__ import annotations

from typing import Any

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.own_choices import is_own
from rlplay.algorithms.settings import Settings, row


def advantages(
    xp: Any, stream: Any, group: Any, mask: Any, settings: Settings,
    values: Any = None, greedy: Any = None, step_ends: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Returns, baseline and advantages, each [N, L], 0 outside the mask.

    `stream` [N, L] holds the token rewards, `group` [N] each completion's prompt by index, `values` [N, L] the value
    head's predictions or the sampled values of the steps or turns that end at `step_ends`, `greedy` [N] the reward of
    the likeliest completion of the same prompt.
    """
    outcomes = (stream * mask).sum(-1)
    known = {
        "outcomes": outcomes, "group": group, "lengths": mask.sum(-1), "values": values, "greedy_rewards": greedy,
        "token_rewards": stream, "mask": mask, "step_ends": step_ends,
    }  # fmt: skip
    chosen_return = row(settings, "returns")
    # VinePPO's sampled value of a state takes the place of a value head's prediction.
    compared = BASELINES["value" if settings.returns == "vine" else settings.baseline]
    baseline = call_choice(compared.compute, xp, known, settings)
    baseline = (baseline if len(baseline.shape) > 1 else baseline[:, None]) * mask
    found = call_choice(chosen_return.compute, xp, known, settings)
    returns, raw = (found + baseline, found) if chosen_return.relative else (found, found - baseline)
    known |= {"raw": raw, "returns": returns, "baseline": baseline}
    scaled = call_choice(row(settings, "scale_rewards").compute, xp, known, settings)
    if is_own(settings.scale_rewards):
        scaled = xp.where(mask, scaled + xp.zeros_like(raw), xp.zeros_like(raw))
    return returns, baseline, scaled
