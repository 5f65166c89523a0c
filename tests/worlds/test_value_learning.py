"""Q-learning and SARSA by the real engine, held against the book's update, and against dynamic programming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from rlplay.algorithms.apply import resolve
from rlplay.cli.main import main
from rlplay.engine.state import Halt
from rlplay.engine.world_policy import epsilon_greedy
from rlplay.trace.questions import Peek, Peeked, Prefix
from rlplay.trace.update import Update
from rlplay.worlds.chart import chart
from rlplay.worlds.figures import figures
from rlplay.worlds.planning import plan
from rlplay.worlds.world import read_world
from tests.worlds.value_run import MAZE, SMALL, Run


def book(
    table: dict[tuple[str, str], float], episodes: list[list[tuple[str, str, float]]], moves: str, alpha: float,
    gamma: float, on_policy: bool,
) -> list[float]:  # fmt: skip
    """Sutton and Barto 2018, sections 6.4 and 6.5: each step of each episode (state, action, reward) in turn."""
    errors = []
    for episode in episodes:
        for t, (state, action, reward) in enumerate(episode):
            if t + 1 == len(episode):
                following = 0.0
            elif on_policy:
                following = table[episode[t + 1][0], episode[t + 1][1]]
            else:
                following = max(table[episode[t + 1][0], move] for move in moves)
            delta = reward + gamma * following - table[state, action]
            table[state, action] += alpha * delta
            errors.append(delta)
    return errors


def episodes_of(world: dict[str, Any], update: Update) -> list[list[tuple[str, str, float]]]:
    rules, sampled = read_world(world), update.sampled
    assert sampled is not None
    found = []
    for row, path in chart(rules, update).paths.items():
        start, end = int(sampled.offsets[row]), int(sampled.offsets[row + 1])
        moves = [sampled.texts[k] for k in range(start, end) if sampled.mask[k]]
        found.append([(s, m, rules.reward(there)) for s, m, there in zip(path[:-1], moves, path[1:], strict=True)])
    return found


@pytest.mark.parametrize("slip", [0.0, 0.2])
@pytest.mark.parametrize("algorithm", ["q-learning", "sarsa"])
def test_every_step_is_the_books_bit_for_bit(tmp_path: Path, algorithm: str, slip: float) -> None:
    world = {**MAZE, "slip": slip}
    run = Run(tmp_path, world, settings={"algorithm": algorithm})
    run.policy.double()
    run.driver._state.lm.reference.double()
    run.go(6)
    table = {(s, m): 0.0 for s in read_world(world).states for m in "↑→↓←"}
    for update in run.updates.values():
        errors = book(table, episodes_of(world, update), "↑→↓←", 0.25, 0.9, algorithm == "sarsa")
        assert update.credited is not None
        assert update.sampled is not None
        own = update.sampled.mask == 1
        assert np.array_equal(update.credited.advantages[own], np.array(errors, np.float32))
        assert not update.credited.advantages[~own].any()
        credited = update.credited
        assert credited.returns is not None
        assert credited.values is not None
        np.testing.assert_allclose(credited.returns - credited.values, credited.advantages, atol=1e-6)
    tokens = run.driver._state.lm.tokenizer.convert_tokens_to_ids
    weight = run.policy.head.weight
    assert weight.dtype == torch.float64
    for (state, move), value in table.items():
        assert weight[tokens(move), tokens(state)].item() == value
    assert any(table.values())


def test_the_numbers_of_an_update_are_counted_in_its_records(tmp_path: Path) -> None:
    run, signs = Run(tmp_path, SMALL, settings={"num_generations": 5}).go(3), set[float]()
    for update in run.updates.values():
        sampled, scored, credited, (step,), finished = (
            update.sampled, update.scored, update.credited, update.steps, update.finished,
        )  # fmt: skip
        assert sampled is not None
        assert scored is not None
        assert credited is not None
        assert finished is not None
        lengths = np.add.reduceat(sampled.mask, sampled.offsets[:-1], dtype=np.int64)
        assert (sampled.done, sampled.position) == (True, np.diff(sampled.offsets).max())
        own = sampled.mask == 1
        errors = credited.advantages[own].astype(np.float64)
        np.testing.assert_allclose(step.dloss_dlogp[own], -errors / own.sum(), rtol=1e-6)
        assert not step.dloss_dlogp[~own].any()
        signs |= set(np.sign(errors).tolist())
        wanted = {
            "loss": (errors**2).mean() / 2, "td_error": np.abs(errors).mean(), "learning_rate": 0.25,
            "reward": scored.rewards.mean(), "reward_std": scored.rewards.std(ddof=1),
            "completions/mean_length": lengths.mean(), "completions/max_length": lengths.max(),
            "entropy": sampled.entropy[own].mean(),
        }  # fmt: skip
        assert finished.survey is not None
        wanted |= figures(read_world(SMALL), finished.survey, "q_learning", 0.9)
        assert {name: finished.metrics[name] for name in wanted} == pytest.approx(wanted, rel=1e-5)
        assert credited.group_mean.tolist() == [pytest.approx(scored.rewards.mean())]
        assert credited.group_std.tolist() == [pytest.approx(scored.rewards.std(ddof=1))]
    assert {-1, 1} <= signs, "else the mean of |δ| could be that of δ"


def test_an_episode_that_nobody_scored_teaches_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE, settings={"num_generations": 5, "kl_placement": "reward", "beta": 0.5})
    run.policy.double()
    run.driver.advance("phase", 2, lambda: False)
    batch = run.driver._state.batch
    assert batch is not None
    assert batch.rewards is not None
    batch.rewards[[1, 3]] = torch.nan
    run.go(1)
    table = {(s, m): 0.0 for s in read_world(MAZE).states for m in "↑→↓←"}
    episodes = episodes_of(MAZE, run.updates[1])
    wanted = [book(table, [each], "↑→↓←", 0.25, 0.9, False) if row not in (1, 3) else [0.0] * len(each)
              for row, each in enumerate(episodes)]  # fmt: skip
    credited, sampled = run.updates[1].credited, run.updates[1].sampled
    assert credited is not None
    assert sampled is not None
    np.testing.assert_allclose(credited.advantages[sampled.mask == 1], np.concatenate(wanted), atol=1e-7)
    tokens = run.driver._state.lm.tokenizer.convert_tokens_to_ids
    assert all(run.policy.head.weight[tokens(m), tokens(s)].item() == value for (s, m), value in table.items())


def test_the_moves_are_epsilon_greedy_and_the_records_say_how_likely_they_were(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE).go(8)
    last = run.updates[8].sampled
    assert last is not None
    assert last.survey is not None
    assert last.survey.action_values is not None
    greedy = 0
    for row, path in chart(read_world(MAZE), run.updates[8]).paths.items():
        start = int(last.offsets[row])
        for k, state in enumerate(path[:-1]):
            place = start + 2 * k
            q = last.survey.action_values[last.survey.states.index(state)]
            best = np.flatnonzero(q == q.max())
            made = last.survey.actions.index(last.texts[place])
            expected = 0.3 / 4 + (0.7 / len(best) if made in best else 0.0)
            assert last.old_logprobs[place] == pytest.approx(np.log(expected), abs=1e-6)
            greedy += made in best
    assert greedy / last.mask.sum() > 0.6


def test_equally_good_moves_share_and_an_epsilon_of_0_leaves_the_others_nothing() -> None:
    values = torch.tensor([[0.0, 1.0, 1.0, -1.0], [2.0, 0.0, 0.0, 0.0]])
    assert epsilon_greedy(values, 0.2).tolist()[0] == pytest.approx([0.05, 0.45, 0.45, 0.05])
    assert epsilon_greedy(values, 0.0).tolist() == [[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]]


def test_q_learning_reaches_the_optimal_values(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL, settings={"exploration_rate": 0.5, "learning_rate": 0.5}).go(40)
    best = plan(read_world(SMALL), 0.9)
    finished = run.updates[40].finished
    assert finished is not None
    assert finished.survey is not None
    assert finished.survey.action_values is not None
    for state, row in zip(finished.survey.states, finished.survey.action_values, strict=True):
        wanted = [best.action_values[state][move] for move in finished.survey.actions]
        assert row == pytest.approx(wanted, abs=0.02)
    assert run.metric("bellman_residual")[-1] < 0.01 < run.metric("bellman_residual")[0]
    assert run.metric("td_error")[-1] < 0.02 < run.metric("td_error")[0]
    assert run.metric("greedy_reward")[-1] == pytest.approx(0.9, abs=1e-6), "one step of −0.1, then the goal"


def test_the_exact_reward_of_the_behaviour_is_what_many_episodes_earn(tmp_path: Path) -> None:
    settings = {"num_generations": 400, "learning_rate": 1e-9}
    run = Run(tmp_path, {**MAZE, "slip": 0.1}, settings=settings).go(2)
    second = run.updates[2].scored
    assert second is not None
    spread = 4 * second.rewards.std() / 20
    assert abs(second.rewards.mean() - run.metric("behaviour_reward")[0]) < spread < 0.2


def test_a_critics_bellman_residual_is_on_average_over_its_policy(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL, settings={"algorithm": "a2c", "learning_rate": 0.1}).go(30)
    residuals = run.metric("bellman_residual")
    finished, world = run.updates[30].finished, read_world(SMALL)
    assert finished is not None
    assert finished.survey is not None
    assert finished.survey.values is not None
    values = dict(zip(finished.survey.states, finished.survey.values.tolist(), strict=True))
    gaps = []
    for state, row in zip(finished.survey.states, np.exp(finished.survey.logprobs), strict=True):
        backed = sum(
            share * o.probability * (o.reward + (0.0 if o.over else 0.9 * values[o.state]))
            for share, move in zip(row.tolist(), finished.survey.actions, strict=True)
            for o in world.outcomes(state, move)
        )
        gaps.append(abs(values[state] - backed))
    assert residuals[-1] == pytest.approx(float(np.mean(gaps)), abs=1e-6)
    assert residuals[-1] < residuals[0]
    assert "greedy_reward" not in finished.metrics


@pytest.mark.parametrize("algorithm", ["q-learning", pytest.param("sarsa", marks=pytest.mark.slow)])
def test_rewind_and_resume_repeat_a_run_bit_for_bit(tmp_path: Path, algorithm: str) -> None:
    settings = {"algorithm": algorithm}
    whole = Run(tmp_path, MAZE, "whole", settings=settings).go(6)
    torn = Run(tmp_path, MAZE, "torn", settings=settings).go(4)
    torn.driver.set({"exploration_rate": 0.9})
    torn.go(1)
    torn.driver.rewind(3)
    torn.go(1)
    torn.driver.close()
    again = Run(tmp_path, MAZE, "torn", resume=True, settings=settings).go(2)
    assert torch.equal(whole.policy.head.weight, again.policy.head.weight)
    for number in (5, 6):
        one, other = whole.updates[number], again.updates[number]
        assert one.sampled is not None
        assert other.sampled is not None
        assert one.finished is not None
        assert other.finished is not None
        assert np.array_equal(one.sampled.old_logprobs, other.sampled.old_logprobs)
        assert np.array_equal(one.finished.logprobs, other.finished.logprobs)


def test_epsilon_changes_with_the_next_update_and_is_recorded(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE).go(3)
    run.driver.set({"exploration_rate": 0})
    run.go(1)
    greedy = run.updates[4].sampled
    assert greedy is not None
    assert np.exp(greedy.old_logprobs[greedy.mask == 1]).min() >= 0.25 - 1e-6, "shares of the best moves only"
    assert run.driver.status().settings.exploration_rate == 0


def test_a_step_size_changed_after_the_credit_waits_for_the_next_update(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE)
    run.driver.advance("phase", 3, lambda: False)
    run.driver.set({"learning_rate": 0.5})
    run.driver.advance("update", 1, lambda: False)
    run.go(1)
    used = [update.steps[0].metrics["learning_rate"] for update in run.updates.values()]
    assert used == [0.25, 0.5]


def test_a_probe_sees_the_latest_epsilon_also_after_a_rewind(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE).go(4)
    assert least(run) == pytest.approx(0.3 / 4, abs=1e-5)
    run.driver.set({"exploration_rate": 0.9})
    assert least(run) == pytest.approx(0.9 / 4, abs=1e-5)
    run.go(1)
    run.driver.rewind(3)
    assert least(run) == pytest.approx(0.3 / 4, abs=1e-5)


def least(run: Run) -> float:
    """The smallest probability of a move at the start, as a probe finds it now."""
    (answer,) = run.driver.answers(Peek(Prefix("a1")), lambda: False)
    assert isinstance(answer, Peeked)
    return min(answer.top[:4])


def test_a_run_may_change_to_values_and_back(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE, settings={"algorithm": "reinforce"}).go(1)
    run.driver.set({"algorithm": "sarsa"})
    run.go(1)
    run.driver.set({"algorithm": "reinforce-baseline"})
    run.go(1)
    surveys = [update.sampled.survey for update in run.updates.values() if update.sampled is not None]
    learned = [survey is not None and survey.action_values is not None for survey in surveys]
    assert learned == [False, True, False]
    last = run.updates[3].sampled
    assert last is not None
    assert last.survey is not None
    second = run.updates[2].finished
    assert second is not None
    assert second.survey is not None
    q = second.survey.action_values
    assert q is not None
    soft = np.exp(q) / np.exp(q).sum(1, keepdims=True)
    np.testing.assert_allclose(np.exp(last.survey.logprobs), soft, atol=1e-6)


def test_nobody_labels_what_has_rewards(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE, settings={"labeller": "user"})
    run.driver.advance("phase", 1, lambda: False)
    assert run.driver.asks() == []
    run.go(1)
    assert run.updates[1].finished is not None


@pytest.mark.parametrize(
    ("world", "keys", "named"),
    [
        (MAZE, {"model": "mlp"}, "model: table"),
        (None, {"task": "arithmetic"}, "model: table"),
        (MAZE, {"settings": {"max_completion_length": 50}}, "max_completion_length of 200"),
    ],
)
def test_what_has_no_table_is_refused_in_one_line(tmp_path: Path, world: Any, keys: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named) as raised:
        Run(tmp_path, world, **keys)
    assert "\n" not in str(raised.value)
    assert "loss_type=q_learning" in str(raised.value)


@pytest.mark.parametrize("command", [["run"], []])
def test_the_command_refuses_it_before_anything_starts(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.yaml"
    content = {"title": "w", "question": "?", "world": MAZE, "model": "mlp", "settings": {"algorithm": "sarsa"}}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main([*command, str(path)])
    out, err = capsys.readouterr()
    assert left.value.code == 2
    assert (out, err.count("\n")) == ("", 1)
    assert "loss_type=sarsa needs a world with model: table" in err


def test_a_network_cannot_change_to_values_of_moves(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE, model="mlp", settings={"algorithm": "reinforce"}).go(1)
    with pytest.raises(ValueError, match="model: table"):
        run.driver.set({"algorithm": "sarsa"})
    run.go(1)


def test_one_value_that_is_not_finite_stops_the_run_before_the_table_changes(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL)
    table, goal = run.policy.head.weight, run.driver._state.lm.tokenizer.convert_tokens_to_ids("b2")
    run.driver.advance("phase", 2, lambda: False)
    with torch.no_grad():
        table[0, goal] = torch.inf
    with pytest.raises(Halt, match=r"^update 1: Q is not finite, and was not changed"):
        run.go(1)
    assert not table.any()


def test_a_square_that_is_not_on_the_map_is_refused_while_a_run_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path, MAZE)
    with pytest.raises(ValueError, match="z9"):
        run.driver.set({"squares": {"z9": 1}})
    run.driver.set({"squares": {"b1": 1}})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"temperature": 0.5}, "temperature=1"),
        ({"exploration_rate": 1.5}, "exploration_rate"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "multi_objective_aggregation"),
        ({"reward_stream": "process_normalized"}, "reward_stream"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        resolve({"algorithm": "sarsa", **settings})


CLIFF: dict[str, Any] = {"map": [".......", ".......", ".......", "SOOOOOG"]}


def after(folder: Path, world: dict[str, Any], algorithm: str, seed: int, gamma: float, updates: int) -> Run:
    """A run of 8 episodes an update with ε = 0.3 and α = 0.1."""
    settings = {"algorithm": algorithm, "learning_rate": 0.1, "gamma": gamma}
    return Run(folder, world, f"{algorithm}{seed}", settings=settings, seed=seed).go(updates)
