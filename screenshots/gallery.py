"""Draws every screen and dialogue, at four sizes, dark, light and without colour: `python -m screenshots.gallery OUT`.

The runs are made up, so no engine starts; OUT gets a PNG for each picture and README.md, which shows them all. Whoever
changes the screen looks at it. A screen that a verb opens is found by performing the verb; `OCCASIONS` has the others,
and a test fails while a screen is in neither.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import aclosing, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from textual.pilot import Pilot

from rlplay.exercises import exercise_called
from rlplay.link.messages import Failed, Loading, Status
from rlplay.trace.records import Evaluated
from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.compare_moments import CompareMomentsScreen
from rlplay.ui.main.copying import CopyingScreen
from rlplay.ui.opening.opening import open_first
from rlplay.ui.parts.confirm import ConfirmScreen
from rlplay.ui.screenshot.cells import capture
from rlplay.ui.screenshot.png import PngRenderer
from rlplay.ui.writing.engine_lines_screen import EngineLinesScreen
from rlplay.verbs import PANELS, STAGES, VERBS, VIEWS
from screenshots.stand_in import LESSON, LOG, UPDATES, StandIn
from tests.recorded import synthetic_evaluated, synthetic_sampling, synthetic_started, synthetic_update
from tests.ui.patches import no_idle_time
from tests.ui.rehearsed import cut
from tests.ui.stage import CHOSEN, settled, until

SIZES = (80, 24), (120, 35), (160, 45), (240, 67)
LOOKS = {"dark": "rlplay-dark", "light": "rlplay-light", "no colour": ""}
"""The theme of each look; empty for NO_COLOR."""

PASSED_OVER = ("quit", "resume", "shot")
"""Verbs of the screen that would end it, or write files."""


FITTING = tuple(stage for stage in STAGES if stage not in ("map", "pair", "conversation", "all"))
"""The stages of the made-up run, which has no world, no pairs and no turns."""


class Shot(NamedTuple):
    """What a picture is called, and the app that shows it until the next one is asked for."""

    name: str
    app: RlplayApp


class Scene(NamedTuple):
    """An app with its pilot, and the two sources it is fed from."""

    app: RlplayApp
    pilot: Pilot[Any]
    one: StandIn
    other: StandIn

    async def settle(self) -> None:
        """Let what was fed and pressed reach the screen."""
        await until(self.pilot, lambda: self.app.screen.size.area)
        await settled(self.pilot)

    async def press(self, *keys: str) -> None:
        """Press one key after the other."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()


Occasion = Callable[[Scene], Awaitable[None]]


async def _starting(scene: Scene) -> None:
    scene.one.put(Loading("model", 0.5))


async def _waiting(scene: Scene) -> None:
    scene.one.records([synthetic_started()])
    scene.one.status()


async def _says(scene: Scene) -> None:
    await scene.press("t")


async def _asks(scene: Scene) -> None:
    await scene.press("t")


async def _answered(scene: Scene) -> None:
    await scene.press("3")


async def _sampling(scene: Scene) -> None:
    scene.one.records(synthetic_sampling(1)[:5])
    scene.one.status(0, running=True)


async def _trained(scene: Scene) -> None:
    for seed, source in enumerate((scene.one, scene.other)):
        source.records([synthetic_started(seed=seed)])
        source.evaluated = [_evaluated(number) for number in range(UPDATES + 1)]
        for number in range(1, UPDATES + 1):
            source.records([*synthetic_update(number, seed), source.evaluated[number]])
        source.status(UPDATES)
    scene.one.put(*LOG)


def _evaluated(number: int) -> Evaluated:
    """Held-out answers of prompts that are learned one after the other, but the last, which is forgotten."""
    one, count = synthetic_evaluated(number), 8
    rewards = np.array([*(at <= number for at in range(1, count)), number < 2], dtype=np.float32)
    prompts, completions = ([f"{each} {at}" for at in range(count)] for each in (one.prompts[0], one.completions[0]))
    return msgspec.structs.replace(one, prompts=prompts, completions=completions, rewards=rewards)


async def _palette(scene: Scene) -> None:
    scene.app.action_command_palette()
    await scene.press("k", "l")


async def _moments(scene: Scene) -> None:
    app = scene.app
    app.push_screen(
        CompareMomentsScreen(app.play, app.play.session, UPDATES, UPDATES, 0)
    )  # no two have a prompt in common
    await scene.pilot.pause()


async def _opening(scene: Scene) -> None:
    open_first(scene.app.play)
    await scene.pilot.pause()


