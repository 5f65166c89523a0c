"""Algorithms that learn from a teacher at every token. Rows as in `preference_catalogue.py`; defaults are TRL's."""

from __future__ import annotations

from rlplay.algorithms.preference_catalogue import Row

DISTILLATION_ALGORITHMS: tuple[Row, ...] = (
    (
        "opd", "On-policy distillation", "Lu et al. 2025, thinkingmachines.ai/blog/on-policy-distillation", "grpo",
        "Needs no reward: a teacher's log-probability of each sampled token, less the policy's, is its advantage.",
        {"distillation_weight": 1.0, "distillation_mode": "advantage", "surrogate": "ratio"},
        "",
    ),
    (
        "iw-opd", "IW-OPD", "Xie et al. 2026, arXiv:2606.22600", "opd",
        "Weights a token by up to 1.5: the less teacher and policy have differed before it, the more it counts.",
        {"distillation_weight": 1.0, "distillation_mode": "advantage", "surrogate": "logp", "iw_opd_gamma": 0.5},
        "",
    ),
    (
        "gkd", "GKD", "Agarwal et al. 2023, arXiv:2306.13649", "opd",
        "Compares whole distributions: at each position of an answer, the policy approaches all of the teacher's "
        "next-token probabilities.",
        {"distillation_weight": 1.0, "distillation_alpha": 0.5},
        "The policy writes all answers; in the paper some may come from a dataset.",
    ),
    (
        "sdft", "SDFT", "Shenfeld et al. 2026, arXiv:2601.19897", "gkd",
        "The teacher is the model as the run began, with the dataset's solution in its prompt.",
        {"distillation_weight": 1.0, "distillation_mode": "topk_logits", "distillation_alpha": 0.5,
         "aggregation": "seq_mean_token_mean", "teacher_context": "dataset", "distillation_is_clip": 2.0},
        "",
    ),
    (
        "sdpo", "SDPO", "Hübotter et al. 2026, arXiv:2601.20802", "sdft",
        "The teacher is a moving average of the policy, with another answer of the group that succeeded in its prompt.",
        {"distillation_weight": 1.0, "distillation_mode": "sampled_token", "aggregation": "seq_mean_token_mean",
         "teacher_model_kind": "ema", "teacher_context": "group", "distillation_is_clip": 2.0},
        "",
    ),
)  # fmt: skip
