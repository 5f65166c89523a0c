"""The user's own prompts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.settings import Settings
from rlplay.containment import OwnError
from rlplay.tasks.dataset_row import read_row, renamed
from rlplay.tasks.hub_dataset import DATA_FILES, hub_rows, looks_like_dataset
from rlplay.tasks.task import Example, RewardFunction, Task, chat
from rlplay.trace.parquet_rows import parquet_rows
from rlplay.trace.text import quote

_HELD_OUT_FROM = 10
_TEXT = "utf-8-sig"
"""UTF-8, without the byte-order mark that some editors write at the start of a file."""


def narrowed(task: Task, prompts: Sequence[str]) -> Task:
    """`task` with only these prompts to train on, in this order; they are no longer held out.

    Raises OwnError, one line, if the task does not have one of them.
    """
    held_out = [example for example in task.held_out if _user_text(example) not in prompts]
    return msgspec.structs.replace(task, train=[_example_of(task, prompt) for prompt in prompts], held_out=held_out)


def instructed(task: Task, system_prompt: str) -> Task:
    """`task` with a system message before each prompt that has none; a plain text becomes the user's message."""

    def instruct(example: Example) -> Example:
        messages = chat(example.prompt) if isinstance(example.prompt, str) else example.prompt
        if messages[0]["role"] == "system":
            return example
        return msgspec.structs.replace(example, prompt=[{"role": "system", "content": system_prompt}, *messages])

    return msgspec.structs.replace(
        task, train=[instruct(example) for example in task.train], held_out=[instruct(e) for e in task.held_out]
    )


def check_reward_weights(weights: Iterable[str], names: Iterable[str]) -> None:
    """Raises OwnError, one line, if `weights` names a reward that is not one of `names`."""
    known = list(dict.fromkeys(names))
    if unknown := [name for name in weights if name not in known]:
        raise OwnError(f"reward_weights names {quote(unknown[0])}; the rewards here are {', '.join(known)}")


def check_sources(task: Task, settings: Settings, rewards: Sequence[str]) -> None:
    """Raises OwnError, one line, if a task offers nothing that the settings can learn from; `rewards` are names."""
    if settings.rewarded:
        if not rewards:
            raise OwnError(
                "there is no reward to maximise: add --reward FILE.py:FUNCTION, or train a reward model in an earlier "
                "stage"
            )
        return
    if not (brings_answers(task, settings) or task.gold or rewards or settings.labeller == "user"):
        columns = "prompt and completion" if settings.kind == "imitation" else "prompt, chosen and rejected"
        raise OwnError(
            f"nothing says which answers are good: give the columns {columns}, a --reward, or --set labeller=user"
        )


def brings_answers(task: Task, settings: Settings) -> bool:
    """Whether the examples have the answers to imitate or compare, so that the model need not sample any."""
    imitates = settings.kind == "imitation"
    return all(e.chosen is not None and (imitates or e.rejected is not None) for e in task.train)


def load_own(
    dataset: str | Path,
    rewards: dict[str, RewardFunction],
    progress: Callable[[str], object] = str,
    config: str | None = None,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Task:
    """A task with the rows of a JSONL, JSON, CSV or Parquet file, or of a split of a Hugging Face dataset.

    Of 10 or more rows, the last tenth is held out. Columns are as in `dataset_row.py`; the reward gets all but the
    prompt by name. `columns` maps these names to the dataset's own, `config`, `split` and `progress` are as in
    `hub_dataset.py`.
    """
    path = Path(dataset)
    named = path.is_dir() or (not path.exists() and looks_like_dataset(str(dataset)))
    rows = hub_rows(str(dataset), config, split or "train", progress) if named else _rows(path)
    examples = [_example(path, number, row, columns or {}) for number, row in enumerate(rows, start=1)]
    if not examples:
        raise OwnError(f"{path}: no rows")
    check_same_answers(path, examples)
    held_out = max(1, len(examples) // 10) if len(examples) >= _HELD_OUT_FROM else 0
    kept = len(examples) - held_out
    return Task(
        name=path.stem,
        summary=f"{len(examples)} prompts from {path.name}",
        train=examples[:kept],
        held_out=examples[kept:],
        rewards=rewards,
        gold={},
    )


def _example_of(task: Task, prompt: str) -> Example:
    for example in [*task.train, *task.held_out]:
        if _user_text(example) == prompt:
            return example
    raise OwnError(f"the task {task.name} has no prompt {quote(prompt)}, so its rewards would not know the answer")


def _user_text(example: Example) -> str:
    return example.prompt if isinstance(example.prompt, str) else example.prompt[-1]["content"]


def _example(path: Path, number: int, row: Any, columns: Mapping[str, str]) -> Example:
    try:
        return read_row(renamed(row, columns))
    except ValueError as error:
        raise OwnError(f"{path}: row {number} {error}") from None


def check_same_answers(place: Path | str, examples: list[Example]) -> None:
    """Raises OwnError if some rows have a chosen or a rejected answer and others have none."""
    for name in ("chosen", "rejected"):
        missing = [number for number, e in enumerate(examples, start=1) if getattr(e, name) is None]
        if missing and len(missing) < len(examples):
            raise OwnError(f"{place}: row {missing[0]} has no {quote(name)}, which other rows have")


def _rows(path: Path) -> list[Any]:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise OwnError(f"{path}: not a dataset format that rlplay reads; it reads {', '.join(_READERS)}")
    try:
        return reader(path)
    except OSError as error:
        raise OwnError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise OwnError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start + 1}; save it as UTF-8") from None
    except csv.Error as error:
        raise OwnError(f"{path}: cannot be read: {error}") from None


def _json(path: Path) -> list[Any]:
    rows = _loaded(path, path.read_text(encoding=_TEXT), 1)
    if not isinstance(rows, list):
        raise OwnError(f"{path}: a JSON dataset is one list of rows")
    return rows


def _jsonl(path: Path) -> list[Any]:
    rows = []
    for number, line in enumerate(path.read_text(encoding=_TEXT).split("\n"), start=1):
        if line.strip():
            rows.append(_loaded(path, line, number))
    return rows


def _loaded(path: Path, text: str, line: int) -> Any:
    """The content of a JSON text that begins at this line of the file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise OwnError(f"{path}:{line + error.lineno - 1}: not JSON: {error.msg}") from None
    except RecursionError:
        raise OwnError(f"{path}:{line}: cannot be read: it is nested too deeply") from None
    except ValueError:  # Python's own message is about an interpreter setting
        raise OwnError(f"{path}:{line}: cannot be read: it contains a number with thousands of digits") from None


def _csv(path: Path) -> list[Any]:
    with path.open(encoding=_TEXT, newline="") as file:
        return list(csv.DictReader(file))


def _parquet(path: Path) -> list[Any]:
    try:
        return parquet_rows(path)
    except ImportError:
        raise OwnError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    except Exception as error:  # a damaged file, dates outside Python's range, unknown time zones
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise OwnError(f"{path}: cannot be read as Parquet: {reason}") from None


_READERS = dict(zip(DATA_FILES, (_jsonl, _json, _csv, _parquet), strict=True))
