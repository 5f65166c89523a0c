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
        "dft", "Dynamic fine-tuning (DFT)", "Wu et al. 2025, arXiv:2508.05629", "sft",
        "Weights a token by its own probability, so that tokens the model finds unlikely do not dominate the gradient.",
        {"loss_type": "dft"},
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
        "dpo-norm", "Length-normalised DPO", "Lambert et al. 2024, arXiv:2411.15124", "dpo",
        "Averages log-ratios over an answer's tokens, so that length alone scores nothing.",
        {"loss_type": "sigmoid_norm", "beta": 0.1},
        "By default β is 0.1, as in TRL; in the paper it is 5, as a mean of log-ratios is so much smaller.",
    ),
    (
        "ld-dpo", "LD-DPO", "Liu et al. 2024, arXiv:2409.06411", "dpo",
        "Tokens beyond the length of a pair's shorter answer count only in part, so that length earns less.",
        {"loss_type": "sigmoid", "beta": 0.1, "ld_alpha": 0.5},
        "",
    ),
    (
        "wpo", "WPO", "Zhou et al. 2024, arXiv:2406.11827", "dpo",
        "Weights a pair by how likely the policy finds both answers, as if it had written them itself.",
        {"loss_type": "sigmoid", "beta": 0.1, "use_weighting": True},
        "",
    ),
    (
        "f-dpo", "f-DPO", "Wang et al. 2023, arXiv:2309.16240", "dpo",
        "Holds the policy near the reference by another divergence than the reverse KL; here Jensen–Shannon, whose "
        "reward for a likelier answer is bounded.",
        {"loss_type": "sigmoid", "beta": 0.1, "f_divergence_type": "js_divergence"},
        "",
    ),
    (
        "exo", "EXO", "Ji et al. 2024, arXiv:2402.00856", "cdpo",
        "Turns the KL around: that of the policy's preference to the label's, the direction in which RLHF nears its "
        "best policy.",
        {"loss_type": "exo_pair", "beta": 0.1, "label_smoothing": 0.001},
        "",
    ),
    (
        "discopop", "DiscoPOP", "Lu et al. 2024, arXiv:2406.08414", "dpo",
        "A loss that a language model wrote: logistic for pairs that are behind, exponential for those ahead.",
        {"loss_type": "discopop", "beta": 0.1},
        "By default β is 0.1, as in TRL; in the paper it is 0.05.",
    ),
    (
        "aot", "AOT", "Melnyk et al. 2024, arXiv:2406.05882", "dpo",
        "Sorts the gaps of a minibatch: the policy's k-th smallest should exceed the reference's k-th smallest, for "
        "every k.",
        {"loss_type": "aot", "beta": 0.1},
        "",
    ),
    (
        "aot-unpaired", "AOT, unpaired", "Melnyk et al. 2024, arXiv:2406.05882", "aot",
        "Sorts scores instead of gaps: the k-th smallest of the chosen answers against that of the rejected ones, "
        "whichever prompts they are for.",
        {"loss_type": "aot_unpaired", "beta": 0.1},
        "",
    ),
    (
        "nca", "NCA", "Chen et al. 2024, arXiv:2402.05369", "dpo",
        "Scores each answer by itself: the chosen one is pulled to a score of log 2/β, not only ahead of the rejected "
        "one.",
        {"loss_type": "nca_pair", "beta": 0.1},
        "By default β is 0.1, as in TRL; in the paper it is 0.01.",
    ),
    (
        "bco", "BCO", "Jung et al. 2024, arXiv:2404.04656", "nca",
        "Trains a classifier of good and bad answers, whose logit is the implicit reward.",
        {"loss_type": "bco_pair", "beta": 0.1},
        "Rewards are not shifted, as in TRL's DPOTrainer; the paper subtracts δ, their running mean.",
    ),
    (
        "sppo", "SPPO", "Wu et al. 2024, arXiv:2405.00675", "ipo",
        "Aims at a score of 1/(2β) for the chosen answer and of −1/(2β) for the rejected one.",
        {"loss_type": "sppo_hard", "beta": 0.1},
        "The chosen answer wins with probability 1, as in TRL's hard variant; the paper estimates the probability and "
        "plays several rounds of the policy against itself.",
    ),
    (
        "apo-zero", "APO-zero", "D'Oosterlinck et al. 2024, arXiv:2408.06266", "nca",
        "Raises chosen answers and lowers rejected ones, each until its own sigmoid is flat: for chosen answers better "
        "than the model's own.",
        {"loss_type": "apo_zero", "beta": 0.1},
        "",
    ),
    (
        "apo-down", "APO-down", "D'Oosterlinck et al. 2024, arXiv:2408.06266", "apo-zero",
        "Lowers both answers, the rejected one more: for chosen answers worse than the model's own.",
        {"loss_type": "apo_down", "beta": 0.1},
        "",
    ),
    (
        "mpo", "MPO", "Wang et al. 2024, arXiv:2411.10442", "dpo",
        "Adds three losses: DPO's on the gap, BCO's on each answer, and the imitation of chosen answers.",
        {"loss_type": "sigmoid", "beta": 0.1, "loss_weights": {"sigmoid": 0.8, "bco_pair": 0.2, "sft": 1.0}},
        "BCO's rewards are not shifted, as in TRL; the paper subtracts their running mean.",
    ),
    (
        "online-dpo", "Online DPO", "Guo et al. 2024, arXiv:2402.04792", "dpo",
        "The policy in training writes the pairs, so labels are always about answers as it gives them now.",
        {"loss_type": "sigmoid", "beta": 0.1, "answers_of": "policy"},
        "The gold score labels, or you do; in the paper a language model compares the answers.",
    ),
    (
        "kto", "KTO", "Ethayarajh et al. 2024, arXiv:2402.01306", "dpo",
        "Needs no pairs, only good and bad answers, each compared with how far the policy has drifted on average.",
        {"loss_type": "kto", "beta": 0.1},
        "",
    ),
    (
        "apo-zero-unpaired", "APO-zero, unpaired", "D'Oosterlinck et al. 2024, arXiv:2408.06266", "kto",
        "KTO without its baseline: good answers are raised and bad ones lowered, however far the policy has drifted.",
        {"loss_type": "apo_zero_unpaired", "beta": 0.1},
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
        "alphapo", "AlphaPO", "Gupta et al. 2025, arXiv:2501.03884", "simpo",
        "SimPO with a reward of another shape, (1 − p^−α)/α: with α above 0 the less likely an answer, the more it "
        "pulls.",
        {"loss_type": "simpo", "beta": 0.1, "cpo_alpha": 0.0, "alpha": 0.25},
        "By default β is 0.1 and γ 0.5, as in TRL; in the paper β is 2.5 and γ 0.1 for Mistral.",
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
