"""How quickly the program answers: help, first frame, first answers, and keys while the engine runs flat out.

    python -m tests.benchmarks.bench_screen [--keys 500]

Everything in a pseudo-terminal, as a user has it: with bytecode on disk, as an installation leaves it. A key counts
from its writing until the new colour's name has been read; nothing is drawn meanwhile, since drawing in Python takes
more of a core than a terminal does. Printed beside each figure is its share of the limit it is held to.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from tests.terminal import Terminal, cpu_seconds, rlplay

HELP, FRAME, ROLLOUTS, KEY = 0.3, 0.6, 8.0, 0.05
"""The limits, in seconds."""
RATIO = 2.6
"""The limit of the first frame, 500 ms where those imports take 190."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(r"colour: ([^─\x1b]+?)(| \(auto\)) ─")


def report(what: str, seconds: float, limit: float) -> None:
    """One line: the figure, and how much of its limit it takes."""
    print(f"{what:58} {seconds * 1000:7.0f} ms  {seconds / limit:5.2f} of the limit")


def help_seconds(env: dict[str, str]) -> float:
    """`rlplay --help`, median of nine."""
    times = []
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run(rlplay("--help"), capture_output=True, check=True, env=os.environ | env)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def least_seconds(env: dict[str, str]) -> float:
    """The processor time of a process that imports Textual and numpy: no screen of this kind is there sooner."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import textual.app, numpy"], check=True, env=os.environ | env)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def start_seconds(env: dict[str, str]) -> tuple[float, float, float, float]:
    """From the command to the title, the panels and the first answers (space pressed at once), medians of five.

    Also the processor time until the panels, over that of the imports that no such screen can do without.
    """
    titles, frames, rollouts, ratios = [], [], [], []
    for _ in range(5):
        least = least_seconds(env)
        terminal = Terminal(rlplay(), env=env)
        try:
            terminal.wait_for("rlplay")
            titles.append(time.monotonic() - terminal.started)
            terminal.wait_for("Answers")
            frames.append(time.monotonic() - terminal.started)
            ratios.append(cpu_seconds(terminal) / least)
            terminal.press("space")
            terminal.wait_for(r"How many \w+ does", timeout=60)
            rollouts.append(time.monotonic() - terminal.started)
        finally:
            terminal.close()
    return tuple(map(statistics.median, (titles, frames, rollouts, ratios)))  # type: ignore[return-value]


def key_seconds(env: dict[str, str], keys: int) -> list[float]:
    """The colour key while the engine runs, the dearest one: seconds until the new colour's name has been written.

    Only where the colour before was chosen by hand: an automatic one changes by itself.
    """
    terminal = Terminal(rlplay("learn-to-think", "--updates", "1000"), rows=50, env=env)
    times = []
    try:
        terminal.wait_for("paused", timeout=60)
        terminal.press("u")
        terminal.wait_for("update 1 ", timeout=60)
        terminal.press("space")
        terminal.wait_for("update 3 ", timeout=60)
        colour = colour_in(terminal.text())
        while len(times) < keys:
            colour = colour_in(rest(terminal, 0.05 + 0.013 * (len(times) % 7))) or colour
            received, began = b"", time.perf_counter()
            terminal.press("c")
            while colour_in(received) in ("", colour):
                received += terminal.receive(0.002)
                assert time.perf_counter() - began < 10, f"the colour stayed {colour!r}"
            if not colour.endswith("(auto)"):
                times.append(time.perf_counter() - began)
            colour = colour_in(received)
    finally:
        terminal.close()
    return sorted(times)


def colour_in(written: bytes | str) -> str:
    """The last name of a colour in what has been written; empty where there is none, or only half of one."""
    text = written if isinstance(written, str) else _ESCAPES.sub("", written.decode(errors="replace"))
    return "".join((_COLOUR.findall(text) or [("", "")])[-1])


def rest(terminal: Terminal, seconds: float) -> bytes:
    """Keep reading for a while, so that keys fall at different moments of an update; what was written."""
    end, received = time.perf_counter() + seconds, b""
    while time.perf_counter() < end:
        received += terminal.receive(0.005)
    return received


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=500)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {"RLPLAY_HOME": home, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
        report("rlplay --help", help_seconds(env), HELP)
        title, frame, rollouts, ratio = start_seconds(env)
        report("title on the screen", title, FRAME)
        report("panels on the screen", frame, FRAME)
        print(
            f"panels on the screen: {ratio:.2f} times the processor time of `import textual.app, numpy`; limit {RATIO}"
        )
        report("first answers on the screen", rollouts, ROLLOUTS)
        times = key_seconds(env, given.keys)
    report(f"key to paint, engine running, median of {len(times)}", statistics.median(times), KEY)
    report("key to paint, engine running, 95th percentile", times[int(len(times) * 0.95)], KEY)
    report("key to paint, engine running, worst", times[-1], KEY)


if __name__ == "__main__":
    main()
