"""A recorded run in Python: its numbers as arrays and dataframes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rlplay.export.completion_rows import rows, token_columns
from rlplay.foreign.copy import run_file
from rlplay.scenario.load_plugins import join
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Array, Evaluated
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update


class RecordedRun:
    """A recorded run, finished or still growing: every question is answered from what is on disk by then."""

    def __init__(self, path: Path) -> None:
        """Open the run file at `path`. Raises ValueError, one line, if it cannot be read."""
        self._reader = RunReader(path)
        self.path = path

    def __repr__(self) -> str:
        return f"<Run {self.path.stem}: {self._reader.started.title}, {len(self.updates)} updates>"

    @property
    def updates(self) -> list[int]:
        """The finished updates, from 1; those that undo discarded are left out."""
        return self._reader.updates()

    @property
    def detailed(self) -> list[int]:
        """The finished updates that still have their tokens; long runs keep those of some older updates only."""
        return self._reader.detailed()

    @property
    def metrics(self) -> dict[int, dict[str, float]]:
        """Every metric by update and name; update 0 has the held-out numbers from before training."""
        return dict(self._reader.metrics())

    @property
    def settings(self) -> SomeSettings:
        """The newest settings, with every change made during the run."""
        return self._reader.timeline().latest()

    def settings_at(self, update: int) -> SomeSettings:
        """The settings that held in the optimizer steps of `update`."""
        return self._reader.settings(update)

    def tokens(self, update: int) -> dict[str, Array]:
        """The T tokens of all completions of an update, one after the other: arrays [T] by the export's column names.

        `group_id` is the prompt, `sample_idx` the completion to it, `position` the place in the completion from 0,
        `loss_mask` whether the policy wrote the token, `reward` that of its completion. What was not computed is left
        out. Log-probabilities and entropies are in nats. Raises ValueError, one line, if the run has no such tokens.
        """
        found = self._load(update)
        sampled = found.sampled
        assert sampled is not None
        lengths = np.diff(sampled.offsets)
        samples = [int((sampled.group[:row] == group).sum()) for row, group in enumerate(sampled.group)]
        out: dict[str, Array] = {
            "group_id": np.repeat(sampled.group, lengths),
            "sample_idx": np.repeat(np.array(samples, dtype=np.int32), lengths),
            "position": np.arange(found.tokens) - np.repeat(sampled.offsets[:-1], lengths),
            "token_id": sampled.token_ids,
            "token_text": np.array(sampled.texts, dtype=object),
            "loss_mask": sampled.mask.astype(bool),
        }
        if found.scored is not None:
            out["reward"] = np.repeat(found.scored.rewards, lengths)
        return out | {name: column for name, column in token_columns(found).items() if column is not None}

    def dataframe(self, update: int) -> Any:
        """`tokens` as a pandas DataFrame, a row per token. Raises ImportError, one line, without pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("a dataframe needs pandas: pip install pandas; tokens() gives the same arrays") from None
        return pd.DataFrame(self.tokens(update))

    def completions(self, update: int) -> list[dict[str, Any]]:
        """Each completion of an update with its prompt, text, rewards and tokens, as `rlplay export --format jsonl`."""
        return list(rows(self._load(update)))

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> RecordedRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self, update: int) -> Update:
        return with_tokens(self._reader, update)


def with_tokens(reader: RunReader, number: int) -> Update:
    """An update of a run file. Raises ValueError, one line, if the run does not have its tokens."""
    found = reader.load(number)
    if found.sampled is None:
        kept = [update for update in reader.detailed() if update > number]
        instead = f"; of the later updates, {kept[0]} is the first that has them" if kept else ""
        raise ValueError(f"{reader.path}: update {number} has no tokens, or they were thinned out{instead}")
    return found


def held_out_answers(reader: RunReader, number: int) -> Evaluated:
    """The newest held-out answers up to after an update. Raises ValueError, one line, if there are none."""
    found = reader.held_out(number)
    if found is None:
        raise ValueError(f"{reader.path}: there are no held-out answers up to update {number}")
    return found


def open_run(name_or_path: str | Path) -> RecordedRun:
    """A recorded run: a path, a name that `rlplay runs` lists or a part of one, "last", or another trainer's folder.

    Raises ValueError, one line, if no run or several match, or it cannot be read.
    """
    join()
    return RecordedRun(run_file(name_or_path))
