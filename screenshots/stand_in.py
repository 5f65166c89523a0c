"""An engine's stand-in for pictures: a made-up run, and a plausible answer to every question a screen asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.exercises import exercise_called
from rlplay.link.messages import AnyCommand, AnyEvent, LogLine
from rlplay.trace.questions import (
    BothNumbers,
    Continue,
    Continued,
    Estimate,
    Estimated,
    Imagined,
    Judge,
    Judged,
    Peek,
    Peeked,
    Prefix,
    Recall,
    Recalled,
    Tail,
    Tried,
    TryCode,
    WhatIf,
)
from tests.recorded import TEMPLATE, VOCABULARY
from tests.ui.stage import Fed

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
        answer = _answer(command)
        if answer is not None:
            self.put(answer)


def _answer(command: AnyCommand) -> AnyEvent | None:  # noqa: PLR0911 - one for each question
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


def _tail(seed: int, truncated: bool) -> Tail:
    ids = np.random.default_rng(seed).choice(len(VOCABULARY), 6).tolist()
    return Tail(ids, [VOCABULARY[token] for token in ids], truncated, None if truncated else float(seed % 2))
