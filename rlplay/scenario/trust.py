"""Which code that a scenario names may run: what the user has named or agreed to, remembered by file and content.

A scenario or a run file of a stranger may name Python functions. They run with all the user's rights, so the user is
asked first. A bundled scenario names none, and a share code cannot. Trust in a file includes what it imports from its
own folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rlplay import paths
from rlplay.algorithms.named import preset
from rlplay.algorithms.own import OWN, names_file
from rlplay.scenario.imported import with_imports
from rlplay.scenario.schema import Scenario
from rlplay.user_code import is_module, names_function


def code_of(scenario: Scenario) -> list[str]:
    """The files, as absolute paths, and the modules whose code the scenario runs, each once."""
    one = scenario.environment, scenario.environment_factory
    entries = [*scenario.reward, *scenario.tools, *filter(None, one)]
    if scenario.task is not None and names_function(scenario.task):
        entries.append(scenario.task)
    parts = [scenario.settings, *(stage.settings for stage in scenario.stages)]
    for part in [*parts, *_changes(scenario.script)]:
        entries += code_in(part)
    return list(dict.fromkeys(_place(entry) for entry in entries))


def _changes(steps: Any) -> Iterator[dict[str, Any]]:
    """The settings that the steps of a script change, those that it asks the learner for included."""
    for value in steps.values() if isinstance(steps, dict) else steps if isinstance(steps, list) else ():
        yield from _changes(value)
    if isinstance(steps, dict) and isinstance(steps.get("set"), dict):
        yield steps["set"]


def code_in(settings: dict[str, Any]) -> list[str]:
    """The functions that settings name, in the file of an algorithm, too."""
    named = [value for name, value in settings.items() if name in OWN and names_file(name, value)]
    algorithm = settings.get("algorithm")
    if names_file("algorithm", algorithm):
        named += code_in(dict(preset(str(algorithm)).axes))
    return named


def _place(entry: str) -> str:
    place = entry.rpartition(":")[0] or entry
    return place if is_module(place) else os.path.abspath(Path(place).expanduser())


def untrusted(code: Iterable[str], named: Iterable[str] = (), changed: bool = False) -> list[str]:
    """Those of the files and modules `code` that the user has neither `named` now nor trusted before.

    A file that was edited since is to be looked at again, unless `changed`: of a run that goes on here, the user may
    have mended it. A file that is gone runs nothing.
    """
    remembered, spoken = _read(), {_place(entry) for entry in named}
    return [
        place
        for place in code
        if (is_module(place) or os.path.exists(place))
        and place not in spoken
        and (place not in remembered or not (changed or remembered[place] == _content(place)))
    ]


def trust(code: Iterable[str]) -> None:
    """Remember that the user trusts these files and modules, as they are now. A folder that is read-only forgets."""
    known = _read() | {place: _content(place) for place in code}
    partial = _file().with_name(f"{_file().name}.{os.getpid()}")
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        partial.replace(_file())
    except OSError:
        partial.unlink(missing_ok=True)


def _file() -> Path:
    return paths.home() / "trusted.json"


def _read() -> dict[str, str]:
    try:
        content = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _content(place: str) -> str:
    """The hash of a file's content and of what it imports beside it; of a module, which is installed, none."""
    if is_module(place):
        return ""
    try:
        first, *others = (hashlib.sha256(path.read_bytes()) for path in with_imports(Path(place)))
    except OSError:
        return "missing"
    for other in others:
        first.update(other.digest())
    return first.hexdigest()


def described(place: str) -> str:
    """A file or module, and the files beside it that it imports, for a question to the user."""
    if is_module(place):
        return place
    file, *others = with_imports(Path(place))
    names = [str(path.relative_to(file.parent)) for path in others[:_MOST_NAMED]]
    names += [f"{len(others) - len(names)} more"] * (len(others) > len(names))
    return f"{place} (imports {', '.join(names)})" if names else place


_MOST_NAMED = 5
