"""The options of the command line that change a scenario, for every command that plays one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rlplay.cli.types import ALGORITHM, DEVICE, PATH, WholeNumber

DEVICE_OPTION = click.option(
    "--device", type=DEVICE, default="auto", metavar="NAME", show_default=True, help="cpu, cuda, cuda:1, mps or auto."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object; docs/json.md explains it.")
_CHANGES = (
    click.option(
        "--model",
        type=PATH,
        metavar="NAME_OR_PATH",
        help="Another model: a Hugging Face name or a local folder. Starts with learning_rate 1e-6, "
        "max_completion_length 256, num_prompts 4, num_generations 8; --set changes them.",
    ),
    click.option(
        "--teacher",
        metavar="NAME_OR_PATH",
        help="Another model with the same vocabulary, or RUN@UPDATE (RUN@last), for distillation_weight above 0.",
    ),
    click.option(
        "--dtype",
        metavar="NAME",
        help="Of the model's weights: float32, bfloat16, or auto: bfloat16 on a GPU that computes in it, but float32 "
        "for the bundled model and worlds.  [default: auto]",
    ),
    click.option(
        "--tf32", is_flag=True, default=None, help="On a GPU: float32 products with 10 bits of their factors."
    ),
    click.option(
        "--full_determinism",
        is_flag=True,
        default=None,
        help="On a GPU: kernels that add in one order, where torch has them.",
    ),
    click.option("--use_peft", is_flag=True, default=None, help="Train LoRA adapters; the model's weights stay."),
    click.option("--lora_r", type=WholeNumber(1), metavar="N", help="Rank of the adapters.  [default: 16]"),
    click.option("--lora_alpha", type=WholeNumber(1), metavar="N", help="They count alpha / r times.  [default: 32]"),
    click.option(
        "--lora_target_modules",
        metavar="NAME",
        multiple=True,
        help="A layer that gets adapters, as in q_proj, or all-linear; repeatable.",
    ),
    click.option(
        "--task",
        type=PATH,
        metavar="FILE.py:FUNCTION",
        help="Your task: a function that returns its prompts with their rewards; or the name of a bundled task.",
    ),
    click.option(
        "--dataset",
        type=PATH,
        metavar="FILE_OR_NAME",
        help="Your prompts: JSONL, JSON, CSV or Parquet with a 'prompt' column, or a dataset on Hugging Face.",
    ),
    click.option("--dataset_config", metavar="NAME", help="Which configuration of a Hugging Face dataset."),
    click.option(
        "--dataset_train_split",
        metavar="SPLIT",
        help="Which of its splits; train[:1000] is the first 1,000 rows.  [default: train]",
    ),
    click.option(
        "--columns",
        metavar="prompt=NAME,…",
        help="The dataset's own names of columns, as in prompt=question,answer=solution.",
    ),
    click.option("--system_prompt", metavar="TEXT", help="A system message before each prompt that has none."),
    click.option(
        "--chat_template_kwargs",
        metavar="{NAME: VALUE}",
        help="For the model's chat template, as in '{enable_thinking: false}'.",
    ),
    click.option(
        "--environment",
        type=PATH,
        metavar="KIND:NAME",
        help="A library's environment, with its prompts and score: reasoning-gym:NAME, textarena:NAME, "
        "openenv:ADDRESS, verifiers:NAME; or FILE.py:FUNCTION, f(example, turns), which replies to the model's turns.",
    ),
    click.option(
        "--tools",
        type=PATH,
        metavar="FILE.py:FUNCTION",
        multiple=True,
        help="A function that the model may call in its answers, as in TRL; repeatable.",
    ),
    click.option(
        "--environment_factory",
        type=PATH,
        metavar="FILE.py:CLASS",
        help="A class whose methods the model may call, with reset and get_reward, as in TRL.",
    ),
    click.option(
        "--reward",
        type=PATH,
        metavar="FILE.py:FUNCTION",
        multiple=True,
        help="Your reward function, or MODULE:FUNCTION of an installed module, or NAME.yaml with a judge; repeatable.",
    ),
    click.option("--algorithm", type=ALGORITHM, metavar="NAME", help="grpo, dpo, …: 'rlplay algorithms' lists them."),
    click.option(
        "--surrogate", metavar="FILE.py:FUNCTION", help="Your own surrogate, or the name of one: ppo, cispo, …"
    ),
    click.option(
        "--advantage", metavar="FILE.py:FUNCTION", help="Your own advantage: what each token gets from the rewards."
    ),
    click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Change a setting; repeatable."),
    click.option(
        "--knobs", metavar="NAME", multiple=True, help="Show only this setting in the knobs panel; repeatable."
    ),
    click.option("--seed", type=WholeNumber(0), metavar="N", help="Seed of all random choices."),
    DEVICE_OPTION,
    click.option("--updates", type=WholeNumber(1), metavar="N", help="Maximum number of training updates."),
)


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options that change a scenario."""
    for option in reversed(_CHANGES):
        command = option(command)
    return command


def option_words(changes: dict[str, Any]) -> list[str]:
    """The options in `changes` as words of a command line."""
    words = []
    for name, value in changes.items():
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None:
                words += ["--set" if name == "sets" else f"--{name}", *([] if each is True else [str(each)])]
    return words
