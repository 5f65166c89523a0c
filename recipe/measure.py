"""How a model performs before any reinforcement: samples at temperature 1, scored by the tasks' functions."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import msgspec
import torch

from rlplay.tasks import Example, Task, load_task
from rlplay.tasks.task import total

_ROWS = 128
_LONGEST_ANSWER = 40


class Sampled(msgspec.Struct, frozen=True):
    """Completions of some examples: their texts, and their lengths in tokens, the end token included."""

    texts: list[str]
    lengths: list[int]


@torch.inference_mode()
def sample(model: Any, tokenizer: Any, examples: list[Example], count: int) -> Sampled:
    """`count` completions at temperature 1, going round `examples`; uses torch's global random generator."""
    texts: list[str] = []
    lengths: list[int] = []
    asked = [examples[k % len(examples)] for k in range(count)]
    for start in range(0, count, _ROWS):
        batch = tokenizer.apply_chat_template(
            [example.prompt for example in asked[start : start + _ROWS]],
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        ids = model.generate(**batch, max_new_tokens=_LONGEST_ANSWER, do_sample=True, temperature=1.0, top_k=0)
        answers = ids[:, batch["input_ids"].shape[1] :]
        texts += tokenizer.batch_decode(answers, skip_special_tokens=True)
        lengths += (answers != tokenizer.pad_token_id).sum(1).tolist()
    return Sampled(texts=texts, lengths=lengths)


def task_figures(model: Any, tokenizer: Any, task: Task, count: int) -> dict[str, float]:
    """Mean of every reward on `count` samples of the training and of the held-out prompts, and mean length."""
    figures: dict[str, float] = {}
    for part, examples in (("train", task.train), ("held out", task.held_out)):
        sampled = sample(model, tokenizer, examples, count)
        asked = [examples[k % len(examples)] for k in range(count)]
        columns = {name: [example.columns[name] for example in asked] for name in examples[0].columns}
        for name, reward in task.rewards.items():
            scores = reward([example.prompt for example in asked], sampled.texts, **columns)
            figures[f"{name}, {part}"] = fmean(total(score) for score in scores if score is not None)
        figures[f"tokens, {part}"] = fmean(sampled.lengths)
    return figures


@torch.inference_mode()
def first_token_chances(model: Any, tokenizer: Any, prompt: str, tokens: list[str]) -> dict[str, float]:
    """The probability of each of `tokens` as the first token of the answer to `prompt`."""
    batch = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    chances = model(**batch).logits[0, -1].softmax(-1)
    return {token: chances[tokenizer.convert_tokens_to_ids(token)].item() for token in tokens}


def base_figures(model: Any, tokenizer: Any, names: list[str], count: int) -> dict[str, dict[str, float]]:
    """The figures of every task in `names`, and the first token after `What is 2+2?`."""
    model.eval()
    figures = {name: task_figures(model, tokenizer, load_task(name), count) for name in names}
    figures["first token of What is 2+2?"] = first_token_chances(
        model, tokenizer, "What is 2+2?", ["4", "5", "2", "3", "The", "It"]
    )
    return figures
