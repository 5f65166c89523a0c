"""The rows of a dataset on Hugging Face, which the library `datasets` fetches by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlplay import hub
from rlplay.trace.text import quote

DATA_FILES = (".jsonl", ".json", ".csv", ".parquet")
"""The suffixes of the dataset files that rlplay reads itself."""


def hub_rows(name: str, config: str | None, split: str, progress: Callable[[str], object]) -> list[Any]:
    """The rows of a split of the dataset `name`, or of the one in the folder `name`.

    `config` is one of the dataset's configurations, if it has several. `split` is a split or a slice of one, as
    `datasets` writes it: "train[:1000]". `progress` is called with a description of each step. Raises ValueError, one
    line, if there is no such dataset or the hub cannot be reached.
    """
    try:
        import datasets
    except ImportError as error:
        raise ValueError(f"dataset {quote(name)} needs the library datasets ({error}): pip install datasets") from None
    # Its reader called pandas unpickles files that lie here.
    if name.isidentifier() and find_spec(f"datasets.packaged_modules.{name}") is not None:
        raise ValueError(f"dataset {quote(name)} is the name of a file format; name the file itself")
    datasets.disable_progress_bars()  # the terminal belongs to the screen
    datasets.config.HF_DATASETS_TRUST_REMOTE_CODE = False  # before version 4 a dataset may bring a script
    where, problem = "", ""
    if not Path(name).is_dir():
        where = "is not a file here, and from Hugging Face it "
        progress(f"asking {hub.address()} for {name}")
        problem = hub.out_of_reach()
        # Offline, `datasets` uses its cache at once instead of after a minute of retries.
        datasets.config.HF_HUB_OFFLINE |= bool(problem)
    progress(f"loading dataset {name}")
    try:
        rows: list[Any] = datasets.load_dataset(name, config, split=split).to_list()
    except Exception as error:  # its readers of many formats raise many kinds of errors
        raise ValueError(f"dataset {quote(name)} {where}cannot be loaded: {_reason(error, problem)}") from error
    return rows


def _reason(error: Exception, problem: str) -> str:
    # The first line says what happened; if a configuration has to be chosen, the second lists them.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()][:2]
    if error.__cause__ is not None:
        lines.append(f"({str(error.__cause__).strip().partition(chr(10))[0]})")
    reason = " ".join(lines).rstrip(".") or type(error).__name__
    if problem:
        return f"{'it was not downloaded before' if isinstance(error, OSError) else reason}, and {problem}"
    return f"{reason}; dataset_config and dataset_train_split choose" if isinstance(error, ValueError) else reason


def looks_like_dataset(name: str) -> bool:
    """Whether `name`, if no such file exists, means a dataset on Hugging Face's hub: `trl-lib/tldr`, `imdb`."""
    return re.fullmatch(r"[\w-][\w.-]*/[\w.-]+|[\w-]+", name) is not None and not name.endswith(DATA_FILES)
