"""A few hundred cases of each kind of `fuzz.py`; the full counts are slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import KINDS, played

FEW = {"run files": 150, "scenarios": 150, "codes": 500, "lines": 150}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_fine_or_refused_in_a_line(kind: str) -> None:
    assert played(kind, FEW[kind]) == []


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS)
def test_so_are_all_of_them(kind: str) -> None:
    assert played(kind, KINDS[kind][1]) == []
