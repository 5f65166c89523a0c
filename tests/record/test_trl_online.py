"""What is recorded of GRPOTrainer and RLOOTrainer is what they computed, to 1e-6."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import torch
from datasets import Dataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from rlplay.trace.over_steps import over_steps
from rlplay.trace.records import AnyRecord, Array, Credited, Finished, Sampled, Scored, Stepped
from tests.record import tiny
from tests.record.spied import Kept, Spy

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
TRAINERS = {"grpo": (GRPOTrainer, GRPOConfig), "rloo": (RLOOTrainer, RLOOConfig)}
BATCH = {"per_device_train_batch_size": 8, "num_generations": 4}
HALF = {"per_device_train_batch_size": 4, "num_generations": 4}
AGAIN = {"num_iterations": 2, "learning_rate": 0.02, "epsilon": 0.02, "beta": 0.1}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("grpo", BATCH),
    "gradient accumulation": ("grpo", HALF | {"gradient_accumulation_steps": 2}),
    "two iterations, KL, two steps per generation": ("grpo", HALF | AGAIN | {"steps_per_generation": 2}),
    "all at once": ("grpo", HALF | AGAIN | {"steps_per_generation": 4, "gradient_accumulation_steps": 2}),
    "several samplings in an update": ("grpo", HALF | {"steps_per_generation": 1, "gradient_accumulation_steps": 2}),
    "dapo": ("grpo", HALF | AGAIN | {"loss_type": "dapo", "gradient_accumulation_steps": 2, "steps_per_generation": 4}),
    "a ratio for each answer": ("grpo", BATCH | AGAIN | {"importance_sampling_level": "sequence"}),
    "truncated answers masked": (
        "grpo",
        BATCH | AGAIN | {"mask_truncated_completions": True, "max_completion_length": 12},
    ),
    "one log for three updates": ("grpo", BATCH | {"logging_steps": 3, "max_steps": 6}),
    "rloo": ("rloo", BATCH),
    "rloo, two iterations, KL": ("rloo", HALF | AGAIN | {"steps_per_generation": 2}),
}

QUARTER = {"per_device_train_batch_size": 2, "num_generations": 4}
SPLIT: dict[str, tuple[str, dict[str, Any]]] = {
    "groups in two processes": ("grpo", QUARTER | {"gradient_accumulation_steps": 2, "steps_per_generation": 1}),
    "dapo in two processes": ("grpo", QUARTER | AGAIN | {"loss_type": "dapo", "steps_per_generation": 2}),
    "rloo in two processes": ("rloo", QUARTER | AGAIN | {"gradient_accumulation_steps": 2}),
}


def prepared(kind: str, options: dict[str, Any], folder: Path) -> Any:
    """A trainer for a few steps, to be recorded in `folder`/rec."""
    trainer_class, config = TRAINERS[kind]
    shared = {
        "max_completion_length": 5, "max_steps": 4, "logging_steps": 1, "learning_rate": 0.01, "beta": 0.0,
        "lr_scheduler_type": "constant", "temperature": 1.3, "max_grad_norm": 1e9,
    }  # fmt: skip
    loss = {"loss_type": "grpo"} if kind == "grpo" else {}
    args = config(
        output_dir=str(folder), report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, seed=3,
        **(shared | loss | options),
    )  # fmt: skip
    model = tiny.model(folder / "model")
    return trainer_class(
        model=model, args=args, train_dataset=Dataset.from_list(tiny.PROMPTS),
        reward_funcs=[tiny.digits, tiny.length], processing_class=tiny.tokenizer(),
        callbacks=[RlplayCallback(folder / "rec", completions=10_000)],
    )  # fmt: skip


def trained(kind: str, options: dict[str, Any], folder: Path) -> tuple[Any, Spy]:
    """A recorded run, and what it computed."""
    trainer = prepared(kind, options, folder)
    spy = Spy(trainer)
    trainer.train()
    return trainer, spy


def _lengths(kept: Kept) -> Array:
    """The lengths of the answers; the mask is empty where one was left out of the loss."""
    mask, ids = kept["completion_mask"].numpy(), kept["completion_ids"].numpy()
    return np.array([m.sum() or np.flatnonzero(i != tiny.PAD)[-1] + 1 for m, i in zip(mask, ids, strict=True)])


def _flat(kept: list[Kept], name: str, left_out: float | None = None) -> Array:
    pieces = []
    for one in kept:
        values = one[name] if one[name].ndim == 2 else one[name][:, None].expand(one["completion_ids"].shape)
        for row, length, mask in zip(values.double().numpy(), _lengths(one), one["completion_mask"], strict=True):
            absent = left_out is not None and not mask.any()
            pieces.append(np.full(length, left_out) if absent else row[:length])
    return np.concatenate(pieces)


def _answers(values: Array, offsets: Array, rows: Array) -> Array:
    return np.concatenate([values[offsets[row] : offsets[row + 1]] for row in rows])


def _of(records: list[AnyRecord], update: int, kind: type) -> list[Any]:
    return [record for record in records if record.update == update and isinstance(record, kind)]


def compare(
    records: list[AnyRecord], spies: list[dict[str, list[Kept]]], logs: list[dict[str, float]], args: Any
) -> None:
    """All that was recorded with what the processes computed."""
    updates = max(record.update for record in records if isinstance(record, Finished))
    samplings, passes = (len(spies[0][name]) // updates for name in ("generations", "passes"))
    steps = passes // args.gradient_accumulation_steps
    for update in range(1, updates + 1):
        (sampled,), (scored,), (credited,) = (_of(records, update, kind) for kind in (Sampled, Scored, Credited))
        span = slice((update - 1) * samplings, update * samplings)
        made = [one for spy in spies for one in spy["generations"][span]]
        np.testing.assert_array_equal(sampled.token_ids, _flat(made, "completion_ids"))
        np.testing.assert_allclose(credited.advantages, _flat(made, "advantages"), **CLOSE)
        if "ref_per_token_logps" in made[0]:
            np.testing.assert_allclose(credited.ref_logprobs, _flat(made, "ref_per_token_logps", np.nan), **CLOSE)
        stepped = _of(records, update, Stepped)
        assert [s.step for s in stepped] == list(range(steps))
        for number, step in enumerate(stepped):
            first = (update - 1) * passes + number * args.gradient_accumulation_steps
            own = [one for spy in spies for one in spy["passes"][first : first + args.gradient_accumulation_steps]]
            _compare_step(sampled, step, own, len(spies), logs, args)
            if "reference" in own[0]:
                reference = _answers(credited.ref_logprobs, sampled.offsets, step.rows)
                np.testing.assert_allclose(reference, _flat(own, "reference"), **CLOSE)
        (finished,) = _of(records, update, Finished)
        assert finished.trainer_steps == ((update - 1) * steps + 1, update * steps)
        assert finished.metrics["completions/clipped_ratio"] == pytest.approx(sampled.truncated.mean())
        _compare_metrics(finished.metrics, logs[(update - 1) * steps : update * steps], args.logging_steps)
        first_passes = [one for spy in spies for one in spy["passes"][(update - 1) * passes : update * passes]]
        if len(spies) == 1:
            _compare_start(sampled, stepped, first_passes, made)
        if samplings == 1 == args.logging_steps:
            log = logs[(update - 1) * steps]
            for name in ("digits", "length"):
                assert log[f"rewards/{name}/mean"] == pytest.approx(np.nanmean(scored.parts[name]), abs=1e-6)
            assert log["reward"] == pytest.approx(np.mean(scored.rewards), abs=1e-6)
            assert log["reward"] == pytest.approx(np.mean(credited.group_mean), abs=1e-6)
            assert log["reward_std"] == pytest.approx(np.std(scored.rewards, ddof=1), abs=1e-6)
        if "old_logps" not in made[0]:
            mean, std = credited.group_mean[sampled.group], credited.group_std[sampled.group]
            each = np.repeat((scored.rewards - mean) / (std + 1e-4), np.diff(sampled.offsets))
            np.testing.assert_allclose(credited.advantages, each, rtol=1e-5, atol=2e-4)  # equal rewards


def _compare_step(
    sampled: Sampled, step: Stepped, own: list[Kept], processes: int, logs: list[dict[str, float]], args: Any
) -> None:
    np.testing.assert_array_equal(_answers(sampled.token_ids, sampled.offsets, step.rows), _flat(own, "completion_ids"))
    np.testing.assert_allclose(step.logprobs, _flat(own, "logprobs", np.nan), **CLOSE)
    np.testing.assert_allclose(step.dloss_dlogp, _flat(own, "gradient", 0.0) / processes, **CLOSE)
    inside = _flat(own, "completion_mask").astype(bool)
    np.testing.assert_allclose(step.importance_ratio[inside], _flat(own, "ratio")[inside], **CLOSE)
    np.testing.assert_array_equal(step.clip_state, _flat(own, "clipped"))
    assert step.tokens == sum(int(one["completion_mask"].sum()) for one in own)
    loss = sum(one["loss"] for one in own) / processes
    assert step.metrics["loss"] == pytest.approx(loss, rel=1e-6, abs=1e-6)
    log = logs[own[0]["step"]]
    if args.logging_steps == 1:
        assert log["loss"] == pytest.approx(loss, rel=1e-6, abs=1e-6)
    if args.gradient_accumulation_steps == processes == args.logging_steps == 1 and _by_token(args):
        for name in ("clip_ratio/region_mean", "clip_ratio/low_mean", "clip_ratio/high_mean"):
            assert step.metrics[name] == pytest.approx(log[name], abs=1e-6)


def _by_token(args: Any) -> bool:
    return getattr(args, "importance_sampling_level", "sequence_sum") == "token"


def _compare_start(sampled: Sampled, stepped: list[Stepped], own: list[Kept], made: list[Kept]) -> None:
    """Log-probs and entropy under the policy that sampled: before the first step; later it is another."""
    first: dict[int, list[Array]] = {}
    rows = [row for step in stepped for row in step.rows.tolist()]
    now = [step.step == 0 for step in stepped for _ in step.rows]
    passed = [
        [entropy[:length], logprobs[:length]] if mask.any() else [np.full(length, np.nan)] * 2
        for one in own
        for entropy, logprobs, length, mask in zip(
            one["entropy"].numpy(), one["logprobs"].numpy(), _lengths(one), one["completion_mask"], strict=True
        )
    ]
    for row, both, known in zip(rows, passed, now, strict=True):
        first.setdefault(row, both if known else [np.full_like(values, np.nan) for values in both])
    entropy, logprobs = (np.concatenate([first[row][i] for row in range(len(sampled.group))]) for i in (0, 1))
    np.testing.assert_allclose(sampled.entropy, entropy, **CLOSE)
    if "old_per_token_logps" in made[0]:
        logprobs = _flat(made, "old_per_token_logps", np.nan)
    if "old_logps" in made[0]:
        logprobs = torch.cat([one["old_logps"] for one in made]).numpy()
        old = np.add.reduceat(sampled.old_logprobs, sampled.offsets[:-1])
        np.testing.assert_allclose(old, logprobs, rtol=1e-6, atol=3e-6)  # a sum of up to 5 float32
    else:
        np.testing.assert_allclose(sampled.old_logprobs, logprobs, **CLOSE)


def _compare_metrics(found: dict[str, float], logs: list[dict[str, float]], every: int) -> None:
    if every > 1:
        return
    names = {name for log in logs for name in log} - {"step"}
    assert {name for name in found if not name.startswith("weights/")} == names
    for name in names:
        values = [log[name] for log in logs if name in log]
        expected, extreme = over_steps(name, values), max if "max" in name else min if "min" in name else None
        if extreme is not None:  # TRL takes the mean of the micro-batches' extremes
            expected = extreme([found[name], expected])
        assert found[name] == pytest.approx(expected, rel=1e-6, abs=1e-6), name


@pytest.mark.parametrize("case", CASES)
def test_the_recording_is_what_trl_computed(case: str, tmp_path: Path) -> None:
    kind, options = CASES[case]
    trainer, spy = trained(kind, options, tmp_path)
    records = Recording(tmp_path / "rec").fresh()
    logs = [log for log in trainer.state.log_history if "train_loss" not in log]
    every = int(trainer.args.logging_steps)
    compare(records, [vars(spy)], logs if every == 1 else [logs[i // every] for i in range(6)], trainer.args)
    clips = np.concatenate([record.clip_state for record in records if isinstance(record, Stepped)])
    assert clips.any() == ("epsilon" in options), "the case shows clipping"
    sampled = [record for record in records if isinstance(record, Sampled)]
    absent = np.concatenate([np.isnan(record.old_logprobs) for record in sampled])
    assert absent.any() == ("mask_truncated_completions" in options), "the case shows answers left out"
    assert not absent.all()


def test_the_recording_does_not_change_the_training(tmp_path: Path) -> None:
    weights = []
    for name, recorded in (("with", True), ("without", False)):
        trainer = prepared("grpo", HALF | AGAIN | {"steps_per_generation": 2}, tmp_path / name)
        if not recorded:
            trainer.remove_callback(RlplayCallback)
        trainer.train()
        weights.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
    assert torch.equal(*weights)


def test_an_update_that_the_end_cuts_short_is_recorded(tmp_path: Path) -> None:
    trained("grpo", BATCH | AGAIN | {"max_steps": 3}, tmp_path)
    records = Recording(tmp_path / "rec").fresh()
    assert [len(_of(records, update, Stepped)) for update in (1, 2)] == [2, 1]
    assert [record.update for record in records if isinstance(record, Finished)] == [1, 2]


def test_the_schedule_is_on_record(tmp_path: Path) -> None:
    trained("grpo", BATCH | {"max_steps": 1, "lr_scheduler_type": "cosine"}, tmp_path)
    assert Recording(tmp_path / "rec").started().settings["lr_scheduler_type"] == "cosine"
