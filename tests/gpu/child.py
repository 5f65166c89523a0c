"""A process with the stand-in, which runs tests by their node ids: one line of JSON with each, one with its reports.

`conftest.py` starts it. Starting costs seconds, so one child runs all the tests of a session, one after the other.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.gpu import library

DEVICES = 2
INSIDE = "RLPLAY_TESTS_ON_STAND_IN"
"""In the environment of a process that has the stand-in."""


class Reports:
    """What pytest reports of a test, as it sends it from process to process."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self._config: Any = None

    def pytest_configure(self, config: Any) -> None:
        """Keep what knows how reports are written."""
        self._config = config

    def pytest_collectreport(self, report: Any) -> None:
        """Keep why a file could not be read."""
        if report.failed:
            self.errors.append(report.longreprtext)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep a report."""
        self.found.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def run(folder: str, test: str) -> tuple[list[dict[str, Any]], str]:
    """The reports of a test by its node id, or why there are none; `folder` is that of pyproject.toml."""
    import pytest

    from tests.gpu import cuda

    reports = Reports()
    options = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist"]
    cuda.reset()
    pytest.main([*options, "--rootdir", folder, test], plugins=[reports])
    return reports.found, "\n".join(reports.errors)


def main() -> None:
    """Answer until the lines end. What tests print goes to where errors go."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ[INSIDE] = "1"
    stand_in = library.load()

    from tests.gpu import counting, cuda

    cuda.install(stand_in, DEVICES)
    counting.watch(stand_in)
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
