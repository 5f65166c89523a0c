"""Watches a trainer of TRL that samples its answers: GRPOTrainer, RLOOTrainer.

What its methods return stays the same object; numbers are copied, and the derivative of the loss by each
log-probability is taken from a hook in the backward pass, so it is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.record.trl import compat
from rlplay.record.trl.generations import Generation, TrainerSampling
from rlplay.record.trl.guard import Call, Part, argument
from rlplay.record.trl.observer import Observer
from rlplay.record.trl.teachers.kept import PICTURES, Forward, KeptBatch, Pass, pictured

ROW = "rlplay_row"
"""Begins the name of the tensor in TRL's batches that says which answers they hold; TRL shuffles and splits it with the
others. The loss does not see it."""


class Online(Observer):
    """An update is everything from one sampling of answers to the next; it is written when it is complete.

    Optimizer steps on answers whose sampling was not seen are an update each, without answers.
    """

    def _watch(self) -> None:
        self._scored_ids: Any = None  # of the answers that were rewarded, in that order
        self._before: list[Tensor] | None = None  # log-probs that TRL computes while it samples
        self._seen: dict[str, Any] = {}  # of the newest forward pass with gradients
        self._rows: Tensor | None = None  # of the micro-batch under way
        self._row = f"{ROW}_{id(self)}"  # another recorder may watch the same trainer
        self._begin()
        wrap, trainer = self._hooks.wrap, self._trainer
        if hasattr(trainer, compat.GENERATE.name):
            wrap(trainer, compat.GENERATE.name, Part.ANSWERS, before=self._sampling, after=self._generated)
        if not self._named and hasattr(trainer, compat.CALCULATE[0]):
            wrap(trainer, compat.CALCULATE[0], Part.ANSWERS, after=self._rewarding)
        if hasattr(trainer, compat.SCORE.name):
            wrap(trainer, compat.SCORE.name, Part.NUMBERS, after=self._scored)
        wrap(trainer, "compute_loss", Part.ANSWERS, before=self._losing, after=self._lost)

    def _begin(self) -> None:
        super()._begin()
        self._generations: list[Generation] = []
        self._answers_of: TrainerSampling | None = None  # all of them, once they are written
        self._passes: list[dict[str, Any]] = []  # micro-batches since the last optimizer step
        self._steps: list[list[dict[str, Any]]] = []  # the micro-batches of each optimizer step of the update
        self._made = 0  # micro-batches since the last sampling

    def detach(self) -> None:
        for batch in compat.buffered(self._trainer):
            batch.pop(self._row, None)
        super().detach()

    def step(self, number: int) -> None:
        """An optimizer step was made on the micro-batches since the last one."""
        self._took(number)
        self._steps.append(self._passes)
        self._passes = []

    def end(self) -> None:
        """After an optimizer step: write the update if it is complete."""
        args = self._trainer.args
        sampled = self._generations and self._guard.alive(Part.ANSWERS)
        if self._losses and (not sampled or self._made % (args.steps_per_generation * args.num_iterations) == 0):
            self._write()

    def _sampling(self, _call: Call) -> None:
        self._before = []

    def _generated(self, call: Call, out: dict[str, Any]) -> None:
        before, self._before = self._before or [], None
        if not self._trainer.model.training:
            return
        first = sum(len(generation.answers) for generation in self._generations)
        # RLOOTrainer returns the sums of these over an answer; the reference, if there is one, comes second.
        names = ("old_per_token_logps", "ref_per_token_logps") if "old_logps" in out else ()
        known = out | dict(zip(names, before, strict=False))
        inputs, in_order = argument(call, 0, "inputs"), self._in_order(out["completion_ids"])
        generation = Generation(self._trainer, self._texts, inputs, known, len(self._steps), in_order)
        out[self._row] = (torch.arange(len(generation.answers)) + first).to(out["completion_ids"].device)
        self._generations.append(generation)
        self._made = 0

    def _rewarding(self, call: Call, _found: Any) -> None:
        self._scored_ids = argument(call, 3, "completion_ids_list")

    def _in_order(self, ids: Tensor) -> bool:
        """Whether the answers are still those that were rewarded: a subclass may sort, drop or repeat them."""
        rewarded, self._scored_ids = self._scored_ids, None
        return rewarded is None or (
            len(rewarded) == len(ids)
            and all(row[: len(own)] == list(own) for row, own in zip(ids.tolist(), rewarded, strict=True))
        )

    def _scored(self, call: Call, found: tuple[Any, ...]) -> None:
        logprobs, entropies = found[0], found[1]
        if self._before is not None:
            self._before.append(logprobs)
        if logprobs is None:  # unsloth's pass of the loss gives none
            _refuse("its loss computes its own")
        if not (torch.is_grad_enabled() and logprobs.requires_grad):
            return
        seen = self._seen = {"logprobs": logprobs.detach().float().cpu()}
        if entropies is not None:
            seen["entropy"] = entropies.detach().float().cpu()

        def keep(gradient: Tensor) -> None:
            seen["gradient"] = gradient.detach().float().cpu()

        self._hooks.gradient(logprobs, Part.NUMBERS, keep)
        if self.teachers.keeps:
            self._guard(Part.TEACHERS, self._keep, seen, call, entropies)

    def _keep(self, seen: dict[str, Any], call: Call, entropies: Tensor | None) -> None:
        """Keep how to take the pass once more, and how the loss depends on the entropies."""
        score = compat.scoring(self._trainer)
        (_, *values), options = call
        if pictured(options):
            self.teachers.lacks(PICTURES)

        def again(forward: Forward) -> tuple[Tensor, Tensor | None]:
            found = score(forward, *values, **options)
            return found[0], found[1]

        def depends(gradient: Tensor) -> None:
            seen["by_entropy"] = gradient.detach().float().cpu()

        seen["again"] = again
        if entropies is not None and entropies.requires_grad:
            self._hooks.gradient(entropies, Part.TEACHERS, depends)

    def _losing(self, call: Call) -> None:
        self._seen = {}
        self._rows = argument(call, 1, "inputs").pop(self._row, None)

    def _lost(self, call: Call, _loss: Any) -> None:
        inputs, rows = argument(call, 1, "inputs"), self._rows
        if rows is None:
            if self._generations and self._training():
                self._guard(Part.NUMBERS, _refuse, "its batches do not say which answers they hold")
            return
        inputs[self._row], self._rows = rows, None
        if len(self._seen.get("logprobs", rows)) != len(rows):
            self._seen = {}
            self._guard(Part.NUMBERS, _refuse, "it computes the loss of a batch in parts")
        self._made += 1
        if self._generations and self._training():
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            self._seen |= {"rows": rows.cpu().numpy(), "tokens": int(mask.sum())}
            self._passes.append(self._seen)

    def _write_answers(self) -> None:
        if not self._generations:
            return
        answers = self._answers_of = TrainerSampling(self._generations)
        answers.write(self._recorder, self.update, self._steps, self._texts)
        for number, passes in enumerate(self._steps):
            if passes:
                self._write_step(answers, number, passes)

    def _batch(self) -> KeptBatch | None:
        answers, recorded = self._answers_of, self._recorder.rows_of(self.update)
        every = [one for passes in self._steps for one in passes]
        if answers is None or not recorded or not all({"again", "gradient"} <= one.keys() for one in every):
            return None
        passes = [
            [Pass(one["again"], answers.splitter(one["rows"]), one["gradient"], one.get("by_entropy")) for one in each]
            for each in self._steps
        ]
        return KeptBatch(passes, answers.lengths, recorded)

    def _write_step(self, answers: TrainerSampling, number: int, passes: list[dict[str, Any]]) -> None:
        accelerator = self._trainer.accelerator
        rows = np.concatenate([one["rows"] for one in passes])
        # The scaler of fp16 multiplies the gradients by a number that changes.
        exact = accelerator.scaler is None and all("gradient" in one for one in passes)
        self._recorder.step(
            self.update,
            number,
            len(self._steps),
            rows=rows,
            logprobs=answers.flat(passes, "logprobs"),
            # Gradients are averaged over the processes.
            dloss_dlogp=answers.flat(passes, "gradient") / accelerator.num_processes if exact else None,
            tokens=sum(one["tokens"] for one in passes),
            metrics={"loss": self._losses[number]} if self._guard.alive(Part.METRICS) else {},
        )


def _refuse(reason: str) -> None:
    raise ValueError(reason)
