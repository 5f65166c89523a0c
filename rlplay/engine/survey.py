"""The policy in every situation of a small task, so that a map of it has no gaps where nobody went."""

from __future__ import annotations

import numpy as np
import torch

from rlplay.engine.batch import Prompts
from rlplay.engine.passes import positions_of
from rlplay.engine.state import State
from rlplay.trace.records import Array, Survey
from rlplay.worlds.planning import plan


@torch.no_grad()
def survey(state: State) -> Survey | None:
    """Log-probabilities of every action in every situation, with V or Q where learned; None for other tasks."""
    lm, task = state.lm, state.task
    if not task.situations:
        return None
    prompts = Prompts.of(lm, list(task.situations.values()))
    out = lm.policy(
        input_ids=prompts.ids,
        attention_mask=prompts.mask,
        position_ids=positions_of(prompts.mask),
        use_cache=False,
        output_hidden_states=True,
    )
    logprobs = (out.logits[:, -1].float() / state.settings.temperature).log_softmax(-1)
    actions = lm.tokenizer.convert_tokens_to_ids(task.actions)
    hidden = out.hidden_states[-1][:, -1]
    learned = getattr(lm.policy.config, "exploration_rate", None) is not None
    critic = state.settings.baseline == "value" and not learned
    values = state.value_head(hidden.float()).squeeze(-1).cpu().numpy() if critic else None
    return Survey(
        states=list(task.situations),
        actions=task.actions,
        logprobs=logprobs[:, actions].cpu().numpy(),
        values=values,
        action_values=lm.policy.head(hidden)[:, actions].float().cpu().numpy() if learned else None,
        best_values=_best_values(state, list(task.situations)),
    )


def _best_values(state: State, situations: list[str]) -> Array | None:
    """V* of every situation, float64; None where no world says so, or where a reward can be earned for ever."""
    if state.world is None:
        return None
    try:
        best = plan(state.world, state.settings.gamma).values
    except ValueError:
        return None
    return np.array([best[each] for each in situations])
