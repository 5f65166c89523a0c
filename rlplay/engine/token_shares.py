"""What each token of an optimizer step counts for in its loss, and why some count for nothing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.algorithms import masks
from rlplay.algorithms.aggregation import token_weights
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.tensors import Tensors
from rlplay.engine.transfer import to_device
from rlplay.trace.records import CUT, DECIDED, MISMATCHED


@dataclass
class Share:
    """What each token of some completions counts for, all [R, L]; `tokens` is the number in the whole minibatch.

    `keep` is a factor of the surrogate; where `weights` or `keep` is 0, `left_out` says why, as in `records.LEFT_OUT`.
    `held` says where the loss's KL term acts; None: everywhere. On the CPU, where one sees who is silent, until a pass
    needs it.
    """

    weights: Tensor
    keep: Tensor
    bonus: Tensor
    left_out: Tensor
    tokens: int
    held: Tensor | None = None

    def select(self, places: Tensor) -> Share:
        """That of the completions at `places`, int64."""
        weights, keep, bonus, left_out = (x[places] for x in (self.weights, self.keep, self.bonus, self.left_out))
        return Share(weights, keep, bonus, left_out, self.tokens, None if self.held is None else self.held[places])


def on_device(batch: Batch, rows: Tensor, share: Share) -> tuple[Tensor, Share]:
    """The completions `rows` and what they count for, where the batch is."""
    parts = [rows, share.weights, share.keep, share.bonus, share.left_out]
    parts += [] if share.held is None else [share.held]
    there, weights, keep, bonus, left_out, *held = to_device(parts, batch.ids.device)
    return there, Share(weights, keep, bonus, left_out, share.tokens, held[0] if held else None)


def share_of(batch: Batch, rows: Tensor, settings: Settings) -> Share:
    """Weights of the aggregation, the tokens whose surrogate counts, and those whose entropy does; on the CPU, as the
    completions `rows` are."""
    mask = in_loss(batch, rows, settings)
    counted = mask.to(torch.get_default_dtype())
    weights = token_weights(Tensors, settings.aggregation, mask, counted, settings.max_completion_length)
    (entropy,) = batch.on_host("entropy")
    undecided = masks.top_entropy(Tensors, entropy[rows], mask, settings.top_entropy_quantile)
    keep, reasons = undecided.float(), torch.where(mask, torch.where(undecided, 0, DECIDED), CUT)
    if batch.rejected is not None:
        reasons[batch.rejected[rows]] = MISMATCHED
    if batch.correction is not None and not settings.surrogate_row.takes_correction:
        factor = batch.on_host("correction")[0][rows]
        keep, reasons = keep * factor, torch.where(undecided & (factor == 0), MISMATCHED, reasons)
    bonus = undecided / undecided.sum().clamp(min=1)
    return Share(weights, keep, bonus, reasons.to(torch.uint8), int(mask.sum()))


def in_loss(batch: Batch, rows: Tensor, settings: Settings) -> Tensor:
    """bool [R, L], the sampled tokens that the settings leave in the loss; on the CPU."""
    mask, (truncated,) = batch.known_masks[0][rows], batch.on_host("truncated")
    if batch.rejected is not None:
        mask = mask & ~batch.rejected[rows]
    return mask & ~truncated[rows, None] if settings.mask_truncated_completions else mask
