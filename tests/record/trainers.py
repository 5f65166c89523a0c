"""Every trainer of TRL 1.16.0 that a CPU can train, on a tiny model: a function for each, by its class's name.

Losses are those of TRL; of ServerDistillationTrainer only the teacher's server is made up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from datasets import Dataset

from tests.record import tiny

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import trl
    from trl.experimental import (
        a2po,
        bema_for_ref_model,
        cpo,
        gkd,
        gmpo,
        gold,
        iw_opd,
        online_dpo,
        orpo,
        sdft,
        sdpo,
        server_distillation,
        tpo,
    )
    from trl.experimental import distillation as old_distillation
    from trl.experimental import kto as old_kto
    from trl.generation import vllm_client

PAIRS = [
    {"prompt": "aa" * (n % 2) + "b ", "chosen": "01"[: 1 + n % 2] + "2", "rejected": "cdefgh"[n % 3 : 3 + n % 3]}
    for n in range(8)
]
TRIPLES = [pair | {"reference": "012"} for pair in PAIRS]
SINGLE = [
    {"prompt": p["prompt"], "completion": p[k], "label": k == "chosen"} for p in PAIRS for k in ("chosen", "rejected")
]
GIVEN = [{"prompt": p["prompt"], "completion": p["chosen"]} for p in PAIRS]
TALKS = [
    {"messages": [{"role": "user", "content": p["prompt"]}, {"role": "assistant", "content": p["chosen"]}]}
    for p in PAIRS
]
HINTED = [row | {"privileged_context": "0"} for row in tiny.PROMPTS]
ASKED = [{"prompt": row["prompt"]} for row in tiny.PROMPTS]
GROUPED = {"num_generations": 4, "max_completion_length": 5}
Make = Callable[..., Any]
"""Makes a trainer in a folder, with these callbacks and, beside its own options, more of them."""


def binary(completions: list[str], **_: Any) -> list[float]:
    """1 for an answer with a digit."""
    return [float(any(c.isdigit() for c in text)) for text in completions]


def maker(
    trainer: Any, config: Any, data: list[dict[str, Any]], options: dict[str, Any] | None = None, *,
    rewards: bool = False, teacher: bool = False, reference: bool = False,
) -> Make:  # fmt: skip
    """Makes a trainer in a folder, with these callbacks, and more options than its own."""

    def make(folder: Path, callbacks: list[Any], **more: Any) -> Any:
        shared = {
            "per_device_train_batch_size": 4, "max_steps": 3, "logging_steps": 1, "learning_rate": 0.01, "seed": 3,
            "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True, "bf16": False,
        }  # fmt: skip
        model = tiny.scorer() if trainer is trl.RewardTrainer else tiny.model(folder / "model")
        tiny.talker().save_pretrained(folder / "model")
        given: dict[str, Any] = {"teacher_model": tiny.model(folder / "model", seed=1)} if teacher else {}
        given |= {"reward_funcs": [binary]} if rewards else {}
        given |= {"ref_model": tiny.model(folder / "model")} if reference else {}
        return trainer(
            model=model, args=config(output_dir=str(folder / "out"), **(shared | (options or {}) | more)),
            train_dataset=Dataset.from_list(data), processing_class=tiny.talker(), callbacks=callbacks, **given,
        )  # fmt: skip

    return make


class _Teacher:
    """Answers like a server of vLLM: every token has the log-probability −1."""

    def __init__(self, **_: Any) -> None:
        pass

    def get_sequence_logprobs(
        self, sequences: list[list[int]], prompt_lengths: list[int], **_: Any
    ) -> dict[str, list[list[list[float]]]]:
        lengths = [len(ids) - asked for ids, asked in zip(sequences, prompt_lengths, strict=True)]
        logprobs, ids = [[[-1.0]] * n for n in lengths], [[[2.0]] * n for n in lengths]
        return {"logprobs": logprobs, "logprob_token_ids": ids, "actual_logprobs": logprobs, "actual_token_ids": ids}


def _served(folder: Path, callbacks: list[Any]) -> Any:
    options = {"max_completion_length": 5, "teacher_model_server_url": "http://localhost"}
    make = maker(
        server_distillation.ServerDistillationTrainer, server_distillation.ServerDistillationConfig, ASKED, options
    )
    with mock.patch.object(vllm_client, "VLLMClient", _Teacher):
        return make(folder, callbacks)


NEEDS_A_GPU = {
    "experimental.AsyncGRPOTrainer": "its constructor asks CUDA for the device's name",
    "experimental.AsyncDistillationTrainer": "its attention is a kernel for CUDA",
}
"""The trainers of TRL 1.16.0 that no CPU can train."""
SHORT = {"max_length": 40}
TRAINERS: dict[str, Make] = {
    "GRPOTrainer": maker(trl.GRPOTrainer, trl.GRPOConfig, tiny.PROMPTS, GROUPED, rewards=True),
    "RLOOTrainer": maker(trl.RLOOTrainer, trl.RLOOConfig, tiny.PROMPTS, GROUPED, rewards=True),
    "DPOTrainer": maker(trl.DPOTrainer, trl.DPOConfig, PAIRS),
    "KTOTrainer": maker(trl.KTOTrainer, trl.KTOConfig, SINGLE),
    "SFTTrainer": maker(trl.SFTTrainer, trl.SFTConfig, GIVEN),
    "RewardTrainer": maker(trl.RewardTrainer, trl.RewardConfig, PAIRS),
    "DistillationTrainer": maker(
        trl.DistillationTrainer, trl.DistillationConfig, ASKED, {"max_completion_length": 5}, teacher=True
    ),
    "experimental.A2POTrainer": maker(
        a2po.A2POTrainer, a2po.A2POConfig, tiny.PROMPTS, {"max_completion_length": 5, "filter_all_incorrect": False},
        rewards=True,
    ),
    "experimental.bema_for_ref_model.DPOTrainer": maker(
        bema_for_ref_model.DPOTrainer, trl.DPOConfig, PAIRS, reference=True
    ),
    "experimental.CPOTrainer": maker(cpo.CPOTrainer, cpo.CPOConfig, PAIRS, SHORT),
    "experimental.distillation.DistillationTrainer": maker(
        old_distillation.DistillationTrainer, old_distillation.DistillationConfig, ASKED, {"max_completion_length": 5},
        teacher=True,
    ),
    "experimental.GKDTrainer": maker(gkd.GKDTrainer, gkd.GKDConfig, TALKS, SHORT | {"max_new_tokens": 5}, teacher=True),
    "experimental.GMPOTrainer": maker(gmpo.GMPOTrainer, gmpo.GMPOConfig, tiny.PROMPTS, GROUPED, rewards=True),
    "experimental.GOLDTrainer": maker(
        gold.GOLDTrainer, gold.GOLDConfig, TALKS, SHORT | {"max_completion_length": 5}, teacher=True
    ),
    "experimental.IWOPDTrainer": maker(
        iw_opd.IWOPDTrainer, iw_opd.IWOPDConfig, TALKS, SHORT | {"max_completion_length": 5}, teacher=True
    ),
    "experimental.kto.KTOTrainer": maker(old_kto.KTOTrainer, old_kto.KTOConfig, SINGLE),
    "experimental.OnlineDPOTrainer": maker(
        online_dpo.OnlineDPOTrainer, online_dpo.OnlineDPOConfig, ASKED, {"max_new_tokens": 5, "max_length": 40},
        rewards=True, reference=True,
    ),
    "experimental.ORPOTrainer": maker(orpo.ORPOTrainer, orpo.ORPOConfig, PAIRS, SHORT),
    "experimental.SDFTTrainer": maker(sdft.SDFTTrainer, sdft.SDFTConfig, HINTED, GROUPED | {"distillation_topk": 4}),
    "experimental.SDPOTrainer": maker(sdpo.SDPOTrainer, sdpo.SDPOConfig, HINTED, GROUPED, rewards=True),
    "experimental.ServerDistillationTrainer": _served,
    "experimental.TPOTrainer": maker(tpo.TPOTrainer, tpo.TPOConfig, TRIPLES),
}  # fmt: skip
