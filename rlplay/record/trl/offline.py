"""Watches a trainer of TRL that learns from given answers: DPOTrainer, KTOTrainer, SFTTrainer.

A hook on the model's forward pass sees the log-probabilities that TRL takes the loss of, and their derivatives in the
backward pass. An update is one optimizer step. Answers that TRL packs into one row are one answer here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from rlplay.record.recorder import Recorder
from rlplay.record.trl.online import PROGRESS
from rlplay.record.trl.texts import Texts
from rlplay.trace.records import Array


class Offline:
    """Writes an update after each optimizer step, when its numbers have been logged."""

    def __init__(self, trainer: Any, recorder: Recorder, guarded: Callable[..., None]) -> None:
        """`guarded(work, *values)` does work on the recording, which must not stop the training."""
        self._trainer, self._recorder, self._guarded = trainer, recorder, guarded
        self._texts = Texts(trainer.processing_class)
        self._update = 1
        self._passes: list[dict[str, Any]] = []  # micro-batches since the last update
        self._counts: dict[str, int] = {}  # of TRL's metrics when the update began
        self._stepped = False
        self._pairs = type(trainer).__name__.startswith("DPO")
        self._labels: list[bool] | None = None  # KTO's, of the micro-batch under way
        self._compute_loss = trainer.compute_loss
        trainer.compute_loss = self._noting
        trainer.model.register_forward_hook(self._policy_hook, with_kwargs=True)
        if getattr(trainer, "ref_model", None) is not None:
            trainer.ref_model.register_forward_hook(self._reference_hook, with_kwargs=True)

    @property
    def finished(self) -> int:
        """The last update that has ended."""
        return self._update - 1

    def step(self) -> None:
        """An optimizer step was made."""
        self._stepped = True

    def end(self) -> None:
        """After an optimizer step whose numbers TRL does not log."""
        if self._stepped:
            self._write({})

    def logged(self, logs: dict[str, Any]) -> None:
        """TRL logs numbers: of training, or of an evaluation."""
        numbers = {k: float(v) for k, v in logs.items() if isinstance(v, int | float) and math.isfinite(v)}
        if any(name.startswith("eval_") for name in numbers):
            self._recorder.heldout(self.finished, {k: v for k, v in numbers.items() if k.startswith("eval_")})
        elif self._stepped:
            self._write({k: v for k, v in numbers.items() if k not in PROGRESS})

    def changed(self, name: str, value: Any, previous: Any) -> None:
        """A setting has another value from the next update on."""
        self._recorder.changed(self._update, name, value, previous)

    def close(self) -> None:
        """Close the recording."""
        self._recorder.close()

    def _noting(self, model: Any, inputs: dict[str, Any], *values: Any, **options: Any) -> Any:
        labels = inputs.get("label")
        self._labels = None if labels is None else [bool(x) for x in labels]
        return self._compute_loss(model, inputs, *values, **options)

    def _policy_hook(self, _module: Any, _values: Any, options: dict[str, Any], out: Any) -> None:
        logprobs = getattr(out, "log_probs", None)
        if logprobs is not None and logprobs.requires_grad and "labels" in options:
            self._guarded(self._seen, options["input_ids"], options["labels"], logprobs)

    def _reference_hook(self, _module: Any, _values: Any, _options: Any, out: Any) -> None:
        if self._passes and getattr(out, "log_probs", None) is not None:
            self._passes[-1].setdefault("reference", _numpy(out.log_probs))

    def _seen(self, ids: Tensor, labels: Tensor, logprobs: Tensor) -> None:
        one: dict[str, Any] = {"ids": _numpy(ids), "labels": _numpy(labels), "logprobs": _numpy(logprobs)}
        one["roles"] = self._roles(len(one["ids"]))
        self._passes.append(one)

        def keep(gradient: Tensor) -> None:
            one["gradient"] = _numpy(gradient)

        logprobs.register_hook(keep)  # type: ignore[no-untyped-call]

    def _roles(self, count: int) -> list[str]:
        if self._pairs:
            return ["chosen"] * (count // 2) + ["rejected"] * (count - count // 2)
        if self._labels is not None:
            return ["chosen" if label else "rejected" for label in self._labels]
        return ["chosen"] * count

    def _write(self, logs: dict[str, float]) -> None:
        rows = [(one, row) for one in self._passes for row in range(len(one["ids"]))]
        spans = [_span(one["labels"][row]) for one, row in rows]
        if self._recorder.keeps(self._update):
            self._write_tokens(rows, spans)
        self._recorder.end(self._update, self._metrics(logs))
        self._counts = {name: len(values) for name, values in self._trainer._metrics["train"].items()}
        self._update, self._passes, self._stepped = self._update + 1, [], False

    def _write_tokens(self, rows: list[tuple[dict[str, Any], int]], spans: list[tuple[int, int]]) -> None:
        processes = self._trainer.accelerator.num_processes
        masks = [
            (one["labels"][row][a:b] != -100).astype(np.uint8) for (one, row), (a, b) in zip(rows, spans, strict=True)
        ]
        tokens = int(sum(mask.sum() for mask in masks)) * processes
        prompts = [_inside(one, row)[: a - _begin(one, row)] for (one, row), (a, _) in zip(rows, spans, strict=True)]
        answers = [one["ids"][row][a:b] for (one, row), (a, b) in zip(rows, spans, strict=True)]
        logprobs = self._flat(rows, spans, "logprobs")
        gradient = self._flat(rows, spans, "gradient")
        group, firsts = self._groups(rows)
        self._recorder.rollouts(
            self._update,
            prompts=[self._texts.whole(prompts[i]) for i in firsts],
            group=group,
            prompt_ids=np.concatenate([prompts[i] for i in firsts]),
            prompt_lengths=[len(prompts[i]) for i in firsts],
            prompt_texts=[text for i in firsts for text in self._texts.of(prompts[i])],
            lengths=[len(answer) for answer in answers],
            token_ids=np.concatenate(answers),
            texts=[text for answer in answers for text in self._texts.of(answer)],
            temperature=1.0,
            mask=np.concatenate(masks),
            old_logprobs=logprobs,
            ref_logprobs=self._flat(rows, spans, "reference"),
            rewards={},
            advantages=None if gradient is None else -gradient / processes * tokens,
            roles=[one["roles"][row] for one, row in rows],
        )
        self._recorder.step(
            self._update, 0, 1, rows=np.arange(len(rows)), logprobs=[] if logprobs is None else logprobs,
            dloss_dlogp=None if gradient is None else gradient / processes, tokens=tokens,
        )  # fmt: skip

    def _groups(self, rows: list[tuple[dict[str, Any], int]]) -> tuple[list[int], list[int]]:
        """The prompt of each answer, two answers to one where they are pairs; and an answer of each prompt."""
        if not self._pairs:
            return list(range(len(rows))), list(range(len(rows)))
        group, firsts, done = list[int](), list[int](), 0
        for one in self._passes:
            pairs = len(one["ids"]) // 2
            group += [done + row % pairs for row in range(2 * pairs)]
            firsts += [len(group) - 2 * pairs + row for row in range(pairs)]
            done += pairs
        return group, firsts

    @staticmethod
    def _flat(rows: list[tuple[dict[str, Any], int]], spans: list[tuple[int, int]], name: str) -> Array | None:
        """Numbers of the answers' tokens: entry t - 1 belongs to token t."""
        if any(name not in one for one, _ in rows):
            return None
        pieces = []
        for (one, row), (a, b) in zip(rows, spans, strict=True):
            shift = one["ids"].shape[1] - one[name].shape[1]
            pieces.append(one[name][row][a - shift : b - shift])
        return np.concatenate(pieces).astype(np.float32)

    def _metrics(self, logs: dict[str, float]) -> dict[str, float]:
        """What TRL logged, else the means of its metrics since the last update."""
        if logs:
            return logs
        new = {name: list(v[self._counts.get(name, 0) :]) for name, v in self._trainer._metrics["train"].items()}
        known = {name: [x for x in values if not math.isnan(x)] for name, values in new.items()}
        return {name: sum(values) / len(values) for name, values in known.items() if values}


def _span(labels: Array) -> tuple[int, int]:
    """From the first token that is trained to behind the last; the first token of a row has no log-probability."""
    trained = np.flatnonzero(labels[1:] != -100) + 1
    return (int(trained[0]), int(trained[-1]) + 1) if len(trained) else (len(labels), len(labels))


def _begin(one: dict[str, Any], row: int) -> int:
    """The first token of a row after padding on the left, which repeats one id."""
    ids = one["ids"][row]
    different = np.flatnonzero(ids != ids[0])
    return max(0, int(different[0]) - 1) if len(different) and one["labels"][row][0] == -100 and ids[0] == ids[1] else 0


def _inside(one: dict[str, Any], row: int) -> Array:
    return np.asarray(one["ids"][row][_begin(one, row) :])


def _numpy(values: Tensor) -> Array:
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()
