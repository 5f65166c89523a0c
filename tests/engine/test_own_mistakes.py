"""Mistakes in a user's function or its file: each is one line that says what, where and what to do."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from rlplay.algorithms import own_choices as own
from rlplay.algorithms.apply import resolve
from rlplay.algorithms.equations import terms
from rlplay.algorithms.named import preset
from rlplay.algorithms.own_choices import allow_all
from rlplay.algorithms.setting_values import check
from rlplay.algorithms.settings import Settings, row
from rlplay.cli import main as cli
from rlplay.containment import OwnError
from rlplay.engine.driver import Driver
from rlplay.engine.optimize import TrainedMinibatch, own_at_fault
from rlplay.engine.own_functions import allow_functions, check_finite
from rlplay.engine.state import Halt
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.loader import load
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.share import shared_in
from rlplay.trace.numbers import compact
from rlplay.trace.records import AnyRecord, Scored
from rlplay.trace.runfile import RunWriter
from rlplay.ui.app import RlplayApp
from rlplay.ui.formula import surrogate
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.formula.loss import objective
from rlplay.ui.knobs.draft import Draft
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import SETTINGS, synthetic_started, synthetic_update
from tests.ui.stage import settled

pytestmark = pytest.mark.usefixtures("trusts_all")

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
Write = Callable[[str], str]
FINE = """
    def f(xp, ratio, advantages):
        return -ratio * advantages
