"""Episodes as a trainer sees them that gets chat messages: each turn is tokenized again from its text.

Text may be cut into other tokens than were sampled, a template may strip the thinking of earlier turns, and a tool call
may be written anew. The trainer then learns from tokens that nobody sampled (huggingface/trl issue 5224, verl issue
6854).
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

import torch
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.chat_turns import turn_and_rest
from rlplay.engine.episodes import messages, turns
from rlplay.engine.model import LanguageModel
from rlplay.engine.scored_again import scored_again
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.transfer import to_device
from rlplay.tasks.task import Message


@dataclass(frozen=True)
class _Row:
    """A completion as it is trained on: ids, which are an environment's, and which token each was, −1 for none."""

    ids: list[int]
    environment: list[bool]
    sampled: list[int]

    def cut(self, length: int) -> _Row:
        """Its first tokens."""
        return _Row(self.ids[:length], self.environment[:length], self.sampled[:length])


def retokenize(batch: Batch, state: State) -> None:
    """Let a scored `batch` hold the tokens of its texts.

    What sampling reported of a token stays with it: `sampling_logprobs`, NaN where nobody sampled it. Log-probabilities
    and entropy of a completion that has changed are the policy's, in one more pass; its candidates are the policy's
    own. With old_logprobs_of=sampler the old ones are the sampler's where it sampled the token. Where nothing has
    changed the batch stays as it is.
    """
    ids, lengths = batch.on_host("ids", "lengths")
    sampled = [row[:n] for row, n in zip(ids.tolist(), lengths.tolist(), strict=True)]
    found = [_again(batch, state, n).cut(state.settings.max_completion_length) for n in range(len(sampled))]
    changed = [n for n, row in enumerate(found) if row.ids != sampled[n]]
    batch.retokenized = _figures(batch, found, len(changed))
    if not changed:
        return
    reported = batch.old_logprobs if batch.sampling_logprobs is None else batch.sampling_logprobs
    candidates = batch.top_logprobs if batch.sampling_top_logprobs is None else batch.sampling_top_logprobs
    width = max(len(row.ids) for row in found)
    places = torch.tensor([[*row.sampled, *[-1] * (width - len(row.ids))] for row in found])
    environment = torch.tensor([[*row.environment, *[False] * (width - len(row.ids))] for row in found])
    written = torch.tensor([[*row.ids, *[0] * (width - len(row.ids))] for row in found])
    cut = torch.tensor([len(row.ids) for row in found])
    (at,) = to_device([places], reported.device)
    batch.sampling_logprobs = _moved(reported, at, torch.nan)
    batch.sampling_top_logprobs = _moved(candidates, at, torch.nan)
    for name in ("old_logprobs", "entropy", "top_logprobs", "top_ids"):
        setattr(batch, name, _moved(getattr(batch, name), at, 0))
    batch.put(ids=written, lengths=cut, environment=environment)
    batch.step_scores = batch.step_ends = None  # they are of the tokens that were sampled
    _score_again(batch, torch.tensor(changed), state.lm)
    if batch.from_sampler:
        reported = batch.sampling_logprobs
        batch.old_logprobs = torch.where(reported.isnan(), batch.old_logprobs, reported)


def _moved(values: Tensor, at: Tensor, missing: float) -> Tensor:
    """`values` [N, L, …] at the places `at` [N, L'], `missing` where these are −1: [N, L', …]."""
    rows = torch.arange(len(at), device=at.device)[:, None]
    known = (at >= 0).view(*at.shape, *[1] * (values.ndim - 2))
    return torch.where(known, values[rows, at.clamp(min=0)], missing)


@spent_on("forward")
def _score_again(batch: Batch, changed: Tensor, lm: LanguageModel) -> None:
    """Let all that is known of the completions `changed` be the policy's."""
    scored = scored_again(lm, batch.tokens(changed), batch.top_ids.shape[2], batch.temperature)
    (there,) = to_device([changed], batch.ids.device)
    mask = batch.completion_mask[there]
    for name, values in zip(("old_logprobs", "entropy", "top_logprobs", "top_ids"), scored, strict=True):
        known = mask.view(*mask.shape, *[1] * (values.ndim - 2))
        getattr(batch, name)[there] = torch.where(known, values, 0).to(getattr(batch, name).dtype)
    assert batch.sampling_top_logprobs is not None
    batch.sampling_top_logprobs[there] = torch.nan  # the sampler's candidates were others


def _again(batch: Batch, state: State, n: int) -> _Row:
    """Completion `n` with each turn of the model's tokenized again."""
    (ids,), inside = batch.on_host("ids"), batch.known_masks[1][n]
    own, before = batch.known_masks[0][n, : int(inside.sum())].tolist(), ids[n].tolist()
    said, replies = messages(state.lm, batch, n), batch.replies.get(n, [])
    spoken = [message for message in said if message["role"] == "assistant"]
    found, done = _Row([], [], []), 0
    for k, (start, end) in enumerate(turns(own)):
        found = _added(found, before[done:start], True, range(done, start))
        again = _turn(batch, state.lm, n, spoken[k], replies[k] if k < len(replies) else [], before[start:end])
        found = _added(found, again, False, [start + i if i >= 0 else -1 for i in _matched(before[start:end], again)])
        done = end
    return _added(found, before[done : len(own)], True, range(done, len(own)))


def _added(row: _Row, ids: list[int], environment: bool, sampled: range | list[int]) -> _Row:
    return _Row([*row.ids, *ids], [*row.environment, *[environment] * len(ids)], [*row.sampled, *sampled])


def _turn(
    batch: Batch, lm: LanguageModel, n: int, turn: Message, replies: list[Message], sampled: list[int]
) -> list[int]:
    """The tokens of a turn that was `sampled`, as the chat template writes it before `replies`."""
    prompt = batch.prompts.examples[int(batch.on_host("group")[0][n])].prompt
    found = None
    if not isinstance(prompt, str) and sampled[-1] in lm.end_ids:
        found = turn_and_rest(lm, prompt, turn, replies, lm.piece(sampled[-1]))
    text = found[0] if found else str(lm.tokenizer.decode(sampled, skip_special_tokens=False))
    return list(lm.tokenizer(text, add_special_tokens=False)["input_ids"])


def _matched(sampled: list[int], again: list[int]) -> list[int]:
    """Which of the tokens `sampled` each token of a turn is `again`, −1 for one that none is."""
    if sampled == again:
        return list(range(len(again)))
    places = [-1] * len(again)
    for block in SequenceMatcher(None, sampled, again, autojunk=False).get_matching_blocks():
        places[block.b : block.b + block.size] = range(block.a, block.a + block.size)
    return places


def _figures(batch: Batch, rows: list[_Row], changed: int) -> dict[str, float]:
    """The share of answers that have changed, and of sampled tokens that are not trained on as such."""
    sampled = int(batch.known_masks[0].sum())
    kept = sum(
        i >= 0 and not other for row in rows for i, other in zip(row.sampled, row.environment, strict=True)
    )  # fmt: skip
    return {"retokenized/answers": changed / len(rows), "retokenized/tokens": 1 - kept / sampled}
