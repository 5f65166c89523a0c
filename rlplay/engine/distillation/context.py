"""What a teacher reads in place of the prompt: the same with the solution, or with an answer that succeeded.

As in TRL's SDFT (arXiv:2601.19897) and SDPO (arXiv:2601.20802) trainers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Known, Prompts, TokenBatch
from rlplay.engine.state import Halt, State
from rlplay.tasks.task import Example
from rlplay.trace.text import quote

PROMPT, CONTEXT = "{prompt}", "{privileged_context}"
"""What a template says where the two go."""


@dataclass
class Reads:
    """The completions after what the teacher reads, and bool [N] on the CPU, which of them have a teacher."""

    tokens: TokenBatch
    taught: Tensor


def teacher_reads(batch: Batch, state: State) -> Reads | None:
    """What the teacher reads of a scored batch; None if that is what the policy has read.

    Raises Halt, one line, if the dataset lacks the column or a prompt becomes too long.
    """
    match state.settings.teacher_context:
        case "none":
            return None
        case "dataset":
            found = [_column(example, state.teaching.privileged_context) for example in batch.prompts.examples]
            group = batch.on_host("group")[0].tolist()
            contexts = [found[g] for g in group]
        case _:
            contexts = demonstrations(batch, state.settings.success_reward_threshold)
    return _laid_out(batch, contexts, state)


def demonstrations(batch: Batch, threshold: float) -> list[str | None]:
    """For each completion the first other one of its group whose reward reaches the threshold; None without one."""
    assert batch.rewards is not None
    group, rewards = batch.on_host("group")[0].tolist(), batch.rewards.tolist()
    good: dict[int, list[int]] = {}
    for row, (g, reward) in enumerate(zip(group, rewards, strict=True)):
        if reward >= threshold:
            good.setdefault(g, []).append(row)
    chosen = [next((other for other in good.get(g, [])[:2] if other != row), None) for row, g in enumerate(group)]
    return [None if row is None else batch.completions[row] for row in chosen]


def with_context(example: Example, context: str, template: str) -> Example:
    """The example with the context in its prompt, in the user's last message if it is a chat."""

    def filled(prompt: str) -> str:
        before, _, after = template.partition(PROMPT)
        return before.replace(CONTEXT, context) + prompt + after.replace(CONTEXT, context)

    if isinstance(example.prompt, str):
        return msgspec.structs.replace(example, prompt=filled(example.prompt))
    *earlier, last = example.prompt
    return msgspec.structs.replace(example, prompt=[*earlier, {**last, "content": filled(str(last["content"]))}])


def lacking(examples: list[Example], column: str) -> str | None:
    """What is wrong if the prompts lack the column; None if all have it."""
    missing = next((each for each in examples if each.columns.get(column) is None), None)
    if missing is None:
        return None
    there = ", ".join(map(quote, missing.columns)) or "none"
    return (
        f"teacher_context=dataset shows the teacher the column {quote(column)}, which a prompt lacks; there are "
        f"{there}: set the scenario's privileged_context to one of them"
    )


def _column(example: Example, column: str) -> str:
    if problem := lacking([example], column):
        raise Halt(problem)
    value: Any = example.columns[column]
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _laid_out(batch: Batch, contexts: list[str | None], state: State) -> Reads:
    """The completions after their prompts with these contexts, each of which is tokenized once."""
    known = Known(*batch.on_host("group", "ids", "lengths"))
    places: dict[tuple[int, str | None], int] = {}
    group = [places.setdefault(key, len(places)) for key in zip(known.group.tolist(), contexts, strict=True)]
    template = state.teaching.template
    examples = [
        batch.prompts.examples[g] if text is None else with_context(batch.prompts.examples[g], text, template)
        for g, text in places
    ]
    prompts = Prompts.of(state.lm, examples)
    longest = prompts.ids.shape[1] + batch.ids.shape[1]
    if longest > state.lm.context:
        raise Halt(
            f"with what the teacher reads, prompt and answer have {longest} tokens, more than the {state.lm.context} "
            "that the model can read; shorten the template or max_completion_length, or set teacher_context=none"
        )
    tokens = TokenBatch.of(prompts, Known(torch.tensor(group), known.ids, known.lengths))
    return Reads(tokens, torch.tensor([text is not None for text in contexts]))
