"""Reinforcement learning on a language model, on one page.

`train` yields at every point worth looking at; whoever advances it (`driver.py`) decides how far to go. Each phase
reads the settings when it begins, so a knob turned in between holds from the next phase on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from rlplay.engine.after import after
from rlplay.engine.batch import Batch, Prompts, candidates, sampled_record
from rlplay.engine.credit import credit
from rlplay.engine.evaluate import Evaluating, evaluate
from rlplay.engine.optimize import optimize
from rlplay.engine.sample import Sampling, draw_prompts, sample
from rlplay.engine.score import score
from rlplay.engine.state import Plan, State
from rlplay.trace.records import AnyRecord

Moment = Sampling | Evaluating | AnyRecord


def train(state: State, plan: Plan) -> Iterator[Moment]:
    """Update after update: sample, score, credit, update, look again. Never ends by itself.

    Yields a `Sampling` at every decoded position and a record after every phase and optimizer step.
    Raises Halt if training must not go on; `state` is then as it was after the last optimizer step.
    """
    if state.update == 0 and plan.eval_every:
        yield from evaluate(state, plan)
    while True:
        batch = yield from _rollouts(state, plan)  # completions of prompts, by the current policy
        yield (scored := score(batch, state))  # a reward for each
        yield credit(batch, state)  # an advantage for each token
        yield from optimize(batch, state, plan.seed)  # optimizer steps on the same completions
        finished = after(batch, scored, state)  # what became of those tokens
        if plan.eval_every and state.update % plan.eval_every == 0:
            yield from evaluate(state, plan)
        yield finished


def _rollouts(state: State, plan: Plan) -> Generator[Moment, None, Batch]:
    settings, lm, update = state.settings, state.lm, state.update + 1
    prompts = Prompts.of(lm, draw_prompts(plan.train, settings.num_prompts, plan.seed, update))
    batch: Batch = yield from sample(
        lm, prompts, generations=settings.num_generations, length=settings.max_completion_length,
        temperature=settings.temperature, keep=candidates(lm, settings), seed=plan.seed, update=update,
    )  # fmt: skip
    yield sampled_record(lm, batch, True, batch.ids.shape[1])
    return batch
