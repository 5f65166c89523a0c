"""The writing exercises on real batches of the lessons: solutions pass, and each wrong try gets its own remark."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
import yaml

from rlplay.engine.driver import Driver
from rlplay.engine.state import State
from rlplay.engine.try_code import _engine_numbers, _numbers, try_code
from rlplay.engine.written_material import material
from rlplay.exercises import NAMES, exercise_called
from rlplay.exercises.check import Material
from rlplay.exercises.checks import CHECKS
from rlplay.exercises.verdict import same
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.trace.questions import Tried, TryCode
from rlplay.trace.records import AnyRecord, Credited

PLAYED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "reward": ("two-plus-two", 1, {}),
    "reinforce": ("first-reward", 1, {}),
    "baseline": ("baseline", 1, {"baseline": "batch_mean"}),
    "advantage": ("group-work", 1, {}),
    "returns": ("coins", 1, {"gamma": 0.9}),
    "gae": ("who-gets-credit", 2, {"lam": 0.9}),
    "values": ("grid", 1, {}),
    "clip": ("soup", 1, {"num_iterations": 4, "num_minibatches": 4}),
    "kl": ("estimators", 2, {}),
    "dpo": ("dpo", 2, {}),
}
"""For each exercise: a lesson that has the batch for it, after how many updates, with which settings."""
SEEDS = 0, pytest.param(11, marks=pytest.mark.slow)


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, int], State]]:
    drivers: list[Driver] = []

    @cache
    def of(name: str, seed: int) -> State:
        lesson, updates, settings = PLAYED[name]
        scenario = load(lesson)
        changed: dict[str, Any] = {"settings": scenario.settings | settings, "seed": seed, "eval_every": 0}
        if name == "dpo":
            second = scenario.stages[1]
            changed |= {"stages": [], "settings": scenario.settings | second.settings | {"learning_rate": 1e-3}}
        scenario = msgspec.structs.replace(scenario, **changed)
        run = tmp_path_factory.mktemp(name) / "run.rlplay"
        driver = Driver(Job(scenario, str(run), device="cpu", threads=1), lambda record: None)
        driver.load(lambda what, fraction: None)
        driver.advance("update", updates, lambda: False)
        drivers.append(driver)
        return driver._state

    yield of
    for driver in drivers:
        driver.close()


def asked(name: str, code: str, state: State) -> Tried:
    return try_code(TryCode(name, code, 3), state)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_the_solution_passes(name: str, seed: int, states: Callable[[str, int], State]) -> None:
    found = asked(name, exercise_called(name).solution, states(name, seed))
    assert (found.error, found.first) == ("", None)
    assert found.passed
    assert found.number == 3
    assert found.compared >= 3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_each_wrong_try_is_answered_at_the_first_number_that_differs(
    name: str, seed: int, states: Callable[[str, int], State]
) -> None:
    state, check = states(name, seed), CHECKS[name]
    cases = [*check.cases(material(state)), *check.made_up()]
    engine = _engine_numbers(check, cases)
    places = [place for case in cases for place in case.places]
    assert len(exercise_called(name).wrong) >= 3
    for each in exercise_called(name).wrong:
        yours = _numbers(each.code, check, cases, io.StringIO())
        first = int(np.flatnonzero(~same(yours, engine))[0])
        found = asked(name, each.code, state)
        assert not found.passed
        assert found.remark == each.remark
        assert found.first is not None
        assert (found.first.label, found.first.completion, found.first.token) == (
            places[first].label, places[first].completion, places[first].token
        )  # fmt: skip


def _mean_over_rows(batch: Material) -> np.ndarray:
    rewards = batch.rewards.reshape(16, 8)
    centred = rewards - rewards.mean(1, keepdims=True)
    return (centred / (np.sqrt((centred**2).sum(1, keepdims=True) / 7) + 1e-4)).ravel()


def _reinforce(batch: Material) -> np.ndarray:
    advantages = (batch.rewards - batch.rewards.mean())[:, None] * batch.mask
    loss = -(advantages * batch.old_logprobs).sum() / len(batch.mask)
    return np.append(advantages[batch.mask] * batch.mask.sum() / len(batch.mask), loss)


def _clip(batch: Material) -> np.ndarray:
    ratio, a = np.exp(batch.logprobs - batch.old_logprobs)[batch.mask], batch.advantages[batch.mask]
    return -np.where(a > 0, np.minimum(ratio, 1.2), np.maximum(ratio, 0.8)) * a


def _k3(batch: Material) -> np.ndarray:
    x = (batch.ref_logprobs - batch.old_logprobs)[batch.mask]
    return np.exp(x) - x - 1


def _dpo(batch: Material) -> np.ndarray:
    gain = ((batch.logprobs - batch.ref_logprobs) * batch.mask).sum(1)
    return np.log1p(np.exp(-batch.settings.beta * (gain[batch.pairs[0]] - gain[batch.pairs[1]])))


WRITTEN_OUT: dict[str, Callable[[Material], np.ndarray]] = {
    "reward": lambda batch: np.array([float(re.findall(r"\d+", text)[-1:] == ["4"]) for text in batch.texts]),
    "reinforce": _reinforce,
    "baseline": lambda batch: batch.rewards - batch.rewards.sum() / 16,
    "advantage": _mean_over_rows,
    "returns": lambda batch: np.array([1 + 0.9 * 2 + 0.81 * 3, 2 + 0.9 * 3, 3.0]),
    "values": lambda batch: np.array([0.99 ** (k - 1) - 0.01 * (1 - 0.99 ** (k - 1)) / 0.01
                                      for k in (6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1)]),
    "clip": _clip,
    "kl": _k3,
    "dpo": _dpo,
}  # fmt: skip
"""The engine's numbers of a batch as the papers have them, written out in numpy."""


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_what_lines_are_compared_with_is_what_the_papers_say(name: str, states: Callable[[str, int], State]) -> None:
    batch, check = material(states(name, 0)), CHECKS[name]
    np.testing.assert_allclose(_engine_numbers(check, check.cases(batch)), WRITTEN_OUT[name](batch), atol=1e-6)


