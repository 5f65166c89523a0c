"""The screen while the engine runs flat out: a key with each view open, each dialogue's opening, the screen's own work.

    python -m tests.benchmarks.bench_busy [--keys 60] [--openings 15]

Everything in a pseudo-terminal, on the flagship scenario at 160×50. A key counts as in `bench_screen`, a dialogue from
its key until its title has been read. On a busy machine the clock says little; beside it stand the processor time of
the screen's process for each key or opening, less what it needs anyway meanwhile, and the share of a core that it
takes while nobody presses anything.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial

from tests.benchmarks.bench_long import percentile
from tests.benchmarks.bench_screen import KEY, colour_in, rest
from tests.terminal import Terminal, cpu_seconds, rlplay

OPENING = 0.15
"""The limit for a dialogue, in seconds."""
VIEWS = {"curves": "", "belief river": "B", "answer tree": "T", "pull map": "P", "learning map": "E"}
DIALOGUES = {
    "knobs": ("k", "Knobs"),
    "help": ("?", "Help"),
    "glossary": ("d", "Glossary"),
    "timeline": ("g", "Timeline"),
    "palette": ("\x10", "Search for commands"),
    "sort": ("o", "Sort the answers"),
}
"""The key and the title of each."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def started(env: dict[str, str], view: str = "") -> Terminal:
    """The program, running, with a view open and two updates behind it."""
    terminal = Terminal(rlplay("learn-to-think", "--updates", "1000"), rows=50, env=env)
    terminal.wait_for("paused", timeout=90)
    terminal.press("u")
    terminal.wait_for("update 1 ", timeout=90)
    if view:
        terminal.press(view)
        terminal.settle(0.5)
    terminal.press("space")
    terminal.wait_for("update 3 ", timeout=120)
    return terminal


def share_of_a_core(terminal: Terminal, seconds: float = 6.0) -> float:
    """The processor time of the screen's process per second, while nobody presses a key."""
    began, before = time.perf_counter(), cpu_seconds(terminal)
    rest(terminal, seconds)
    return (cpu_seconds(terminal) - before) / (time.perf_counter() - began)


def until_written(terminal: Terminal, key: str, there: Callable[[bytes], bool]) -> float:
    """From a key's writing until what it changes has been read."""
    received, began = b"", time.perf_counter()
    terminal.press(key)
    while not there(received):
        received += terminal.receive(0.002)
        assert time.perf_counter() - began < 20, f"nothing came of {key!r}"
    return time.perf_counter() - began


def colour_keys(terminal: Terminal, keys: int) -> list[float]:
    """The colour key, as in `bench_screen`."""
    times, colour = list[float](), ""

    def another(written: bytes) -> bool:
        nonlocal colour
        before, found = colour, colour_in(written)
        colour = found or colour
        return found not in ("", before)

    while len(times) < keys:
        colour = rest(terminal, 0.05 + 0.013 * (len(times) % 7)) or colour
        times.append(until_written(terminal, "c", another))
    return times


def opening(terminal: Terminal, key: str, title: str, times: int) -> list[float]:
    """Seconds until the dialogue's title, each time with the dialogue closed again."""
    taken = []
    for _ in range(times):
        rest(terminal, 0.3)
        taken.append(until_written(terminal, key, partial(_written, title)))
        close(terminal)
    return taken


def _written(title: str, data: bytes) -> bool:
    return title in _ESCAPES.sub("", data.decode(errors="replace"))


def close(terminal: Terminal) -> None:
    """Close the dialogue. A key right after escape would be read as that key with alt."""
    rest(terminal, 0.3)
    terminal.press("escape")
    rest(terminal, 0.3)


def report(what: str, times: list[float], limit: float) -> None:
    """One line: median and 95th percentile, and how much of its limit the latter takes."""
    median, high = (seconds * 1000 for seconds in (statistics.median(times), percentile(times)))
    print(f"{what:32} {median:6.0f} ms {high:6.0f} ms  {high / 1000 / limit:5.2f} of the limit", flush=True)


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--openings", type=int, default=15)
    parser.add_argument("--views", nargs="*", default=list(VIEWS))
    parser.add_argument("--dialogues", nargs="*", default=list(DIALOGUES))
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median and 95th percentile")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {"RLPLAY_HOME": home, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
        for view in asked.views:
            terminal = started(env, VIEWS[view])
            print(f"{view}: the screen takes {share_of_a_core(terminal):.2f} of a core")
            report(f"key to paint, {view}", colour_keys(terminal, asked.keys), KEY)
            terminal.close()
        terminal = started(env)
        for name in asked.dialogues:
            report(f"opening {name}", opening(terminal, *DIALOGUES[name], asked.openings), OPENING)
            terminal.press(DIALOGUES[name][0])
            print(f"{name} open: the screen takes {share_of_a_core(terminal, 4.0):.2f} of a core")
            close(terminal)
        terminal.close()
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
