"""The recorded numbers of an update's tokens, cached until the update changes."""

from __future__ import annotations

import math
from collections import deque
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.answers import advantages
from rlplay.trace.lenses import LENSES, Lens
from rlplay.trace.one_answer import one_answer
from rlplay.trace.records import OF_TOKENS, Array, Sampled, Stepped
from rlplay.trace.update import Update
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.formula.pair_terms import pair_scores
from rlplay.ui.theme.inks import STEPS, levels


class Steps(NamedTuple):
    """The `last` of the `planned` optimizer steps that included a token, and how many `times` steps included it."""

    last: int
    planned: int
    times: int


class Favourite(NamedTuple):
    """The token that is the likeliest after the update."""

    id: int
    text: str
    probability: float


class Facts:
    """The token arrays of an update in one state."""

    def __init__(self, update: Update) -> None:
        self.update = update
        self._sampled, self._state = update.sampled, _state(update)
        self._lenses: dict[str, Array | None] = {}
        self._spreads: dict[str, tuple[float, float]] = {}
        self._levels: dict[tuple[str, float, float], Array] = {}
        self._shades: dict[tuple[str, float, float], Array] = {}
        self._answer: tuple[int, AnswerFacts] | None = None

    def hold_for(self, update: Update) -> bool:
        """Whether these facts are still current for `update`."""
        return self.update is update and self._sampled is update.sampled and self._state == _state(update)

    def lens(self, name: str) -> Array | None:
        """The values of a lens, float32 [T]; None before its phase."""
        if name not in self._lenses:
            self._lenses[name] = LENSES[name].values(self.update)
        return self._lenses[name]

    def spread(self, name: str) -> tuple[float, float]:
        """The smallest and the largest value of a lens on sampled tokens; NaN if there is none."""
        if name not in self._spreads:
            values, sampled = self.lens(name), self.update.sampled
            own = np.zeros(0) if values is None or sampled is None else values[sampled.mask == 1]
            known = own[np.isfinite(own)]
            self._spreads[name] = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
        return self._spreads[name]

    def levels(self, lens: Lens) -> Array:
        """The shade of each token, as `levels` of the theme numbers them: int8 [T], all 0 before the lens's phase."""
        kind = lens.name, lens.low, lens.high
        if kind not in self._levels:
            values, sampled = self.lens(lens.name), self.update.sampled
            count = 0 if sampled is None else len(sampled.token_ids)
            self._levels[kind] = np.zeros(count, np.int8) if values is None else levels(lens, values)
        return self._levels[kind]

    def shades(self, lens: Lens) -> Array:
        """How many sampled tokens have each shade of `lens`, the lowest first: int64 [levels]."""
        kind = lens.name, lens.low, lens.high
        if kind not in self._shades:
            values, sampled = self.lens(lens.name), self.update.sampled
            found, lowest = self.levels(lens), STEPS if lens.two_sided else 0
            own = found[:0]
            if values is not None and sampled is not None:
                own = found[np.isfinite(values) & (sampled.mask == 1)]
            self._shades[kind] = np.bincount(own + lowest, minlength=lowest + STEPS + 1)
        return self._shades[kind]

    @property
    def means(self) -> Array | None:
        """The mean advantage of each answer, float64 [N]; None before credit."""
        return advantages(self.update)

    def answer(self, completion: int) -> AnswerFacts:
        """The facts of one answer; the last one is kept."""
        if self._answer is None or self._answer[0] != completion:
            self._answer = completion, AnswerFacts(self.update, completion)
        return self._answer[1]


