"""The screen while the engine runs flat out: keys, each dialogue's opening, the screen's own work with each view open.

    python -m tests.benchmarks.bench_busy [--keys 60] [--openings 15] [--views …] [--dialogues …]

Everything in a pseudo-terminal, on the flagship scenario at 160×50. A key counts from its writing until what it changes
has been read: the row of the cursor, the name of the colour, the keys of the panel with the focus, the title of a
dialogue. On a busy machine the clock says little. Beside it stands the processor time that the screen's main thread
took meanwhile. The limits are for a machine that imports Textual and numpy in 0.19 s; what this one takes comes first.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.bench_long import percentile
from tests.benchmarks.bench_screen import KEY, colour_in, least_seconds, rest
from tests.terminal import Terminal, cpu_seconds, rlplay

OPENING = 0.15
"""The limit for a dialogue, in seconds."""
VIEWS = {
    "curves": "",
    "belief river": "B",
    "answer tree": "T",
    "pull map": "P",
    "learning map": "E",
    "by position": "Q",
}
DIALOGUES = {
    "knobs": ("k", "╭─ Knobs"),
    "help": ("?", "╭─ Help"),
    "glossary": ("d", "╭─ Glossary"),
    "timeline": ("g", "╭─ Timeline"),
    "palette": ("\x10", "Search for commands"),
    "sort": ("o", "╭─ Sort the answers"),
    "colours": ("C", "╭─ Colour the tokens by"),
    "probe": ("i", "╭─ Probe"),
    "health": ("h", "╭─ Health"),
    "lessons": ("l", "╭─ Lessons"),
    "held-out answers": ("e", "╭─ Held-out answers"),
    "before and after": ("O", "╭─ Before and after"),
    "log": ("f12", "╭─ Log"),
    "find": ("/", "╭─ Find"),
    "teachers": ("Y", "╭─ Who taught it that?"),
}
"""The key and the title of each."""
ROWS = 50
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CURSOR = re.compile(r"\x1b\[(\d+);\d+H(?:\x1b\[[0-9;]*m)*▸")
_FOOTER = re.compile(rf"\x1b\[{ROWS};1H((?:\x1b\[[0-9;]*m|[^\x1b])+)")


class Taken(NamedTuple):
    """Seconds from a key until its effect was read: by the clock, and of the screen's main thread."""

    wall: float
    cpu: float


def started(env: dict[str, str], view: str = "") -> Terminal:
    """The program, running, with a view open and two updates behind it."""
    terminal = Terminal(rlplay("learn-to-think", "--updates", "1000"), rows=ROWS, env=env)
    terminal.wait_for("paused", timeout=300)
    terminal.press("u")
    terminal.wait_for("update 1 .*paused", timeout=90)
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


def main_thread_seconds(terminal: Terminal) -> float:
    """The processor time of the program's main thread so far, to the nanosecond."""
    return int(Path(f"/proc/{terminal.pid}/schedstat").read_text().split()[0]) / 1e9


def until_written(terminal: Terminal, key: str, there: Callable[[bytes], object]) -> Taken:
    """From a key's writing until what it changes has been read."""
    received, began, before = b"", time.perf_counter(), main_thread_seconds(terminal)
    terminal.press(key)
    while not there(received):
        received += terminal.receive(0.002)
        assert time.perf_counter() - began < 20, f"nothing came of {key!r}"
    return Taken(time.perf_counter() - began, main_thread_seconds(terminal) - before)


def keys_taken(terminal: Terminal, keys: Sequence[str], mark: Callable[[bytes], str], times: int) -> list[Taken]:
    """Press `keys` in turn, each until another `mark` has been written than the one before.

    A colour that was not chosen by hand is left out: it changes by itself.
    """
    taken, here = list[Taken](), ""
    for at, key in enumerate(itertools.cycle(keys)):
        here = mark(rest(terminal, 0.05 + 0.013 * (at % 7))) or here
        found = here

        def another(written: bytes) -> bool:
            nonlocal found
            found = mark(written) or here  # noqa: B023 (called before the next turn)
            return found != here  # noqa: B023

        one = until_written(terminal, key, another)
        taken += [one] if here and not here.endswith("(auto)") else []
        if len(taken) == times:
            break
        here = found
    return taken


def row_in(written: bytes) -> str:
    """The row of the token map in which the cursor was last drawn; empty if it was not."""
    return "".join(_CURSOR.findall(written.decode(errors="replace"))[-1:])


def footer_in(written: bytes) -> str:
    """The last line, if it was drawn: those of the panel with the focus are among its keys."""
    return _ESCAPES.sub("", "".join(_FOOTER.findall(written.decode(errors="replace"))[-1:])).strip()


KEYS: dict[str, tuple[Sequence[str], Callable[[bytes], str]]] = {
    "rows": (("down", "up"), row_in),
    "colour": (("c",), colour_in),
    "tab": (("\t", "\x1b[Z"), footer_in),
}
"""What is pressed, and what shows that it has been written."""


def opening(terminal: Terminal, key: str, title: str, times: int) -> list[Taken]:
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


def report(what: str, taken: Sequence[Taken], limit: float) -> None:
    """One line: medians and 95th percentiles, and how much of its limit the latter takes by the clock."""
    columns = [[each.wall for each in taken], [each.cpu for each in taken]]
    (wall, high), (cpu, most) = ((statistics.median(one) * 1000, percentile(one) * 1000) for one in columns)
    share = high / 1000 / limit
    print(f"{what:28}{wall:7.0f} ms{high:6.0f} ms{share:6.2f} of the limit{cpu:7.1f} ms{most:6.1f} ms", flush=True)


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--openings", type=int, default=15)
    parser.add_argument("--views", nargs="*", default=list(VIEWS))
    parser.add_argument("--dialogues", nargs="*", default=list(DIALOGUES))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        env = {"RLPLAY_HOME": home, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
        least = statistics.median(least_seconds(env) for _ in range(5))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; textual.app and numpy take {least:.2f} s")
        print(f"{'median, 95th percentile of':30}{'the clock':>16}{'the main thread':>36}")
        for view in asked.views:
            terminal = started(env, VIEWS[view])
            print(f"{view}: the screen takes {share_of_a_core(terminal):.2f} of a core")
            for _ in range(12):  # away from the first answer, above which there is nothing to go to
                terminal.press("down")
                rest(terminal, 0.1)
            for name, (keys, mark) in KEYS.items():
                report(name, keys_taken(terminal, keys, mark, asked.keys), KEY)
            terminal.close()
        terminal = started(env)
        rest(terminal, 30.0)  # until the dialogues are imported
        for name in asked.dialogues:
            report(f"opening {name}", opening(terminal, *DIALOGUES[name], asked.openings), OPENING)
            terminal.press(DIALOGUES[name][0])
            print(f"{name} open: the screen takes {share_of_a_core(terminal, 4.0):.2f} of a core")
            close(terminal)
        terminal.close()
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
