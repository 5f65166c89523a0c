"""What is recorded of DPOTrainer, KTOTrainer, SFTTrainer and RewardTrainer is what they computed, to 1e-6."""

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
from torch.nn.functional import logsigmoid

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl import (
        DPOConfig,
        DPOTrainer,
        KTOConfig,
        KTOTrainer,
        RewardConfig,
        RewardTrainer,
        SFTConfig,
        SFTTrainer,
    )

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.setting_values import decoded
from rlplay.foreign.recording import Recording
from rlplay.record.trl import RlplayCallback
from rlplay.record.trl.trainer_kind import recognise
from rlplay.record.trl.trainer_options import settings_of
from rlplay.trace.records import AnyRecord, Array, Credited, Finished, Sampled, Scored, Stepped
from tests.record import tiny

Tensor = torch.Tensor
CLOSE = {"rtol": 1e-6, "atol": 1e-6}
PAIRS = [
    {"prompt": "aa" * (n % 2) + "b ", "chosen": "01"[: 1 + n % 2] + "2", "rejected": "cdefgh"[n % 3 : 3 + n % 3]}
    for n in range(8)
]
SINGLE = [
    {"prompt": p["prompt"], "completion": p[k], "label": k == "chosen"} for p in PAIRS for k in ("chosen", "rejected")
]
GIVEN = [{"prompt": p["prompt"], "completion": p["chosen"]} for p in PAIRS]
TEXTS = [{"text": p["prompt"] + p["chosen"]} for p in PAIRS]
MPO = {"loss_type": ["sigmoid", "bco_pair", "sft"], "loss_weights": [0.8, 0.2, 1.0], "beta": 0.3}
CASES: dict[str, tuple[Any, Any, list[dict[str, Any]], dict[str, Any], str]] = {
    "dpo": (DPOTrainer, DPOConfig, PAIRS, {"beta": 0.3}, "pairs"),
    "dpo, gradient accumulation": (DPOTrainer, DPOConfig, PAIRS, {"gradient_accumulation_steps": 2}, "pairs"),
    "ipo": (DPOTrainer, DPOConfig, PAIRS, {"loss_type": ["ipo"]}, "pairs"),
    "aot": (DPOTrainer, DPOConfig, PAIRS, {"loss_type": ["aot"], "beta": 0.3}, "pairs"),
    "mpo": (DPOTrainer, DPOConfig, PAIRS, MPO, "pairs"),
    "dpo, one log for three updates": (DPOTrainer, DPOConfig, PAIRS, {"logging_steps": 3}, "pairs"),
    "dpo, reference computed before": (DPOTrainer, DPOConfig, PAIRS, {"precompute_ref_log_probs": True}, "pairs"),
    "kto": (KTOTrainer, KTOConfig, SINGLE, {"desirable_weight": 1.5}, "pairs"),
    "sft": (SFTTrainer, SFTConfig, GIVEN, {}, "imitation"),
    "sft, gradient accumulation": (SFTTrainer, SFTConfig, GIVEN, {"gradient_accumulation_steps": 2}, "imitation"),
    "dft": (SFTTrainer, SFTConfig, GIVEN, {"loss_type": "dft"}, "imitation"),
    "apo_zero_unpaired": (KTOTrainer, KTOConfig, SINGLE, {"loss_type": "apo_zero_unpaired"}, "pairs"),
    "sft on texts": (SFTTrainer, SFTConfig, TEXTS, {}, "imitation"),
    "reward": (RewardTrainer, RewardConfig, PAIRS, {"center_rewards_coefficient": 0.1}, "reward model"),
}

SPLIT = ("dpo", "kto", "sft")


