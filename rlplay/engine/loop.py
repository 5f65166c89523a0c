"""Reinforcement learning on a language model, on one page.

`train` yields at every point worth looking at; whoever advances it (`driver.py`) decides how far to go. Each phase
reads the settings when it begins, so a knob turned in between holds from the next phase on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from rlplay.engine.batch import sampled_record
from rlplay.engine.credit_phase import credit
from rlplay.engine.evaluate import Evaluating, evaluate
from rlplay.engine.learn_from_answers import learn_from_answers
from rlplay.engine.learn_reward_model import learn_reward_model
from rlplay.engine.optimize import optimize
from rlplay.engine.policy_gradient import gradients
from rlplay.engine.preference_pairs import Unlabelled
from rlplay.engine.rollouts import rollouts
from rlplay.engine.sample import Sampling
from rlplay.engine.score import score
from rlplay.engine.state import RunPlan, State
from rlplay.engine.update_summary import after
from rlplay.engine.value_learning import explore, learn_action_values
from rlplay.engine.vine import Vining, vine
from rlplay.trace.records import AnyRecord, Finished

Moment = Sampling | Evaluating | Vining | Unlabelled | AnyRecord


def train(state: State, plan: RunPlan) -> Iterator[Moment]:
    """Update after update, from rewards or from given answers, as the settings say. Never ends by itself.

    Yields a `Sampling` at every decoded position and a record after every phase and optimizer step.
    Raises Halt if training must not go on; `state` is then as it was after the last optimizer step.
    """
    state.lm.run_as(state.settings)
    if state.update == 0 and plan.eval_every:
        yield from evaluate(state, plan)
    while True:
        state.batch = None
        state.repaint()
        explore(state)
        state.lm.run_as(state.settings)
        match state.settings.loss_type:
            case "policy_gradient":
                finished = yield from learn_from_rewards(state, plan)
            case "reward":
                finished = yield from learn_reward_model(state, plan)
            case "q_learning" | "sarsa":
                finished = yield from learn_action_values(state, plan)
            case _:
                finished = yield from learn_from_answers(state, plan)
        if plan.eval_every and state.update % plan.eval_every == 0:
            yield from evaluate(state, plan)
        yield finished


def learn_from_rewards(state: State, plan: RunPlan) -> Generator[Moment, None, Finished]:
    """One update of the policy gradient: sample, score, credit, update, look again."""
    state.batch = batch = yield from rollouts(state, plan)  # completions of prompts, by the current policy
    yield sampled_record(state.lm, batch, True, batch.ids.shape[1])
    yield (scored := score(batch, state))  # a reward for each
    if state.settings.returns == "vine":
        yield from vine(batch, state, plan.seed)  # what the beginnings of those answers are worth
    yield credit(batch, state)  # an advantage for each token
    every = len(batch.group)
    yield from optimize(batch, every, lambda rows: gradients(batch, rows, state), state, plan.seed)  # optimizer steps
    return after(batch, scored, state)  # what became of those tokens
