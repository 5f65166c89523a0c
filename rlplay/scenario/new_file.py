"""New scenario files: an example with comments to start from, or a script that repeats a recorded run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from rlplay.algorithms.setting_values import check
from rlplay.scenario.names import bundled
from rlplay.scenario.record_to_script import script_from
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.schema import Scenario, Stage
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import brief_path, quote, visible

_EXAMPLES = Path(__file__).parent / "examples"
_FROM_RUN = """\
# Play it: rlplay {path}      Check what it claims: rlplay run {path}
# From the run {run}: its task, seed and initial settings; the script repeats what you did there.
# On the same machine and device ({device}, {versions}) it gives the same numbers, bit for bit.
# It shows the colours and tokens that you looked at during the run; add say, ask and expect as you like.
"""


def example(path: Path, world: bool = False) -> str:
    """The text of an example scenario for the file `path`; with a map, if it is to be about a `world`."""
    text = (_EXAMPLES / ("world.yaml" if world else "task.yaml")).read_text(encoding="utf-8")
    return text.replace("{title}", json.dumps(_title(path), ensure_ascii=False)).replace("{path}", str(path))


def from_run(run: Path, path: Path) -> str:
    """The text of a scenario for the file `path` that repeats what the user did in a recorded run.

    Raises ValueError, one line, if the run cannot be read or no script can repeat it.
    """
    with RunReader(run) as reader:
        started = reader.started
        if started.source:
            raise ValueError(f"{run}: {visible(started.source)} trained this run; only a run of rlplay can be repeated")
        try:
            scenario = scenario_of(started)
            script = script_from(reader.events())
        except (ValueError, msgspec.MsgspecError) as error:
            raise ValueError(f"{run}: {error}") from None
    versions = ", ".join(f"{name} {started.versions[name]}" for name in ("torch", "rlplay") if name in started.versions)
    content = {"title": _title(path), **_plain(scenario), "script": script}
    head = _FROM_RUN.format(path=path, run=run.stem, device=started.device, versions=versions)
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)


def write(path: Path, text: str) -> None:
    """Write a new scenario file. Raises ValueError, one line, if it cannot be written."""
    if path.stem.startswith(".") or not re.search(r"\w", path.stem):
        raise ValueError(f"a scenario needs a name of letters or digits, e.g. my-first; got {quote(path.stem)}")
    if path.stem in bundled():
        raise ValueError(f"{quote(path.stem)} is a bundled scenario; take another name")
    if not path.parent.is_dir():
        raise ValueError(
            f"there is no folder {quote(str(path.parent))}; create it, or give only a name, e.g. {path.stem}"
        )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"{brief_path(str(path))} exists already; take another name, or remove it") from None
    except OSError as error:
        raise ValueError(f"{brief_path(str(path))} cannot be written: {error.strerror}") from None


def _title(path: Path) -> str:
    return path.stem.replace("-", " ").replace("_", " ").capitalize()


def _plain(scenario: Scenario) -> dict[str, Any]:
    """What differs from a scenario's defaults, in YAML types; the new file brings its own name, title and script."""
    content = msgspec.to_builtins(scenario)
    kept = ("name", "title", "script", "origin") + ("max_updates",) * bool(scenario.stages)
    defaults = msgspec.to_builtins(Scenario("", "", ""))
    content = {name: value for name, value in content.items() if name not in kept and value != defaults[name]}
    if "stages" in content:
        unset = msgspec.to_builtins(Stage("", 0))
        content["stages"] = [{name: v for name, v in stage.items() if v != unset[name]} for stage in content["stages"]]
    for part in (content, *content.get("stages", ())):
        if "settings" in part:
            part["settings"] = {name: check(name, value) for name, value in part["settings"].items()}
    return {"question": scenario.question, **content, "seed": scenario.seed}
