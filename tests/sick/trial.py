"""Sixteen sick runs of other kinds, as a practitioner once set them up, and what has to be said of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from rlplay.tasks.task import chat
from tests.sick import runs, trl_runs
from tests.sick.case import Case, trained
from tests.sick.runs import SOON, Sample
from tests.sick.trl_runs import learned, pairs, sampled, trl

NO_QUESTION = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<|user|>' + '<|end|>' }}{% else %}"
    "{{ '<|assistant|>' + m['content'] + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def _no_question(folder: Path) -> Path:
    return runs.copied(folder, chat_template__jinja=lambda _: NO_QUESTION)


def one_row() -> list[dict[str, Any]]:
    """The same row sixty times."""
    return [{"prompt": chat("What is 7+8?"), "answer": 15}] * 60


def nothing_to_add() -> list[dict[str, Any]]:
    """Questions whose answer stands in the prompt."""
    return [{"prompt": chat(f"What is {n}+0?"), "answer": n} for n in range(60)]


TRIAL = (
    Case(
        "constant reward",
        "the reward's pattern matches the empty text: all answers earn 1",
        trained(Sample("constant", reward=("always",), updates=SOON), "reward", "reward_std"),
        ticks=("Signal", "Differences in reward"),
    ),
    Case(
        "one token",
        "max_completion_length is 1",
        trained(Sample("one", settings={"max_completion_length": 1}, updates=SOON), "completions/clipped_ratio"),
        words=r"max_completion_length|more tokens than",
        ticks=("End of answers",),
    ),
    Case(
        "learning rate 0.04",
        "the learning rate is a hundred times too large",
        trained(Sample("steep", settings={"learning_rate": 0.04}, updates=6), "reward", "entropy"),
        words=r"learning.rate",
        ticks=("Step size", "Learning rate"),
    ),
    Case(
        "rewards that cancel",
        "len/30 and −len/30: both parts vary and their sum is 0",
        trained(
            Sample("cancel", reward=("longer", "shorter"), updates=SOON),
            "reward_std",
            "rewards/longer/std",
            "rewards/shorter/std",
        ),
        words=r"cancel|opposite|add up|sum",
        ticks=("Signal",),
    ),
    Case(
        "template drops the question",
        "all prompts are the same tokens",
        trained(Sample("unasked", model=_no_question, updates=10), "reward"),
        words=r"identical|same (prompt|tokens|text|question)|prompts are (all )?(equal|the same)|template",
        ticks=("Template",),
    ),
    Case(
        "wrong sign and a format bonus",
        "a right answer costs 1, and a number earns 0.2",
        trained(Sample("upside", reward=("wrong_but_neat",), updates=12), "gold/correct/mean", "reward"),
        words=r"\bsign\b|punish|right answers (earn|cost)",
        ticks=("Right answers", "Gold score"),
    ),
    Case(
        "sixty equal prompts",
        "one row sixty times, held-out rows included",
        trained(
            Sample("alike", data=one_row, updates=10, eval_every=2, settings={"learning_rate": 1e-3}),
            "eval_reward",
            "entropy",
        ),
        words=r"identical|same (prompt|row|question)|prompts are (all )?(equal|the same)|one (prompt|question)",
        ticks=("Held-out reward",),
    ),
    Case(
        "sampler at temperature 2",
        "the sampler's temperature is 2, and log-probs are computed at 1",
        sampled(8, "entropy", "reward", before=trl_runs.hot, after=trl_runs.surprise),
        words=r"temperature|sampl",
        ticks=("Sampler", "Temperature"),
    ),
    Case(
        "another reference",
        "the reference is not the model that training starts from",
        sampled(8, "kl", before=trl_runs.noisy_reference, beta=0.04),
        words=r"reference.*(not|another|differ|other)|(not|another|other).*reference",
        ticks=("KL to the reference",),
    ),
    Case(
        "frozen adapter",
        "the half of the adapter that is 0 is frozen",
        sampled(12, "grad_norm", lora=True, before=trl_runs.frozen_adapter),
        words=r"frozen|gradient.*\b0\b|no gradient|(not|never) move",
        ticks=("Step size", "Weights"),
    ),
    Case(
        "all but one norm frozen",
        "a few hundred of 1.7 million weights learn",
        sampled(12, "grad_norm", "reward", before=trl_runs.one_norm),
        words=r"frozen|trainable|few (of the )?weights|share of the weights|most weights",
        ticks=("Step size", "Weights"),
    ),
    Case(
        "bf16 weights",
        "the weights are bf16 and the learning rate is 1e-6: nearly all steps round to nothing",
        sampled(12, "grad_norm", "reward", dtype=torch.bfloat16, learning_rate=1e-6),
        words=r"bf16|bfloat16|round|precision",
        ticks=("Step size", "Weights"),
    ),
    Case(
        "β of 5",
        "the KL's weight is a hundred times the usual one",
        sampled(12, "kl", "reward", beta=5.0, learning_rate=1e-5),
        words=r"beta|β|KL",
        ticks=("Step size",),
    ),
    Case(
        "answers in the prompts",
        "n + 0: the answer can be copied from the question",
        trained(Sample("copied", data=nothing_to_add, updates=8), "reward"),
        words=r"prompt|question|copy|copied",
    ),
    Case(
        "DPO swapped in the engine",
        "chosen and rejected answers are swapped",
        trained(
            Sample(
                "swapped",
                reward=(),
                data=lambda: pairs(swapped=True),
                updates=10,
                settings={"algorithm": "dpo", "num_prompts": 16, "learning_rate": 1e-4},
            ),
            "rewards/chosen",
            "logps/chosen",
            "logps/rejected",
        ),
        words=r"swap|label|gold|wrong|chosen",
    ),
    Case(
        "DPO swapped in TRL",
        "chosen and rejected answers are swapped",
        learned(
            trl.DPOTrainer,
            trl.DPOConfig,
            lambda: pairs(swapped=True),
            10,
            "rewards/chosen",
            "logps/chosen",
            "logps/rejected",
        ),
        words=r"swap|label|wrong|chosen",
    ),
)
