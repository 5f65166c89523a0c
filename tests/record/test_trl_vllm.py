"""TRL's correction for vLLM: its own code path, with answers whose log-probabilities are made up like a sampler's."""

from __future__ import annotations

import functools
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
    from trl import GRPOConfig, GRPOTrainer

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.equations import terms
from rlplay.foreign.foreign_run import known_settings
from rlplay.foreign.recording import Recording
from rlplay.health.digest import digest
from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.trainer_kind import recognise
from rlplay.record.trl.trainer_options import settings_of
from rlplay.trace.records import LEFT_OUT, AnyRecord, CorrectionRule, Credited, Finished, Sampled, Stepped
from rlplay.trace.update import Update
from rlplay.ui.formula.loss import objective
from rlplay.ui.tokens.facts import facts_of
from tests.record import tiny

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
SETTINGS = apply_all(resolve({"algorithm": "grpo"}), {"beta": 0.1})
MODES: dict[str, tuple[dict[str, Any], CorrectionRule]] = {
    "TRL's default": ({}, CorrectionRule("sequence", "mask", None, 3.0)),
    "masked answers": (
        {"vllm_importance_sampling_mode": "sequence_mask", "vllm_importance_sampling_clip_max": 1.02},
        CorrectionRule("sequence", "mask", None, 1.02),
    ),
    "masked tokens": (
        {"vllm_importance_sampling_mode": "token_mask", "vllm_importance_sampling_clip_min": 0.9,
         "vllm_importance_sampling_clip_max": 1.1},
        CorrectionRule("token", "mask", 0.9, 1.1),
    ),
    "cut answers": (
        {"vllm_importance_sampling_mode": "sequence_truncate", "vllm_importance_sampling_clip_max": 1.05},
        CorrectionRule("sequence", "truncate", None, 1.05),
    ),
    "cut tokens": (
        {"vllm_importance_sampling_mode": "token_truncate", "vllm_importance_sampling_clip_min": 0.95,
         "vllm_importance_sampling_clip_max": 1.05},
        CorrectionRule("token", "truncate", 0.95, 1.05),
    ),
}  # fmt: skip


class Engine:
    """Samples for a trainer in vLLM's place; its log-probabilities are the model's, off by some noise."""

    def __init__(self, trainer: Any) -> None:
        self._trainer, self._random = trainer, np.random.default_rng(0)
        self.given: list[list[float | None]] = []

    def sync_weights(self) -> None:
        pass

    @torch.no_grad()
    def generate(self, prompts: list[list[int]], num_generations: int, **_: Any) -> tuple[Any, ...]:
        model, answers, all_logprobs = self._trainer.accelerator.unwrap_model(self._trainer.model), [], []
        for number, prompt in enumerate(prompts):
            row = torch.tensor([prompt])
            out = model.generate(row, max_new_tokens=5, do_sample=True, pad_token_id=tiny.PAD)
            answer = out[0, len(prompt) :].tolist()
            answer = answer[: answer.index(tiny.END) + 1] if tiny.END in answer else answer
            scores = model(input_ids=torch.tensor([prompt + answer])).logits[0, :-1].log_softmax(-1)
            own = scores[len(prompt) - 1 :].gather(-1, torch.tensor(answer)[:, None])[:, 0].numpy()
            logprobs: list[float | None] = (own + self._random.normal(0, 0.1, len(answer))).tolist()
            if number == 0:
                logprobs[0] = None  # what vLLM gives where it has computed NaN
            answers.append(answer)
            all_logprobs.append([[each] for each in logprobs])
            self.given.append(logprobs)
        return None, answers, all_logprobs, None


