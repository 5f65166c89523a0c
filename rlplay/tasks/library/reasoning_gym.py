"""reasoning-gym: seeded generators of questions, each with a function that scores an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlplay.containment import OwnError, contained
from rlplay.spelling import did_you_mean
from rlplay.tasks.library.entry import Entry, LibraryFunction
from rlplay.tasks.library.prompts import divided, without_repeats
from rlplay.tasks.own_rewards import as_reward
from rlplay.tasks.task import Completion, Example, Task, chat, completion_text
from rlplay.trace.text import quote


def task(entry: Entry) -> Task:
    """The questions `seed` to `seed` + `size` of a generator; other options are those of its own configuration.

    An answer is what stands between <answer> and </answer>, the last such pair, or the whole text where there is none.
    """
    library = entry.library()
    known = sorted(entry.library("factory").DATASETS)
    if entry.name not in known:
        raise OwnError(f"reasoning-gym has no generator {quote(entry.name)}{did_you_mean(entry.name, known)}")
    extract = entry.library("utils").extract_answer
    with contained(entry.text, entry.failed):
        dataset = library.create_dataset(entry.name, size=entry.size, seed=entry.seed, **entry.options)
        rows = [dataset[number] for number in range(entry.size)]
    examples = [_example(number, row) for number, row in enumerate(rows)]
    train, held_out = divided(without_repeats(examples))
    score = as_reward(LibraryFunction(entry, "score", _score(dataset, rows, extract)))
    return Task(
        name=entry.name,
        summary=f"{len(train)} questions of reasoning-gym's {entry.name}",
        train=train,
        held_out=held_out,
        rewards={"score": score},
        gold={"score": score},
    )


def _example(number: int, row: dict[str, Any]) -> Example:
    return Example(prompt=chat(str(row["question"])), columns={"answer": str(row["answer"]), "question_number": number})


def _score(dataset: Any, rows: list[dict[str, Any]], extract: Callable[[str], str | None]) -> Callable[..., Any]:
    """The library's score of each answer, mostly from 0 to 1; 0 for one that the library fails to read."""

    def score(
        completions: list[Completion],
        question_number: list[int],
        log_metric: Callable[[str, float], None],
    ) -> list[float]:
        found, unread = [], 0
        for completion, number in zip(completions, question_number, strict=True):
            text = completion_text(completion)
            answer = extract(text)
            try:
                found.append(float(dataset.score_answer(text.strip() if answer is None else answer, rows[number])))
            except Exception:  # a few generators expect a number, or JSON, of everybody
                found.append(0.0)
                unread += 1
        log_metric("score/unread", unread / len(found))
        return found

    return score
