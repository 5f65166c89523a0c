"""Trainings beside other callbacks, subclasses and copies: the same losses, and the right record."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch
from transformers import PreTrainedModel, TrainerCallback

from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.trainer_kind import recognise
from rlplay.trace.records import AnyRecord, Evaluated, Finished, Notice, Sampled, Scored, Stepped
from tests.record.trainers import TRAINERS
from tests.record.watched import Run, hanging


class At(TrainerCallback):  # type: ignore[misc]
    """Does something at an event."""

    def __init__(self, event: str, work: Callable[..., Any]) -> None:
        def told(_args: Any, state: Any, control: Any, **given: Any) -> None:
            work(state, control, **given)

        setattr(self, event, told)


def records_of(folder: Path) -> list[AnyRecord]:
    return Recording(folder / "rec").fresh()


def of(records: list[AnyRecord], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def both(name: str, folder: Path, change: Callable[[Run], object] = lambda run: None, trainings: int = 1) -> Run:
    """A training with the callback that has the losses of one without it, and leaves as much behind."""
    run, without = Run(name, folder / "with"), Run(name, folder / "without", callback=False)
    for each in (run, without):
        change(each)
        for _ in range(trainings):
            each.train()
    assert run.losses == without.losses
    assert hanging(run.trainer) == hanging(without.trainer)
    return run


@pytest.mark.parametrize("name", ["SFTTrainer", "DPOTrainer"])
def test_a_model_is_pickled_and_copied_while_it_trains(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        PreTrainedModel, "enable_input_require_grads", lambda _model: None
    )  # a hook that is not pickled
    kept: list[Any] = []

    def saves(run: Run) -> None:
        def save(*_: Any, model: Any, **__: Any) -> None:
            pickle.dumps(model)
            kept.append(copy.deepcopy(model))

        run.trainer.args.gradient_checkpointing = False
        run.trainer.model.gradient_checkpointing_disable()
        run.trainer.add_callback(At("on_step_end", save))

    both(name, tmp_path, saves)
    for model in kept:
        pickle.dumps(model)
        model(input_ids=torch.tensor([[1, 2]]))


def test_a_trainer_is_copied_with_a_callback_of_its_own(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path)
    run.train()
    for callback in (copy.deepcopy(run.callback), pickle.loads(pickle.dumps(run.callback))):
        assert isinstance(callback, RlplayCallback)
        assert callback.path == run.callback.path
    copied = copy.deepcopy(run.trainer)
    copied.train()
    assert len(of(Recording(tmp_path / "rec-2").fresh(), Finished)) == 3


def test_hooks_stay_out_of_a_model_that_is_compiled_whole(tmp_path: Path) -> None:
    def compiled(run: Run) -> None:
        run.trainer.args.gradient_checkpointing = False
        run.trainer.model.gradient_checkpointing_disable()
        run.trainer.model.compile(fullgraph=True, backend="aot_eager")

    both("RewardTrainer", tmp_path, compiled)
    records = records_of(tmp_path / "with")
    assert [len(of(records, kind)) for kind in (Stepped, Finished)] == [0, 3]
    assert "no hook is safe in this compiled model" in of(records, Notice)[0].text


def test_an_error_that_cannot_say_what_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Evil(Exception):
        def __str__(self) -> str:
            raise Evil

    class Column:
        def __str__(self) -> str:
            raise Evil

    def logs(run: Run) -> None:
        def reward(completions: list[str], log_extra: Any = None, **_: Any) -> list[float]:
            log_extra("x", [Column()] * len(completions))
            return [float(len(text)) for text in completions]

        run.trainer.reward_funcs = [reward]

    both("GRPOTrainer", tmp_path, logs)
    assert "answers and rewards are no longer recorded (Evil); the rest is recorded" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["GRPOTrainer", "SFTTrainer", "experimental.CPOTrainer"])
def test_another_callback_takes_the_log_away(name: str, tmp_path: Path) -> None:
    """One that evaluates at the end of a step does so: the evaluation is logged, and the step then is not."""

    def quiet(run: Run) -> None:
        run.trainer.add_callback(At("on_step_end", lambda _state, control, **_: setattr(control, "should_log", False)))

    both(name, tmp_path, quiet)
    records = records_of(tmp_path / "with")
    assert [record.update for record in of(records, Finished)] == [1, 2, 3]
    sizes = [len(record.group) for record in of(records, Sampled)]
    assert len(sizes) == 3
    assert len(set(sizes)) == 1


def test_an_evaluation_at_the_end_of_a_step_is_of_that_update(tmp_path: Path) -> None:
    def evaluates(run: Run) -> None:
        run.trainer.eval_dataset = run.trainer.train_dataset
        run.trainer.add_callback(At("on_step_end", lambda *_, **__: run.trainer.evaluate()))

    both("SFTTrainer", tmp_path, evaluates)
    records = records_of(tmp_path / "with")
    assert [type(record) for record in records if isinstance(record, Finished | Evaluated)] == [Finished, Evaluated] * 3
    assert [record.update for record in of(records, Evaluated)] == [1, 2, 3]


@pytest.mark.parametrize("name", ["GRPOTrainer", "SFTTrainer", "experimental.CPOTrainer"])
@pytest.mark.parametrize("event", ["on_step_end", "on_optimizer_step"])
def test_a_training_that_raised_takes_its_answers_along(name: str, event: str, tmp_path: Path) -> None:
    run = Run(name, tmp_path)
    raised: list[bool] = []

    def fails(*_: Any, **__: Any) -> None:
        if not raised:
            raised.append(True)
            raise ValueError("stop")

    run.trainer.add_callback(At(event, fails))
    with pytest.raises(ValueError, match="stop"):
        run.train()
    run.train()
    sizes = [len(record.group) for record in of(records_of(tmp_path), Sampled)]
    assert len(set(sizes)) == 1
    assert len(sizes) == len(of(records_of(tmp_path), Finished)) == 4


@pytest.mark.parametrize("name", ["GRPOTrainer", "SFTTrainer"])
def test_two_callbacks_make_two_recordings_and_leave_nothing(name: str, tmp_path: Path) -> None:
    both(name, tmp_path, lambda run: run.trainer.add_callback(_second(run, tmp_path)), trainings=2)
    for place in ("with/rec", "second"):
        records = Recording(tmp_path / place).fresh()
        assert [record.update for record in of(records, Stepped)] == [1, 2, 3, 4, 5, 6]


def _second(run: Run, folder: Path) -> TrainerCallback:
    recorded = run.callback in run.trainer.callback_handler.callbacks
    return RlplayCallback(folder / "second") if recorded else TrainerCallback()


def test_the_same_callback_twice_counts_each_step_once(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path)
    run.trainer.add_callback(run.callback)
    run.train()
    assert [record.update for record in of(records_of(tmp_path), Finished)] == [1, 2, 3]


def test_a_callback_that_is_removed_while_it_trains_leaves_nothing(tmp_path: Path) -> None:
    def removes(run: Run) -> None:
        run.trainer.add_callback(At("on_step_end", lambda *_, **__: run.trainer.remove_callback(RlplayCallback)))

    run = both("SFTTrainer", tmp_path, removes)
    assert run.trainer.state.global_step == 3
    assert [record.update for record in of(records_of(tmp_path / "with"), Finished)] == [1]


def test_a_loop_that_tells_nobody_of_its_optimizer_steps(tmp_path: Path) -> None:
    def silent(run: Run) -> None:
        run.trainer.callback_handler.on_optimizer_step = lambda _args, _state, control: control

    both("SFTTrainer", tmp_path, silent)
    assert [record.update for record in of(records_of(tmp_path / "with"), Finished)] == [1, 2, 3]


def test_the_callback_keeps_no_trainer_alive(tmp_path: Path) -> None:
    run = Run("SFTTrainer", tmp_path)
    run.train()
    callback, model = run.callback, weakref.ref(run.trainer.model)
    run.trainer.accelerator.free_memory()
    del run
    gc.collect()
    assert model() is None
    assert callback.path == tmp_path / "rec"


def test_rewards_of_one_name_are_not_mixed_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def twins(run: Run) -> None:
        run.trainer.reward_funcs = [lambda completions, **_: [1.0] * len(completions) for _ in range(2)]
        run.trainer.reward_processing_classes = [None, None]
        run.trainer.reward_weights = torch.ones(2)
        run.trainer.reward_func_names = ["<lambda>", "<lambda>"]

    both("GRPOTrainer", tmp_path, twins)
    assert all(record.parts == {} for record in of(records_of(tmp_path / "with"), Scored))
    assert "several reward functions have one name, so rewards are not recorded" in capfd.readouterr().err


def test_columns_of_any_shape_are_kept_or_shortened(tmp_path: Path) -> None:
    circular: list[Any] = []
    circular.append(circular)

    def logs(run: Run) -> None:
        def reward(completions: list[str], log_extra: Any = None, **_: Any) -> list[float]:
            log_extra("x", [circular, {"\ud800": 1}] * (len(completions) // 2))
            return [float(len(text)) for text in completions]

        run.trainer.reward_funcs = [reward]

    both("GRPOTrainer", tmp_path, logs)
    assert len(of(records_of(tmp_path / "with"), Sampled)) == 3


def test_a_loss_in_parts_loses_its_numbers_alone(tmp_path: Path) -> None:
    def chunked(run: Run) -> None:
        inner = run.trainer._get_per_token_logps_and_entropies

        def half(model: Any, ids: Any, mask: Any, *rest: Any, **options: Any) -> Any:
            parts = [inner(model, ids[i::2], mask[i::2], *rest, **options) for i in (0, 1)]
            found = [torch.stack(pair, dim=1).flatten(0, 1) for pair in zip(parts[0][:2], parts[1][:2], strict=True)]
            return (*found, *parts[0][2:])

        run.trainer._get_per_token_logps_and_entropies = functools.wraps(inner)(half)
        if run.callback in run.trainer.callback_handler.callbacks:  # the recorder sees the parts
            run.trainer._compute_loss = functools.partial(_in_halves, run.trainer._compute_loss, run)

    run = Run("GRPOTrainer", tmp_path)
    chunked(run)
    run.train()
    records = records_of(tmp_path)
    assert len(of(records, Sampled)) == len(of(records, Finished)) == 3
    assert all(np.isnan(step.logprobs).all() for step in of(records, Stepped))
    assert "it computes the loss of a batch in parts" in [n.text for n in of(records, Notice)][-1]


def _in_halves(inner: Any, run: Run, model: Any, inputs: dict[str, Any]) -> Any:
    count = len(inputs["completion_ids"])

    def part(rows: slice) -> dict[str, Any]:
        return {
            name: value[rows] if isinstance(value, torch.Tensor) and value.ndim and len(value) == count else value
            for name, value in inputs.items()
        }

    return (inner(model, part(slice(count // 2))) + inner(model, part(slice(count // 2, count)))) / 2


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("GRPOTrainer", "_prepare_inputs"), ("SFTTrainer", "_prepare_inputs"), ("SFTTrainer", "get_batch_samples"),
        ("GRPOTrainer", "compute_loss"),
    ],
)  # fmt: skip
def test_an_override_that_looks_like_its_parents_method_is_another_loss(kind: str, own: str, tmp_path: Path) -> None:
    trainer = TRAINERS[kind](tmp_path, [])
    parent = getattr(type(trainer), own)

    @functools.wraps(parent)
    def override(*values: Any, **options: Any) -> Any:
        return parent(*values, **options)

    trainer.__class__ = type("Mine", (type(trainer),), {own: override})
    assert not recognise(trainer).same_loss


def test_answers_that_a_subclass_sorts_anew_have_no_rewards_of_others(tmp_path: Path) -> None:
    def sorts(run: Run) -> None:
        inner = type(run.trainer)._generate_and_score_completions

        def turned(trainer: Any, inputs: Any) -> Any:
            out = inner(trainer, inputs)
            rows = len(out["completion_ids"])
            return {
                name: value.flip(0) if isinstance(value, torch.Tensor) and value.ndim and len(value) == rows else value
                for name, value in out.items()
            }

        run.trainer.__class__ = type("Turned", (type(run.trainer),), {"_generate_and_score_completions": turned})

    both("GRPOTrainer", tmp_path, sorts)
    records = records_of(tmp_path / "with")
    assert all(record.parts == {} for record in of(records, Scored))
    for record in of(records, Sampled):
        assert len(record.group) == 4
        assert all(prompt.strip() for prompt in record.prompts)
    assert all(np.isfinite(step.logprobs).all() for step in of(records, Stepped))
