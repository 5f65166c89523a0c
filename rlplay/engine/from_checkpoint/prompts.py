"""Recorded prompts as rows of a dataset: the text or the messages of which the tokenizer makes the recorded ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlplay.foreign.from_checkpoint.recorded_prompts import RecordedPrompt
from rlplay.tasks.task import Example, Message

_SYSTEM = "rlplay-system-message"
"""Stands for the system message in a template, where its place is looked for."""
_OPTIONS: tuple[dict[str, Any], ...] = ({}, {"enable_thinking": False})
"""What chat templates are mostly given besides the messages; recordings do not say."""

Prompt = str | list[Message]


@dataclass(frozen=True)
class Rows:
    """Rows as a dataset has them, what the chat template is given with them, and how many prompts make no row."""

    rows: list[dict[str, Any]]
    template: dict[str, Any]
    left_out: int


def rows_of(prompts: Sequence[RecordedPrompt], tokenizer: Any, ends: frozenset[int], imitates: bool | None) -> Rows:
    """The rows of which `tokenizer` makes exactly the recorded ids; the others are left out.

    `imitates` says of prompts with given answers whether one is imitated, else two are compared; None: there are none.
    `ends` are the tokens that end an answer.
    """
    best = Rows([], {}, len(prompts))
    for options in _OPTIONS:
        rows = [row for each in prompts if (row := _row(each, tokenizer, options, ends, imitates)) is not None]
        if len(rows) > len(best.rows):
            best = Rows(rows, options, len(prompts) - len(rows))
        if not best.left_out:
            break
    return best


def example_of(recorded: RecordedPrompt, tokenizer: Any, options: dict[str, Any]) -> Example | None:
    """A recorded prompt as a reward function sees it; None if it cannot be rebuilt."""
    prompt = prompt_of(recorded, tokenizer, options, given=False)
    return None if prompt is None else Example(prompt, recorded.columns)


def _row(
    recorded: RecordedPrompt, tokenizer: Any, options: dict[str, Any], ends: frozenset[int], imitates: bool | None
) -> dict[str, Any] | None:
    prompt = prompt_of(recorded, tokenizer, options, imitates is not None)
    if prompt is None:
        return None
    if imitates is None:
        return recorded.columns | {"prompt": prompt}
    roles = {"completion": "chosen"} if imitates else {"chosen": "chosen", "rejected": "rejected"}
    answers = {column: _answer(recorded.answers.get(role, ()), tokenizer, ends) for column, role in roles.items()}
    return None if None in answers.values() else {"prompt": prompt, **answers}


def prompt_of(recorded: RecordedPrompt, tokenizer: Any, options: dict[str, Any], given: bool) -> Prompt | None:
    """The text or messages with the recorded ids; None if none are found, as of a conversation of several turns.

    Where the answers are `given`, no reward function sees the prompt, so that its whole text will do.
    """
    wanted = list(recorded.ids)
    for prompt in _candidates(recorded, tokenizer, options, given):
        try:
            if _ids(prompt, tokenizer, options) == wanted:
                return prompt
        except Exception:  # a chat template is a program of the model's
            continue
    return None


def _candidates(recorded: RecordedPrompt, tokenizer: Any, options: dict[str, Any], given: bool) -> Iterator[Prompt]:
    yield recorded.heading
    if given:
        yield recorded.text
    if tokenizer.chat_template is not None:
        asked = {"role": "user", "content": recorded.heading}
        yield [asked]
        system = _system_of(recorded, tokenizer, options, asked)
        if system is not None:
            yield [{"role": "system", "content": system}, asked]


def _system_of(recorded: RecordedPrompt, tokenizer: Any, options: dict[str, Any], asked: Message) -> str | None:
    """The text that stands where the template puts a system message; None if the rest differs."""
    try:
        written = _templated([{"role": "system", "content": _SYSTEM}, asked], tokenizer, options)
    except Exception:  # this template has no system messages
        return None
    before, found, after = written.partition(_SYSTEM)
    whole = recorded.text
    inside = len(whole) >= len(before) + len(after) and whole.startswith(before) and whole.endswith(after)
    return whole[len(before) : len(whole) - len(after)] if found and inside else None


def _ids(prompt: Prompt, tokenizer: Any, options: dict[str, Any]) -> list[int]:
    """As `LanguageModel.prompt_ids` has them."""
    if isinstance(prompt, str):
        return list(tokenizer(prompt)["input_ids"])
    return list(tokenizer(_templated(prompt, tokenizer, options), add_special_tokens=False)["input_ids"])


def _templated(messages: list[Message], tokenizer: Any, options: dict[str, Any]) -> str:
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options))


def _answer(ids: Sequence[int], tokenizer: Any, ends: frozenset[int]) -> str | None:
    """The text of an answer that ends, what a template adds after its end left out; None if it has other tokens."""
    places = [place for place, token in enumerate(ids) if token in ends]
    if not places:
        return None
    own = list(ids[: places[0]])
    text = str(tokenizer.decode(own, skip_special_tokens=False))
    again = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    return text if text.strip() and again == own else None