class AnswerFacts:
    """The recorded numbers of the tokens of answer `completion`, counted from its first token."""

    def __init__(self, update: Update, completion: int) -> None:
        self._whole, self._completion = update, completion
        self.update = one_answer(update, completion)
        assert self.update.sampled is not None
        self.sampled: Sampled = self.update.sampled
        self._lenses: dict[str, Array | None] = {}

    def value(self, name: str, token: int) -> float | None:
        """A token's value of a lens; None before its phase, or if it is not finite."""
        return value_at(self._lens(name), token)

    def unsampled(self, token: int) -> bool:
        """Whether the sampler said nothing of a token that the policy is trained on."""
        reported = self.sampled.sampling_logprobs
        return reported is not None and bool(self.sampled.mask[token]) and bool(np.isnan(reported[token]))

    def withheld(self, token: int) -> bool:
        """Whether a token's credit is taken away."""
        whole = self._whole.sampled
        return whole is not None and int(whole.offsets[self._completion]) + token in self._whole.withheld

    def _lens(self, name: str) -> Array | None:
        if name not in self._lenses:
            self._lenses[name] = LENSES[name].values(self.update)
        return self._lenses[name]

    @cached_property
    def ref(self) -> Array | None:
        """Log-probabilities of the sampled tokens under the reference."""
        return None if self.update.credited is None else self.update.credited.ref_logprobs

    @cached_property
    def ref_top(self) -> Array | None:
        """Log-probabilities of the candidates under the reference."""
        return None if self.update.credited is None else self.update.credited.ref_top_logprobs

    @cached_property
    def teacher(self) -> Array | None:
        """Log-probabilities of the sampled tokens under the teacher."""
        return None if self.update.credited is None else self.update.credited.teacher_logprobs

    @cached_property
    def teacher_top(self) -> Array | None:
        """Log-probabilities of the candidates under the teacher."""
        return None if self.update.credited is None else self.update.credited.teacher_top_logprobs

    @cached_property
    def new_top(self) -> Array | None:
        """Log-probabilities of the candidates after the update."""
        finished = self.update.finished
        return None if finished is None else self.update.scatter(finished.rows, finished.top_logprobs)

    def favourite(self, token: int) -> Favourite | None:
        """The likeliest token at this place after the update; None before it ends, or if it is not on record."""
        finished = self.update.finished
        if finished is None or finished.favourite_ids is None or not len(finished.rows):
            return None
        assert finished.favourite_logprobs is not None
        found = int(finished.favourite_ids[token])
        text = self.sampled.pieces.get(found, finished.pieces.get(found, ""))
        return Favourite(found, text, float(np.exp(finished.favourite_logprobs[token])))

    def action_values(self, token: int) -> dict[str, float]:
        """Q(s, ·) by move where a token was sampled, as the update began; empty if no action values are learned."""
        survey, state = self.sampled.survey, self.update.situation(token)
        if survey is None or survey.action_values is None or state not in survey.states:
            return {}
        row = survey.action_values[survey.states.index(state)]
        return dict(zip(survey.actions, map(float, row), strict=True))

    @cached_property
    def new(self) -> Array | None:
        """Log-probabilities of the sampled tokens after the update."""
        return self.update.new_logprobs()

    @cached_property
    def steps(self) -> Steps | None:
        """The optimizer steps that included the answer; None before the first, or if only one is planned."""
        steps = self.update.steps
        planned = steps[-1].epochs * steps[-1].minibatches if steps else 0
        seen = [step.step + 1 for step in steps if len(step.rows)]
        return Steps(seen[-1], planned, len(seen)) if planned > 1 and seen else None

    @cached_property
    def _last_step(self) -> dict[str, Array | None]:
        return {name: self.update.latest_step(name) for name in OF_TOKENS[Stepped]}

    def numbers(self, token: int, settings: Settings | None = None) -> TokenNumbers:
        """The inputs of the objective's formula for one token, from the last optimizer step that included it; with the
        `settings` also those of its pair."""
        last = {name: value_at(values, token) for name, values in self._last_step.items()}
        clip, left_out, credited = last["clip_state"], last["left_out"], self.update.credited
        return TokenNumbers(
            logprob=last["logprobs"],
            advantage=self.value("advantages", token),
            withheld=self.withheld(token),
            ratio=last["importance_ratio"],
            clip_state=None if clip is None else int(clip),
            kl=last["kl"],
            distillation=last["distillation"],
            beta=self._metric("kl_coef"),
            dloss_dlogp=last["dloss_dlogp"],
            dkl_dlogp=last["dkl_dlogp"],
            weight=last["weights"],
            left_out=None if left_out is None else int(left_out),
            log_ratio=None if last["logprobs"] is None else last["logprobs"] - float(self.sampled.old_logprobs[token]),
            correction=value_at(None if credited is None else credited.correction, token),
            correction_rule=None if credited is None else credited.correction_rule,
            sampler_ratio=self._sampler_ratio(token),
            reward=self.value("token_rewards", token),
            returned=self.value("returns", token),
            baseline=value_at(None if credited is None else credited.baseline, token),
            value=self.value("values", token),
            following=value_at(None if credited is None else credited.following, token),
            pair=None if settings is None else pair_scores(self._whole, self._completion, settings),
            answer=self._answer,
            place=token,
            reached=self.update.phase,
        )

    def _sampler_ratio(self, token: int) -> float | None:
        own, said = (value_at(each, token) for each in (self.sampled.old_logprobs, self.sampled.sampling_logprobs))
        return None if own is None or said is None else math.exp(own - said)

    def _metric(self, name: str) -> float | None:
        return self.update.steps[-1].metrics.get(name) if self.update.steps else None

    @cached_property
    def _answer(self) -> dict[str, Array] | None:
        """The answer's arrays in its last optimizer step; None before all of them are known."""
        now, ratio = self._last_step["logprobs"], self._last_step["importance_ratio"]
        advantages = self._lens("advantages")
        if now is None or ratio is None or advantages is None:
            return None
        found = {"logprobs": now, "old_logprobs": self.sampled.old_logprobs, "ratio": ratio, "advantages": advantages}
        if self.ref is not None:
            found["ref_logprobs"] = self.ref
        if self.update.credited is not None and self.update.credited.correction is not None:
            found["correction"] = self.update.credited.correction
        return found | {"mask": self.sampled.mask == 1}


_recent: deque[Facts] = deque(maxlen=2)
"""The last ones asked for, by every panel: of an update with a million tokens they take a hundred megabytes."""


def facts_of(update: Update) -> Facts:
    """The facts of an update in its current state, shared by the panels."""
    found = next((facts for facts in _recent if facts.hold_for(update)), None)
    if found is None:
        found = Facts(update)
        _recent.append(found)
    return found


def value_at(values: Array | None, token: int) -> float | None:
    """One token's value; None if it is not finite."""
    if values is None or not np.isfinite(values[token]):
        return None
    return float(values[token])


def _state(update: Update) -> tuple[object, ...]:
    return update.phase, len(update.steps), id(update.shares)
