"""The batch at hand as a learner's lines are given it: arrays on the CPU, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.credit_phase import token_rewards
from rlplay.engine.state import State
from rlplay.exercises.check import Material
from rlplay.trace.records import Array


def material(state: State) -> Material:
    """What the newest update has, in all phases so far. Raises ValueError, one line, if there is none."""
    batch = state.batch
    if batch is None:
        raise ValueError("there are no answers at hand, as after a start or an undo: close this and press u")
    settings = state.settings if batch.passes is None else batch.passes.settings
    rewards = _given(batch.rewards)
    scored = rewards is not None and not np.isnan(rewards).any()
    beta = state.kl_coef if batch.passes is None else batch.passes.beta
    priced = settings.kl_placement == "reward" and beta != 0
    paid = scored and (not priced or batch.advantages is not None)  # the KL to the reference comes with credit
    read = batch.old_logprobs if batch.passes is None else batch.passes.logprobs
    columns = [batch.prompts.examples[g].columns for g in batch.on_host("group")[0].tolist()]
    mask: Array = batch.known_masks[0].numpy()
    return Material(
        settings=settings,
        group=batch.on_host("group")[0].numpy(),
        mask=mask,
        logprobs=_array(read),
        old_logprobs=_array(batch.old_logprobs),
        ref_logprobs=_given(batch.ref_logprobs),
        rewards=rewards if scored else None,
        stream=token_rewards(batch, settings, beta).numpy() if paid else None,
        advantages=_given(batch.advantages),
        values=_given(batch.values),
        texts=batch.completions,
        columns=columns,
        parts=batch.parts,
        pairs=None if batch.pairs is None else (batch.pairs[0].numpy(), batch.pairs[1].numpy()),
        states=[_path(batch, i, row) for i, row in enumerate(columns)] if state.world is not None else (),
        world=None if state.world is None or state.world.arms else state.world,
        word="token" if state.world is None else "move",
    )


def _array(values: Tensor) -> Array:
    return np.asarray(values.detach().double().cpu().numpy())


def _given(values: Tensor | None) -> Array | None:
    return None if values is None else _array(values)


def _path(batch: Batch, answer: int, columns: Mapping[str, Any]) -> list[str]:
    """The squares of an episode, from its start on."""
    return [str(columns.get("start", "")), *batch.states.get(answer, [])]
