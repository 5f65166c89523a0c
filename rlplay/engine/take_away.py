"""Where a target would be without the credit of some tokens: their update once more, all else as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from rlplay.engine.batch import Batch
from rlplay.engine.replays import Replays, Seen, as_scored, learned_again, stops_if
from rlplay.engine.target_value import check_target, target_value, temperature_of
from rlplay.engine.value_learning import explore
from rlplay.engine.withheld import check_tokens, places_of
from rlplay.trace.teachers import TakeAway, TakenAway, Target


class TakingAway(Replays):
    """Answers `TakeAway`."""

    def _take_away(self, question: TakeAway, interrupted: Callable[[], bool]) -> Iterator[TakenAway]:
        """One answer. Raises ValueError, one line, if there is none, and Interrupted."""
        target, update, tokens, seen = question.target, question.update, question.tokens, stops_if(interrupted)
        self._check_border()
        self._check_credit(update)
        check_tokens(tokens)
        check_target(target, self._state.lm)
        if (batch := self._batch_of(update)) is not None:
            places_of(batch, tokens)
        with self._back_afterwards():
            if update != self._done:
                self._go_to(update, seen)
            after = self._value(target, update)
            self._go_to(update - 1, seen)
            before = self._value(target, update)
            with self._withholding(update, tokens):
                self._learn_again(update, batch, seen)
            without = self._value(target, update)
        yield TakenAway(target, update, tokens, before=before, after=after, without=without)

    def _check_credit(self, update: int) -> None:
        """Raises ValueError, one line, if no credit of an update could be taken away."""
        if not 1 <= update <= self._done:
            raise ValueError(f"update {update} is not finished; the last one is {self._done}")
        if self._settings_at((update, "update")).loss_type == "reward":
            raise ValueError(f"update {update} taught the reward model; the policy stayed as it was")

    @contextmanager
    def _withholding(self, update: int, tokens: list[int]) -> Iterator[None]:
        """Within it these tokens get no credit either, beside those that the run takes it from anyway."""
        before = self._state.withheld
        self._state.withheld = before | {update: sorted({*before.get(update, ()), *tokens})}
        try:
            yield
        finally:
            self._state.withheld = before

    def _learn_again(self, update: int, batch: Batch | None, seen: Seen) -> None:
        """Take `update`, the next one, once more: from its answers if they are at hand, else from its beginning."""
        if batch is None:
            self._repeat(update, seen)
            return
        for step in learned_again(
            self._state, as_scored(batch), lambda phase: self._settings_at((update, phase)), self._plan.seed
        ):
            seen(step)

    @torch.no_grad()
    def _value(self, target: Target, update: int) -> float:
        """q by the weights as they are, read as the policy was when it sampled the answers of `update`."""
        settings = self._settings_at((update, "sample"))
        explore(replace(self._state, settings=settings))
        return float(target_value(target, self._state.lm, temperature_of(settings)))