"""


@pytest.fixture
def file(tmp_path: Path) -> Write:
    """Writes my.py; gives what its function f is called by."""

    def write(source: str) -> str:
        (tmp_path / "my.py").write_text(textwrap.dedent(source))
        return f"{tmp_path / 'my.py'}:f"

    return write


def halted(start: Start, **given: Any) -> str:
    driver, _ = start(**given)
    with pytest.raises(Halt) as stopped:
        driver.advance("update", 1, lambda: False)
    driver.close()
    assert "\n" not in str(stopped.value)
    return str(stopped.value)


def test_a_result_that_is_not_finite_names_the_function_its_lines_and_a_token(start: Start, file: Write) -> None:
    name = file("""
        def f(xp, ratio, advantages):
            gap = ratio - 1
            return -advantages / (gap - gap)
    """)
    said = halted(start, surrogate=name)
    assert f"{name.removesuffix(':f')}:2-4: f gives " in said
    assert "for one with ratio 1, advantages " in said
    assert said.endswith("; fix it, then go on")
    assert "learning_rate" not in said


def test_a_gradient_that_is_not_finite_names_the_function(start: Start, file: Write) -> None:
    name = file("""
        def f(xp, ratio, advantages):
            return -xp.sqrt(xp.abs(ratio - ratio)) * advantages
    """)
    said = halted(start, surrogate=name)
    assert "my.py:2-3: f has a gradient that is not finite for " in said
    assert "The weights were not changed. Mend the function" in said


def test_an_advantage_that_is_not_finite_names_the_function(start: Start, file: Write) -> None:
    name = file("""
        def f(xp, returns, baseline):
            return (returns - baseline) / (returns - returns)
    """)
    driver, records = start(scale_rewards=name)
    with pytest.raises(Halt, match=r"my\.py:2-3: f gives ") as stopped:
        driver.advance("update", 1, lambda: False)
    driver.close()
    (scored,) = (r for r in records if isinstance(r, Scored))
    baseline = compact(float(scored.rewards[:4].mean()), 3)
    assert f"for one with returns {compact(float(scored.rewards[0]), 3)}, baseline {baseline}" in str(stopped.value)


def test_numbers_that_were_not_finite_before_it_are_not_the_functions_fault(start: Start, file: Write) -> None:
    name = file(FINE)
    settings = Settings(surrogate=name)
    allow_all(settings)
    ratio, mask = torch.tensor([[1.0, torch.nan], [1.0, torch.inf]]), torch.ones(2, 2, dtype=torch.bool)
    mask[1, 1] = False
    check_finite("surrogate", settings, -ratio, mask, {"ratio": ratio, "mask": mask, "epsilon": 0.2})
    found = torch.tensor([[-torch.inf, -torch.nan], [1.0, 1.0]])
    with pytest.raises(OwnError, match=r"f gives -inf for 1 of 4 tokens, first for one with ratio 1$"):
        check_finite("surrogate", settings, found, torch.ones_like(mask), {"ratio": ratio})


def test_a_gradient_is_the_functions_fault_only_if_all_else_is_finite(file: Write) -> None:
    own_one, fine = Settings(surrogate=file(FINE)), torch.zeros(1, 2)
    broken, whole = (
        torch.tensor([[0.0, torch.nan]]),
        TrainedMinibatch(torch.arange(1), fine, fine + 1, fine, {"loss": 0.5}),
    )
    assert own_at_fault(whole, own_one)
    assert not own_at_fault(whole, Settings())
    assert not own_at_fault(whole, msgspec.structs.replace(own_one, loss_type="sigmoid"))
    for part in ({"logprobs": broken}, {"ratio": broken}, {"kl": broken}, {"metrics": {"loss": float("inf")}}):
        assert not own_at_fault(dataclasses.replace(whole, **part), own_one)


@pytest.mark.parametrize("argument", ["ratio", "mask"])
def test_a_function_that_changes_its_arguments_is_refused(argument: str, file: Write) -> None:
    change = "ratio *= 2" if argument == "ratio" else "mask[:, 0] = False"
    name = file(f"def f(xp, ratio, mask):\n    {change}\n    return ratio\n")
    with pytest.raises(OwnError, match=rf"my\.py:1-3: f changes {argument} in place; compute a new array"):
        allow_all(Settings(surrogate=name))


@pytest.mark.parametrize(
    ("line", "kind"), [("np.tanh(ratio) * advantages", "RuntimeError"), ("ratio * xp.exp(0.5)", "TypeError")]
)
def test_what_works_in_numpy_alone_is_refused_with_its_line_before_it_trains(
    line: str, kind: str, file: Write, start: Start
) -> None:
    name = file(f"import numpy as np\ndef f(xp, ratio, advantages):\n    return {line}\n")
    allow_all(Settings(surrogate=name))
    with pytest.raises(OwnError, match=rf"my\.py:3: {kind}"):
        allow_functions(Settings(surrogate=name))
    driver, _ = start()
    with pytest.raises(OwnError, match=rf"my\.py:3: {kind}"):
        driver.set({"surrogate": name})
    driver.close()


def test_an_advantage_is_tried_as_it_is_computed(file: Write) -> None:
    name = file("def f(xp, outcomes, group):\n    return (outcomes - xp.group_mean(outcomes, group))[:, None]\n")
    settings = Settings(scale_rewards=name)
    allow_functions(settings)
    assert row(settings, "scale_rewards").compute is not None


def test_two_parts_of_one_name_are_refused(file: Write) -> None:
    name = file("""
        def f(xp, ratio, advantages):
            one, other = xp.let("d", ratio - 1), xp.let("d", ratio + 1)
            return one * other * advantages
    """)
    with pytest.raises(OwnError, match=r"my\.py:2-4: f: xp.let gives two different parts the name 'd'"):
        allow_all(Settings(surrogate=name))
    file("""
        def f(xp, ratio, advantages):
            return xp.let("d", ratio - 1) * xp.let("d", ratio - 1) * advantages
    """)
    allow_all(Settings(surrogate=name))
    assert terms(Settings(surrogate=name))["S"] == "d·d·A, d = w − 1"


@pytest.mark.parametrize(
    "broken",
    [
        "def f(xp, rato): return rato",
        "def f(xp, ratio): return None",
        "def f(xp, ratio): return [1.0]",
        "def f(xp, ratio): return ratio[:, :2]",
        "def f(xp, ratio):\n    ratio *= 2\n    return ratio",
    ],
)
def test_a_mistake_made_while_it_is_on_the_screen_is_shown_there(broken: str, file: Write) -> None:
    s = resolve({"surrogate": file(FINE)})
    allow_all(s)
    numbers = TokenNumbers(logprob=-0.4, advantage=1.0, ratio=1.1)
    assert surrogate.value(s, numbers) == pytest.approx(-1.1)
    file(broken)
    assert "my.py:1" in terms(s)["S"]
    assert surrogate.value(s, numbers) is None
    assert any("my.py:1" in text for line in objective(s, numbers) for text, _ in line)


def test_a_mistake_under_some_settings_is_none_under_others(file: Write) -> None:
    name = file(FINE)
    bounded, unbounded = Settings(surrogate=name, delta=2.0), Settings(surrogate=name)
    allow_all(unbounded)
    file("def f(xp, ratio, delta):\n    return -xp.minimum(ratio, delta + 0)\n")
    assert "my.py:2: TypeError" in terms(unbounded)["S"]
    assert terms(bounded)["S"] == "−min(w, 2)"


def test_a_function_may_count_on_rows_of_answers(file: Write) -> None:
    s = resolve({"surrogate": file("def f(xp, ratio):\n    return -ratio[:, :1] + 0 * ratio\n")})
    allow_all(s)
    values = np.array([-0.4, -0.5])
    answer = {"logprobs": values, "old_logprobs": values, "advantages": values, "ratio": np.array([1.5, 1.0])}
    numbers = TokenNumbers(logprob=-0.5, advantage=1.0, ratio=1.0, answer=answer | {"mask": values < 0}, place=1)
    assert surrogate.value(s, numbers) == -1.5


def test_the_users_home_is_expanded(file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file(FINE)
    (tmp_path / "soft.yaml").write_text("title: Soft\nsettings: {surrogate: ~/my.py:f}\n")
    assert check("surrogate", "~/my.py:f") == f"{tmp_path}/my.py:f"
    assert resolve({"algorithm": "~/soft.yaml"}).surrogate == f"{tmp_path}/my.py:f"
    assert preset("~/soft.yaml").title == "Soft"
    changed = with_changes(load("learn-to-think"), surrogate="~/my.py:f")
    assert changed.settings["surrogate"] == f"{tmp_path}/my.py:f"


def test_a_scripts_function_is_looked_for_beside_its_scenario(file: Write, tmp_path: Path) -> None:
    name = file(FINE)
    path = tmp_path / "mine.yaml"
    head = "title: T\nquestion: Q?\ntask: arithmetic\n"
    path.write_text(f"{head}script:\n- set: {{surrogate: my.py:f, beta: 0.1}}\n- update\n")
    assert load(path).script[0] == {"set": {"surrogate": name, "beta": 0.1}}


@pytest.mark.parametrize("gone", ["my.py", "soft.yaml"])
def test_resuming_without_a_file_of_the_users_says_which_is_missing(
    gone: str, start: Start, file: Write, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file(FINE)
    (tmp_path / "soft.yaml").write_text("title: Soft\nsettings: {surrogate: my.py:f}\n")
    driver, _ = start(algorithm=str(tmp_path / "soft.yaml"))
    driver.advance("update", 1, lambda: False)
    driver.close()
    (tmp_path / gone).unlink()
    monkeypatch.setattr(own, "_named", {})  # as in another process
    run = next(tmp_path.rglob("*.rlplay"))
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "--resume", str(run), "--trust"])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.count("\n") == 1
    assert str(tmp_path / gone) in said
    assert "put the file back" in said


async def test_the_knobs_of_a_run_whose_algorithm_is_gone(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.yaml")
    settings = {**msgspec.to_builtins(SETTINGS), "algorithm": gone, "surrogate": str(tmp_path / "gone.py:f")}
    writer = RunWriter.create(tmp_path / "a.rlplay", msgspec.structs.replace(synthetic_started(), settings=settings))
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    app = RlplayApp(ReplaySource(tmp_path / "a.rlplay"))
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await app.play.perform("knobs", "algorithm")
        await settled(pilot)
        assert isinstance(app.screen, KnobsScreen)
        assert "there is no such file" in app.screen._detail("algorithm").plain
        assert "gone.py:f" in app.screen._detail("surrogate").plain


async def test_applying_an_algorithm_whose_file_has_just_gone(tmp_path: Path) -> None:
    path, recorded = tmp_path / "soft.yaml", tmp_path / "a.rlplay"
    path.write_text("title: Soft\nsettings: {epsilon: 0.3}\n")
    writer = RunWriter.create(recorded, synthetic_started())
    writer.close()
    app = RlplayApp(ReplaySource(recorded))
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        screen = KnobsScreen(SETTINGS, load("learn-to-think"))
        await app.push_screen(screen)
        screen.draft.put("algorithm", str(path))
        path.unlink()
        screen.action_apply()
        await settled(pilot)
        assert app.screen is screen
        assert screen.refused.endswith("there is no such file; correct the path, or put the file back")


def test_resetting_the_algorithm_puts_back_all_that_it_set(file: Write, tmp_path: Path) -> None:
    file(FINE)
    (tmp_path / "soft.yaml").write_text("title: S\nsettings: {surrogate: my.py:f, learning_rate: 0.5, lam: 0.5}\n")
    began = resolve({"algorithm": "dapo", "learning_rate": 0.1, "temperature": 0.7})
    draft = Draft(began)
    draft.put("algorithm", str(tmp_path / "soft.yaml"))
    assert draft.value("learning_rate") == 0.5
    draft.put("algorithm", "ppo")
    draft.put("temperature", 0.9)
    draft.reset("algorithm")
    assert draft.differing() == {"temperature": 0.9}


def test_a_share_code_never_carries_the_algorithms_file(file: Write, tmp_path: Path) -> None:
    file(FINE)
    (tmp_path / "soft.yaml").write_text("title: S\nsettings: {surrogate: my.py:f}\n")
    scenario = with_changes(load("learn-to-think"), algorithm=str(tmp_path / "soft.yaml"))
    code, left_out = Reproduction(scenario).code(resolve(scenario.settings))
    assert left_out == "Not in the code: your algorithm, surrogate."
    assert shared_in(code).scenario_with().settings.get("algorithm", "grpo") == "grpo"
