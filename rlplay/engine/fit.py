"""Whether model, prompts and settings fit together, found out before the first token rather than in update 7."""

from __future__ import annotations

from itertools import islice

from rlplay.algorithms.settings import Settings
from rlplay.engine import ranks
from rlplay.engine.lora import FrozenAdapters
from rlplay.engine.model import LanguageModel
from rlplay.engine.value_learning import check_world
from rlplay.tasks.task import Example, Task
from rlplay.worlds.world import World

_LOOKED_AT = 2000
"""Prompts that are tokenized for the check; more would keep the user waiting."""


def check_fit(lm: LanguageModel, task: Task, max_completion_length: int) -> None:
    """Raises ValueError, one line, if a prompt is empty or the longest leaves too little room for a completion."""
    longest = max((_length(lm, example) for example in islice(_examples(task), _LOOKED_AT)), default=0)
    context = getattr(lm.policy.config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(context, int) or context <= 0 or longest + max_completion_length <= context:
        return
    room = context - longest
    remedy = f"--set max_completion_length={room} would fit" if room > 0 else "use shorter prompts"
    raise ValueError(
        f"the longest prompt has {longest} tokens, which with max_completion_length={max_completion_length} is more "
        f"than the {context} that the model can read; {remedy}"
    )


def check_settings(settings: Settings, lm: LanguageModel, world: World | None) -> None:
    """Raises ValueError, one line, if the settings ask of the model or the world what they do not have."""
    check_world(settings, lm, world)
    if ranks.count() > settings.num_prompts:
        raise ValueError(
            f"num_prompts={settings.num_prompts} are too few for {ranks.count()} processes; start at most "
            f"{settings.num_prompts}, or raise num_prompts"
        )
    if settings.loss_type == "reward" and isinstance(lm.reference, FrozenAdapters):
        raise ValueError("loss_type=reward trains a whole copy of the model, so it takes no LoRA; leave use_peft out")
    if world is not None and settings.teacher_context != "none":
        raise ValueError("a world takes no teacher_context: its prompts are not words")
    if settings.sync_ref_model and isinstance(lm.reference, FrozenAdapters):
        raise ValueError("sync_ref_model mixes whole weights, so it takes no LoRA; leave use_peft out")
    if settings.gradient_checkpointing and lm.cacheless is None:
        name = type(lm.policy).__name__
        raise ValueError(f"gradient_checkpointing needs layers that can be run again; {name} has none, so leave it off")


def _examples(task: Task) -> list[Example]:
    return [*task.train, *task.held_out]


def _length(lm: LanguageModel, example: Example) -> int:
    if not isinstance(example.prompt, str) and lm.tokenizer.chat_template is None:
        raise ValueError(
            "the prompts are chat messages and this model has no chat template; use a chat model, or a dataset whose "
            "prompts are plain text"
        )
    try:
        length = len(lm.prompt_ids(example))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a chat template is a program of the model's; a tokenizer's panic is no Exception
        what = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"the model's tokenizer does not take the prompt {_shown(example)}: {what}") from error
    if length == 0:
        raise ValueError(f"the prompt {_shown(example)} is empty: it has no tokens; remove that row")
    return length


def _shown(example: Example) -> str:
    return repr(example.prompt if isinstance(example.prompt, str) else example.prompt[-1]["content"])[:60]
