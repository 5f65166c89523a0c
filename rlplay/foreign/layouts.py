"""Where trainers leave the files of their updates, and how these are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlplay.foreign import answer_rows as rows
from rlplay.foreign import nemo_rl, prime_config, prime_rl, skyrl, slime, tinker, verifiers_traces
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.json_lines import check_file, lines
from rlplay.record.format import Rollouts, Step
from rlplay.trace.parquet_rows import parquet_rows

Row = rows.Row


def _nothing(_folder: Path) -> dict[str, Any]:
    return {}


def _no_step(_update: int, _rows: list[Row]) -> Step | None:
    return None


@dataclass(frozen=True)
class FileLayout:
    """Where a trainer leaves its files, and what their rows say."""

    source: str
    pattern: str
    number: re.Pattern[str]
    """Finds the update in a path below the folder."""
    read: Callable[[Path], list[Row]]
    rollouts: Callable[[int, list[Row]], Rollouts]
    first: int | None = None
    """The number of the first update; None: 0 or 1, as the first file says."""
    beside: str = ""
    """What tells the folder from that of another trainer, which writes the same files."""
    companions: str = ""
    """Files with more of an update, which follow later, where the trainer writes them."""
    companion: re.Pattern[str] = re.compile(r"$^")
    """Finds the update in the path of such a file."""
    marker: str = ""
    """A file that stands beside complete ones, where the trainer's version writes it."""
    about: Callable[[Path], dict[str, Any]] = _nothing
    """What the folder says of the run, as arguments of `beginning`."""
    step: Callable[[int, list[Row]], Step | None] = _no_step
    """What the rows say of the optimizer step."""


def parquet(path: Path) -> list[Row]:
    """The rows of a Parquet file. Raises ValueError if they take too much memory."""
    check_file(path)
    try:
        return parquet_rows(path)
    except ImportError:
        raise ForeignRunError(f'{path} needs pyarrow: pip install "rlplay[parquet]"') from None


_TRL, _STEP = re.compile(r"completions_(\d+)\.parquet$"), re.compile(r"(?:^|/)step_(\d+)/")
_SKYRL = re.compile(r"(?:^|/)global_step_(\d+)_training_input\.pkl$")
_RANKS = "step_*/rank_*.jsonl"
_SUMMARIES = "iteration_*/train_rollout_summaries.jsonl"

LAYOUTS = (
    FileLayout("TRL", "completions/completions_*.parquet", _TRL, parquet, rows.trl),
    FileLayout("TRL", "completions_*.parquet", _TRL, parquet, rows.trl),
    FileLayout("prime-rl", _RANKS, _STEP, lines, prime_rl.exported, marker="step_*/STABLE",
           about=prime_config.configured, step=prime_rl.step),
    FileLayout("prime-rl", f"token_exports/{_RANKS}", _STEP, lines, prime_rl.exported,
           marker="token_exports/step_*/STABLE", about=prime_config.configured, step=prime_rl.step),
    FileLayout("prime-rl", "rollouts/step_*/train/effective/traces.jsonl", _STEP, lines, verifiers_traces.rollouts,
           about=prime_config.configured, step=verifiers_traces.step),
    FileLayout("tinker-cookbook", _SUMMARIES, re.compile(r"iteration_(\d+)/"), lines, tinker.summaries, 0,
           about=tinker.configured),
    *(FileLayout(source, "rollout_data/*.pt", re.compile(r"^rollout_data/(\d+)\.pt$"), slime.read, slime.rollouts, 0,
                 beside=beside, companions="train_data/*.pt", companion=re.compile(r"^train_data/(\d+)_\d+\.pt$"))
      for source, beside in (("miles", "dashboard_columns"), ("slime", ""))),
    *(FileLayout("SkyRL", f"{inside}global_step_*_training_input.pkl", _SKYRL, skyrl.read, skyrl.rollouts, 1)
      for inside in ("", "dumped_data/")),
    FileLayout("NeMo-RL", "train_data_step*.jsonl", re.compile(r"^train_data_step(\d+)\.jsonl$"), nemo_rl.read,
           nemo_rl.rollouts, 1),
    FileLayout("verl", "*.jsonl", re.compile(r"^(\d+)\.jsonl$"), lines, rows.verl),
)  # fmt: skip
SEGMENTS = FileLayout("tinker-cookbook", "tokens/segments/*.parquet", re.compile(r"$"), parquet, tinker.segments, 0,
                  about=tinker.configured)  # fmt: skip
"""The token database: any file may hold rows of any iteration."""