async def _copying(scene: Scene) -> None:
    screen = CopyingScreen(UPDATES)
    scene.app.push_screen(screen)
    await scene.pilot.pause()
    screen.going(0.4)
    screen.add_class("-long")


async def _forgetting(scene: Scene) -> None:
    scene.app.push_screen(ConfirmScreen("Forget answers", "Forget what you answered in this lesson?", "forget"))
    await scene.pilot.pause()


async def _repair(scene: Scene) -> None:
    """Most answers of the newest update are cut; longer ones are tried."""
    scene.one.records(cut(UPDATES + 1))
    scene.one.status(UPDATES + 1)
    await scene.settle()
    await scene.press("h", "exclamation_mark")
    await until(scene.pilot, lambda: scene.app.screen.tried.best is not None)


async def _labels(scene: Scene) -> None:
    scene.one.records(synthetic_update(UPDATES + 1, generations=2)[:1])
    scene.one.put(Status(False, UPDATES, "score", CHOSEN, [0], asks=[0, 1, 2], waits=True))


async def _chosen(scene: Scene) -> None:
    await scene.press("A", "right")


async def _ended(scene: Scene) -> None:
    scene.one.put(Failed("The engine ended: killed (SIGKILL).", "Traceback"), None)


async def _after_verb(scene: Scene, verb: str, *keys: str) -> None:
    await scene.app.play.perform(verb)
    await scene.settle()
    await scene.press(*keys)


async def _writing(scene: Scene, exercise: str, *keys: str) -> None:
    await scene.app.play.perform("write", exercise)
    await scene.settle()
    await scene.press(*keys)


async def _engine_lines(scene: Scene) -> None:
    scene.app.push_screen(EngineLinesScreen(*exercise_called("reinforce").engine))


BEGINNING: dict[str, Occasion] = {
    "starting": _starting,
    "waiting": _waiting,
    "lesson says": _says,
    "lesson asks": _asks,
    "lesson answers": _answered,
    "sampling": _sampling,
    "trained": _trained,
}
OCCASIONS: dict[str, Occasion] = {
    **{f"panel {panel}": lambda scene, panel=panel: scene.app.play.perform("panel", panel) for panel in PANELS},
    "coloured by clipping": lambda scene: scene.app.play.perform("lens", "clip_state"),
    "marks": lambda scene: scene.app.play.perform("signs"),
    "looked back": lambda scene: scene.app.play.perform("older"),
    "found": lambda scene: scene.app.play.perform("find", "reward>0.5"),
    "palette": _palette,
    "knobs changed": lambda scene: _after_verb(scene, "knobs", "down", "down", "right"),
    "knobs algorithms": lambda scene: _after_verb(scene, "knobs", "home", "enter"),
    "knobs found": lambda scene: _after_verb(scene, "knobs", *"beta"),
    "branch changed": lambda scene: _after_verb(scene, "branch", "down", "down", "right"),
    "glossary found": lambda scene: _after_verb(scene, "glossary", *"hacking"),
    "find typed": lambda scene: _after_verb(scene, "find", *"length>0"),
    "probe asked": lambda scene: _after_verb(scene, "probe", "N", "V", "H"),
    "write": lambda scene: _writing(scene, "reinforce"),
    "write, wrong": lambda scene: _writing(scene, "baseline", *"return rewards", "ctrl+r"),
    "write, the engine's lines": _engine_lines,
    "weights, layers": lambda scene: _after_verb(scene, "weights", "tab"),
    "weights, neighbours": lambda scene: _after_verb(scene, "weights", "tab", "tab"),
    "who taught it, taken away": lambda scene: _after_verb(scene, "teachers", "down", "enter", "backspace"),
    "who taught it, tokens": lambda scene: _after_verb(scene, "teachers", "tab", "m"),
    "who taught it, whole run": lambda scene: _after_verb(scene, "teachers", "tab", "tab"),
    "compare, token": lambda scene: _after_verb(scene, "compare", "p"),
    "compare, view": lambda scene: _after_verb(scene, "compare", "T"),
    "compare, curves": lambda scene: _after_verb(scene, "compare", "p", "p"),
    **{f"stage {stage}": lambda scene, stage=stage: scene.app.play.perform("stage", stage) for stage in FITTING},
    **{f"view {view}": lambda scene, view=view: scene.app.play.perform(view) for view in VIEWS},
    "two moments": _moments,
    "opening": _opening,
    "copying": _copying,
    "forgetting": _forgetting,
    "leaving": lambda scene: scene.press("q"),
}
ENDING: dict[str, Occasion] = {"labels": _labels, "labels chosen": _chosen, "repair": _repair, "ended": _ended}
"""What has to happen for a picture that no verb alone leads to: as a run begins, in its course, and at its end."""