def prepared(options: dict[str, Any], folder: Path) -> Any:
    """A trainer that "uses vLLM", to be recorded."""
    args = GRPOConfig(
        output_dir=str(folder), report_to=[], use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True, seed=3,
        per_device_train_batch_size=8, num_generations=4, max_completion_length=5, max_steps=4, logging_steps=1,
        learning_rate=0.01, num_iterations=2, beta=0.1, loss_type="grpo", **options,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=tiny.model(folder / "model"), args=args, train_dataset=Dataset.from_list(tiny.PROMPTS),
        reward_funcs=[tiny.digits, tiny.length], processing_class=tiny.tokenizer(),
        callbacks=[RlplayCallback(folder / "rec", completions=100)],
    )  # fmt: skip
    trainer.use_vllm = args.use_vllm = True
    trainer.vllm_generation, trainer._last_loaded_step = Engine(trainer), 0
    return trainer


def trained(options: dict[str, Any], folder: Path) -> tuple[Any, list[dict[str, Any]]]:
    """The same after its training, and what it computed in each micro-batch."""
    trainer = prepared(options, folder)
    passes: list[dict[str, Any]] = []
    inner = trainer._get_per_token_logps_and_entropies

    @functools.wraps(inner)
    def watched(*values: Any, **options: Any) -> Any:
        found = inner(*values, **options)
        if torch.is_grad_enabled():
            found[0].retain_grad()
            passes.append({"logprobs": found[0]})
        return found

    trainer._get_per_token_logps_and_entropies = watched
    loss = trainer._compute_loss

    @functools.wraps(loss)
    def computed(model: Any, inputs: Any) -> Any:
        value = loss(model, inputs)
        passes[-1]["inputs"] = dict(inputs)
        return value

    trainer._compute_loss = computed
    trainer.train()
    return trainer, passes


def _of(records: list[AnyRecord], kind: type) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def _flat(values: torch.Tensor, inputs: dict[str, Any]) -> np.ndarray[Any, Any]:
    mask = inputs["completion_mask"].bool()
    return values.detach().expand(mask.shape)[mask].numpy()


