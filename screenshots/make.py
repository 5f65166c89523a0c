"""Makes the pictures of the README from real runs: `python -m screenshots.make [NAME …]`, about three minutes."""

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


def knobs(t: Terminal) -> None:
    """The settings, after an update."""
    _updates(t, 1)
    t.press("k")
    t.settle()


def two_plus_two(t: Terminal) -> None:
    """Before and after the one step."""
    _updates(t, 1)


def flattery(t: Terminal) -> None:
    """The proxy pays praise, and gets nothing else."""
    t.press("space")
    t.wait_for("update 25 ", timeout=240)
    t.press("space")
    t.wait_for("paused", timeout=60)
    t.settle()


SCENES: dict[str, tuple[tuple[int, int], str, list[str], Callable[[Terminal], None]]] = {
    "learn-to-think": ((160, 45), "rlplay-dark", ["learn-to-think"], learn_to_think),
    "learn-to-think-light": ((160, 45), "rlplay-light", ["learn-to-think"], learn_to_think),
    "learn-to-think-80x24": ((80, 24), "rlplay-dark", ["learn-to-think"], learn_to_think),
    "clipping": (
        (120, 35), "rlplay-dark",
        ["learn-to-think", "--set", "num_iterations=4", "--set", "learning_rate=1e-3"], clipped,
    ),
    "knobs": ((120, 35), "rlplay-dark", ["learn-to-think"], knobs),
    "two-plus-two": ((120, 35), "rlplay-dark", ["two-plus-two"], two_plus_two),
    "flattery": ((160, 45), "rlplay-dark", ["flattery"], flattery),
}  # fmt: skip


def _updates(t: Terminal, count: int) -> None:
    for number in range(1, count + 1):
        t.press("u")
        t.wait_for(rf"update {number} ", timeout=60)
    t.settle()


def main(names: list[str]) -> None:
    """Play each scene in a terminal of its own and write its picture."""
    for name in names or SCENES:
        (columns, rows), theme, arguments, play = SCENES[name]
        with tempfile.TemporaryDirectory() as home:
            env = {"RLPLAY_HOME": home, "TEXTUAL_THEME": theme}
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
