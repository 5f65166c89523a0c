"""The report itself: starts the processes of the checks, reads their lines, and says what became of those that ended.

Imports no torch.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rlplay.cli.gpu_report.checks import FAILS, GROUPS, REFERENCE, Check, Line

_PATIENCE = 180.0
"""Seconds without a word after which a check is ended."""
_WIDTH, _INDENT = 80, (10, 15)
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
_MODULE = "rlplay.cli.gpu_report"


class NoGpuError(Exception):
    """There is no GPU to report on: one line that says why."""


@dataclass(frozen=True)
class _Ended:
    """A process ended in the middle of a check, and why."""

    why: str


def report(device: str, progress: Callable[[str], object]) -> Iterator[Line]:
    """The findings, as they come; `progress` is told what is tried. Raises NoGpuError before the first."""
    with tempfile.TemporaryDirectory(prefix="rlplay-gpu-") as folder:
        first, *others = GROUPS
        yield from _group(device, first, Path(folder), progress)
        yield from _group("cpu", (REFERENCE,), Path(folder), progress)
        for group in others:
            yield from _group(device, group, Path(folder), progress)


def _group(device: str, checks: tuple[Check, ...], folder: Path, progress: Callable[[str], object]) -> Iterator[Line]:
    """The lines of these checks, which share a process as long as it lives."""
    left = list(checks)
    while left:
        for said in _told(device, left, folder):
            if isinstance(said, _Ended):
                yield Line(FAILS, left.pop(0).name, said.why)
            elif "ended" in said:
                left.pop(0)
            elif "none" in said:
                raise NoGpuError(said["none"])
            elif "began" in said:
                while left[0].place != said["began"]:
                    left.pop(0)
                progress(left[0].name)
            elif "line" in said:
                status, name, text = said["line"]
                yield Line(status, name or left[0].name, text)
            else:
                left.clear()


def _told(device: str, checks: list[Check], folder: Path) -> Iterator[dict[str, Any] | _Ended]:
    """What a process with these checks says; an `_Ended` last if it ends before it is done."""
    command = [sys.executable, "-P", "-m", _MODULE, device, str(folder), *(check.place for check in checks)]
    log = folder / "log"
    with log.open("wb") as errors, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        env=os.environ | _ENVIRONMENT | {"RLPLAY_HOME": str(folder)},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
        try:
            while True:
                try:
                    line = lines.get(timeout=_PATIENCE)
                except queue.Empty:
                    yield _Ended(f"no answer for {_PATIENCE:.0f} s, so it was ended")
                    return
                if not line:
                    yield _Ended(_why(child.wait(), log))
                    return
                said = json.loads(line)
                yield said
                if said.keys() & {"done", "ended", "none"}:
                    return
        finally:
            child.kill()


def _read(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(b"")


def _why(status: int, log: Path) -> str:
    """Why a process ended, with the last line that it wrote."""
    words = log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
    how = signal.Signals(-status).name if status < 0 else f"status {status}"
    return f"its process ended with {how}{f': {words}' if words else ''}"


def shown(line: Line) -> str:
    """A finding as it is printed: status, name and text, at most 80 columns wide."""
    status, name = (f"{word:<{room}}" for word, room in zip(line[:2], _INDENT, strict=True))
    return textwrap.fill(
        line.text, _WIDTH, initial_indent=status + name, subsequent_indent=" " * sum(_INDENT), break_on_hyphens=False
    )
