"""Tests of this folder run on a GPU if there is one, else in a child process with the stand-in for one (`child.py`).

Where there is neither, they are skipped; on a GPU those marked `stand_in` are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.gpu import library
from tests.gpu.child import INSIDE

_child: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _nothing_failed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture that failed in a test before is none of the next one's."""
    from rlplay.engine import fixed_cache

    monkeypatch.setattr(fixed_cache, "_failed", False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests where the stand-in cannot be built, on a GPU only those that cannot do without."""
    here = [item for item in items if item.path.parent == library.SOURCES.parent]
    if not here or not library.missing():
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it once in a process
    real = _has_gpu()
    for item in here:
        if not real or item.get_closest_marker("stand_in"):
            item.add_marker(pytest.mark.skip(reason=library.missing()))


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Let the child run a test of this folder, and take its reports for ours."""
    if INSIDE in os.environ or library.missing() or item.path.parent != library.SOURCES.parent:
        return None  # every conftest is asked about every test
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for each in _reports(item):
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=each)
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _reports(item: pytest.Item) -> list[dict[str, Any]]:
    if not _child:
        _child.append(_started(item))
    process = _child[0]
    assert process.stdin is not None
    assert process.stdout is not None
    answer = ""
    try:
        process.stdin.write(json.dumps([str(item.config.rootpath), item.nodeid]) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except OSError:
        pass
    reports, error = json.loads(answer) if answer else ([], "")
    if reports:
        return list(reports)
    why = f"did not run it: {error}" if answer else f"ended with {_child.pop().wait()}"
    failed = pytest.TestReport(item.nodeid, item.location, {}, "failed", f"the stand-in's process {why}", "call")
    return [item.config.hook.pytest_report_to_serializable(config=item.config, report=failed)]


def _started(item: pytest.Item) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.gpu.child"]
    return subprocess.Popen(command, cwd=item.config.rootpath, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def pytest_sessionfinish() -> None:
    """Let the child end."""
    for process in _child:
        process.communicate()
    _child.clear()
