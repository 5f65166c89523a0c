"""The given answers of micro-batches of a TRL trainer, on this process, with what it computed on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl.answer import Seen, arguments, flat, joined, numpy
from rlplay.record.trl.teachers.kept import Again
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array


class Given:
    """N rows of tokens. An answer is what the loss covers of a row, from the first such token to the last."""

    def __init__(self, inputs: dict[str, Any], options: dict[str, Any], out: Any) -> None:
        """`inputs` are TRL's, `options` those of the forward pass and `out` what it returned."""
        self._padded = numpy(options["input_ids"])
        inside = options.get("attention_mask")
        real = np.ones_like(self._padded) if inside is None else numpy(inside)
        logprobs = getattr(out, "log_probs", None)
        in_loss = numpy(options["labels"]) != -100 if logprobs is not None else _behind_common(self._padded, real)
        in_loss[:, 0] = False  # nothing predicts a first token
        self.answers: list[Seen] = []
        self._where: list[tuple[int, slice]] = []  # the row of each, and its place in it
        for row, covered in enumerate(in_loss):
            if covered.any():
                places = np.flatnonzero(covered)
                span = slice(int(places[0]), int(places[-1]) + 1)
                prompt, mask = self._padded[row, : span.start], covered[span].astype(np.uint8)
                prompt = prompt[real[row, : span.start] != 0]
                self.answers.append(Seen(row, ids=self._padded[row, span], prompt_ids=prompt, mask=mask))
                self._where.append((row, span))
        if logprobs is not None:
            self._add("old_logprobs", logprobs)
            self._add("entropy", getattr(out, "entropy", None))
        else:
            scores = out.logits.reshape(-1)
            for answer, (row, span) in zip(self.answers, self._where, strict=True):
                answer.tokens["values"] = np.full(span.stop - span.start, np.nan)
                answer.tokens["values"][-1] = float(scores[row])
        self._of_answers(inputs, len(self._padded))
        self.again: Again | None = None
        """How to take the forward pass once more, where somebody asks."""
        self.gradient: Tensor | None = None
        """The derivative of the loss by the log-probabilities, where somebody asks."""
        self.loss = math.nan  # of the micro-batches, as TRL adds it to the step's
        self.baseline: float | None = None  # KTO's z

    def _of_answers(self, inputs: dict[str, Any], count: int) -> None:
        """Roles and groups: in a batch of pairs, all chosen answers stand before the rejected ones."""
        labels, pairs = inputs.get("label"), "labels" not in inputs and "label" not in inputs
        self.groups = half = count // 2 if pairs else count
        margins = inputs.get("margin")
        for answer, (row, _) in zip(self.answers, self._where, strict=True):
            chosen = row < half if labels is None else bool(labels[row])
            answer.group, answer.role = row % half, "chosen" if chosen else "rejected"
            answer.columns = {} if margins is None else {"margin": float(margins[answer.group])}

    @property
    def tokens(self) -> int:
        """The number of tokens in the loss."""
        return int(sum(answer.mask.sum() for answer in self.answers if answer.mask is not None))

    def differentiated(self, gradient: Tensor) -> None:
        """The derivative of the loss by the log-probabilities."""
        self._add("gradient", gradient)
        if self.again is not None:
            self.gradient = gradient.detach().float().cpu()

    def compared(self, ids: Tensor, logprobs: Tensor) -> None:
        """The reference's log-probabilities, if they are of these rows: KTO takes it on mismatched answers, too."""
        if not any("ref_logprobs" in answer.tokens for answer in self.answers) and np.array_equal(
            numpy(ids), self._padded
        ):
            self._add("ref_logprobs", logprobs)

    def _add(self, name: str, values: Tensor | None) -> None:
        """Keep what belongs to the answers' tokens."""
        if values is not None:
            # TRL writes 0 for what it did not compute.
            missing = 0.0 if name == "gradient" else np.nan
            for answer, own in zip(self.answers, self.by_answer(numpy(values)), strict=True):
                answer.tokens[name] = np.where(np.asarray(answer.mask), own, missing)

    def by_answer(self, values: Array) -> list[Array]:
        """What belongs to each answer's tokens of numbers that TRL has for every token but the first of a row."""
        width = self._padded.shape[1] - 1
        # Prompt tuning puts virtual tokens before the real ones.
        found = np.pad(values[:, -width:], ((0, 0), (1, 0)))
        return [found[where] for where in self._where]


def write(
    parts: Sequence[Given], recorder: Recorder, update: int, texts: Texts, processes: int, tokens: int | None,
    named: bool,
) -> None:  # fmt: skip
    """Record the answers of an update and the step on them.

    `tokens` are those in the loss of all processes; None if the derivatives are not exact. `named`: whether rlplay
    has the loss, whose derivatives then stand for advantages.
    """
    answers = joined((part.answers, part.groups) for part in parts)
    gradient = flat(answers, "gradient")
    for answer in answers:
        answer.tokens.pop("gradient", None)
    # Gradients are averaged over the processes.
    exact = None if gradient is None or tokens is None else gradient.astype(np.float32) / processes
    known = arguments(answers, {}, texts)
    recorder.rollouts(
        update, **known, temperature=1.0,
        advantages=-exact * tokens if named and exact is not None and tokens is not None else None,
    )  # fmt: skip
    metrics = {"loss": sum(part.loss for part in parts)}
    if len(parts) == 1 and parts[0].baseline is not None:  # each micro-batch has another
        metrics["kto/kl"] = parts[0].baseline
    logprobs, values = known.get("old_logprobs"), known.get("values")
    recorder.step(
        update, 0, 1, rows=np.arange(len(answers)), dloss_dlogp=exact, tokens=sum(part.tokens for part in parts),
        logprobs=np.full(sum(known["lengths"]), np.nan) if logprobs is None else logprobs, values=values,
        metrics=metrics,
    )  # fmt: skip


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
