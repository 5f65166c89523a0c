"""The given answers of micro-batches of a TRL trainer, on this process, with what it computed on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array


class Given:
    """N rows of tokens. An answer is what the loss covers of a row, from the first such token to the last."""

    def __init__(self, inputs: dict[str, Any], options: dict[str, Any], out: Any) -> None:
        """`inputs` are TRL's, `options` those of the forward pass and `out` what it returned."""
        self._padded = _numpy(options["input_ids"])
        inside = options.get("attention_mask")
        real = np.ones_like(self._padded) if inside is None else _numpy(inside)
        logprobs = getattr(out, "log_probs", None)
        in_loss = _numpy(options["labels"]) != -100 if logprobs is not None else _behind_common(self._padded, real)
        in_loss[:, 0] = False  # nothing predicts a first token
        covered = [np.flatnonzero(row) for row in in_loss]
        self._kept = [row for row, where in enumerate(covered) if len(where)]
        self._spans = [(int(covered[row][0]), int(covered[row][-1]) + 1) for row in self._kept]
        self._ids = self._cut(self._padded)
        self._masks = self._cut(in_loss.astype(np.uint8))
        self._prompts = [
            self._padded[row, :a][real[row, :a] != 0] for row, (a, _) in zip(self._kept, self._spans, strict=True)
        ]
        self._arrays: dict[str, list[Array]] = {}
        if logprobs is not None:
            self._add("logprobs", logprobs)
            self._add("entropy", getattr(out, "entropy", None))
        else:
            ends = [np.full(len(ids), np.nan) for ids in self._ids]
            for end, row in zip(ends, self._kept, strict=True):
                end[-1] = float(out.logits.reshape(-1)[row])
            self._arrays["values"] = ends
        self._of_answers(inputs, len(self._padded))
        self.loss = math.nan  # of the micro-batches, as TRL adds it to the step's
        self.baseline: float | None = None  # KTO's z

    def _of_answers(self, inputs: dict[str, Any], count: int) -> None:
        """Roles and groups: in a batch of pairs, all chosen answers stand before the rejected ones."""
        labels, pairs = inputs.get("label"), "labels" not in inputs and "label" not in inputs
        half = count // 2 if pairs else count
        chosen = [row < half for row in range(count)] if labels is None else [bool(x) for x in labels]
        margins = inputs.get("margin")
        self._roles = ["chosen" if chosen[row] else "rejected" for row in self._kept]
        self._group = np.array([row % half for row in self._kept], dtype=np.int64)
        self._columns = [{} if margins is None else {"margin": float(margins[g])} for g in self._group]
        self._groups = half

    @property
    def tokens(self) -> int:
        """The number of tokens in the loss."""
        return int(sum(mask.sum() for mask in self._masks))

    def differentiated(self, gradient: Tensor) -> None:
        """The derivative of the loss by the log-probabilities."""
        self._add("gradient", gradient)

    def compared(self, ids: Tensor, logprobs: Tensor) -> None:
        """The reference's log-probabilities, if they are of these rows: KTO takes it on mismatched answers, too."""
        if "reference" not in self._arrays and np.array_equal(_numpy(ids), self._padded):
            self._add("reference", logprobs)

    @staticmethod
    def joined(parts: Sequence[Given]) -> Given:
        """All answers of an update, in one object: the first."""
        first = parts[0]
        for part in parts[1:]:
            for name in ("_kept", "_spans", "_ids", "_masks", "_prompts", "_roles", "_columns"):
                getattr(first, name).extend(getattr(part, name))
            first._group = np.concatenate([first._group, part._group + first._groups])
            first._groups += part._groups
            both = first._arrays.keys() & part._arrays.keys()
            first._arrays = {name: first._arrays[name] + part._arrays[name] for name in both}
        first.loss = sum(part.loss for part in parts)
        first.baseline = first.baseline if len(parts) == 1 else None  # each micro-batch has another
        return first

    def write(
        self, recorder: Recorder, update: int, texts: Texts, processes: int, tokens: int | None, named: bool
    ) -> None:
        """Record the answers and the step on them.

        `tokens` are those in the loss of all processes; None if the derivatives are not exact. `named`: whether rlplay
        has the loss, whose derivatives then stand for advantages.
        """
        keys, group = np.unique(self._group, return_inverse=True)
        one_of = [int(np.flatnonzero(group == g)[0]) for g in range(len(keys))]
        own, gradient = self.tokens, self._flat("gradient")
        exact = None if gradient is None or tokens is None else gradient / processes  # averaged over them
        logprobs = self._flat("logprobs")
        recorder.rollouts(
            update,
            prompts=[texts.whole(self._prompts[i]) for i in one_of],
            columns=[self._columns[i] for i in one_of],
            group=group,
            prompt_ids=np.concatenate([self._prompts[i] for i in one_of]) if one_of else [],
            prompt_lengths=[len(self._prompts[i]) for i in one_of],
            prompt_texts=[text for i in one_of for text in texts.of(self._prompts[i])],
            lengths=[len(ids) for ids in self._ids],
            token_ids=np.concatenate(self._ids) if self._ids else [],
            texts=[text for ids in self._ids for text in texts.of(ids)],
            temperature=1.0,
            mask=np.concatenate(self._masks) if self._masks else [],
            old_logprobs=logprobs,
            entropy=self._flat("entropy"),
            ref_logprobs=self._flat("reference"),
            rewards={},
            advantages=-exact * tokens if named and exact is not None and tokens is not None else None,
            roles=self._roles,
            values=self._flat("values"),
        )
        total = sum(len(ids) for ids in self._ids)
        metrics = {"loss": self.loss} | ({} if self.baseline is None else {"kto/kl": self.baseline})
        recorder.step(
            update, 0, 1, rows=np.arange(len(self._ids)), dloss_dlogp=exact, tokens=own, metrics=metrics,
            logprobs=np.full(total, np.nan) if logprobs is None else logprobs, values=self._flat("values"),
        )  # fmt: skip

    def _add(self, name: str, values: Tensor | None) -> None:
        """Keep what belongs to the answers' tokens: entry t - 1 is of token t."""
        if values is not None:
            width = self._padded.shape[1] - 1
            # Prompt tuning puts virtual tokens before the real ones.
            found = self._cut(np.pad(_numpy(values)[:, -width:], ((0, 0), (1, 0))))
            # TRL writes 0 for what it did not compute.
            missing = 0.0 if name == "gradient" else np.nan
            self._arrays[name] = [np.where(m, row, missing) for m, row in zip(self._masks, found, strict=True)]

    def _cut(self, values: Array) -> list[Array]:
        return [values[row, a:b] for row, (a, b) in zip(self._kept, self._spans, strict=True)]

    def _flat(self, name: str) -> Array | None:
        found = self._arrays.get(name)
        return np.concatenate(found).astype(np.float32) if found else None


def _behind_common(ids: Array, real: Array) -> Array:
    """Where pairs of rows, chosen in the upper half and rejected in the lower, differ from their common beginning on.

    RewardTrainer's rows do not say where the prompt ends. At least the last token of each row counts.
    """
    half = len(ids) // 2
    same = (ids[:half] == ids[half:]) & (real[:half] * real[half:] != 0)
    shorter = np.minimum(real[:half].sum(axis=1), real[half:].sum(axis=1)) - 1
    common = np.minimum(np.cumprod(same, axis=1).sum(axis=1), shorter)
    begins = np.concatenate([common, common])
    return np.asarray((np.arange(ids.shape[1])[None, :] >= begins[:, None]) & (real != 0))


def _numpy(values: Tensor) -> Array:
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()