@pytest.mark.parametrize("name", ["baseline", "advantage", "returns", "gae", "clip"])
def test_what_lines_are_compared_with_is_what_the_run_recorded(name: str, states: Callable[[str, int], State]) -> None:
    state, check = states(name, 0), CHECKS[name]
    batch = state.batch
    assert batch is not None
    mask = batch.mask
    found = _engine_numbers(check, check.cases(material(state)))
    if name in ("baseline", "advantage"):
        found = np.repeat(found, mask.sum(1).numpy())
    recorded = {"returns": batch.returns, "clip": None}.get(name, batch.advantages)
    if name == "gae":  # before they are whitened, if they are
        recorded = batch.returns - batch.values
    if recorded is not None:
        np.testing.assert_allclose(found, recorded[mask].numpy(), atol=1e-4)


OTHERWISE = [
    pytest.param(each["exercise"], each["code"], each["which"], id=f"{each['exercise']}-{each['which']}")
    for each in yaml.safe_load(Path(__file__).with_name("wrong_tries.yaml").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "code", "which"), OTHERWISE)
def test_the_same_mistake_in_other_words_gets_the_same_remark(
    name: str, code: str, which: int, seed: int, states: Callable[[str, int], State]
) -> None:
    found = asked(name, code, states(name, seed))
    assert (found.error, found.remark) == ("", exercise_called(name).wrong[which].remark)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def advantages(rewards):\n    m = sum(rewards) / len(rewards)\n    return [2 * (r - m) for r in rewards]",
         "Every number is 2 times the engine's."),
        ("def advantages(rewards):\n    return [0 for r in rewards]", "All of your numbers are 0."),
        ("def advantages(rewards):\n    return [float('nan') for r in rewards]", "Some of your numbers are not finite"),
    ],
)  # fmt: skip
def test_a_mistake_that_nobody_has_foreseen_is_described(
    code: str, words: str, states: Callable[[str, int], State]
) -> None:
    found = asked("baseline", code, states("baseline", 0))
    assert found.first is not None
    assert (found.first.label, found.first.completion) == ("answer 1", 0)
    assert found.remark.startswith(words)


