"""The questions that users of trainers ask, a run for each row of the list, and what has to be said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from rlplay.tasks.task import chat
from tests.sick import lab_troubles as troubles
from tests.sick import trl_runs
from tests.sick.case import Case, Made, Make, metrics_alone, trained
from tests.sick.lab import Lab
from tests.sick.runs import Sample
from tests.sick.trl_runs import learned, pairs, sampled, trl


def lab(kind: type[Lab], updates: int, *proof: str) -> Make:
    """A run of the laboratory."""

    def make(place: Path, seed: int) -> Made:
        torch.set_num_threads(1)
        found = kind(place, seed).run(updates)
        return place, {name: value for name, value in found.items() if name.removesuffix(" at first") in proof}

    return make


def kinds() -> list[dict[str, Any]]:
    """Questions that all answers solve, and as many that none does."""
    return [
        {"prompt": chat(f"What is {a}+{b}?" if kind == "easy" else f"Say a word for {a} and {b}."), "kind": kind}
        for a in range(12) for b in range(5) for kind in ("easy", "hard")
    ]  # fmt: skip


_SMALL_STEPS = sampled(24, "reward", "learning_rate", "grad_norm", learning_rate=1e-5,
                       lr_scheduler_type="constant_with_warmup", warmup_steps=20_000)  # fmt: skip
_WELL = sampled(12, "loss", "reward", "clip_ratio/region_mean", loss_type="grpo")
_RISING = trained(
    Sample("rising", settings={"entropy_coef": 1.0, "scale_rewards": "none"}, updates=20), "entropy", "reward"
)
_FALLING = learned(trl.DPOTrainer, trl.DPOConfig, lambda: pairs(near=True), 20, "rewards/chosen", "rewards/rejected",
                   "logps/chosen", "rewards/accuracies", learning_rate=1e-3)  # fmt: skip
_UP = r"entropy.*(ris|rose|grow|grew|up)|(ris|grow).*entropy"

QUESTIONS = (
    Case(
        "reward flat",
        "a warm-up of 20,000 steps keeps the learning rate near 1e-8: the weights hardly move",
        _SMALL_STEPS,
        words=r"learning.rate|warm",
        ticks=("Step size", "Learning rate", "Weights"),
    ),
    Case(
        "loss 0",
        "nothing: GRPO's loss is 0 by construction with one step per batch",
        _WELL,
        words=r"loss.*\b0\b|\b0\b.*loss",
        normal=True,
    ),
    Case(
        "clip ratio 0",
        "nothing: with one step per batch no ratio leaves 1, so nothing is clipped",
        metrics_alone(_WELL),
        words=r"clip",
        normal=True,
    ),
    Case(
        "groups without variance",
        "half the questions are solved by all answers and half by none",
        trained(Sample("kinds", reward=("of_its_kind",), data=kinds, updates=10), "reward", "frac_reward_zero_std"),
        words=r"same|equal|easy|hard",
        ticks=("Signal",),
        there=lambda proof: proof["frac_reward_zero_std median"] > 0.7,
    ),
    Case(
        "all answers cut",
        "max_completion_length is 6 where answers need a dozen tokens",
        sampled(12, "completions/clipped_ratio", "reward", task="word_problems", max_completion_length=6),
        words=r"max_completion_length|length limit|cut",
        ticks=("End of answers",),
    ),
    Case(
        "NaN in the sampler",
        "from update 4 the sampler's activations overflow in fp16: it writes token 0 for ever, "
        "while the trainer's numbers are finite and its steps small",
        lab(troubles.Overflowing, 7, "share of token 0", "NaN in the sampler", "NaN in the trainer"),
        words=r"fp16|float16|overflow|sampler.*(NaN|not finite|infinit|not a number)",
        ticks=("Numbers", "Sampler"),
    ),
    Case(
        "gradient norm spikes",
        "one answer in 250 has a score of 100 in place of 1, and nothing scales by the group",
        trained(
            Sample("spikes", reward=("hundredfold",), updates=24, settings={"scale_rewards": "none"}),
            "grad_norm",
            "reward",
        ),
        words=r"gradient norm|outlier|spike",
        there=lambda proof: proof["grad_norm most"] > 5 * proof["grad_norm median"],
    ),
    Case(
        "late collapse",
        "a warm-up lets the learning rate rise beyond what the policy stands: it learns, then breaks",
        trained(
            Sample(
                "late",
                settings={"learning_rate": 3e-2, "lr_scheduler_type": "constant_with_warmup", "warmup_steps": 60},
                updates=24,
            ),
            "reward",
            "entropy",
            "learning_rate",
        ),
        words=r"learning.rate",
        there=lambda proof: proof["reward most"] > proof["reward first"] and proof["reward last"] < 0.2,
    ),
    Case(
        "entropy rises",
        "an entropy bonus outweighs the reward",
        _RISING,
        words=_UP,
        ticks=("Entropy",),
        there=lambda proof: proof["entropy last"] > 1.5 * proof["entropy first"],
    ),
    Case(
        "entropy collapse",
        "only the likeliest tokens are sampled, and without a baseline all that is sampled becomes likelier",
        trained(
            Sample(
                "certain",
                reward=("generous",),
                updates=18,
                settings={"baseline": "none", "scale_rewards": "none", "learning_rate": 1e-3, "top_p": 0.7},
            ),
            "entropy",
            "reward",
            "gold/correct/mean",
        ),
        words=r"entropy",
        ticks=("Entropy",),
        there=lambda proof: proof["entropy last"] < 0.5 * proof["entropy first"],
    ),
    Case(
        "mismatch of precision",
        "the sampler's weights are quantised to two bits",
        lab(troubles.Coarse, 12, "k3 to the sampler"),
        words=r"precision|quanti|bits|round|dtype",
        ticks=("Sampler",),
    ),
    Case(
        "top-p in the ratio",
        "the sampler's log-probs are of the distribution after top_p, the trainer's before it",
        lab(
            troubles.Nucleus,
            12,
            "k3 to the sampler",
            "share of tokens that the sampler calls likelier",
            "share that it calls less likely",
        ),
        words=r"top.?p",
        ticks=("Sampler",),
    ),
    Case(
        "sampler without the adapter",
        "the sampler keeps the first weights: what is learned never reaches it",
        lab(troubles.Pinned, 14, "k3 to the sampler", "reward"),
        words=r"first weights|never (gets|got|reach|receiv)|not updated|pinned|adapter|LoRA|start|base model|"
        r"update 0|update 1|old weights|synchron",
        ticks=("Sampler",),
    ),
    Case(
        "asynchronous sampler",
        "answers are of the policy of up to eight updates ago, and ratios span nine decades",
        lab(troubles.Late, 14, "k3 to the sampler", "largest ratio", "smallest ratio"),
        words=r"behind|stale|\blags?\b|asynch|updates (ago|old|late)|off.policy",
        ticks=("Sampler",),
    ),
    Case(
        "experts",
        "the sampler routes some tokens to other experts than the trainer",
        lab(troubles.Experts, 12, "k3 to the sampler", "median gap", "99th gap"),
        words=r"expert|rout|MoE",
        ticks=("Sampler",),
    ),
    Case(
        "turns rewritten",
        "the chat template cuts the first turn, so that the second was sampled after other tokens "
        "than the trainer scores it after",
        lab(troubles.Turns, 10, "k3 to the sampler", "gap in the first turn", "gap in the second turn"),
        words=r"turn|template|re-?tokeni[sz]|prefix",
        ticks=("Sampler", "Template"),
    ),
    Case(
        "tool tokens in the loss",
        "the loss takes the environment's tokens in",
        lab(troubles.ToolInLoss, 8, "share of the loss's tokens that the environment wrote"),
        words=r"environment|tool|mask",
    ),
    Case(
        "EOS is PAD",
        "the pad token is the end token, so the collator leaves the ends of answers out of the loss",
        learned(
            trl.SFTTrainer,
            trl.SFTConfig,
            trl_runs.given,
            20,
            "loss",
            before=trl_runs.pad_is_end,
            after=trl_runs.ends_in_loss,
            learning_rate=1e-3,
        ),
        words=r"\bEOS\b|end token|\bPAD\b|ends? of (the |an )?answer|token that ends",
        ticks=("End of answers",),
    ),
    Case(
        "format only",
        "the right answer has weight 0, so only the format counts: answers become sentences, and no more of them right",
        trained(
            Sample(
                "format",
                reward=("sentence", "right"),
                updates=16,
                settings={"reward_weights": {"sentence": 3, "right": 0.0}, "learning_rate": 6e-4},
            ),
            "rewards/sentence/mean",
            "gold/correct/mean",
        ),
        words=r"gold|weight|other reward|right answers",
        ticks=("Gold score",),
        there=lambda proof: proof["rewards/sentence/mean last"] > 0.8,
    ),
    Case(
        "KL below 0",
        "the KL is estimated by k1 on answers of another policy: the sampler keeps the first weights",
        lab(troubles.Negative, 12, "kl"),
        words=r"negative|below 0|< ?0|sampl",
        ticks=("KL to the reference",),
    ),
    Case(
        "both rewards of DPO fall",
        "pairs that share most tokens, and a learning rate of 1e-3: chosen and rejected "
        "answers both become less likely",
        _FALLING,
        words=r"chosen",
        there=lambda proof: proof["rewards/chosen last"] < -0.1,
    ),
    Case(
        "no spread in the reward",
        "all rewards are 0.7 but for noise below 0.001, which the group's std blows up to whole advantages",
        trained(Sample("jitter", reward=("jitter",), updates=10), "reward_std", "reward", "reward_p10", "reward_p90"),
        words=r"\bstd\b|spread|noise|hardly differ|nearly (equal|the same)",
        ticks=("Signal", "Differences in reward"),
    ),
)
"""In the order of the list; each counts once."""

ALONE = (
    Case(
        "reward flat, metrics alone",
        "the learning rate is 1e-8",
        metrics_alone(_SMALL_STEPS),
        words=r"learning.rate|warm",
        ticks=("Step size", "Learning rate", "Weights"),
    ),
    Case(
        "entropy rises, metrics alone",
        "an entropy bonus outweighs the reward",
        metrics_alone(_RISING),
        words=_UP,
        ticks=("Entropy",),
    ),
    Case(
        "KL below 0, metrics alone",
        "the sampler keeps the first weights",
        metrics_alone(lab(troubles.Negative, 12, "kl")),
        words=r"negative|below 0|< ?0|sampl",
        ticks=("KL to the reference",),
    ),
    Case(
        "both rewards of DPO fall, metrics alone",
        "chosen answers become less likely",
        metrics_alone(_FALLING),
        words=r"chosen",
    ),
    Case(
        "all answers cut, metrics alone",
        "max_completion_length is 6",
        metrics_alone(sampled(12, "completions/clipped_ratio", task="word_problems", max_completion_length=6)),
        words=r"length|cut",
        ticks=("End of answers",),
    ),
    Case(
        "frozen adapter, metrics alone",
        "no weight that has a gradient can learn",
        metrics_alone(sampled(12, "grad_norm", lora=True, before=trl_runs.frozen_adapter)),
        words=r"norm|gradient|weights",
    ),
)
"""The same troubles where only curves are on record; reported, and not counted among the questions."""
