"""Healthy runs of many kinds: none may alarm, at none of its updates."""

from __future__ import annotations

from collections.abc import Callable

from tests.sick import lab_troubles as troubles
from tests.sick import trl_runs
from tests.sick.case import Case, Numbers, metrics_alone, trained
from tests.sick.questions import lab
from tests.sick.runs import Sample
from tests.sick.trl_runs import learned, pairs, sampled, single, trl

_PAIRED = ("rewards/chosen", "rewards/rejected", "rewards/accuracies", "logps/chosen")


def _grew(name: str, sign: float = 1.0) -> Callable[[Numbers], bool]:
    """Whether a number has risen, or with the sign −1 fallen: a run is well only if it learns."""
    return lambda proof: sign * (proof[f"{name} last"] - proof[f"{name} first"]) > 0


WELL = (
    Case(
        "GRPO on word problems",
        "",
        trained(
            Sample(
                "grpo",
                reward=(),
                task="word_problems",
                updates=24,
                eval_every=5,
                settings={"reward_weights": {"correct": 1}, "num_prompts": 6},
            ),
            "reward",
        ),
        there=_grew("reward"),
    ),
    Case(
        "Dr. GRPO on sums",
        "",
        trained(Sample("dr", updates=24, eval_every=5, settings={"algorithm": "dr-grpo", "num_prompts": 6}), "reward"),
        there=_grew("reward"),
    ),
    Case(
        "RLOO in TRL",
        "",
        sampled(24, "reward", "kl", trainer=trl.RLOOTrainer, config=trl.RLOOConfig, beta=0.02),
        there=_grew("reward"),
    ),
    Case(
        "PPO on sums",
        "",
        trained(
            Sample(
                "ppo", updates=24, eval_every=5, settings={"algorithm": "ppo", "num_prompts": 8, "learning_rate": 2e-4}
            ),
            "reward",
            "explained_variance",
        ),
        there=_grew("reward"),
    ),
    Case(
        "DPO in TRL", "", learned(trl.DPOTrainer, trl.DPOConfig, pairs, 24, *_PAIRED), there=_grew("rewards/accuracies")
    ),
    Case(
        "KTO in TRL",
        "",
        learned(trl.KTOTrainer, trl.KTOConfig, single, 24, "rewards/chosen", "rewards/rejected", "loss"),
        there=_grew("loss", -1),
    ),
    Case(
        "SFT in TRL",
        "",
        learned(trl.SFTTrainer, trl.SFTConfig, trl_runs.given, 24, "loss", "mean_token_accuracy"),
        there=_grew("loss", -1),
    ),
    Case(
        "reward model in TRL",
        "",
        learned(trl.RewardTrainer, trl.RewardConfig, pairs, 30, "loss", "accuracy", learning_rate=3e-4),
        there=_grew("loss", -1),
    ),
    Case(
        "a world",
        "",
        trained(Sample("world", scenario="grid", updates=30, settings={}), "reward"),
        there=_grew("reward"),
    ),
    Case(
        "guesses in turns",
        "",
        trained(
            Sample(
                "guess",
                reward=(),
                task="guess",
                updates=20,
                settings={"reward_weights": {"guessed": 1}, "max_completion_length": 48, "num_prompts": 6},
            ),
            "reward",
        ),
        there=_grew("reward"),
    ),
    Case(
        "GRPO in TRL, twice, with KL",
        "",
        sampled(48, "reward", "kl", "clip_ratio/region_mean", num_iterations=2, beta=0.04),
        there=_grew("reward"),
    ),
    Case("a sampler in bf16", "", lab(troubles.Half, 24, "k3 to the sampler", "reward")),
    Case("metrics alone", "", metrics_alone(sampled(24, "reward", "entropy")), there=_grew("reward")),
)
"""Thirteen: one more than was asked for."""
