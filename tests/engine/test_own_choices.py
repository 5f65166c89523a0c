"""A surrogate and an advantage of the user's own: trained, drawn, explained, mended while the run waits."""

from __future__ import annotations

import gc
import textwrap
import weakref
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
from rlplay.algorithms.own_choices import allow, allow_all
from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import Settings, row
from rlplay.containment import OwnError
from rlplay.engine.driver import Driver
from rlplay.engine.objective import Inputs
from rlplay.engine.objective import objective as loss_of
from rlplay.engine.state import Halt
from rlplay.scenario.loader import load
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.share import Shared, ShareError, shared_in
from rlplay.trace.records import AnyRecord, Stepped, spans
from rlplay.trace.runfile import RunWriter
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.formula import surrogate
from rlplay.ui.formula.loss import objective
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.session.sources import ReplaySource
from tests.engine.conftest import SMALL
from tests.numbers import numbers_of, update_of
from tests.recorded import SETTINGS as SETTINGS_RECORDED
from tests.recorded import synthetic_started, synthetic_update
from tests.ui.stage import pressed, settled

pytestmark = pytest.mark.usefixtures("trusts_all")

SETTINGS_OF_A_RUN = msgspec.to_builtins(SETTINGS_RECORDED)
Start = Callable[..., tuple[Driver, list[AnyRecord]]]
SOFT = """
    def soft_clip(xp, ratio, advantages, epsilon):
        '''A clip without a corner.'''
        return -epsilon * xp.tanh((ratio - 1) / epsilon) * advantages

    def hard(xp, ratio, advantages):
        return -xp.minimum(ratio, 1.01) * advantages

    def doubled(xp, outcomes, group):
        '''Twice the distance from the mean of the group.'''
        return 2 * (outcomes - xp.group_mean(outcomes, group))[:, None]
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Writes my.py; gives what its functions are called by."""

    def write(source: str = SOFT) -> str:
        (tmp_path / "my.py").write_text(textwrap.dedent(source))
        return f"{tmp_path / 'my.py'}:"

    return write


def trained(start: Start, **given: Any) -> tuple[Update, Settings]:
    """An update of four optimizer steps, and the settings it was made with."""
    changed = {"num_iterations": 4, "learning_rate": 2e-2, **given}
    driver, records = start(**changed)
    driver.advance("update", 1, lambda: False)
    driver.close()
    return update_of(records), resolve(SMALL | changed)


def test_an_own_surrogate_is_trained_by_its_formula_and_shown_by_it(start: Start, file: Callable[[str], str]) -> None:
    update, s = trained(start, surrogate=file(SOFT) + "soft_clip")
    step = update.steps[-1]
    total = 0.0
    for token in spans(update.sampled.offsets, step.rows):
        n = numbers_of(update, int(token))
        by_hand = -s.epsilon * np.tanh((n.ratio - 1) / s.epsilon) * n.advantage
        slope = -(1 - np.tanh((n.ratio - 1) / s.epsilon) ** 2) * n.advantage * n.ratio
        assert surrogate.value(s, n) == pytest.approx(by_hand, abs=1e-6)
        assert n.dloss_dlogp == pytest.approx(n.weight * slope, abs=1e-6)
        total += n.weight * surrogate.value(s, n)
    assert total == pytest.approx(step.metrics["policy_loss"], abs=2e-6)
    assert terms(s)["S"] == "−0.2·tanh((w − 1)/0.2)·A"
    lines = ["".join(text for text, _ in line) for line in objective(s, numbers_of(update, 0))]
    assert "S = −0.2·tanh((w − 1)/0.2)·A" in lines
    assert row(s, "surrogate").about == "A clip without a corner."


