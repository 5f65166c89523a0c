"""Memory that was freed is taken again without asking the system."""

from __future__ import annotations

import ctypes
import json
import platform
import subprocess
import sys

import pytest

from rlplay.engine.freed_memory import keep_freed_memory

_FAULTS = """
import json, resource, sys, torch
from rlplay.engine.freed_memory import keep_freed_memory
asked = sys.argv[1] == "kept" and keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    several = [torch.zeros(1_000_000) for _ in range(20)]
    del several
before = faults()
for _ in range(20):
    several = [torch.zeros(1_000_000) for _ in range(20)]
    del several
print(json.dumps([asked, faults() - before]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_pages_that_were_freed_are_used_again() -> None:
    def played(how: str) -> list[int]:
        done = subprocess.run([sys.executable, "-c", _FAULTS, how], capture_output=True, text=True, check=True)
        found: list[int] = json.loads(done.stdout)
        return found

    (asked, few), (_, many) = played("kept"), played("plain")
    assert asked
    if not many:
        pytest.skip("this kernel counts no page faults")
    assert few < many / 100


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert not keep_freed_memory()
