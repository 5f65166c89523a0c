"""A trainer of TRL that is asked who taught a token: what it answers is exact, and its training is the same."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

from rlplay.link.messages import Advance, Pause
from rlplay.record.trl.online import Online
from rlplay.record.trl.teachers import taught, watch
from rlplay.record.trl.teachers.as_it_was import LentModel
from rlplay.record.trl.teachers.taught import UNRECORDED
from rlplay.record.trl.teachers.watch import MEANWHILE, TeacherWatch
from rlplay.trace.records import Sampled, Stepped
from rlplay.trace.teachers import Target, Taught, Teach
from tests.record.asked import Asking, Exact
from tests.record.fake_trainer import PATIENCE, until
from tests.record.screen import Screen
from tests.record.watched import Run, hanging

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "GRPO": ("GRPOTrainer", {}),
    "GRPO, four steps on two batches, everything in its loss": (
        "GRPOTrainer",
        {"num_iterations": 2, "steps_per_generation": 2, "beta": 0.1, "entropy_coef": 0.05, "weight_decay": 0.1,
         "max_grad_norm": 0.2, "max_steps": 12},
    ),
    "RLOO, micro-batches": ("RLOOTrainer", {"gradient_accumulation_steps": 2, "max_grad_norm": 0.05}),
    "DPO": ("DPOTrainer", {}),
    "KTO": ("KTOTrainer", {}),
    "SFT, passes in bfloat16": ("SFTTrainer", {"bf16": True}),
    "GRPO, passes in bfloat16": ("GRPOTrainer", {"bf16": True}),
    "SFT, micro-batches": ("SFTTrainer", {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 2}),
}  # fmt: skip


def asked(
    name: str, folder: Path, options: dict[str, Any], at: tuple[int, ...], interrupted: bool = False, **own: Any
) -> tuple[Run, Asking]:
    """A run that is asked after these optimizer steps; `own` are the callback's arguments."""
    run = made(name, folder, options, **own)
    asking = Asking(run, folder / "rec", at, interrupted)
    run.train()
    return run, asking


def made(name: str, folder: Path, options: dict[str, Any], **own: Any) -> Run:
    return Run(name, folder, options={"max_steps": 4} | options, **own)


@pytest.mark.parametrize("case", CASES)
def test_the_shares_add_up_to_the_step_and_the_training_is_the_same(case: str, tmp_path: Path) -> None:
    name, options = CASES[case]
    per_update = 4 if "num_iterations" in options else 1
    run, asking = asked(name, tmp_path / "with", options, (per_update, 2 * per_update))
    without = made(name, tmp_path / "without", options, callback=False)
    without.train()
    assert run.losses == without.losses
    assert (run.weights == without.weights).all()
    assert hanging(run.trainer).keys() == hanging(without.trainer).keys()
    first, answer = asking.answers
    assert first.refused.startswith("from now on the trainer keeps what this needs")
    assert not answer.refused
    assert answer.steps == per_update
    exact = Exact(run.trainer.model, answer.temperature)
    steps = asking.steps[per_update : 2 * per_update]
    expected = exact.first_order(answer.target, steps)
    assert answer.first_order == pytest.approx(expected, rel=1e-3)
    # Gradients in bfloat16 are coarse, so parts that cancel leave more of what is off.
    size = float(abs(answer.shares).sum()) if "bf16" in options else abs(expected)
    assert answer.predicted == pytest.approx(expected, abs=0.02 * size)
    target = answer.target
    for value, weights in ((answer.before, steps[0].before), (answer.after, steps[-1].after)):
        own, _ = exact.slopes(weights, target.prompt_ids, target.answer_ids, target.places)
        assert value == pytest.approx(own, abs=1e-5)
    (sampled,) = asking.recorded(Sampled)
    assert len(answer.shares) == len(sampled.token_ids)


