"""Algorithms that learn from which of two answers is better, or from an answer to imitate. Defaults are TRL's.

Each row has the name, title, paper, predecessor, what it changes, axes (completed in `catalogue.py`), and where it
differs from the paper.
"""

from __future__ import annotations

from typing import Any

Row = tuple[str, str, str, str | None, str, dict[str, Any], str]

PREFERENCE_ALGORITHMS: tuple[Row, ...] = (
    (
        "sft", "Supervised fine-tuning", "Ouyang et al. 2022, arXiv:2203.02155", None,
        "Imitates good answers, token by token: no reward, no comparison.",
        {"loss_type": "sft"},
        "",
    ),
    (
        "reward-model", "Reward model", "Bradley and Terry 1952, doi:10.1093/biomet/39.3-4.324", None,
        "Trains a copy of the model to score the preferred answer higher; the policy itself is not trained.",
        {"loss_type": "reward"},
        "",
    ),
    (
        "dpo", "DPO", "Rafailov et al. 2023, arXiv:2305.18290", "reward-model",
        "Needs no reward model: β times the policy's log-ratio to the reference serves as the reward.",
        {"loss_type": "sigmoid", "beta": 0.1},
        "",
    ),
    (
        "cdpo", "Conservative DPO", "Mitchell 2023, A note on DPO with noisy preferences", "dpo",
        "Assumes that a tenth of the labels are wrong, and therefore aims at a finite gap.",
        {"loss_type": "sigmoid", "beta": 0.1, "label_smoothing": 0.1},
        "",
    ),
    (
        "robust-dpo", "Robust DPO", "Chowdhury et al. 2024, arXiv:2403.00409", "cdpo",
        "Like conservative DPO, assumes that a tenth of the labels are wrong, but subtracts their expected effect.",
        {"loss_type": "robust", "beta": 0.1, "label_smoothing": 0.1},
        "",
    ),
    (
        "ipo", "IPO", "Azar et al. 2023, arXiv:2310.12036", "dpo",
        "Aims at a finite gap: 1/(2β) in mean log-ratio per token, so pairs whose label is certain are not pushed "
        "apart forever.",
        {"loss_type": "ipo", "beta": 0.1},
        "Log-ratios are averaged over tokens, as in TRL; the paper sums them over the answer.",
    ),
    (
        "hinge", "Hinge (SLiC)", "Zhao et al. 2023, arXiv:2305.10425", "dpo",
        "A pair whose implicit rewards are 1 apart stops pulling.",
        {"loss_type": "hinge", "beta": 0.1},
        "",
    ),
    (
        "kto", "KTO", "Ethayarajh et al. 2024, arXiv:2402.01306", "dpo",
        "Needs no pairs, only good and bad answers, each compared with how far the policy has drifted on average.",
        {"loss_type": "kto", "beta": 0.1},
        "",
    ),
    (
        "simpo", "SimPO", "Meng et al. 2024, arXiv:2405.14734", "dpo",
        "No reference: the reward is β times an answer's mean log-probability, and the loss asks for a gap of more "
        "than γ.",
        {"loss_type": "simpo", "beta": 0.1, "cpo_alpha": 0.0},
        "By default β is 0.1 and γ 0.5, as in TRL, so the aim is a gap of 5 nats per token; in the paper β is 2 to 2.5 "
        "and γ/β is 0.1 to 0.8.",
    ),
    (
        "cpo", "CPO", "Xu et al. 2024, arXiv:2401.08417", "dpo",
        "No reference: imitating the chosen answers takes its place.",
        {"loss_type": "cpo", "beta": 0.1},
        "",
    ),
    (
        "orpo", "ORPO", "Hong et al. 2024, arXiv:2403.07691", "sft",
        "Imitates chosen answers and raises their odds over the rejected ones in the same stage.",
        {"loss_type": "orpo", "beta": 0.1},
        "",
    ),
)  # fmt: skip
