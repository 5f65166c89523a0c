"""An engine's stand-in for pictures: a made-up run, and a plausible answer to every question a screen asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.exercises import exercise_called
from rlplay.link.messages import AnyCommand, AnyEvent, LogLine
from rlplay.trace.moved_weights import LayerReading, ModelPart, MovedWeight
from rlplay.trace.questions import (
    BothNumbers,
    Continue,
    Continued,
    Estimate,
    Estimated,
    Imagined,
    Judge,
    Judged,
    LayersRead,
    Neighbours,
    NeighboursFound,
    Peek,
    Peeked,
    Prefix,
    ReadLayers,
    Recall,
    Recalled,
    Tail,
    Tried,
    TryCode,
    Weigh,
    Weighed,
    WhatIf,
)
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.teachers import TakeAway, Teach, TeachCourse
from rlplay.trace.update import Update
from tests.recorded import TEMPLATE, VOCABULARY, synthetic_update
from tests.ui.rehearsed import answers
from tests.ui.stage import Fed
from tests.ui.taught import away, course, taught

LESSON = [
    {"say": "The model answers word problems. Only right answers earn a reward."},
    {"ask": {"question": "What happens to the length of the answers?", "choices": ["shorter", "the same", "longer"],
             "answer": "longer", "because": "Answers that work the sum out earn more."}},
    {"expect": {"text": "Most answers are right", "metric": "reward", "above": 0.5}},
]  # fmt: skip
LOG = [LogLine("info", "device: cpu"), LogLine("warning", "a warning of a library"), LogLine("error", "an error")]

UPDATES = 8
"""How many have been finished when a screen asks; labels are of the next one."""
_CANDIDATES = 10


class StandIn(Fed):
    """A live source that is fed by hand and answers probes, labels and previews at once."""

    async def send(self, command: AnyCommand) -> None:
        await super().send(command)
        if isinstance(command, Rehearse):
            self.put(*answers(command))
        answer = _answer(command)
        if answer is not None:
            self.put(answer)


def _recorded(number: int) -> Update:
    """An update of the first run."""
    update = Update(number)
    for record in synthetic_update(number):
        update.add(record)
    return update


def _answer(command: AnyCommand) -> AnyEvent | None:  # noqa: PLR0911, PLR0912 - one for each question
    match command:
        case Peek(prefix):
            return _peeked(prefix)
        case Continue(prefix, writer, count, greedy):
            tails = [_tail(seed, truncated=seed == 4) for seed in range(1 if greedy else count)]
            return Continued(prefix, writer, greedy, tails=tails, pieces=dict(enumerate(VOCABULARY)))
        case Estimate(prefix, writer, count):
            return Estimated(prefix, writer, UPDATES, "", count, 0, 0.62, 0.56, 0.68, "Wilson", done=True)
        case Recall(prefix, ids):
            updates = list(range(1, UPDATES + 1))
            rows = [[0.1 * update / (place + 1) ** 2 for place in range(len(ids))] for update in updates]
            return Recalled(prefix, ids, updates=updates, probabilities=rows, done=True)
        case Judge(pair):
            return Judged(
                pair, UPDATES + 1, scores={"log-probability": (-9.31, -6.02), "implicit reward": (0.125, -0.25)}
            )
        case TryCode(exercise, _, number):
            rows = [BothNumbers(f"answer {i + 1}", i, 0, float(i % 2), i % 2 - 0.5) for i in range(8)]
            remark = exercise_called(exercise).wrong[0].remark
            return Tried(exercise, number, compared=8, unit="answers", first=rows[0], rows=rows, remark=remark)
        case WhatIf(changes):
            return Imagined(changes, UPDATES, refused="a preview needs the engine")
        case Teach(_, _, by):
            return taught(command, _recorded(by))
        case TakeAway(target, _, _):
            return away(command, taught(Teach(target, command.update, command.update), _recorded(command.update)))
        case TeachCourse():
            return course(command, UPDATES)
        case Weigh(update):
            return _weighed(update)
        case ReadLayers(prefix, token, update):
            return _read(prefix, token, update)
        case Neighbours(token, update):
            cosines = [0.62 * 0.9**rank for rank in range(16)]
            return NeighboursFound(
                token, update, update - 1, "", list(range(40, 56)), [each - 0.004 for each in cosines], cosines, 0.9999,
                pieces=dict(enumerate(VOCABULARY)),
            )  # fmt: skip
    return None


def _peeked(prefix: Prefix) -> Peeked:
    rng, length = np.random.default_rng(len(prefix.answer)), len(prefix.answer)
    ids = rng.choice(len(VOCABULARY), _CANDIDATES, replace=False)
    policy, reference = np.sort(rng.dirichlet(np.full(_CANDIDATES, 0.5)))[::-1], rng.dirichlet(np.ones(_CANDIDATES))
    numbers: dict[str, Any] = {
        "entropy": float(-(policy * np.log(policy + 1e-9)).sum()),
        "ref_entropy": float(-(reference * np.log(reference)).sum()),
        "kl": float((policy * np.log((policy + 1e-9) / reference)).sum()),
    }
    return Peeked(
        prefix, update=UPDATES, prompt_texts=[TEMPLATE[0], *prefix.prompt.split(" "), *TEMPLATE[1:]],
        texts=[VOCABULARY[token] for token in prefix.answer], pieces=dict(enumerate(VOCABULARY)),
        probabilities=rng.uniform(0.3, 1, length).tolist(),
        top_ids=ids.tolist(), top=policy.tolist(), ref_top=reference.tolist(), **numbers,
    )  # fmt: skip


def _weighed(update: int) -> Weighed:
    """A model of four layers whose last ones moved most."""
    rng, width = np.random.default_rng(update), 192
    weights = [
        MovedWeight("model.embed_tokens.weight", 0, "embedding", "tokens", [918, width], 176_256, 176_255, 86, 0.08)
    ]
    for layer in range(1, 5):
        for part, labels in _MATRICES.items():
            for label in labels:
                spectrum = (np.arange(1, 49) ** -0.6 / 20).tolist()
                weights.append(MovedWeight(
                    f"model.layers.{layer - 1}.{part}.{label}.weight", layer, part, label, [width, width], width**2,
                    width**2, 10.0, float(rng.uniform(0.02, 0.05)) * layer**0.5, 90.0 - 8 * layer, spectrum,
                ))  # fmt: skip
    weights.append(MovedWeight("model.norm.weight", 5, "norm", "norm", [width], width, width, 16.6, 0.005))
    return Weighed(update, update - 1, layers=4, weights=weights, tied=True, done=True)


_MATRICES: dict[ModelPart, tuple[str, ...]] = {"attention": ("q", "k", "v", "o"), "mlp": ("gate", "up", "down")}


def _read(prefix: Prefix, token: int, update: int) -> LayersRead:
    """The written token becomes the likeliest in the third layer."""
    sides = []
    for gain in (0.9, 1.0):
        chances = [gain * share for share in (0.01, 0.08, 0.2, 0.45, 0.7)]
        sides.append([
            LayerReading([token, *range(60, 64)], [chance, 0.12, 0.06, 0.03, 0.01], chance, 1 if chance > 0.12 else 2)
            for chance in chances
        ])  # fmt: skip
    return LayersRead(prefix, token, update, update - 1, "", sides[0], sides[1], dict(enumerate(VOCABULARY)))


def _tail(seed: int, truncated: bool) -> Tail:
    ids = np.random.default_rng(seed).choice(len(VOCABULARY), 6).tolist()
    return Tail(ids, [VOCABULARY[token] for token in ids], truncated, None if truncated else float(seed % 2))
