"""Forward passes over prompts and completions, what they have in common computed once where that works.

There are four kinds, the fastest first; `agreement.py` finds out which of them a model computes rightly:

- "tree": every distinct beginning is computed once, whichever prompts and completions begin like that;
- "shared": a prompt's cache is expanded to its completions, which are sorted by length into chunks, so that little
  padding is computed;
- "padded": prompts and completions in one pass, prompts padded on the left;
- "by_length": as "padded", prompts of one length at a time, so that nothing stands before them. What comes after a
  token cannot reach it, so this is what the model computes for each sequence alone, whatever it makes of padding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from rlplay.engine import ranks, tree_pass
from rlplay.engine.batch import Prompts, TokenBatch
from rlplay.engine.checkpointing import checkpointed
from rlplay.engine.compat import cache_of, with_cache
from rlplay.engine.gather import rows_at
from rlplay.engine.log_softmax import logprobs_at, widened
from rlplay.engine.model import LanguageModel
from rlplay.engine.state import Halt
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.transfer import to_device

LOGITS_AT_ONCE = 250_000_000
"""Largest number of logits that one chunk may have: completions x positions x vocabulary."""

_MASKED = 2**25
"""The same of what the mask of a tree may have."""

Found = TypeVar("Found")

_CHUNKS = 3
_WORTH_CHUNKING = 16


def rows_at_once(lm: LanguageModel, width: int, copies: int = 1) -> int:
    """How many completions, `width` tokens wide, one pass takes: as the settings say, or fewer if `copies` of their
    logits would be too many."""
    fitting = max(1, LOGITS_AT_ONCE // (copies * width * lm.vocabulary))
    return min(fitting, lm.rows_at_once or fitting)


@dataclass
class Chunk:
    """Some completions of a pass: `rows` int64 [R]; `logits` [R, l, V] and `hidden` [R, l, H] before each token.

    Tokens after the same beginning may share theirs: `logits` [n, V] and `hidden` [n, H] are then those after n
    different beginnings, of which `places` int64 [R, l] says which is before each token.
    """

    rows: Tensor
    logits: Tensor
    hidden: Tensor | None
    places: Tensor | None = None

    @property
    def width(self) -> int:
        """l, the length of the longest of these completions."""
        return (self.logits if self.places is None else self.places).shape[1]

    def spread(self, values: Tensor) -> Tensor:
        """What was computed from `logits` or `hidden`, [R, l, ...] or [n, ...], for each token: [R, l, ...]."""
        return values if self.places is None else rows_at(values, self.places)

    def counted(self, mask: Tensor) -> Tensor:
        """How many of the tokens `mask` [R, l] each of `logits` is before: [R, l] or [n]."""
        if self.places is None:
            return mask
        return mask.new_zeros(len(self.logits), dtype=torch.float32).index_add_(
            0, self.places.flatten(), mask.flatten().float()
        )

    def logprobs(self, ids: Tensor, temperature: float) -> Tensor:
        """log softmax(logits / temperature) at `ids` [R, l] or [R, l, K]; float32, shaped like ids."""
        if self.places is None:
            return logprobs_of(self.logits, ids, temperature)
        places = self.places if ids.dim() == self.places.dim() else self.places[..., None]
        flat = places.expand_as(ids).flatten(), ids.flatten()
        return logprobs_at(self.logits, *flat, temperature).view_as(ids)


def positions_of(mask: Tensor) -> Tensor:
    """Position ids from an attention mask [B, T]: left padding does not count (`numerics.md`, pitfall 4)."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


def expanded(cache: Any, rows: Tensor) -> Any:
    """A copy of a prompt cache with batch row `rows[i]` at i; the original stays as it is, gradients flow to it."""
    fresh = copy.copy(cache)
    fresh.layers = [_copied(layer) for layer in cache.layers]
    fresh.reorder_cache(rows)
    return fresh


