"""What computes: the GPU and the versions of what drives it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import torch

from rlplay.cli.gpu_report.checks import Line
from rlplay.version import __version__


def no_gpu() -> str:
    """Why there is no CUDA GPU here; "" if there is one."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is built without CUDA; https://pytorch.org has one with it"
    return f"torch {torch.__version__} finds no GPU that it can use; 'nvidia-smi' says whether the driver does"


def facts(device: torch.device, _folder: Path) -> Iterator[Line]:
    """The device, its memory and abilities; then the versions."""
    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
        yield Line("", "device", (
            f"{found.name}, {found.total_memory / 2**30:.0f} GiB, compute capability {found.major}.{found.minor}, "
            f"{'with' if bfloat16 else 'no'} bfloat16"
        ))  # fmt: skip
    else:
        yield Line("", "device", f"{device}, no GPU: this shows what the report does, and says nothing of a GPU")
    driver = f", driver {_driver()}" if device.type == "cuda" else ""
    yield Line("", "versions", (
        f"rlplay {__version__}, torch {torch.__version__}{driver}, transformers {version('transformers')}, Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    ))  # fmt: skip


def _driver() -> str:
    """The version of NVIDIA's driver, which torch does not name."""
    if (tool := shutil.which("nvidia-smi")) is None:
        return "unknown"
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20).stdout.split()
    return said[0] if said else "unknown"