@pytest.mark.parametrize(
    ("body", "words", "line"),
    [
        ("    return rewards +", "SyntaxError", 2),
        ("    x = 1\n    return nothing", "NameError", 3),
        ("    ...", "nothing yet", 0),
        ("    return 1", "16 numbers are needed", 0),
        ("    return [1, 2]", "2 numbers; 16 numbers are needed", 0),
        ("    return 'many'", "no plain numbers", 0),
        ("    raise SystemExit(3)", "SystemExit", 2),
        ("    raise KeyboardInterrupt", "KeyboardInterrupt", 2),
        ("    import os; os._exit(1)", "os._exit(1)", 2),
        ("    return advantages(rewards)", "RecursionError", 2),
        ("    return [10 ** 400] * 16", "OverflowError", 0),
        ("    while True:\n        pass", "takes more than 0.2 s; does a loop never end?", 0),
        ("    while 1:\n        try:\n            abs(1)\n        except:\n            pass", "takes more than", 0),
    ],
)  # fmt: skip
def test_lines_that_fail_cost_one_line(
    body: str, words: str, line: int, states: Callable[[str, int], State], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlplay.engine.try_code.SECONDS", 0.2)
    state = states("baseline", 0)
    found = asked("baseline", f"def advantages(rewards):\n{body}", state)
    assert words in found.error
    assert "\n" not in found.error
    assert found.line == line
    assert not found.passed
    assert asked("baseline", exercise_called("baseline").solution, state).passed


def test_lines_change_nothing(states: Callable[[str, int], State]) -> None:
    state = states("reinforce", 0)
    weights = {name: each.clone() for name, each in state.parameters.items()}
    before = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    code = (
        "import random\ndef loss(logprobs, rewards, mask):\n"
        "    torch.manual_seed(1), random.random(), np.random.rand(), torch.set_grad_enabled(False)\n"
        "    torch.set_default_device('meta')\n"
        "    rewards.zero_(), mask.zero_()\n    return logprobs.sum()"
    )
    asked("reinforce", code, state)
    assert asked("reinforce", exercise_called("reinforce").solution, state).passed
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), repr(np.random.get_state())) == before[1:]
    assert torch.is_grad_enabled()
    assert torch.get_default_device().type == "cpu"
    assert all(torch.equal(each, weights[name]) for name, each in state.parameters.items())


def test_the_loss_is_no_token(states: Callable[[str, int], State]) -> None:
    state = states("reinforce", 0)
    assert asked("reinforce", exercise_called("reinforce").solution, state).compared == material(state).mask.sum()


def test_what_lines_print_is_kept(states: Callable[[str, int], State]) -> None:
    code = "def advantages(rewards):\n    print('length', len(rewards))\n    return rewards[5]"
    assert asked("baseline", code, states("baseline", 0)).printed == "length 16"


def test_a_run_without_a_batch_says_so(start: Callable[..., tuple[Driver, list[Any]]]) -> None:
    driver, _ = start()
    with pytest.raises(ValueError, match="press u"):
        next(driver.answers(TryCode("baseline", "", 0), lambda: False))
    driver.advance("phase", 1, lambda: False)
    with pytest.raises(ValueError, match="no rewards yet"):
        next(driver.answers(TryCode("baseline", "", 0), lambda: False))
    with pytest.raises(ValueError, match="unknown exercise"):
        next(driver.answers(TryCode("basline", "", 0), lambda: False))
    driver.close()


def test_returns_count_the_kl_that_the_rewards_include(start: Callable[..., tuple[Driver, list[AnyRecord]]]) -> None:
    driver, records = start(beta=0.3, kl_placement="reward", returns="to_go", learning_rate=1e-2)
    driver.advance("update", 2, lambda: False)
    tried = try_code(TryCode("returns", exercise_called("returns").solution), driver._state)
    credited = next(each for each in reversed(records) if isinstance(each, Credited))
    assert credited.returns is not None
    assert tried.passed
    assert [row.engine for row in tried.rows] == pytest.approx(credited.returns[: len(tried.rows)], rel=1e-5)
    driver.close()
