"""Makes the pictures of the README from real runs: `python -m screenshots.make [NAME …]`, about a minute."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from screenshots.draw import paint
from tests.terminal import Terminal, rlplay

HERE = Path(__file__).parent


def learn_to_think(t: Terminal) -> None:
    """After four updates, coloured by credit, the cursor on the token that got the most."""
    _updates(t, 4)
    t.press("c")
    t.press("x")
    t.settle()


def clipped(t: Terminal) -> None:
    """Four steps on one batch: ratios spread, tokens clip."""
    _updates(t, 3)
    for _ in range(7):
        t.press("c")
    t.settle()


def compared(t: Terminal) -> None:
    """A branch with ten times the learning rate, beside the run it left."""
    _updates(t, 2)
    t.press("b")
    t.settle()
    for keys in ([*"learning_rate"], ["enter"], [*"4e-3"], ["enter"]):
        for key in keys:
            t.press(key)
        t.settle()
    t.press("a")
    t.wait_for("B .*update 3 · paused", timeout=60)
    for number in (3, 4, 5):
        t.press("u")
        t.wait_for(f"A [^\n]*update {number} · paused.*B [^\n]*update {number} · paused", timeout=60)
    t.settle()


def grid(t: Terminal) -> None:
    """Six updates of a grid world: the way is being found, coloured by advantage."""
    _updates(t, 6)
    for _ in range(5):
        t.press("c")
    t.settle()


SCENES: dict[str, tuple[tuple[int, int], list[str], Callable[[Terminal], None]]] = {
    "learn-to-think": ((160, 45), ["learn-to-think"], learn_to_think),
    "clipping": (
        (120, 35), ["learn-to-think", "--set", "num_iterations=4", "--set", "learning_rate=1e-3"], clipped
    ),
    "grid": ((120, 35), ["grid"], grid),
    "compared": ((160, 45), ["learn-to-think"], compared),
}  # fmt: skip


def _updates(t: Terminal, count: int) -> None:
    for number in range(1, count + 1):
        t.press("u")
        t.wait_for(rf"update {number} ", timeout=60)
    t.settle()


def main(names: list[str]) -> None:
    """Play each scene in a terminal of its own and write its picture."""
    for name in names or SCENES:
        (columns, rows), arguments, play = SCENES[name]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            env = {"RLPLAY_HOME": home}
            terminal = Terminal(rlplay(*arguments), columns, rows, env)
            try:
                terminal.wait_for("paused", timeout=60)
                play(terminal)
                paint(terminal.screen, HERE / f"{name}.png")
            finally:
                terminal.close()
        print(HERE / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
