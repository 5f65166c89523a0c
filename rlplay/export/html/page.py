"""Writes a run as one HTML page: its data, the script that replays it, and the style. It loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Coroutine, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.catalogue import PRESETS
from rlplay.export.atomic_output import ExportError, atomic_output
from rlplay.export.html.frames import Shown, board
from rlplay.export.html.playback import Playback
from rlplay.export.html.told_lesson import ToldLesson
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.scenario_world import step_word, world_of
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import parse
from rlplay.trace.metrics import describe, means_the_same, titled
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import visible
from rlplay.version import __version__

_SCRIPTS = ("state.js", "answers.js", "plots.js", "world.js", "lesson.js", "keys.js")
_PANELS = (
    "reward", "loss", "rewards/accuracies", "rewards/margins", "completions/mean_length", "entropy", "kl",
)  # fmt: skip
"""The curves of a scenario that names none."""


def export_html(run: Path, out: Path) -> None:
    """Write the run file `run` as one page to `out`.

    Raises RunFileError if the run cannot be read, ExportError if it has no finished update or `out` cannot be written.
    """
    with RunReader(run) as reader:
        if not reader.updates():
            raise ExportError(f"{run} has no finished update yet; let it train one, then export it")
        data = page_data(reader)
    with atomic_output(out) as partial:
        partial.write_text(page(data), encoding="utf-8")


def page_data(reader: RunReader) -> Shown:
    """What the page holds of a run, as JSON writes it."""
    scenario = scenario_of(reader.started)
    world, word = world_of(scenario), step_word(scenario.world)
    playback = Playback([record for _, record in reader.follow(0)], reader.started.ends.values(), world, word)
    playback.begin()
    lesson = ToldLesson(parse(whole_script(scenario)), playback)
    told = _without_a_loop(lesson.play())
    playback.rest()
    return {
        "title": visible(scenario.title),
        "question": visible(scenario.question),
        "about": " · ".join(part for part in _about(reader) if part),
        "word": word,
        "world": None if world is None else board(world),
        "words": playback.words.texts,
        "frames": playback.frames,
        "metrics": _metrics(playback),
        "panels": _panels(scenario, playback),
        "lesson": lesson.items if lesson.items else [],
        "lessonEnds": told,
        "play": "" if reader.started.source else f"rlplay {visible(Path(scenario.origin or scenario.name).name)}",
        "version": __version__,
    }


def page(data: Shown) -> str:
    """The HTML of a page with this data. What foreign texts hold can neither end the data nor run."""
    folder = files("rlplay.export.html")
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    parts = {
        "TITLE": html.escape(f"{data['title']} · rlplay"),
        "POLICY": f"default-src 'none'; base-uri 'none'; script-src {_hash(script)}; style-src {_hash(style)}",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": _inert(msgspec.json.encode(data).decode()),
    }
    whole = (folder / "page.html").read_text(encoding="utf-8")
    head, *rest = whole.split("{{")
    return head + "".join(parts[name] + tail for name, _, tail in (each.partition("}}") for each in rest))


def _inert(json: str) -> str:
    """JSON without a character that HTML could take for markup."""
    for character in "<>&\u2028\u2029":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return json


def _hash(text: str) -> str:
    """What a content security policy allows to run: this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _about(reader: RunReader) -> Iterator[str]:
    """Algorithms, model, another trainer and day; of a folder the name alone, as the page may go to anyone."""
    model = reader.started.model
    yield _algorithms(reader)
    yield visible(Path(model).name if Path(model).is_absolute() else model)
    yield visible(reader.started.source)
    yield f"{reader.began:%Y-%m-%d}"


def _algorithms(reader: RunReader) -> str:
    """The titles of the algorithms that the run used, in their order."""
    names = dict.fromkeys(str(held["algorithm"]) for held in reader.timeline().ever() if "algorithm" in held)
    return ", then ".join(PRESETS[name].title if name in PRESETS else visible(name) for name in names)


def _metrics(playback: Playback) -> Shown:
    names = dict.fromkeys(name for shown in playback.frames for name in shown["metrics"])
    return {
        name: {"title": visible(titled(name)), "unit": _unit(name), "runsOn": means_the_same(name)} for name in names
    }


def _unit(name: str) -> str:
    row = describe(name)
    return "" if row is None else row.unit


def _panels(scenario: Scenario, playback: Playback) -> list[str]:
    """The names of the curves that the page begins with, of those that the run has."""
    there = playback.run.history.names()
    asked = [part.strip() for name in scenario.panels for part in name.replace(" over ", " and ").split(" and ")]
    wanted = [playback.run.history.named(name) for name in (*asked, *_PANELS)]
    return [name for name in dict.fromkeys(wanted) if name in there][:4]


def _without_a_loop(played: Coroutine[Any, Any, bool]) -> bool:
    """What a coroutine that never waits returns."""
    try:
        played.send(None)
    except StopIteration as end:
        return bool(end.value)
    raise RuntimeError("a step waits for something that is on record")