def test_an_own_surrogate_that_was_chosen_on_the_way_is_trained_on_when_the_run_is_resumed(
    start: Start, file: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, _ = start()
    driver.set({"surrogate": file(SOFT) + "soft_clip"})
    driver.advance("update", 1, lambda: False)
    driver.close()
    monkeypatch.setattr(own, "_named", {})  # as in another process
    resumed, records = start(resume=True)
    resumed.advance("update", 1, lambda: False)
    resumed.close()
    step = [record for record in records if isinstance(record, Stepped)][-1]
    assert (step.update, bool(step.dloss_dlogp.any())) == (2, True)


def test_where_an_own_surrogate_is_flat_the_token_counts_as_clipped(start: Start, file: Callable[[str], str]) -> None:
    update, s = trained(start, surrogate=file(SOFT) + "hard")
    states, ratios = update.latest_step("clip_state"), update.latest_step("importance_ratio")
    advantages, gradient = update.credited.advantages, update.latest_step("dloss_dlogp")
    flat = (ratios > 1.01) & (advantages != 0)
    assert flat.any()
    np.testing.assert_array_equal(states == 1, flat)
    assert (gradient[flat] == 0).all()
    told = surrogate.why_clipped(s, numbers_of(update, int(np.flatnonzero(flat)[0])))
    assert told[0].startswith("▲ clipped")


def test_a_flat_token_is_above_or_below_the_range(start: Start, file: Callable[[str], str]) -> None:
    name = file("""
        def band(xp, ratio, advantages):
            return -xp.clip(ratio, low=0.99, high=1.01) * advantages
    """)
    update, _ = trained(start, surrogate=name + "band")
    seen: set[int] = set()
    for step in update.steps:
        assert step.clip_state is not None
        side = np.select([step.importance_ratio > 1.01, step.importance_ratio < 0.99], [1, -1])
        pulled = update.credited.advantages[spans(update.sampled.offsets, step.rows)] != 0
        np.testing.assert_array_equal(step.clip_state, side * pulled)
        seen |= set(step.clip_state.tolist())
    assert seen == {-1, 0, 1}


def test_a_flat_token_at_a_ratio_of_1_counts_as_above(file: Callable[[str], str]) -> None:
    s = resolve({"surrogate": file("def flat(xp, ratio, advantages):\n    return 0 * ratio * advantages\n") + "flat"})
    allow_all(s)
    old, change = torch.full((1, 4), -2.0), torch.tensor([[0.0, 0.1, -0.1, 0.0]])
    inputs = Inputs((old + change).requires_grad_(), old, old, torch.tensor([[1.0, -1.0, 1.0, 0.0]]))
    assert loss_of(inputs, torch.ones(1, 4), s, beta=0.0).clip_state.tolist() == [[1, 1, -1, 0]]


def test_what_is_outside_the_loss_adds_nothing_to_an_own_sum_over_the_answer(file: Callable[[str], str]) -> None:
    name = file("""
        def whole(xp, log_ratio, ratio, advantages):
            return -(log_ratio.sum(-1) + xp.log(ratio).sum(-1))[:, None] * advantages
    """)
    s = resolve({"surrogate": name + "whole"})
    allow_all(s)
    old, now = torch.tensor([[-1.0, -2.0, -3.0]]), torch.tensor([[-0.5, -1.0, -9.0]])
    found = loss_of(Inputs(now, old, old, torch.ones(1, 3)), torch.tensor([[0.5, 0.5, 0.0]]), s, beta=0.0)
    assert found.policy_loss.item() == pytest.approx(-(0.5 + 1.0) * 2)
    assert found.ratio[0, 2] == 1


def test_an_own_advantage_is_what_every_token_gets(start: Start, file: Callable[[str], str]) -> None:
    update, s = trained(start, scale_rewards=file(SOFT) + "doubled")
    rewards, group = update.scored.rewards, update.sampled.group
    wanted = [2 * (r - rewards[group == g].mean()) for r, g in zip(rewards, group, strict=True)]
    starts = update.sampled.offsets[:-1]
    np.testing.assert_allclose(update.credited.advantages[starts], wanted, atol=1e-6)
    assert terms(s)["A"] == "2·(R − (mean of R over the group))"


def test_a_mistake_pauses_the_run_with_its_line_and_is_mended_while_it_waits(
    start: Start, file: Callable[[str], str]
) -> None:
    driver, records = start(surrogate=file(SOFT) + "soft_clip")
    file("""
        def soft_clip(xp, ratio, advantages):
            return -ratio * nothing
    """)
    with pytest.raises(Halt, match=r"my\.py:3: NameError: name 'nothing' is not defined; fix it, then go on"):
        driver.advance("update", 1, lambda: False)
    file("""
        def soft_clip(xp, ratio, advantages):
            return -3 * ratio * advantages
    """)
    driver.advance("update", 1, lambda: False)
    driver.close()
    step = next(record for record in records if type(record).__name__ == "Stepped")
    credited = next(record for record in records if type(record).__name__ == "Credited")
    np.testing.assert_allclose(step.dloss_dlogp, -3 * step.weights * credited.advantages, atol=1e-6)


def test_an_edited_function_replaces_its_older_versions(file: Callable[[str], str]) -> None:
    s = Settings(surrogate=file("def f(xp, ratio):\n    return 0 * ratio\n") + "f")
    allow_all(s)
    first = weakref.ref(row(s, "surrogate").compute)
    assert row(s, "surrogate").compute is first(), "one row for one version"
    file("def f(xp, ratio):\n    return -10 * ratio\n")
    assert row(s, "surrogate").compute(None, 1.0) == -10
    gc.collect()
    assert first() is None


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f(xp, rato): return rato", r"takes 'rato', which is neither a quantity nor a setting; did you mean 'rat"),
        ("def f(ratio): return ratio", "f must take xp, the array namespace, as its first argument"),
        ("import torch\ndef f(xp, ratio): return ratio", "imports torch; write the function with xp"),
        ("def f(xp, ratio): return ratio[:, :2]", r"gives an array of shape \[2, 2\] for tokens of \[2, 3\]"),
        ("def f(xp, ratio)\n", r"my\.py:1: SyntaxError"),
        ("def f(xp, ratio): return 1 / 0", r"my\.py:1: ZeroDivisionError"),
        ("x = 1", "no function 'f'; it has none"),
        ("def f(xp, ratio): ratio + 1", "f must return an array, a number for each token; it gave nothing: return"),
        ("def f(xp, ratio): return 0.0", "f must return an array, a number for each token; it gave float"),
        ("def f(xp, ratio): return [1.0]", "f must return an array, a number for each token; it gave list"),
        (None, "there is no file"),
    ],
)
def test_what_cannot_be_a_surrogate_is_refused_in_a_line(
    source: str | None, says: str, tmp_path: Path, file: Callable[[str], str]
) -> None:
    name = str(tmp_path / "my.py:") if source is None else file(source)
    with pytest.raises(OwnError, match=says) as refused:
        allow("surrogate", f"{name}f", Settings())
    assert "\n" not in str(refused.value)


