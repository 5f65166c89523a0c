"""Runs checks in this process and tells the one that started it: one JSON object a line, on standard output.

`python -m rlplay.cli.gpu_report DEVICE FOLDER MODULE:FUNCTION…`
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rlplay.cli.gpu_report.checks import FAILS, NOT_TRIED, Line, NotTriedError
from rlplay.supervisor import end_with_parent

_LONGEST = 160
"""Characters of an error's first line."""


def main() -> None:
    """Tell of each check that it begins, then its lines; first of all whether there is a GPU, if one is asked for."""
    device, folder, *places = sys.argv[1:]
    end_with_parent(1.0)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no part of it

    def tell(**what: Any) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    from rlplay.cli.gpu_report.machine import no_gpu
    from rlplay.engine.model import choose_device

    if device.startswith("cuda") and (why := no_gpu()):
        return tell(none=why)
    try:
        chosen = choose_device(device)
    except ValueError as error:
        return tell(none=str(error))
    for place in places:
        tell(began=place)
        if not _runs(place, chosen, Path(folder), tell):
            return tell(ended=place)  # a GPU may fail at everything after an error, so the others begin anew
    return tell(done=True)


def _runs(place: str, device: Any, folder: Path, tell: Callable[..., None]) -> bool:
    """Tell the lines of a check; False if it raised an error."""
    module, _, name = place.partition(":")
    try:
        for line in getattr(import_module(f"{__package__}.{module}"), name)(device, folder):
            tell(line=line)
    except NotTriedError as error:
        tell(line=Line(NOT_TRIED, "", str(error)))
    except Exception as error:
        traceback.print_exc()
        at = traceback.extract_tb(error.__traceback__)[-1]
        what = str(error).strip().partition("\n")[0][:_LONGEST]
        tell(line=Line(FAILS, "", f"{type(error).__name__}: {what} ({Path(at.filename).name}:{at.lineno})"))
        return False
    return True


if __name__ == "__main__":
    main()