@asynccontextmanager
async def _scene(folder: Path, size: tuple[int, int], theme: str) -> AsyncIterator[Scene]:
    one, other = StandIn(LESSON), StandIn()
    one.path, other.path = folder / "one.rlplay", folder / "other.rlplay"
    app = RlplayApp(one, others=[other])
    app.theme = theme or LOOKS["dark"]
    app.animation_level = "none"
    async with app.run_test(size=size, notifications=True) as pilot:
        yield Scene(app, pilot, one, other)


async def _home(scene: Scene) -> None:
    """Back to the main screen as it is at first."""
    app = scene.app
    for screen in reversed(app.screen_stack[1:]):
        screen.dismiss(None)
        await scene.pilot.pause()
    app.clear_notifications()
    if app.play.finder.query is not None:
        app.play.seek("")
    for changed, verb, argument in (
        (app.play.session.looking is not None, "live", None),
        (app.play.lens_choice is not None, "lens", "auto"),
        (app.play.signs, "signs", None),
        (app.panels.presenting, "present", None),
        (app.panels.stage != "all", "stage", "all"),
        (app.focused is not app.panels.tokens, "panel", "tokens"),
    ):
        if changed:
            await app.play.perform(verb, argument)


async def shots(size: tuple[int, int], theme: str, folder: Path) -> AsyncIterator[Shot]:
    """Every picture there is at one size and in one theme, none for NO_COLOR; `folder` is where the runs would be."""
    async with _scene(folder, size, theme) as scene:
        await scene.settle()
        await _home(scene)
        for name, happen in {**BEGINNING, **OCCASIONS, **_verbs(), **ENDING}.items():
            await happen(scene)
            await scene.settle()
            if name not in VERBS or scene.app.screen is not scene.app.panels.main:
                yield Shot(name, scene.app)
            await _home(scene)


def _verbs() -> dict[str, Occasion]:
    """All that the screen carries out: those that open a screen are found by performing them."""
    return {
        name: lambda scene, name=name: scene.app.play.perform(name)
        for name, verb in VERBS.items()
        if verb.where == "screen" and name not in PASSED_OVER
    }


def draw(out: Path, size: tuple[int, int], look: str) -> list[str]:
    """Write every picture of one size and look to `out`; returns their names, in order."""

    async def all_of_them(folder: Path) -> list[str]:
        painter, names = PngRenderer(), []
        async with aclosing(shots(size, LOOKS[look], folder)) as every:
            async for name, app in every:
                painter.picture(capture(app)).save(out / file_name(name, size, look))
                names.append(name)
        return names

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, no_idle_time():
        os.environ |= {"RLPLAY_HOME": folder, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        os.environ.pop("NO_COLOR", None)
        if not LOOKS[look]:
            os.environ["NO_COLOR"] = "1"
        return asyncio.run(all_of_them(Path(folder)))


def file_name(name: str, size: tuple[int, int], look: str) -> str:
    """Of a picture."""
    words = f"{name} {size[0]}x{size[1]} {look}"
    return words.replace(",", "").replace(" ", "-") + ".png"


def index(names: Iterable[str]) -> str:
    """A page in Markdown that shows the pictures: a table for each screen, a row for each look."""
    parts = ["# Every screen and dialogue", ""]
    head = ["| |" + "".join(f" {columns}×{rows} |" for columns, rows in SIZES), "| --- |" + " --- |" * len(SIZES)]
    for name in names:
        rows = [f"| {look} |" + "".join(f" ![]({file_name(name, size, look)}) |" for size in SIZES) for look in LOOKS]
        parts += [f"## {name}", "", *head, *rows, ""]
    return "\n".join(parts)


def main(out: Path) -> None:
    """Draw all of them, each size and look in a process of its own."""
    out.mkdir(parents=True, exist_ok=True)
    # The largest first, so that no core waits for it in the end.
    kinds = list(product([out], SIZES[::-1], LOOKS))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        names, *others = pool.map(draw, *zip(*kinds, strict=True))
    assert all(each == names for each in others), "every size and look has the same screens"
    (out / "README.md").write_text(index(names), encoding="utf-8")
    print(out / "README.md")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