def test_a_condition_on_arrays_is_refused_with_the_way_to_write_it(file: Callable[[str], str]) -> None:
    name = file("""
        def f(xp, ratio, advantages):
            return -ratio if ratio > 1 else advantages
    """)
    with pytest.raises(OwnError, match=r"my\.py:3: ValueError"):
        allow("surrogate", f"{name}f", Settings())


def test_a_recording_that_names_a_file_does_not_run_it(tmp_path: Path, file: Callable[[str], str]) -> None:
    name = file("raise SystemExit('run')") + "f"
    s = decoded({"surrogate": name})
    assert row(s, "surrogate").compute is None
    assert name in terms(s)["S"]
    assert own.is_own(s.surrogate)


def test_one_row_of_yaml_makes_an_algorithm(tmp_path: Path, file: Callable[[str], str]) -> None:
    file(SOFT)
    (tmp_path / "soft.yaml").write_text(
        "title: Soft\nafter: dapo\nsettings: {surrogate: my.py:soft_clip, epsilon: 0.1}\n"
    )
    s = resolve({"algorithm": str(tmp_path / "soft.yaml")})
    allow_all(s)
    assert (s.epsilon, s.dynamic_sampling) == (0.1, True)
    assert terms(s)["S"] == "−0.1·tanh((w − 1)/0.1)·A"
    (tmp_path / "soft.yaml").write_text("title: Soft\nafter: dapoo\nsettings: {}\n")
    with pytest.raises(OwnError, match="no such algorithm; did you mean 'dapo'"):
        resolve({"algorithm": str(tmp_path / "soft.yaml")})