@pytest.mark.parametrize("mode", MODES)
def test_the_correction_is_recorded_as_trained(mode: str, tmp_path: Path) -> None:
    options, rule = MODES[mode]
    trainer, passes = trained(options, tmp_path)
    reading = Recording(tmp_path / "rec")
    started = reading.started().settings
    assert started["algorithm"] == "grpo"
    assert started["importance_sampling_mode"] == f"{rule.level}_{rule.outside}"
    assert (started["importance_sampling_clip_min"], started["importance_sampling_clip_max"]) == (rule.low, rule.high)
    records = reading.fresh()
    given = np.array([np.nan if x is None else x for row in trainer.vllm_generation.given for x in row])
    sampled = _of(records, Sampled)
    np.testing.assert_allclose(np.concatenate([each.sampling_logprobs for each in sampled]), given, **CLOSE)
    assert np.isnan(sampled[0].sampling_logprobs[0])
    assert not np.isnan(np.concatenate([each.old_logprobs for each in sampled])).any()
    masked = 0
    for number, (step, one) in enumerate(zip(_of(records, Stepped), passes, strict=True)):
        credited, answers = _of(records, Credited)[number // 2], sampled[number // 2]
        assert credited.correction_rule == rule
        order = np.concatenate([np.arange(*answers.offsets[row : row + 2]) for row in step.rows])
        factor = _flat(one["inputs"]["importance_sampling_ratio"], one["inputs"])
        np.testing.assert_allclose(credited.correction[order], factor, **CLOSE)
        np.testing.assert_allclose(step.dloss_dlogp, _flat(one["logprobs"].grad, one["inputs"]), **CLOSE)
        assert [LEFT_OUT[int(x)] for x in step.left_out[factor == 0]] == [LEFT_OUT[4]] * int((factor == 0).sum())
        assert not step.left_out[factor != 0].any()
        masked += int((factor == 0).sum())
        _compare_formula(records, step, credited, order)
    assert (masked > 0) == (rule.outside == "mask" and rule.high != 3.0)
    logged = _of(records, Finished)[0].metrics
    assert logged["sampling/importance_sampling_ratio/max"] == pytest.approx(
        max(float(_flat(one["inputs"]["importance_sampling_ratio"], one["inputs"]).max()) for one in passes[:2])
    )


def _compare_formula(records: list[AnyRecord], step: Stepped, credited: Credited, order: Any) -> None:
    """The numbers of the screen's formula give autograd's derivative: w·(β·(K + 1 − exp(ℓ_ref − ℓ)) − c·A)/(N·n)."""
    update = Update(step.update)
    for record in records:
        if record.update == step.update and not (isinstance(record, Stepped) and record.step > step.step):
            update.add(record)
    sampled = update.sampled
    assert sampled is not None
    token = int(order[-1])
    answer = int(np.searchsorted(sampled.offsets, token, side="right")) - 1
    numbers = facts_of(update).answer(answer).numbers(token - int(sampled.offsets[answer]))
    assert numbers.correction == pytest.approx(float(credited.correction[token]))  # type: ignore[index]
    lines = ["".join(text for text, _ in line) for line in objective(SETTINGS, numbers)]
    assert any(line.startswith("c = ") for line in lines)
    assert any("c·S" in line for line in lines)
    assert any("the sampler's probability is too far" in line for line in lines) == (numbers.correction == 0)
    per_token = np.diff(sampled.offsets)[answer] * len(sampled.group)
    assert numbers.advantage is not None
    assert numbers.ratio is not None
    assert numbers.correction is not None
    assert credited.ref_logprobs is not None
    assert numbers.logprob is not None
    surrogate = 0.0 if numbers.clip_state else -numbers.ratio * numbers.advantage * numbers.correction
    away = credited.ref_logprobs[token] - numbers.logprob
    kl = np.exp(away) - away - 1
    pull = SETTINGS.beta * numbers.ratio * (kl + 1 - np.exp(away))
    assert numbers.dloss_dlogp == pytest.approx((surrogate + pull) / per_token, rel=1e-4, abs=1e-6)


def test_a_vespo_run_has_the_correction_in_its_formula(tmp_path: Path) -> None:
    trainer = prepared({}, tmp_path)
    trainer.args.loss_type, trainer.args.vllm_importance_sampling_mode = "vespo", "token_mask"
    found = terms(resolve(settings_of(trainer, recognise(trainer))))
    assert "+ log c over the answer" in found["S"]
    assert found["c"].startswith("0 if ρ > 3 else ρ")
    trainer.args.vllm_importance_sampling_correction = False
    plain = terms(resolve(settings_of(trainer, recognise(trainer))))
    assert "c" not in plain
    assert "log c" not in plain["S"]


@pytest.mark.parametrize("corrects", [True, False])
def test_off_policy_masking_reads_vllms_log_probabilities(corrects: bool, tmp_path: Path) -> None:
    trainer = prepared({"off_policy_mask_threshold": 0.1, "vllm_importance_sampling_correction": corrects}, tmp_path)
    found = resolve(known_settings(settings_of(trainer, recognise(trainer))))
    assert "mean(ℓ_sampler − ℓ) ≤ 0.1" in terms(found)["counts"]
    trainer.args.use_vllm = False
    plain = resolve(known_settings(settings_of(trainer, recognise(trainer))))
    assert "mean(ℓ_old − ℓ) ≤ 0.1" in terms(plain)["counts"]


def test_the_mismatch_between_vllm_and_the_trainer_is_seen(tmp_path: Path) -> None:
    trained({}, tmp_path)
    update = Update(1)
    for record in Recording(tmp_path / "rec").fresh():
        if record.update == 1:
            update.add(record)
    found = digest(update)
    assert found is not None
    assert found.apart
    assert found.mismatch is not None
    assert 1e-3 < found.mismatch < 2e-2, "noise of 0.1 gives a k3 of about 0.005"
