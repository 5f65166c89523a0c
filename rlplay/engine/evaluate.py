"""Held-out evaluation: prompts that are never trained on, answered and scored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.episodes import asked
from rlplay.engine.forgetting import mean_nll
from rlplay.engine.reward_model import rewards_of
from rlplay.engine.sample import sample, unseen
from rlplay.engine.score import score
from rlplay.engine.slate import Cut
from rlplay.engine.state import RunPlan, State
from rlplay.engine.stopwatch import spent_on, timed
from rlplay.engine.update_summary import length_metrics, reward_metrics
from rlplay.tasks.task import Example
from rlplay.trace.parts import EVALUATE
from rlplay.trace.records import Evaluated


@dataclass(frozen=True)
class Evaluating:
    """A moment while held-out prompts are being answered: an occasion to stop, nothing to see."""


def evaluate(state: State, plan: RunPlan) -> Iterator[Evaluating | Evaluated]:
    """Answer held-out prompts at the training temperature, a moment per position, then one record.

    The policy itself answers, whoever samples what it learns from. The same prompts and the same random numbers at
    every evaluation, so that evaluations compare. Nothing happens where there is nothing yet to score answers with.
    """
    if not (rewards_of(state) and state.task.held_out):
        return
    examples = asked(state.task.held_out[: plan.eval_prompts], state.task.environment)
    settings = state.settings
    answers = sample(
        state.lm, Prompts.of(state.lm, examples), generations=plan.eval_generations,
        length=settings.max_completion_length,
        temperature=settings.temperature, keep=1, seed=plan.seed, update=0,
        environment=state.environment, cut=Cut.of(settings),
    )  # fmt: skip
    batch = yield from timed(EVALUATE, unseen(answers, Evaluating()))
    yield _evaluated(batch, examples, state, plan)


@spent_on(EVALUATE)
def _evaluated(batch: Batch, examples: list[Example], state: State, plan: RunPlan) -> Evaluated:
    batch.update = state.update
    answered = [examples[g] for g in batch.group.tolist()]
    scored = score(batch, state)
    metrics = reward_metrics(scored, batch, "eval_") | length_metrics(batch, "eval_")
    if plan.remembered:
        metrics["eval_nll"] = mean_nll(state.lm, plan.remembered)
    return Evaluated(
        update=state.update,
        metrics=metrics,
        prompts=[str(example.prompt if isinstance(example.prompt, str) else example.prompt[-1]["content"])
                 for example in answered],
        completions=batch.completions,
        rewards=scored.rewards,
        columns=[example.columns for example in answered],
        seconds=0.0,
    )  # fmt: skip
