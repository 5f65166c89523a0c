"""`rlplay doctor`: installed packages, devices, the terminal, and where files go."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

import rlplay
from rlplay import paths, user_preferences
from rlplay.scenario.names import bundled

_PACKAGES = ("torch", "transformers", "accelerate", "numpy", "textual", "plotext", "msgspec", "safetensors")
_OPTIONAL = {
    "pyarrow": "for Parquet datasets and exports",
    "datasets": "for datasets on Hugging Face",
    "tensorboardX": "for exports to TensorBoard",
    "peft": "for LoRA (use_peft)",
    "trl": "for exported TRL scripts (trl==1.16.0)",
    "textual-serve": "for rlplay serve",
    "pillow": "for views saved as PNG (w)",
}


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
    yield from (f"plug-in       {line}" for line in _plugins())
    yield f"scenarios     {', '.join(bundled()) or 'MISSING'}"
    yield f"runs go to    {paths.runs_folder()}{_problem(paths.runs_folder())}"
    with contextlib.suppress(ImportError):  # the packages above include it
        from huggingface_hub.constants import HF_HUB_CACHE

        yield f"downloads to  {HF_HUB_CACHE} (models by name; HF_HOME changes it)"


def _plugins() -> Iterator[str]:
    """What other packages add, tasks included, which load only where they are looked up."""
    from rlplay.scenario.plugins import join
    from rlplay.tasks import load_task
    from rlplay.trace import plugins

    join()
    for name in plugins.names("rlplay.tasks"):
        try:
            load_task(name)
        except Exception as error:
            plugins.refuse("rlplay.tasks", name, " ".join(str(error).split()))
    yield from plugins.report()


def _problem(folder: Path) -> str:
    """Why rlplay cannot keep files there; empty if it can."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        return f": CANNOT BE USED, {there} is not a folder; set RLPLAY_HOME to another"
    return "" if os.access(there, os.W_OK) else f": CANNOT BE WRITTEN ({there}); set RLPLAY_HOME to another"


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
    from rlplay.processes import threads_each

    cores = os.cpu_count() or 1
    yield f"device        cpu, {cores} {'core' if cores == 1 else 'cores'}, {threads_each(1)} for the engine"
    yield f"processes     'rlplay run --processes 2' trains in two, {threads_each(2)} CPU threads each"
    for index in range(torch.cuda.device_count()):
        memory = torch.cuda.get_device_properties(index).total_memory / 2**30
        yield f"device        cuda:{index}, {torch.cuda.get_device_name(index)}, {memory:.0f} GiB"
    if torch.backends.mps.is_available():
        yield "device        mps"


def _terminal() -> Iterator[str]:
    columns, rows = shutil.get_terminal_size()
    kind = os.environ.get("TERM", "unknown") if sys.stdout.isatty() else "none (output is not a terminal)"
    yield f"terminal      {kind}, {columns}×{rows}; the playground needs 80×24 or more"
    yield f"colours       {_colours()}"
    yield f"theme         {_theme()}"
    encoding = (sys.stdout.encoding or "unknown").lower()
    if encoding.startswith("utf"):
        yield f"characters    {encoding}; you should see a frame, blocks, dots and a mark: ╭─┼─╮ ▁▃▅█ ⣀⣤⣶⣿ ▲"
    else:
        yield f"characters    {encoding}: set a UTF-8 locale to see the drawings"


def _theme() -> str:
    if given := os.environ.get("TEXTUAL_THEME"):
        return f"{given} (TEXTUAL_THEME)"
    chosen = user_preferences.theme()
    return f"{chosen} (kept in {user_preferences.file()})" if chosen else "rlplay's dark one; ctrl+p changes it"


def _colours() -> str:
    if "NO_COLOR" in os.environ:
        return "none (NO_COLOR is set): underlined is up, struck through is down, m writes the numbers"
    # Ask the way the playground asks, so that this is what it will use.
    known = os.environ.get("TEXTUAL_COLOR_SYSTEM", "auto")
    found = Console(color_system=known, force_terminal=True).color_system  # type: ignore[arg-type]
    more = "; set COLORTERM=truecolor if your terminal can do more"
    return {"truecolor": "16 million", "256": f"256{more}", "standard": f"16{more}", "windows": "16"}.get(
        found or "", "none: underlined is up, struck through is down, m writes the numbers"
    )