def _copied(layer: Any) -> Any:
    """A cache layer whose states can be replaced without a trace; convolution and state-space layers hold dicts."""
    fresh = copy.copy(layer)
    vars(fresh).update({name: dict(value) for name, value in vars(layer).items() if isinstance(value, dict)})
    return fresh


def forward(
    lm: LanguageModel, model: Any, tokens: TokenBatch, hidden: bool = False, worth_chunking: int = _WORTH_CHUNKING
) -> Iterator[Chunk]:
    """Logits before every token of the completions, and the last hidden states if `hidden`.

    The chunks cover all completions once, in no particular order, each as wide as its own longest completion. A shared
    pass has several from `worth_chunking` completions on.
    """
    known, device = tokens.known, tokens.ids.device
    fitting = rows_at_once(lm, int(known.lengths.max()))
    again = lm.checkpointing and torch.is_grad_enabled()
    passes = lm.cacheless if again and lm.cacheless else lm.passes
    if passes == "tree":
        # Its mask has as many numbers as all tokens have keys, which may be more than there are words.
        masked = _MASKED // (tokens.ids.shape[1] * (tokens.prompts.ids.shape[1] + tokens.ids.shape[1]))
        if laid_out := _trees(lm, tokens, max(1, min(fitting, masked))):
            for rows, tree in laid_out:
                yield Chunk(rows, *tree_pass.run(model, tree, hidden, again), tree.places)
            return
        passes = "by_length" if again else lm.otherwise
    if passes == "shared":
        yield from _shared(model, tokens, hidden, fitting, worth_chunking)
        return
    lengths = tokens.prompts.known[1].sum(-1)[known.group]
    kinds = lengths if passes == "by_length" else torch.zeros_like(lengths)
    for kind in torch.unique(kinds):
        for rows in torch.split((kinds == kind).nonzero().squeeze(-1), fitting):
            with checkpointed(model) if again else nullcontext():
                chunk = _plain(
                    model, tokens.select(rows), to_device([rows], device)[0], int(lengths[rows].max()), hidden
                )
            yield chunk


def _trees(lm: LanguageModel, tokens: TokenBatch, size: int) -> list[tuple[Tensor, tree_pass.TreePass]]:
    """At most `size` completions at a time: their rows, and the tree of all that begins alike. None at all if some are
    better read in another way."""
    like, found = lm.policy.get_input_embeddings().weight, []
    for rows in torch.split(torch.arange(len(tokens.ids)), size):
        tree = tree_pass.of(tokens if len(rows) == len(tokens.ids) else tokens.select(rows), like)
        if tree is None:
            return []
        found.append((to_device([rows], like.device)[0], tree))
    return found