class Spy:
    """Own forward passes over each micro-batch, and the loss with its derivative in float64."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.passes = trainer, list[dict[str, Any]]()
        inner = trainer.compute_loss

        @functools.wraps(inner)
        def computed(model: Any, inputs: Any, *values: Any, **options: Any) -> Any:
            if torch.is_grad_enabled():
                self.passes.append(self._own(dict(inputs), options.get("num_items_in_batch")))
            loss = inner(model, inputs, *values, **options)
            if torch.is_grad_enabled() and "kl" in trainer._metrics["train"]:
                self.passes[-1]["kl"] = trainer._metrics["train"]["kl"][-1]
            return loss

        trainer.compute_loss = computed

    def _own(self, inputs: dict[str, Any], items: Any) -> dict[str, Any]:
        trainer, ids = self.trainer, inputs["input_ids"]
        kept = {"ids": ids, "attention": inputs["attention_mask"]}
        if isinstance(trainer, RewardTrainer):
            scores = self._of(trainer.model, inputs)[:, 0].requires_grad_()
            won, lost = scores.chunk(2)
            center = trainer.args.center_rewards_coefficient * ((won + lost) ** 2).mean()
            return kept | {"scores": scores.detach(), "loss": float(-logsigmoid(won - lost).mean() + center)}
        mask = inputs["labels"] != -100 if "labels" in inputs else inputs["completion_mask"].bool()
        own = self._logprobs(trainer.model, inputs).requires_grad_()
        kept |= {"mask": mask[:, 1:], "logprobs": own.detach()}
        if isinstance(trainer, SFTTrainer):
            weights = own.detach().exp() if trainer.args.loss_type == "dft" else 1.0
            loss = -(weights * own * mask[:, 1:]).sum() / items * trainer.accelerator.num_processes
        else:
            if not trainer.precompute_ref_logps:
                kept["reference"] = self._logprobs(trainer.ref_model, inputs)
            loss = self._compared(own, inputs, kept)
        (kept["gradient"],) = torch.autograd.grad(loss, own)
        return kept | {"loss": float(loss.detach())}

    def save(self, path: Path) -> None:
        """For another process to compare with."""
        torch.save(self.passes, path)

    def _compared(self, own: Tensor, inputs: dict[str, Any], kept: dict[str, Any]) -> Tensor:
        """DPO (arXiv:2305.18290), IPO (arXiv:2310.12036), KTO (arXiv:2402.01306)."""
        trainer, mask = self.trainer, kept["mask"].double()
        if trainer.precompute_ref_logps:
            reference = torch.cat([inputs["ref_chosen_logps"], inputs["ref_rejected_logps"]]).double()
        else:
            reference = (kept["reference"] * mask).sum(1)
        ratios, steps = (own * mask).sum(1) - reference, trainer.current_gradient_accumulation_steps
        if "label" in inputs and trainer.loss_type == "apo_zero_unpaired":
            ahead = torch.where(inputs["label"].bool(), ratios, -ratios)
            return (1 - torch.sigmoid(trainer.beta * ahead)).mean() / steps
        if "label" in inputs:
            other = {k.removeprefix("KL_"): v for k, v in inputs.items() if k.startswith("KL_")}
            inside = other["completion_mask"][:, 1:]
            away = self._logprobs(trainer.model, other) - self._logprobs(trainer.ref_model, other)
            z = trainer.accelerator.reduce((away * inside).sum(1).mean(), "mean").clamp(min=0)
            good = inputs["label"].bool()
            ahead = torch.where(good, ratios - z, z - ratios)
            weight = torch.where(good, trainer.desirable_weight, trainer.undesirable_weight)
            return (weight * (1 - torch.sigmoid(trainer.beta * ahead))).mean() / steps
        if trainer.loss_types == ["ipo"]:
            won, lost = (ratios / mask.sum(1)).chunk(2)
            return ((won - lost - 1 / (2 * trainer.beta)) ** 2).mean() / steps
        won, lost = ratios.chunk(2)
        if trainer.loss_types == ["aot"]:
            policy, old = ((each * mask).sum(1).chunk(2) for each in (own, kept["reference"]))
            gaps = [torch.sort(chosen - rejected).values for chosen, rejected in (policy, old)]
            return -logsigmoid(trainer.beta * (gaps[0] - gaps[1])).mean() / steps
        if trainer.loss_types == MPO["loss_type"]:
            each = 0.8 * logsigmoid(trainer.beta * (won - lost))
            each = each + 0.2 * (logsigmoid(trainer.beta * won) + logsigmoid(-trainer.beta * lost))
            imitated = (own * mask)[: len(won)].sum() / mask[: len(won)].sum()
            return -(each.mean() + imitated) / steps
        return -logsigmoid(trainer.beta * (won - lost)).mean() / steps

    @torch.no_grad()
    def _of(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        return model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.double()  # type: ignore[no-any-return]

    def _logprobs(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        scores = self._of(model, inputs)[:, :-1].log_softmax(-1)
        return scores.gather(-1, inputs["input_ids"][:, 1:, None])[..., 0]


def prepared(case: str, folder: Path) -> Any:
    """A trainer for three steps, to be recorded in `folder`/rec."""
    trainer_class, config, data, options, _ = CASES[case]
    shared = {
        "per_device_train_batch_size": 4, "max_steps": 3, "logging_steps": 1, "learning_rate": 0.05, "report_to": [],
        "use_cpu": True, "save_strategy": "no", "disable_tqdm": True, "lr_scheduler_type": "constant", "bf16": False,
    }  # fmt: skip
    args = config(output_dir=str(folder), **(shared | options))
    model = tiny.scorer() if trainer_class is RewardTrainer else tiny.model(folder / "model")
    return trainer_class(
        model=model, args=args, train_dataset=Dataset.from_list(data), processing_class=tiny.tokenizer(),
        callbacks=[RlplayCallback(folder / "rec", completions=10_000)],
    )  # fmt: skip


def trained(case: str, folder: Path) -> tuple[Any, Spy]:
    """A recorded run, and what it computed."""
    trainer = prepared(case, folder)
    spy = Spy(trainer)
    trainer.train()
    return trainer, spy


def flat(own: list[dict[str, Any]], name: str) -> Array:
    return np.concatenate([one[name][one["mask"]].double().numpy() for one in own])


def of(records: list[AnyRecord], update: int, kind: type) -> Any:
    (found,) = (record for record in records if record.update == update and isinstance(record, kind))
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_recording_is_what_trl_computed(case: str, tmp_path: Path) -> None:
    compare(case, *trained(case, tmp_path), tmp_path)


def compare(case: str, trainer: Any, spy: Spy, folder: Path) -> None:
    """The recording in `folder` with what the trainer computed."""
    reading = Recording(folder / "rec")
    settings, records = reading.started().settings, reading.fresh()
    assert decoded(settings).kind == CASES[case][4]
    assert settings["learning_rate"] == 0.05
    assert settings["beta"] == getattr(trainer, "beta", 0.0)
    logs = [log for log in trainer.state.log_history if "train_loss" not in log]
    each = trainer.args.gradient_accumulation_steps
    for update in (1, 2, 3):
        own = spy.passes[(update - 1) * each : update * each]
        sampled, scored, step = (of(records, update, kind) for kind in (Sampled, Scored, Stepped))
        metrics = of(records, update, Finished).metrics
        loss = sum(one["loss"] for one in own)
        assert step.metrics["loss"] == pytest.approx(loss, rel=1e-6, abs=1e-6)
        assert metrics["loss"] == pytest.approx(loss, rel=1e-6, abs=1e-6)
        _compare_roles(sampled, scored, case)
        if trainer.args.logging_steps == 1:
            names = set(logs[update - 1]) - {"step"}
            assert {name for name in metrics if not name.startswith("weights/")} == names
            for name in names:
                assert metrics[name] == pytest.approx(logs[update - 1][name], rel=1e-6, abs=1e-6), name
        if isinstance(trainer, RewardTrainer):
            _compare_scores(sampled, step, own)
            np.testing.assert_array_equal(of(records, update, Credited).values, step.values)
            continue
        _compare_tokens(sampled, step, own)
        credited = of(records, update, Credited)
        np.testing.assert_allclose(credited.advantages, -step.dloss_dlogp * step.tokens, rtol=1e-5, atol=1e-6)
        if "reference" in own[0]:
            np.testing.assert_allclose(credited.ref_logprobs, flat(own, "reference"), **CLOSE)
        else:
            assert credited.ref_logprobs is None
        if "kl" in own[0]:
            assert step.metrics["kto/kl"] == pytest.approx(own[0]["kl"], abs=1e-6)


def _compare_tokens(sampled: Sampled, step: Stepped, own: list[dict[str, Any]]) -> None:
    ids = np.concatenate([one["ids"][:, 1:][one["mask"]].numpy() for one in own])
    np.testing.assert_array_equal(sampled.token_ids, ids)
    np.testing.assert_allclose(step.logprobs, flat(own, "logprobs"), **CLOSE)
    np.testing.assert_allclose(sampled.old_logprobs, flat(own, "logprobs"), **CLOSE)
    np.testing.assert_allclose(step.dloss_dlogp, flat(own, "gradient"), **CLOSE)
    assert np.abs(step.dloss_dlogp).max() > 1e-4
    np.testing.assert_allclose(step.importance_ratio, 1.0)
    assert step.tokens == len(ids)
    prompts = [row[: int(m.argmax()) + 1] for one in own for row, m in zip(one["ids"], one["mask"].int(), strict=True)]
    for row, group in enumerate(sampled.group):
        begin, end = sampled.prompt_offsets[group : group + 2]
        np.testing.assert_array_equal(sampled.prompt_ids[begin:end], prompts[row].numpy())


def _compare_roles(sampled: Sampled, scored: Scored, case: str) -> None:
    if case.startswith(("dpo", "ipo", "aot", "mpo", "reward")):
        for group in range(len(sampled.prompts)):
            assert sorted(scored.roles[i] for i in np.flatnonzero(sampled.group == group)) == ["chosen", "rejected"]
    else:
        assert len(set(sampled.group.tolist())) == len(sampled.group)
    for row, role in enumerate(scored.roles):
        text = "".join(sampled.texts[sampled.offsets[row] : sampled.offsets[row + 1]])
        assert (text[0] in "012") == (role == "chosen") or case == "sft on texts"


def _compare_scores(sampled: Sampled, step: Stepped, own: list[dict[str, Any]]) -> None:
    assert step.values is not None
    last = sampled.offsets[1:] - 1
    np.testing.assert_allclose(step.values[last], np.concatenate([one["scores"].numpy() for one in own]), **CLOSE)
    assert np.isnan(np.delete(step.values, last)).all()
    assert np.isnan(step.logprobs).all()
    assert np.isnan(step.dloss_dlogp).all()


def test_answers_of_several_turns(tmp_path: Path) -> None:
    """What stands between two parts of an answer that are learnt has no statistics."""
    ids, labels = [2, 3, 9, 10, 4, 5, 11, 1], [-100, -100, 9, 10, -100, -100, 11, 1]
    CASES["turns"] = (SFTTrainer, SFTConfig, [{"input_ids": ids, "labels": labels}] * 4, {}, "imitation")
    try:
        trained("turns", tmp_path)
    finally:
        del CASES["turns"]
    records = Recording(tmp_path / "rec").fresh()
    sampled, step = of(records, 1, Sampled), of(records, 1, Stepped)
    assert sampled.mask[:6].tolist() == [1, 1, 0, 0, 1, 1]
    assert sampled.token_ids[:6].tolist() == ids[2:]
    assert sampled.prompt_ids[:2].tolist() == ids[:2]
    assert np.isnan(step.logprobs[:6]).tolist() == [False, False, True, True, False, False]
    np.testing.assert_allclose(step.dloss_dlogp[:6], np.array([1, 1, 0, 0, 1, 1]) * -1 / 16, **CLOSE)


def test_the_recording_does_not_change_the_training(tmp_path: Path) -> None:
    weights = []
    for name in ("with", "without"):
        trainer = prepared("kto", tmp_path / name)
        if name == "without":
            trainer.remove_callback(RlplayCallback)
        trainer.train()
        weights.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
    assert torch.equal(*weights)


def test_a_loss_that_rlplay_lacks_is_recorded_without_a_formula(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"loss_type": ["aot"], "gradient_accumulation_steps": 2, "beta": 0.3}  # which sorts each half by itself
    CASES["aot"] = (DPOTrainer, DPOConfig, PAIRS, options, "pairs")
    try:
        _, spy = trained("aot", tmp_path)
    finally:
        del CASES["aot"]
    line = "rlplay: the recorder does not know the loss of this DPOTrainer: no formulas and no clipping are shown"
    assert line in capfd.readouterr().err.splitlines()
    reading = Recording(tmp_path / "rec")
    assert reading.started().settings["algorithm"] == ""
    assert "beta" not in reading.started().settings
    np.testing.assert_allclose(of(reading.fresh(), 1, Stepped).logprobs, flat(spy.passes[:2], "logprobs"), **CLOSE)


OF_DPO: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"ld_alpha": 0.5}, {"algorithm": "dpo", "ld_alpha": 0.5}),
    ({"use_weighting": True}, {"algorithm": "dpo", "use_weighting": True}),
    ({"f_divergence_type": "forward_kl"}, {"algorithm": "dpo", "f_divergence_type": "forward_kl"}),
    ({"loss_type": ["discopop"], "discopop_tau": 0.2}, {"algorithm": "discopop", "discopop_tau": 0.2}),
    ({"loss_type": ["exo_pair"], "label_smoothing": 0.01}, {"algorithm": "exo", "label_smoothing": 0.01}),
    ({"loss_type": ["sigmoid", "bco_pair", "sft"], "loss_weights": [0.8, 0.2, 1.0]},
     {"algorithm": "mpo", "loss_type": "sigmoid", "loss_weights": {"sigmoid": 0.8, "bco_pair": 0.2, "sft": 1.0}}),
    ({"loss_type": ["sft", "ipo"]},
     {"algorithm": "mpo", "loss_type": "ipo", "loss_weights": {"sft": 1.0, "ipo": 1.0}}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "wanted"), OF_DPO, ids=str)
def test_the_options_of_dpo_are_settings(options: dict[str, Any], wanted: dict[str, Any], tmp_path: Path) -> None:
    trainer = _dpo(options, tmp_path)
    found = settings_of(trainer, recognise(trainer))
    assert {name: found[name] for name in wanted} == wanted
    assert resolve({name: found[name] for name in found if name in wanted or name == "beta"}).kind == "pairs"


@pytest.mark.parametrize("loss_type", [["sft"], ["sigmoid", "robust"]], ids=str)
def test_a_sum_of_losses_that_rlplay_lacks_has_no_formula(loss_type: list[str], tmp_path: Path) -> None:
    trainer = _dpo({"loss_type": loss_type, "label_smoothing": 0.1}, tmp_path)
    assert "algorithm" not in settings_of(trainer, recognise(trainer))


def test_smoothing_that_the_loss_does_not_read_is_left_out(tmp_path: Path) -> None:
    trainer = _dpo({"label_smoothing": 0.2}, tmp_path / "smooth")  # which TRL's sigmoid loss does not read
    settings = settings_of(trainer, recognise(trainer))
    assert settings["algorithm"] == "dpo"
    assert "label_smoothing" not in settings


def _dpo(options: dict[str, Any], folder: Path) -> Any:
    CASES["own"] = (DPOTrainer, DPOConfig, PAIRS, options, "pairs")
    try:
        return prepared("own", folder)
    finally:
        del CASES["own"]
