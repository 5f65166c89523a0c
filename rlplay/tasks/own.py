"""The user's own prompts and reward functions, and what a scenario's task is when they are mixed in."""

from __future__ import annotations

import csv
import functools
import importlib
import importlib.util
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from rlplay.scenario.schema import Scenario
from rlplay.tasks import load_task
from rlplay.tasks.task import Example, RewardFunction, Task

_HELD_OUT_FROM = 10


class OwnError(ValueError):
    """A dataset or reward function that cannot be used: one line with the file, the place and what to do."""


def task_for(scenario: Scenario) -> Task:
    """What `scenario` teaches: its bundled task or its dataset, with its own rewards and prompts where it has any.

    Rewards of one's own replace the task's; its gold scores stay. Raises ValueError, one line.
    """
    own = {entry.rpartition(":")[2]: load_reward(entry) for entry in scenario.reward}
    if scenario.dataset is not None:
        task = load_own(Path(scenario.dataset), own)
    else:
        bundled = load_task(scenario.task or "")
        task = msgspec.structs.replace(bundled, rewards=own or bundled.rewards)
    if scenario.prompts is not None:
        task = msgspec.structs.replace(task, train=[_asked(task, prompt) for prompt in scenario.prompts])
    if unknown := [name for name in scenario.settings.get("reward_weights", {}) if name not in task.rewards]:
        raise OwnError(f"reward_weights names {unknown[0]!r}; the rewards here are {', '.join(task.rewards)}")
    return task


def load_own(path: Path, rewards: dict[str, RewardFunction]) -> Task:
    """A task of the rows of a JSONL, JSON, CSV or Parquet file; the last tenth of 10 or more rows is held out.

    The column `prompt` holds text or chat messages; the other columns reach the reward by name.
    """
    examples = [_example(path, number, row) for number, row in enumerate(_rows(path), start=1)]
    if not examples:
        raise OwnError(f"{path}: no rows")
    held_out = max(1, len(examples) // 10) if len(examples) >= _HELD_OUT_FROM else 0
    split = len(examples) - held_out
    return Task(
        name=path.stem,
        summary=f"{len(examples)} prompts from {path.name}",
        train=examples[:split],
        held_out=examples[split:],
        rewards=rewards,
        gold={},
    )


def load_reward(entry: str) -> RewardFunction:
    """The function `FILE.py:FUNCTION`, with TRL's signature.

    What it raises, when imported or when called, comes out as an OwnError that names the user's file and line.
    """
    file, _, name = entry.rpartition(":")
    path = Path(file)
    spec = importlib.util.spec_from_file_location(f"rlplay_reward_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise OwnError(f"reward {entry!r}: write it as FILE.py:FUNCTION, with a file that exists")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise OwnError(f"{path}:{error.lineno}: SyntaxError: {error.msg}") from error
    except Exception as error:
        raise OwnError(_blame(path, error)) from error
    function = getattr(module, name, None)
    if not callable(function):
        defined = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise OwnError(f"{path}: no function {name!r}; it has {', '.join(defined) or 'none'}")
    return _guarded(path, function)


def _guarded(path: Path, function: Callable[..., Any]) -> RewardFunction:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise OwnError(_blame(path, error)) from error

    return call


def _blame(path: Path, error: Exception) -> str:
    """`FILE:LINE: Kind: message`, the line being the last one of the user's file that was running."""
    user = path.resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == user]
    place = f"{path}:{lines[-1]}" if lines else str(path)
    return f"{place}: {type(error).__name__}: {' '.join(str(error).split())}"


def _asked(task: Task, prompt: str) -> Example:
    for example in [*task.train, *task.held_out]:
        said = example.prompt if isinstance(example.prompt, str) else example.prompt[-1]["content"]
        if said == prompt:
            return example
    raise OwnError(f"the task {task.name} has no prompt {prompt!r}, so its rewards would not know the answer")


def _example(path: Path, number: int, row: Any) -> Example:
    if not isinstance(row, dict) or "prompt" not in row:
        raise OwnError(f"{path}: row {number} has no 'prompt' column")
    prompt = row["prompt"]
    if not isinstance(prompt, str):
        try:
            prompt = msgspec.convert(prompt, list[dict[str, str]])
        except msgspec.ValidationError:
            prompt = []
        if not prompt or any(not {"role", "content"} <= set(message) for message in prompt):
            raise OwnError(f"{path}: the prompt of row {number} is neither text nor messages with role and content")
    return Example(prompt=prompt, columns={str(key): value for key, value in row.items() if key != "prompt"})


def _rows(path: Path) -> list[Any]:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise OwnError(f"{path}: not a dataset rlplay reads; it reads {', '.join(_READERS)}")
    try:
        return reader(path)
    except OSError as error:
        raise OwnError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise OwnError(f"{path}: cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise OwnError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None


def _json(path: Path) -> list[Any]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise OwnError(f"{path}: a JSON dataset is one list of rows")
    return rows


def _jsonl(path: Path) -> list[Any]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise OwnError(f"{path}:{number}: not JSON: {error.msg}") from None
    return rows


def _csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _parquet(path: Path) -> list[Any]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise OwnError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        rows: list[Any] = parquet.read_table(path).to_pylist()
    except ValueError as error:  # pyarrow's ArrowInvalid is one
        raise OwnError(f"{path}: not Parquet: {error}") from None
    return rows


_READERS = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet}