def _shared(model: Any, tokens: TokenBatch, hidden: bool, fitting: int, worth_chunking: int) -> Iterator[Chunk]:
    known, device = tokens.known, tokens.ids.device
    used, group = torch.unique(known.group, return_inverse=True)
    (these,) = to_device([used], device)
    prompts = Prompts([], tokens.prompts.ids[these], tokens.prompts.mask[these])
    out = model(
        input_ids=prompts.ids,
        attention_mask=prompts.mask,
        position_ids=positions_of(prompts.mask),
        use_cache=True,
        logits_to_keep=1,
        output_hidden_states=hidden,
    )
    lengths = known.lengths
    order = torch.argsort(lengths, descending=True, stable=True)
    pieces = _CHUNKS if len(order) >= worth_chunking and int(lengths.min()) < int(lengths.max()) else 1
    for part in torch.split(order, min(fitting, -(-len(order) // pieces))):
        width = int(lengths[part].max())
        rows, answered = to_device([part, group[part]], device)
        some = TokenBatch(prompts, answered, tokens.ids[rows, :width], tokens.lengths[rows])
        yield _completions(model, out, some, rows)


def _completions(model: Any, prompt: Any, tokens: TokenBatch, rows: Tensor) -> Chunk:
    """One chunk after its prompts' pass `prompt`, whose cache is expanded to the chunk's rows."""
    width, group = tokens.ids.shape[1], tokens.group
    hidden = prompt.hidden_states is not None
    logits = prompt.logits[group]
    states = prompt.hidden_states[-1][group, -1:] if hidden else None
    if width > 1:
        prompt_mask = tokens.prompts.mask[group]
        mask = torch.cat([prompt_mask, prompt_mask.new_ones(len(group), width - 1)], dim=1)
        out = model(
            input_ids=tokens.ids[:, : width - 1],
            attention_mask=mask,
            position_ids=positions_of(mask)[:, 1 - width :],
            **with_cache(model, expanded(cache_of(prompt), group)),
            use_cache=True,
            output_hidden_states=hidden,
        )
        logits = torch.cat([logits, out.logits], dim=1)
        states = torch.cat([states, out.hidden_states[-1]], dim=1) if states is not None else None
    return Chunk(rows, logits, states)


def _plain(model: Any, tokens: TokenBatch, rows: Tensor, longest: int, hidden: bool) -> Chunk:
    """The completions `tokens`, which are `rows` of a pass, after their prompts, the `longest` of which decides how far
    the others are padded."""
    group, width = tokens.group, int(tokens.known.lengths.max())
    ids, start = tokens.ids[:, :width], tokens.prompts.ids.shape[1] - longest
    mask = torch.cat([tokens.prompts.mask[group, start:], torch.ones_like(ids)], dim=1)
    out = model(
        input_ids=torch.cat([tokens.prompts.ids[group, start:], ids], dim=1),
        attention_mask=mask,
        position_ids=positions_of(mask),
        use_cache=False,
        logits_to_keep=width + 1,
        output_hidden_states=hidden,
    )
    before = slice(-width - 1, -1)
    return Chunk(rows, out.logits[:, before], out.hidden_states[-1][:, before] if hidden else None)


def logprobs_of(logits: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """log softmax(logits / temperature) at `ids`: logits [..., V], ids [...] or [..., K]; float32, shaped like ids."""
    each = logits.flatten(0, -2)
    places = torch.arange(len(each), device=ids.device).repeat_interleave(ids.numel() // max(len(each), 1))
    return logprobs_at(each, places, ids.flatten(), temperature).view_as(ids)


def laid_out(chunks: list[tuple[Tensor, Tensor]], width: int) -> Tensor:
    """Per-chunk values [(rows, [r, l, ...])] as one tensor [R, width, ...] in row order; padding is 0."""
    padded = []
    for _, values in chunks:
        missing = width - values.shape[1]
        padded.append(torch.cat([values, values.new_zeros(len(values), missing, *values.shape[2:])], dim=1))
    back = torch.argsort(torch.cat([rows for rows, _ in chunks]))
    return torch.cat(padded)[back]


def token_logprobs(
    lm: LanguageModel, model: Any, tokens: TokenBatch, temperature: float, worth_chunking: int = _WORTH_CHUNKING
) -> Tensor:
    """Log-probabilities of the tokens under `model`, [R, L], gradients included; padding is 0."""
    parts = []
    for chunk in forward(lm, model, tokens, worth_chunking=worth_chunking):
        parts.append((chunk.rows, chunk.logprobs(tokens.ids[chunk.rows, : chunk.width], temperature)))
    return laid_out(parts, tokens.ids.shape[1])


def backpropagated(
    rows: Tensor, size: int, outputs: Callable[[Tensor], Tensor], derivative: Callable[[Tensor], tuple[Tensor, Found]]
) -> tuple[Tensor, Tensor, Found]:
    """Fill the gradients of a loss of some completions; returns their outputs, its derivative by them, what it found.

    `outputs` [R, L] is a pass over the completions it is given, at most `size` of them at once; `derivative` gives the
    loss's by the outputs of all of them.

    Where one graph would be too large, `outputs` is computed again piece by piece, now that the derivative is known;
    the loss itself is never cut up. Of several processes each fills the gradients with those of a share of the rows.
    """
    own, places = ranks.mine(rows), ranks.mine(torch.arange(len(rows)))
    pieces = torch.split(own, size) if len(own) else ()
    graph: list[Tensor] = []

    @spent_on("forward")
    def passed() -> Tensor | None:
        with torch.set_grad_enabled(len(pieces) == 1):
            graph.extend([torch.cat([outputs(piece) for piece in pieces])] if pieces else [])
        return graph[0].detach() if graph else None

    whole = torch.cat([share for share in ranks.each(passed) if share is not None])
    gradient, found = derivative(whole.clone().requires_grad_())

    @spent_on("backward")
    def back() -> None:
        (there,) = to_device([places], gradient.device)
        if len(pieces) == 1:
            graph[0].backward(gradient[there])  # type: ignore[no-untyped-call]
        else:
            for piece, where in zip(pieces, torch.split(there, size), strict=False):
                outputs(piece).backward(gradient[where])  # type: ignore[no-untyped-call]

    ranks.each(back)
    return whole, gradient, found


def score_tokens(
    lm: LanguageModel, model: Any, tokens: TokenBatch, top_ids: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Log-probabilities under `model` of the tokens [R, L] and of the candidates `top_ids` [R, L, K]."""
    (both,) = _scores(lm, model, tokens, top_ids, temperature, False)
    return both[..., 0], both[..., 1:]


def score_with_favourites(
    lm: LanguageModel, model: Any, tokens: TokenBatch, top_ids: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `score_tokens`, then `model`'s likeliest token at each place, int64 [R, L], and its log-probability."""
    both, favourites = _scores(lm, model, tokens, top_ids, temperature, True)
    return both[..., 0], both[..., 1:-1], favourites[..., 0], both[..., -1]


@torch.no_grad()
def _scores(
    lm: LanguageModel, model: Any, tokens: TokenBatch, top_ids: Tensor, temperature: float, favourites: bool
) -> list[Tensor]:
    """Log-probabilities of token, candidates and, if wanted, favourite [R, L, 1 + K (+ 1)]; then the favourites."""
    width = tokens.ids.shape[1]

    def scored(rows: Tensor) -> list[Tensor]:
        every = len(rows) == len(tokens.ids)
        some, top = (tokens, top_ids) if every else (tokens.select(rows), top_ids[to_device([rows], top_ids.device)[0]])
        found, likeliest = list[tuple[Tensor, Tensor]](), list[tuple[Tensor, Tensor]]()
        for chunk in forward(lm, model, some):
            here = (chunk.rows, slice(chunk.width))
            wanted = torch.cat([some.ids[here][..., None], top[here]], dim=-1)
            if favourites:
                likeliest.append((chunk.rows, chunk.spread(chunk.logits.argmax(-1, keepdim=True))))
                wanted = torch.cat([wanted, likeliest[-1][1]], dim=-1)
            found.append((chunk.rows, chunk.logprobs(wanted, temperature)))
        return [laid_out(each, width) for each in (found, likeliest) if each]

    return ranks.by_rows(len(tokens.ids), scored)


@torch.no_grad()
def distributions(lm: LanguageModel, model: Any, tokens: TokenBatch, temperature: float) -> Tensor:
    """The whole next-token distributions of `model` before every token, as log-probabilities [R, L, V].

    Raises Halt if they are more numbers than a pass may hold.
    """
    rows, width = tokens.ids.shape
    if rows * width * lm.vocabulary > LOGITS_AT_ONCE:
        raise Halt(
            f"the exact KL needs {rows} x {width} x {lm.vocabulary} numbers at once, more than "
            f"{LOGITS_AT_ONCE:,}; set kl_estimator to k3, or sample fewer or shorter completions"
        )
    chunks = forward(lm, model, tokens)
    parts = [(chunk.rows, chunk.spread((widened(chunk.logits) / temperature).log_softmax(-1))) for chunk in chunks]
    return laid_out(parts, width)
