"""Makes the pictures of the README from real runs: `python -m screenshots.make [NAME …]`, a few minutes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from screenshots.draw import Part, paint
from tests.terminal import Terminal, rlplay

HERE = Path(__file__).parent


def opening(t: Terminal) -> None:
    """The first frame: what a run taught the model, recorded, and the ways on."""
    t.settle()


def belief(t: Terminal) -> None:
    """What the first token was likely to be, over the updates."""
    t.press("B")
    t.settle()


def tree(t: Terminal) -> None:
    """The answers to one prompt, merged where they agree."""
    t.press("T")
    t.settle()


def surrogate(t: Terminal) -> None:
    """The surrogate with its walls, and the tokens of four steps on one batch below it."""
    t.press("K")
    t.settle()


def clipped(t: Terminal) -> None:
    """Four steps on one batch: ratios spread, tokens clip; the cursor on a clipped one."""
    for _ in range(7):
        t.press("c")
    t.press("x")
    t.settle()


def world(t: Terminal) -> None:
    """A map of what each square is worth."""
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


def teachers(t: Terminal) -> None:
    """Who taught a token of the third update, as the engine answers."""
    _updates(t, 3)
    t.press("Y")
    t.wait_for("measured", timeout=120)
    t.settle()


def repair(t: Terminal) -> None:
    """A learning rate that is too large, and what became of the run with smaller ones."""
    _updates(t, 5)
    t.press("h")
    t.wait_for("try a repair", timeout=60)
    t.press("!")
    t.wait_for("elped", timeout=240)
    t.settle()


def pressed(*keys: str, updates: int = 0) -> Callable[[Terminal], None]:
    """A scene that these keys, one after the other, lead to; of a live run after so many updates."""

    def play(t: Terminal) -> None:
        _updates(t, updates)
        for key in keys:
            t.press(key)
            t.settle()

    return play


class Scene(NamedTuple):
    """What is played in a terminal of which size, and the part of it that the picture shows; None: all of it.

    With `updates`, as many are recorded first, and the recording is shown.
    """

    size: tuple[int, int]
    arguments: list[str]
    play: Callable[[Terminal], None]
    updates: int = 0
    part: Part | None = None


THINK = ["learn-to-think"]
SUMS = [*THINK, "--task", "arithmetic"]
CLIPS = [*THINK, "--set", "num_iterations=4", "--set", "learning_rate=1e-3"]
LAGGED = ["--set", "sampler_lag=8", "--set", "max_staleness=16"]
SCENES = {
    "opening": Scene((112, 34), [], opening),
    "belief": Scene((90, 30), THINK, belief, 6),
    "tree": Scene((90, 30), THINK, tree, 6),
    "map": Scene((112, 36), ["grid"], world, 5),
    "surrogate": Scene((112, 34), CLIPS, surrogate, 4),
    "clipping": Scene((112, 36), CLIPS, clipped, 4),
    "compared": Scene((160, 45), THINK, compared),
    "health": Scene((112, 34), [*SUMS, "--reward", "tests/sick/rewards.py:as_text"], pressed("h"), 4),
    "teachers": Scene((160, 40), THINK, teachers),
    "repair": Scene((112, 34), [*THINK, "--set", "learning_rate=0.02"], repair),
    "mismatch": Scene((112, 34), [*THINK, *LAGGED], pressed("Q", updates=22)),
    "weights": Scene((112, 34), THINK, pressed("W", updates=2)),
    "timeline": Scene((112, 34), THINK, pressed("g"), 8),
    "learning-map": Scene((112, 34), THINK, pressed("E"), 10),
    "probe": Scene((112, 34), THINK, pressed("i")),
    "knobs": Scene((112, 34), THINK, pressed("k", "b", ".", "3", updates=4)),
    "conversation": Scene((112, 34), ["guess"], pressed(), 4),
    "pair": Scene((112, 34), ["dpo"], pressed("x", "p", "p", "p", "p"), 14),
}


def _updates(t: Terminal, count: int) -> None:
    for number in range(1, count + 1):
        t.press("u")
        t.wait_for(rf"update {number} ", timeout=60)
    t.settle()


def main(names: list[str]) -> None:
    """Play each scene in a terminal of its own and write its picture."""
    for name in names or SCENES:
        scene = SCENES[name]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            recording, shown = str(Path(home) / "scene.rlplay"), scene.arguments
            if scene.updates:
                recorded = ["run", *scene.arguments, "--updates", str(scene.updates), "--out", recording]
                subprocess.run(rlplay(*recorded), check=False, capture_output=True)  # claims about more updates fail
                shown = ["replay", recording]
            take(scene, shown, home, HERE / f"{name}.png")
        print(HERE / f"{name}.png")


def take(scene: Scene, arguments: list[str], home: str, out: Path) -> None:
    """Open rlplay with these `arguments`, play the scene and write its picture to `out`."""
    terminal = Terminal(rlplay(*arguments), *scene.size, {"RLPLAY_HOME": home})
    try:
        terminal.wait_for("end of the rec" if scene.updates else "paused|live", timeout=180)
        terminal.settle()
        scene.play(terminal)
        paint(terminal.screen, out, scene.part)
    finally:
        terminal.close()


if __name__ == "__main__":
    main(sys.argv[1:])
