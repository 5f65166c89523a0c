"""`rlplay doctor`: what is installed, which devices there are, what the terminal shows, where files go."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import rlplay
from rlplay import paths
from rlplay.scenario.names import bundled

_PACKAGES = ("torch", "transformers", "accelerate", "numpy", "textual", "plotext", "msgspec", "safetensors")
_OPTIONAL = {"pyarrow": "for Parquet datasets"}


def report() -> Iterator[str]:
    """The findings, one line each."""
    yield f"rlplay        {rlplay.__version__} in {Path(rlplay.__file__).parent}"
    yield f"Python        {platform.python_version()} on {platform.platform()}"
    for name in _PACKAGES:
        yield f"{name:<13} {_version(name) or 'MISSING: pip install ' + name}"
    for name, purpose in _OPTIONAL.items():
        yield f"{name:<13} {_version(name) or 'not installed, ' + purpose}"
    yield from _devices()
    yield from _terminal()
    weights = Path(rlplay.__file__).parent / "pocket" / "weights" / "model.safetensors"
    size = f"{weights.stat().st_size / 1e6:.1f} MB in {weights.parent}" if weights.is_file() else f"MISSING: {weights}"
    yield f"bundled model {size}"
    yield f"scenarios     {', '.join(bundled()) or 'MISSING'}"
    yield f"runs go to    {paths.runs_folder()}"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> Iterator[str]:
    try:
        import torch
    except Exception as error:
        yield f"devices       torch cannot be imported: {error}"
        return
    cores = os.cpu_count() or 1
    yield f"device        cpu, {cores} {'core' if cores == 1 else 'cores'}, {torch.get_num_threads()} used by torch"
    for index in range(torch.cuda.device_count()):
        memory = torch.cuda.get_device_properties(index).total_memory / 2**30
        yield f"device        cuda:{index}, {torch.cuda.get_device_name(index)}, {memory:.0f} GiB"
    if torch.backends.mps.is_available():
        yield "device        mps"


def _terminal() -> Iterator[str]:
    columns, rows = shutil.get_terminal_size()
    kind = os.environ.get("TERM", "unknown") if sys.stdout.isatty() else "none (output is not a terminal)"
    yield f"terminal      {kind}, {columns}×{rows}; the playground wants 80×24 or more"
    yield f"colours       {_colours()}"
    encoding = (sys.stdout.encoding or "unknown").lower()
    shows = "drawings show as they should" if encoding.startswith("utf") else "set a UTF-8 locale to see the drawings"
    yield f"characters    {encoding}: {shows}"


def _colours() -> str:
    if "NO_COLOR" in os.environ:
        return "none (NO_COLOR is set)"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "16 million"
    if "256" in os.environ.get("TERM", ""):
        return "256; set COLORTERM=truecolor if your terminal can do more"
    return "16; set COLORTERM=truecolor if your terminal can do more"
