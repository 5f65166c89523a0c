"""Imports without the garbage collector."""

from __future__ import annotations

import gc

import pytest

from rlplay.engine import engine_process as main
from rlplay.engine.collector import without_collector


def test_the_collector_rests_inside_and_works_afterwards() -> None:
    frozen = gc.get_freeze_count()
    with without_collector():
        assert not gc.isenabled()
        made = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= frozen + len(made)
    with pytest.raises(ImportError), without_collector():
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_engine_imports_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[bool]()
    monkeypatch.setattr("importlib.import_module", lambda name: seen.append(gc.isenabled()))
    main.import_driver(lambda what, fraction: None)
    assert seen == [False]
    assert gc.isenabled()
