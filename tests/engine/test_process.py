"""Rewards of reasoning steps: process supervision written a second time, from the paper, against the engine's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from rlplay.algorithms.apply import resolve
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.credit_phase import assigned
from rlplay.engine.score import place_steps, score
from rlplay.engine.teacher_forcing import written
from rlplay.tasks import load_task
from rlplay.trace.records import Credited, Finished, Scored
from tests.engine.test_more_axes import records_of

Judged = tuple[int, dict[int, float], float]
"""A completion: its number of tokens, the scores of its steps by their last token, what it earned as a whole or NaN."""

GENERATIONS = 4
SETTINGS = resolve({"algorithm": "grpo-process", "num_generations": GENERATIONS})


def batch_of(completions: list[Judged], generations: int = GENERATIONS) -> Batch:
    """The completions, so many to a prompt, as the engine holds them once they are scored."""
    lengths = torch.tensor([n for n, _, _ in completions])
    shape = len(completions), int(lengths.max())
    steps, ends = torch.zeros(shape, dtype=torch.double), torch.zeros(shape, dtype=torch.bool)
    for i, (_, mine, _) in enumerate(completions):
        for t, earned in mine.items():
            steps[i, t], ends[i, t] = earned, True
    outcomes = torch.tensor([outcome for _, _, outcome in completions], dtype=torch.double)
    scored = ends.any(-1) | ~outcomes.isnan()
    rewards = torch.where(scored, outcomes.nan_to_num() + steps.sum(-1), torch.nan)
    zeros, candidates = torch.zeros(shape), torch.zeros(*shape, 0)
    group = torch.arange(len(completions)) // generations
    prompts = Prompts([], torch.zeros(int(group.max()) + 1, 1), torch.ones(int(group.max()) + 1, 1))
    return Batch(
        update=1, prompts=prompts, group=group, ids=zeros.long(), lengths=lengths, old_logprobs=zeros, entropy=zeros,
        top_ids=candidates.long(), top_logprobs=candidates, truncated=lengths > 0, environment=zeros.bool(),
        temperature=1.0, rewards=rewards, outcomes=outcomes, step_scores=steps, step_ends=ends, ref_logprobs=zeros,
    )  # fmt: skip


def test_a_step_ends_on_the_token_that_completes_its_last_own_character() -> None:
    """Characters of an environment and of special tokens do not count; what ends later ends on the last token."""
    batch = batch_of([(5, {}, 0.0)])
    batch.ids[0], batch.environment[0, 1] = torch.arange(5), True
    pieces = ["ab", "cd", "ef", "<|mark|>", "gh"]
    tokenizer = SimpleNamespace(all_special_ids=[3])
    lm: Any = SimpleNamespace(tokenizer=tokenizer, texts=lambda ids: [pieces[i] for i in ids])
    answers: Any = {"f": [[(2, 1.0), (3, 2.0), (4, 4.0), (6, 8.0), (99, 16.0)]], "whole": [3.0]}
    scores, ends = place_steps(batch, lm, answers, {"f": 0.5, "whole": 1.0})
    assert scores.tolist() == [[0.5, 0.0, 3.0, 0.0, 12.0]]
    assert ends.tolist() == [[True, False, True, False, True]]


def advantages_of(completions: list[Judged]) -> list[list[float]]:
    """The engine's advantage of every token."""
    found = assigned(batch_of(completions), SETTINGS, 0.0).advantages.double().tolist()
    return [row[:n] for row, (n, _, _) in zip(found, completions, strict=True)]


def by_the_paper(completions: list[Judged]) -> list[list[float]]:
    """A_t = Σ_{index(j) >= t} (r_j - mean(R)) / std(R), R being the scores of all steps of all answers of a group.

    Shao et al. 2024, arXiv:2402.03300, section 4.1.3; to std(R) is added the 1e-4 of every normalisation here.
    """
    found = []
    for i, (n, _, _) in enumerate(completions):
        first = i // GENERATIONS * GENERATIONS
        group = [_judgements(*each) for each in completions[first : first + GENERATIONS]]
        scores = np.array([score for answer in group for _, score in answer], dtype=np.float64)
        spread = scores.std(ddof=1) if len(scores) > 1 else 0.0
        normal = [(index, (score - scores.mean()) / (spread + 1e-4)) for index, score in group[i - first]]
        found.append([sum(score for index, score in normal if index >= t) for t in range(n)])
    return found


def _judgements(tokens: int, steps: dict[int, float], outcome: float) -> list[tuple[int, float]]:
    """(last token, score) of each step; the outcome, if there is one, is the score of the last token."""
    scores = dict(steps)
    if not math.isnan(outcome):
        scores[tokens - 1] = scores.get(tokens - 1, 0.0) + outcome
    return sorted(scores.items())