@pytest.mark.parametrize(("name", "given"), [("GRPOTrainer", {}), ("GRPOTrainer", {"beta": 0.5}), ("DPOTrainer", {})])
def test_a_share_is_what_its_token_alone_does(name: str, given: dict[str, Any], tmp_path: Path) -> None:
    """With all that the loss pulls on it, a KL, too."""
    run, asking = asked(name, tmp_path, {"max_grad_norm": 0.01} | given, (1, 2))
    (sampled,), (stepped,) = asking.recorded(Sampled), asking.recorded(Stepped)
    answer, norm = asking.last, run.trainer.state.log_history[1]["grad_norm"]
    assert norm > 0.02, "the gradient was made shorter"
    ends = np.cumsum(np.diff(sampled.offsets)[stepped.rows])  # a step has the answers in an order of its own
    end = int(ends[list(stepped.rows).index(0)])
    pulls = stepped.dloss_dlogp[end - int(sampled.offsets[1]) : end].astype(np.float64)
    assert len(pulls) > 1
    exact = Exact(run.trainer.model, answer.temperature).shares(answer.target, asking.steps[1], pulls, 0.01 / norm)
    np.testing.assert_allclose(answer.shares[: len(pulls)], exact, rtol=0.005, atol=0.001 * abs(exact).max())


def test_only_recorded_answers_have_shares(tmp_path: Path) -> None:
    """The others' tokens are one number of the rest."""
    _, whole = asked("SFTTrainer", tmp_path / "whole", {}, (1, 2))
    _, some = asked("SFTTrainer", tmp_path / "some", {}, (1, 2), completions=2)
    assert whole.last.rest.keys() | {UNRECORDED} == some.last.rest.keys() | {UNRECORDED}
    assert 0 < len(some.last.shares) < len(whole.last.shares)
    np.testing.assert_array_equal(some.last.shares, whole.last.shares[: len(some.last.shares)])
    assert some.last.batch + some.last.rest[UNRECORDED] == pytest.approx(whole.last.batch, rel=1e-5)
    _, other = asked("SFTTrainer", tmp_path / "other", {}, (1, 3), every=2)
    assert other.last.predicted == pytest.approx(other.last.first_order, rel=0.02)


BREAKS = [
    (TeacherWatch, "step_begins"), (TeacherWatch, "ends"), (TeacherWatch, "_clipped"), (LentModel, "check"),
    (LentModel, "gradient"), (Online, "_batch"), (Online, "_keep"), (watch, "why_not"), (taught, "best_difference"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), BREAKS, ids=lambda case: getattr(case, "__name__", case))
def test_whatever_fails_the_training_is_the_same(
    owner: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare: Run
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(owner, name, broken)
    run, asking = asked("GRPOTrainer", tmp_path, {}, (1, 2))
    assert run.losses == bare.losses
    assert (run.weights == bare.weights).all()
    assert hanging(run.trainer).keys() == hanging(bare.trainer).keys()
    assert all(answer.refused for answer in asking.answers)
    assert all(module.training for module in run.trainer.model.modules())


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The training without the callback."""
    run = made("GRPOTrainer", tmp_path_factory.mktemp("bare"), {}, callback=False)
    run.train()
    return run


def test_a_question_in_the_way_of_another_is_given_up(tmp_path: Path, bare: Run) -> None:
    run, asking = asked("GRPOTrainer", tmp_path, {}, (1, 2), interrupted=True)
    assert [answer.refused for answer in asking.answers][1] == MEANWHILE
    assert run.losses == bare.losses


def test_a_screen_asks_over_the_wire(tmp_path: Path) -> None:
    run = made("SFTTrainer", tmp_path, {"max_steps": 5000, "logging_steps": 5000}, listen=True)
    training = threading.Thread(target=run.train, daemon=True)
    training.start()
    door = tmp_path / "rec" / "remote.json"
    until(lambda: door.exists() and door.read_bytes().endswith(b"}"))
    screen = Screen(tmp_path / "rec")
    screen.say(Pause())
    at = screen.status(running=False).update
    target = Target([2, 3], [4, 5], [0, 1])
    screen.say(Teach(target, at, at))
    assert "keeps what this needs" in screen.answer().refused
    screen.say(Advance("update"))
    screen.status(running=False, update=at + 1)
    screen.say(Teach(target, at + 1, at + 1))
    answer = screen.answer()
    assert isinstance(answer, Taught)
    assert answer.predicted == pytest.approx(answer.first_order, rel=0.02)
    for question, reason in (
        (Teach(target, at, at), f"only the newest update, {at + 1}, is kept"),
        (Teach(target, at + 1, at), "keeps no earlier batch"),
        (Teach(Target([2], [99], [0]), at + 1, at + 1), "outside the model's vocabulary"),
    ):
        screen.say(question)
        assert reason in screen.answer().refused
    teachers = run.callback._observed.teachers
    screen.socket.close()
    until(lambda: not teachers.keeps)
    run.trainer.control.should_training_stop = True
    training.join(PATIENCE)
    assert not training.is_alive()