def test_a_share_code_carries_no_file_and_obeys_none(file: Callable[[str], str]) -> None:
    name = file(SOFT) + "soft_clip"
    wanted = resolve({**load("learn-to-think").settings, "surrogate": name, "epsilon": 0.3})
    code, left_out = Reproduction(load("learn-to-think")).code(wanted)
    assert left_out == "Not in the code: your surrogate."
    assert shared_in(code).settings == {"epsilon": 0.3}
    poisoned = Shared("learn-to-think", settings={"surrogate": file("raise SystemExit('run')") + "f"})
    with pytest.raises(ShareError, match="names a file"):
        poisoned.scenario_with()


def test_a_preview_of_an_own_surrogate_is_what_it_would_train(start: Start, file: Callable[[str], str]) -> None:
    driver, records = start(num_iterations=1)
    driver.advance("update", 1, lambda: False)
    name = file("""
        def doubled(xp, ratio, advantages):
            return -2 * ratio * advantages
    """)
    imagined = driver.what_if({"surrogate": name + "doubled"})
    driver.close()
    trained_step = next(record for record in records if type(record).__name__ == "Stepped")
    assert np.abs(trained_step.dloss_dlogp).max() > 0
    np.testing.assert_allclose(imagined.after[0].dloss_dlogp, 2 * imagined.before[0].dloss_dlogp, atol=1e-7)


EVIL = "import pathlib\npathlib.Path({mark!r}).touch()\n\n\ndef f(xp, ratio):\n    return ratio\n"


@pytest.fixture
def trap(tmp_path: Path) -> tuple[str, Path]:
    """A function whose file leaves a mark when it is run, and the mark."""
    mark = tmp_path / "it-ran"
    (tmp_path / "evil.py").write_text(EVIL.format(mark=str(mark)))
    return f"{tmp_path / 'evil.py'}:f", mark


async def test_looking_at_a_recording_runs_nothing_that_it_names(tmp_path: Path, trap: tuple[str, Path]) -> None:
    name, mark = trap
    scenario = tmp_path / "theirs.yaml"
    scenario.write_text(f"title: T\nquestion: Q?\ntask: arithmetic\nsettings: {{surrogate: '{name}'}}\n")
    (tmp_path / "theirs.algorithm.yaml").write_text(f"title: T\nsettings: {{surrogate: '{name}'}}\n")
    settings = {**SETTINGS_OF_A_RUN, "surrogate": name, "algorithm": str(tmp_path / "theirs.algorithm.yaml")}
    text = f"name: theirs\ntitle: T\nquestion: Q?\ntask: arithmetic\norigin: {scenario}\n"
    text += f"settings: {{surrogate: '{name}'}}\n"
    writer = RunWriter.create(
        tmp_path / "a.rlplay",
        msgspec.structs.replace(synthetic_started(), settings=settings, scenario_text=text),
    )
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    app = RlplayApp(ReplaySource(tmp_path / "a.rlplay"))
    async with app.run_test(size=(120, 35)) as pilot:
        await settled(pilot)
        await pressed(pilot, "down", "right")
        await app.play.perform("knobs", "surrogate")
        await settled(pilot)
        assert isinstance(app.screen, KnobsScreen)
        await pressed(pilot, "down", "escape", "g")
    assert not mark.exists()


@pytest.mark.parametrize("key", ["surrogate", " surrogate", "surrogate ", "scale-rewards", "algorithm ", "surrogate=x"])
def test_no_spelling_of_a_setting_in_a_share_code_runs_a_file(key: str, tmp_path: Path, trap: tuple[str, Path]) -> None:
    name, mark = trap
    (tmp_path / "evil.yaml").write_text(f"title: T\nsettings: {{surrogate: '{name}'}}\n")
    value = str(tmp_path / "evil.yaml") if "algorithm" in key else name
    with pytest.raises(ShareError):
        Shared("learn-to-think", settings={key: value}).scenario_with()
    assert not mark.exists()