SCORES = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 0.97]), st.floats(-10, 10, width=32))


@st.composite
def completions(draw: st.DrawFn) -> list[Judged]:
    """Two groups of answers of 1 to 8 tokens; steps may end on any token, the last one included, or be missing."""
    found = []
    for _ in range(2 * GENERATIONS):
        n = draw(st.integers(1, 8))
        steps = draw(st.dictionaries(st.integers(0, n - 1), SCORES, max_size=4))
        found.append((n, steps, draw(st.one_of(st.just(math.nan), SCORES))))
    return found


NOBODY: Judged = (3, {}, math.nan)
RIGHT: Judged = (5, {1: 0.97, 3: 0.97}, math.nan)


@given(completions())
@example([NOBODY, (4, {2: 1.0}, math.nan), (4, {2: 0.0, 3: 1.0}, math.nan), (2, {1: 0.5}, math.nan)] + [RIGHT] * 4)
@example([(4, {1: 0.7}, math.nan), NOBODY, NOBODY, NOBODY, (4, {3: 1.0}, 0.0), (4, {3: 1.0}, 1.0), RIGHT, NOBODY])
def test_process_supervision_is_the_papers(completions: list[Judged]) -> None:
    if all(not steps and math.isnan(outcome) for _, steps, outcome in completions):
        return
    for mine, theirs in zip(advantages_of(completions), by_the_paper(completions), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("score", [0.1, 0.97, 1.0, -1 / 3])
def test_equal_steps_are_exactly_without_signal_however_many_an_answer_has(score: float) -> None:
    answers: list[Judged] = [(9, dict.fromkeys(range(0, 2 * n, 2), score), math.nan) for n in (1, 2, 3, 4)]
    assert advantages_of(answers) == [[0.0] * 9] * 4


def test_nothing_that_is_no_step_earns_credit() -> None:
    answers: list[Judged] = [(6, {1: 1.0, 3: float(i)}, math.nan) for i in range(3)] + [NOBODY]
    found = advantages_of(answers)
    assert all(row[4:] == [0.0, 0.0] for row in found[:3])
    assert found[3] == [0.0, 0.0, 0.0]
    assert found[2][0] > 0 > found[0][0]


def test_an_outcome_of_0_beside_steps_is_a_score_and_a_missing_one_is_not() -> None:
    judged = advantages_of([(4, {1: 1.0}, 0.0), (4, {1: 1.0}, 1.0), (4, {1: 1.0}, 0.0), (4, {1: 1.0}, 1.0)])
    assert judged[0][3] < 0 < judged[1][3]
    assert advantages_of([(4, {1: 1.0}, math.nan)] * 4) == [[0.0] * 4] * 4


def test_answers_of_a_bundled_task_with_all_steps_right_are_no_signal_and_their_last_sentence_never_is(
    start: Callable[..., Any],
) -> None:
    driver, _ = start()
    lm, task = driver._state.lm, load_task("word_problems")
    sum_, product = task.train[0].columns["steps"][::-1]
    right, half = f"{product}. {sum_}. The answer is 11.", f"{product}. 1+1=3. The answer is 3."
    state = dataclasses.replace(driver._state, task=task, settings=resolve({"reward_weights": {"worked": 1.0}}))
    for texts, signal in ([right] * GENERATIONS, False), ([right, right, half, "It is 7."], True):
        prompts, group = Prompts.of(lm, [task.train[0]]), torch.zeros(len(texts), dtype=torch.long)
        batch = written(lm, prompts, group, texts, 60, 1)
        batch.ref_logprobs = batch.old_logprobs
        score(batch, state)
        found = assigned(batch, SETTINGS, 0.0).advantages
        assert bool((found != 0).any()) == signal
        assert batch.step_ends is not None
        for row, ends, n in zip(found, batch.step_ends, batch.lengths.tolist(), strict=True):
            assert not row[int(ends.nonzero().max()) + 1 if bool(ends.any()) else 0 : n].any()
    driver.close()


def test_an_answer_that_one_function_left_out_silences_nobody(start: Callable[..., Any]) -> None:
    driver, records = start(algorithm="grpo-process", reward="choosy", num_generations=8)
    driver.advance("update", 1, lambda: False)
    driver.close()
    scored, credited = records_of(Scored, records)[0], records_of(Credited, records)[0]
    assert 0 < np.isnan(scored.rewards).sum() < len(scored.rewards)
    assert np.abs(credited.advantages).max() > 0.5
    assert np.isfinite(records_of(Finished, records)[0].metrics["loss"])
