"""A reward model: a copy of the language model that scores answers.

Its last hidden state is read by one linear layer, as in transformers' models for sequence classification; an answer's
score is that of its last token. Once trained (`learn_reward_model.py`) it is a reward like any other.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.engine.batch import Known, Prompts, TokenBatch
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import forward, laid_out
from rlplay.engine.state import State
from rlplay.engine.transfer import to_host
from rlplay.tasks.task import Example, Message, RewardFunction


class RewardModel(nn.Module):
    """`backbone` begins as a copy of `model`, `head` with zeros: before training every answer scores 0."""

    def __init__(self, model: Any, hidden_size: int) -> None:
        super().__init__()
        self.backbone = copy.deepcopy(model).requires_grad_(True)
        self.head = nn.Linear(hidden_size, 1, bias=False, device=model.device)
        nn.init.zeros_(self.head.weight)


def reward_model_of(state: State) -> RewardModel:
    """The reward model of a run, a fresh one like the reference if there is none yet."""
    if state.reward_model is None:
        state.adopt(RewardModel(state.lm.reference, state.lm.hidden_size))
    assert isinstance(state.reward_model, RewardModel)
    return state.reward_model


def rewards_of(state: State) -> dict[str, RewardFunction]:
    """What can be trained on: the task's rewards, and the reward model once there is one."""
    if state.reward_model is None:
        return state.task.rewards
    return state.task.rewards | {REWARD_MODEL: partial(answer_scores, state.lm, reward_model_of(state))}


def payable(state: State) -> dict[str, RewardFunction]:
    """What `reward_weights` may name: also the gold scores, which count only where it does."""
    known = rewards_of(state)
    return known | {name: score for name, score in state.task.gold.items() if name not in known}


def prefix_scores(lm: LanguageModel, model: RewardModel, tokens: TokenBatch) -> Tensor:
    """The score of every beginning of the completions, up to and with each token: [R, L], gradients included."""
    # The hidden states of a pass stand before each token; one more token, never read, brings the one after the last.
    known = tokens.known
    more = torch.cat([known.ids, known.ids[:, -1:]], dim=1)
    longer = TokenBatch.of(tokens.prompts, Known(known.group, more, known.lengths + 1))
    parts = []
    for chunk in forward(lm, model.backbone, longer, hidden=True):
        assert chunk.hidden is not None
        parts.append((chunk.rows, chunk.spread(model.head(chunk.hidden.float()).squeeze(-1))[:, 1:]))
    return laid_out(parts, tokens.ids.shape[1])


@torch.no_grad()
def answer_scores(
    lm: LanguageModel, model: RewardModel, prompts: list[str | list[Message]], completion_ids: list[list[int]]
) -> list[float | None]:
    """The score of each completion, by TRL's signature of a reward function; equal prompts are computed once."""
    places: dict[str, int] = {}
    group = torch.tensor([places.setdefault(repr(prompt), len(places)) for prompt in prompts])
    different = {repr(prompt): Example(prompt, {}) for prompt in prompts}
    width = max(len(ids) for ids in completion_ids)
    ids = torch.tensor([row + [lm.pad_id] * (width - len(row)) for row in completion_ids])
    lengths = torch.tensor([len(row) for row in completion_ids])
    tokens = TokenBatch.of(Prompts.of(lm, list(different.values())), Known(group, ids, lengths))
    (scores,) = to_host([prefix_scores(lm, model, tokens)])
    return list(scores.gather(1, lengths[:, None] - 1).squeeze(1).tolist())
