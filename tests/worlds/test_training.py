"""Worlds played and learned by the real engine, held against exact figures: dynamic programming and closed forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlplay.algorithms.setting_values import check
from rlplay.algorithms.setting_values import written as written_setting
from rlplay.engine.driver import Driver
from rlplay.engine.model import wrap
from rlplay.engine.world_policy import register, world_policy
from rlplay.export.atomic_output import ExportError
from rlplay.export.trl.training_script import export_trl
from rlplay.scenario.loader import ScenarioError, read
from rlplay.scenario.scenario_world import check_squares
from rlplay.scenario.schema import Job
from rlplay.trace.records import AnyRecord, Sampled, Scored
from rlplay.trace.update import Update
from rlplay.worlds.chart import chart
from rlplay.worlds.planning import evaluate, plan
from rlplay.worlds.world import World, read_world

GRID: dict[str, Any] = {"map": ["S...", "....", "....", "...G"]}


def trained(folder: Path, world: dict[str, Any], updates: int, settings: dict[str, Any], **keys: Any) -> list[Update]:
    """The updates of a run in a world."""
    plain = {"num_prompts": 1, "num_generations": 8, "learning_rate": 0.1, **settings}
    content = {"title": "w", "question": "?", "world": world, "settings": plain, "max_updates": updates, **keys}
    path = folder / "world.yaml"
    path.write_text(yaml.safe_dump({"eval_every": 0, **content}), encoding="utf-8")
    found: dict[int, Update] = {}

    def sink(record: AnyRecord) -> None:
        if record.update:
            found.setdefault(record.update, Update(record.update)).add(record)

    driver = Driver(Job(read(path), str(folder / "run.rlplay"), device="cpu", threads=1), sink)
    driver.load(lambda _what, _share: None)
    driver.advance("update", updates, lambda: False)
    driver.close()
    return [found[number] for number in sorted(found)]


def policy_of(world: World, update: Update) -> dict[str, dict[str, float]]:
    return {name: square.policy for name, square in chart(world, update).squares.items() if square.policy is not None}


def test_an_episode_names_the_square_after_every_move(tmp_path: Path) -> None:
    world = read_world(GRID)
    (update,) = trained(tmp_path, GRID, 1, {"algorithm": "reinforce"})
    sampled = update.sampled
    assert sampled is not None
    for row in range(update.completions):
        texts = sampled.texts[sampled.offsets[row] : sampled.offsets[row + 1]]
        own = sampled.mask[sampled.offsets[row] : sampled.offsets[row + 1]]
        assert own.tolist() == [1, 0] * (len(texts) // 2)
        square = "a1"
        for move, there in zip(texts[::2], texts[1::2], strict=True):
            square = world.moved(square, move)
            assert there == square
        assert sampled.states[row] == texts[1::2]
        assert square == "d4" or len(texts) == 2 * world.steps


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_the_corridors_first_return_is_the_discounted_sum_of_its_coins(tmp_path: Path, gamma: float) -> None:
    corridor = {"map": ["S123"], "moves": ["→"], "steps": 3}
    (update,) = trained(tmp_path, corridor, 1, {"algorithm": "reinforce", "gamma": gamma, "num_generations": 1})
    assert update.credited is not None
    assert update.credited.returns is not None
    assert update.credited.returns[0] == pytest.approx(1 + 2 * gamma + 3 * gamma**2, abs=1e-6)


def test_slips_follow_their_share_and_are_the_same_when_repeated(tmp_path: Path) -> None:
    slippery = {"map": [".....", ".....", "..S..", ".....", "....."], "slip": 0.4, "steps": 60}
    first, again = (trained(tmp_path / name, slippery, 1, {"algorithm": "reinforce"})[0] for name in ("a", "b")
                    if not (tmp_path / name).mkdir())  # fmt: skip
    assert first.sampled is not None
    assert again.sampled is not None
    assert first.sampled.texts == again.sampled.texts
    world, slipped, moves = read_world(slippery), 0, 0
    for row, path in chart(world, first).paths.items():
        start, end = int(first.sampled.offsets[row]), int(first.sampled.offsets[row + 1])
        for here, move, there in zip(path, first.sampled.texts[start:end:2], path[1:], strict=False):
            expected = {world.moved(here, m) for m in world.moves if m != move} | {world.moved(here, move)}
            assert there in expected
            moves += 1
            slipped += there != world.moved(here, move)
    # A slip along the edge may lead to where the move would have led, so the share is a little below .4.
    assert 0.3 < slipped / moves < 0.42


def test_the_policy_reads_a_question_mark_on_a_hidden_square_and_the_reward_knows_better(tmp_path: Path) -> None:
    (update,) = trained(tmp_path, {**GRID, "hidden": True}, 1, {"algorithm": "reinforce"})
    assert update.sampled is not None
    assert set(update.sampled.texts) == {"?", "↑", "→", "↓", "←"}
    assert update.scored is not None
    for row, path in update.sampled.states.items():
        assert path[-1] == "d4" or len(path) == 100
        earned = 1 - 0.01 * (len(path) - 1) if path[-1] == "d4" else -0.01 * len(path)
        assert update.scored.rewards[row] == pytest.approx(earned, abs=1e-9)


def test_the_grid_is_learned_and_the_map_agrees_with_the_plan(tmp_path: Path) -> None:
    world = read_world(GRID)
    settings = {"algorithm": "reinforce-baseline", "gamma": 0.99, "num_generations": 16}
    updates = trained(tmp_path, GRID, 40, settings)
    rewards = [float(np.mean(update.scored.rewards)) for update in updates if update.scored is not None]
    assert rewards[0] < 0.7
    assert np.mean(rewards[-5:]) > 0.88
    exact = evaluate(world, policy_of(world, updates[-1]), 0.99)
    best = plan(world, 0.99)
    assert all(exact[s] <= best.values[s] + 1e-9 for s in exact)
    assert exact["a1"] > best.values["a1"] - 0.1


def test_the_surveys_policy_is_the_one_that_sampled(tmp_path: Path) -> None:
    world = read_world(GRID)
    first, second = trained(tmp_path, GRID, 2, {"algorithm": "ppo", "gamma": 0.99})
    squares = chart(world, second).squares
    before = chart(world, first).squares
    for update, charted in ((first, before), (second, squares)):
        sampled = update.sampled
        assert sampled is not None
        for row, path in chart(world, update).paths.items():
            start, end = int(sampled.offsets[row]), int(sampled.offsets[row + 1])
            for k, place in enumerate(range(start, end, 2)):
                known = charted[path[k]].before
                assert known is not None
                assert np.log(known[sampled.texts[place]]) == pytest.approx(sampled.old_logprobs[place], abs=1e-5)
    assert squares["a1"].before == pytest.approx(before["a1"].after)
    assert squares["a1"].before != pytest.approx(squares["a1"].after)
    assert squares["a1"].value is not None


def test_a_tables_critic_values_no_square_that_nobody_has_visited(tmp_path: Path) -> None:
    world = read_world({**GRID, "steps": 3})
    charts = [chart(world, update) for update in trained(tmp_path, {**GRID, "steps": 3}, 3, {"algorithm": "ppo"})]
    visited = {square for each in charts for path in each.paths.values() for square in path}
    values = {name: square.value for name, square in charts[-1].squares.items()}
    assert values["a1"]
    assert {values[name] for name in values.keys() - visited - {"d4"}} == {0.0}


@pytest.mark.parametrize("beta", [1.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_a_bandit_on_a_leash_reaches_the_closed_form(tmp_path: Path, beta: float) -> None:
    """π* ∝ π_ref·exp(r/β): Ziegler et al. 2019, arXiv:1909.08593, equation 2."""
    arms = {"1": -0.1, "2": 1.0, "3": -0.1, "4": -0.1}
    settings = {
        "algorithm": "reinforce-baseline", "beta": beta, "kl_placement": "loss", "kl_estimator": "full",
        "num_generations": 256, "learning_rate": 0.02,
    }  # fmt: skip
    world = read_world({"arms": arms})
    last = trained(tmp_path, {"arms": arms}, 150, settings)[-30:]
    reached = np.mean([policy_of(world, update)["s"]["2"] for update in last])
    weights = {arm: np.exp(worth / beta) for arm, worth in arms.items()}
    assert reached == pytest.approx(weights["2"] / sum(weights.values()), abs=0.03)


@pytest.mark.parametrize("kind", ["table", "mlp"])
def test_a_worlds_policy_saves_and_loads_like_any_other(tmp_path: Path, kind: str) -> None:
    register()
    policy, tokenizer = world_policy(read_world(GRID), kind, 3)
    with torch.no_grad():
        policy.head.weight.normal_()
    policy.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, reader = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    ids = torch.tensor([reader("a1↓a2→")["input_ids"]])
    assert reader.decode(ids[0]) == "a1↓a2→"
    assert torch.equal(policy.eval()(ids).logits, again.eval()(ids).logits)
    probabilities = again(ids).logits.softmax(-1)[0, -1].detach()
    assert probabilities[:4].sum().item() == pytest.approx(1.0)
    assert wrap(policy, tokenizer, torch.device("cpu")).end_ids == {0, 1, 2, 3}


def test_a_run_in_a_world_is_no_script_for_trl(tmp_path: Path) -> None:
    trained(tmp_path, GRID, 1, {"algorithm": "reinforce"})
    with pytest.raises(ExportError, match="world: the environment replies in the middle of an answer"):
        export_trl(tmp_path / "run.rlplay", tmp_path / "script.py")


def test_a_network_reads_where_a_square_is() -> None:
    policy, tokenizer = world_policy(read_world({"map": ["S..", "..G"]}), "mlp", 0)
    corners = {square: tokenizer(square)["input_ids"][0] for square in ("a1", "c1", "a2", "c2")}
    assert {s: policy.features.weight[i].tolist() for s, i in corners.items()} == {
        "a1": [-1, -1], "c1": [-1, 1], "a2": [1, -1], "c2": [1, 1],
    }  # fmt: skip


def written(folder: Path, **content: Any) -> Path:
    path = folder / "w.yaml"
    path.write_text(yaml.safe_dump({"title": "w", "question": "?", **content}), encoding="utf-8")
    return path


def test_a_world_comes_with_a_table_and_room_for_its_longest_episode(tmp_path: Path) -> None:
    scenario = read(written(tmp_path, world={**GRID, "steps": 30}))
    assert scenario.model == "table"
    assert scenario.settings == {"max_completion_length": 60, "reward_stream": "process"}


@pytest.mark.parametrize(
    ("content", "line", "named"),
    [
        ({"world": {"map": ["S.x"]}}, 4, "'x'"),
        ({"world": {"map": ["SG"]}, "task": "arithmetic"}, 1, "either a task, a world or a dataset"),
    ],
)
def test_a_wrong_world_is_refused_with_its_line(tmp_path: Path, content: Any, line: int, named: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        read(written(tmp_path, **content))
    assert named in str(raised.value)
    assert f":{line}:" in str(raised.value)


def test_painted_squares_move_the_goal_from_the_next_update_on(tmp_path: Path) -> None:
    path = written(tmp_path, world={"map": ["S..G"], "moves": ["→", "←"]}, settings={"num_prompts": 1}, eval_every=0)
    found: list[Any] = []
    driver = Driver(Job(read(path), str(tmp_path / "run.rlplay"), device="cpu", threads=1), found.append)
    driver.load(lambda _what, _share: None)
    driver.advance("update", 1, lambda: False)
    driver.set({"squares": {"d1": ".", "b1": "G", "c1": 0.5}})
    driver.advance("update", 1, lambda: False)
    driver.rewind(0)
    driver.advance("update", 1, lambda: False)
    driver.close()
    paths = [list(record.states.values()) for record in found if isinstance(record, Sampled) and record.done]
    assert all(path[-1] == "d1" or len(path) == 100 for path in paths[0])
    assert all("b1" not in path[:-1] for path in paths[1]), "b1 ends the episode now"
    assert all(path[-1] == "b1" for path in paths[1])
    assert all(path[-1] == "d1" or len(path) == 100 for path in paths[2]), "going back takes the paint off"


@pytest.mark.parametrize(
    ("squares", "words"),
    [
        ({"z9": 1}, "'z9'"),
        ({"b1": "x"}, "'x'"),
        ({"a1": "."}, "paints over the start a1"),
        ({"b1": 1e9}, "-1e6 to 1e6"),
    ],
)
def test_paint_that_does_not_fit_is_refused(squares: dict[str, float | str], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        check_squares(read_world({"map": ["S..G"]}), squares)


def test_only_a_world_can_be_painted() -> None:
    with pytest.raises(ValueError, match="this run has none"):
        check_squares(None, {"a1": 1})
    check_squares(None, {})


@pytest.mark.parametrize(
    ("arms", "words"), [({"a1": 1}, "no arm; the arms are 0, 2"), ({"0": "G"}, "'G'"), ({"0": 1e9}, "1e6")]
)
def test_an_arm_takes_a_number(arms: dict[str, float | str], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        check_squares(read_world({"arms": {"0": 1, "2": 0}}), arms)


@pytest.mark.parametrize("written_as", ["{0: 1, 2: -0.5}", {0: 1, 2: -0.5}])
def test_a_bandit_pays_for_another_arm_from_the_next_update_on(tmp_path: Path, written_as: Any) -> None:
    path = written(tmp_path, world={"arms": {0: 0, 2: 1}}, settings={"num_prompts": 1}, eval_every=0)
    found: list[Any] = []
    driver = Driver(Job(read(path), str(tmp_path / "run.rlplay"), device="cpu", threads=1), found.append)
    driver.load(lambda _what, _share: None)
    driver.set({"squares": check("squares", written_as)})
    driver.advance("update", 1, lambda: False)
    driver.close()
    (sampled,) = (record for record in found if isinstance(record, Sampled) and record.done)
    (scored,) = (record for record in found if isinstance(record, Scored))
    assert list(scored.rewards) == [{"0": 1.0, "2": -0.5}[text] for text in sampled.texts]


def test_paint_can_be_written_and_read_again() -> None:
    squares = {"d4": ".", "a4": "G", "b2": "#", "c3": -0.5}
    assert check("squares", written_setting(squares)) == squares
