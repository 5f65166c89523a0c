"""`rlplay doctor`: installed packages, devices, the terminal, and where files go."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

import rlplay
from rlplay import paths, user_preferences
from rlplay.scenario.names import bundled

_PACKAGES = ("torch", "transformers", "accelerate", "numpy", "textual", "msgspec", "safetensors")
_OPTIONAL = {
    "pyarrow": "for Parquet datasets and exports",
    "datasets": "for datasets on Hugging Face",
    "tensorboardX": "for exports to TensorBoard",
    "peft": "for LoRA (use_peft)",
    "reasoning-gym": "for --environment reasoning-gym:NAME",
    "textarena": "for --environment textarena:NAME",
    "openenv-core": "for --environment openenv:ADDRESS",
    "verifiers": "for --environment verifiers:NAME",
    "trl": "for exported TRL scripts (trl==1.16.0)",
    "textual-serve": "for rlplay serve",
    "pillow": "for views saved as PNG (w)",
}

_WIDTH, _TRIES = 512, 5
"""Of the matrices whose products are timed, and how many."""


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
    weights = paths.POCKET_PATH / "model.safetensors"
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
    from rlplay.scenario.load_plugins import join
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
    yield from _cores()
    yield _products()
    yield f"bfloat16      {bfloat16_speed():.2g} times the speed of float32 in matrix products on this CPU (--dtype)"
    for index in range(torch.cuda.device_count()):
        memory = torch.cuda.get_device_properties(index).total_memory / 2**30
        yield f"device        cuda:{index}, {torch.cuda.get_device_name(index)}, {memory:.0f} GiB"
    if torch.cuda.device_count():
        yield "GPU report    'rlplay doctor --gpu' tries the engine there, in a minute or two"
    if torch.backends.mps.is_available():
        yield "device        mps"


def _cores() -> Iterator[str]:
    """The CPU cores that rlplay may use, and what for."""
    from rlplay.processes import cores, threads_each

    many, each = cores(), threads_each(2)
    yield f"device        cpu, {many} {'core' if many == 1 else 'cores'}"
    yield f"threads       {threads_each(1)} for the engine{_why(many)}"
    threads = "1 CPU thread" if each == 1 else f"{each} CPU threads"
    yield f"processes     'rlplay run --processes 2' trains in two, {threads} each"


def _why(cores: int) -> str:
    if cores == 1:
        return ", which shares the core with the screen"
    return "; 1 core is left to the screen; without a screen it is the same, so that a seed gives the same numbers"


def _products() -> str:
    """How fast float32 matrices are multiplied, and by what."""
    import torch

    from rlplay.engine import onednn

    own, other = onednn.rates()
    threads = torch.get_num_threads()
    many = "1 thread" if threads == 1 else f"{threads} threads"
    found = f"float32       matrix products of {many} at {own / 1e9:.0f} GFLOP/s by torch"
    if other is None:
        return f"{found}; this build of it has no other way"
    used = "oneDNN" if onednn.is_faster() else "torch"
    return f"{found}, {other / 1e9:.0f} by oneDNN; linear layers use {used}"


def bfloat16_speed() -> float:
    """The time of a matrix product in float32, as linear layers make it, divided by that in bfloat16, each the shortest
    of a few."""
    import torch

    from rlplay.engine import onednn

    def product(matrix: torch.Tensor) -> torch.Tensor:
        if matrix.dtype is torch.float32 and onednn.is_faster():
            return onednn.multiplied(matrix, matrix, None)
        return matrix @ matrix

    def shortest(dtype: torch.dtype) -> float:
        matrix, times = torch.ones(_WIDTH, _WIDTH, dtype=dtype), list[float]()
        for _ in range(_TRIES):
            began = time.perf_counter()
            product(matrix)
            times.append(time.perf_counter() - began)
        return min(times)

    return shortest(torch.float32) / shortest(torch.bfloat16)


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
