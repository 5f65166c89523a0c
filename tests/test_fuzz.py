"""A few hundred cases of each kind of `fuzz.py`; the full counts are slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import faults
from tests.fuzz import KINDS, played

FEW = {"run files": 150, "scenarios": 150, "codes": 500, "lines": 150, "curves": 300, "keys": 2}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_fine_or_refused_in_a_line(kind: str) -> None:
    assert played(kind, FEW[kind]) == []


def test_at_least_fifty_faults_have_a_name_and_a_test() -> None:
    listed = dict(faults())
    assert len(listed) >= 50
    assert all(Path(__file__).parents[1].joinpath(test).is_file() for test in listed.values())


FOUND = [("run files", 848), ("run files", 1213), ("run files", 4883)]
"""Cases that were wrong once: a damaged schema, which SQLite quotes in its message byte by byte."""


@pytest.mark.parametrize(("kind", "case"), FOUND)
def test_what_was_found_once_stays_mended(kind: str, case: int) -> None:
    assert played(kind, 1, case) == []


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS)
def test_so_are_all_of_them(kind: str) -> None:
    assert played(kind, KINDS[kind].full) == []
