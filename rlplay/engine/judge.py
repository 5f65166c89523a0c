"""What the models make of the two answers of a pair, for a user who has just chosen between them."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.pair_loss import pair_loss, with_reference
from rlplay.engine.passes import score_tokens
from rlplay.engine.reward_model import prefix_scores, reward_model_of
from rlplay.engine.state import State
from rlplay.trace.questions import Judged


@torch.no_grad()
def judge(state: State, pair: int) -> Judged:
    """The scores of both answers of a pair, as the next update will find them.

    Their log-probabilities are sums over the answer's tokens, in nats. "implicit reward" is what the loss takes for
    reward (`pair_loss`), "reward model" the score after the last token where one is trained. Then what is never
    trained on: the task's hidden gold scores, or the rewards, which do not count where labels do.
    """
    batch = state.batch
    assert batch is not None
    rows = torch.tensor([2 * pair, 2 * pair + 1], device=batch.ids.device)
    logprobs, mask = batch.old_logprobs[rows], batch.mask[rows]
    scores = {"log-probability": (logprobs * mask).sum(-1)}
    if state.settings.loss_type == "reward":
        scores["reward model"] = _by_reward_model(batch, rows, state)
    elif state.settings.kind != "imitation":  # which implies no reward
        scores["implicit reward"] = _implied(batch, rows, state)
    found = {name: (float(one), float(other)) for name, (one, other) in scores.items()}
    if batch.scored is not None:
        kind, untrained = ("hidden", batch.scored.gold) if batch.scored.gold else ("reward", batch.scored.parts)
        for name, values in untrained.items():
            found[f"{kind} {name}"] = float(values[2 * pair]), float(values[2 * pair + 1])
    return Judged(pair, batch.update, scores=found)


def _implied(batch: Batch, rows: Tensor, state: State) -> Tensor:
    """The implicit rewards [R] of the completions `rows`."""
    lm, settings, logprobs = state.lm, state.settings, batch.old_logprobs[rows]
    reference = None
    if with_reference(settings.loss_type):
        reference = logprobs
        if not lm.is_reference():
            tokens, nothing = batch.tokens(rows), batch.top_ids[rows][..., :0]
            reference, _ = score_tokens(lm, lm.reference, tokens, nothing, batch.temperature)
    chosen = torch.tensor([True, False])  # which of them is, makes no difference to its reward
    found = pair_loss(logprobs, reference, batch.mask[rows], chosen, logprobs.new_zeros(()), settings).rewards
    assert found is not None
    return found


def _by_reward_model(batch: Batch, rows: Tensor, state: State) -> Tensor:
    """The reward model's scores [R] of the completions `rows`; before it is trained every answer has 0."""
    if state.reward_model is None:
        return torch.zeros(len(rows))
    scores = prefix_scores(state.lm, reward_model_of(state), batch.tokens(rows))
    return scores.gather(1, batch.last[rows, None]).squeeze(1)
