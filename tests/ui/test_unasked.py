"""Who cannot be asked who taught a token, and what can instead."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlplay.ui.teachers.captions import why_not


def session(source: str = "", live: bool = False, failed: str | None = None, engine: bool = True, updates: int = 1):
    """What is asked of a session."""
    return SimpleNamespace(
        source=SimpleNamespace(live=live), failed=failed, has_engine=engine,
        run=SimpleNamespace(started=SimpleNamespace(source=source), finished=updates),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (session("TRL 1.16.0 GRPOTrainer"), "listen=True"),
        (session("verl\x1b[2J 0.8"), "A recording of verl"),
        (session(), "rlplay resume"),
        (session("TRL 1.16.0 GRPOTrainer", live=True, failed="gone", engine=False), "trainer has ended"),
        (session(live=True, failed="gone"), "Press r to resume"),
        (session(live=True, updates=0), "No update yet"),
    ],
)
def test_who_has_no_weights_says_who_has(asked: SimpleNamespace, words: str) -> None:
    said = why_not(asked)
    assert words in said
    assert said.isprintable()


def test_a_trainer_between_two_updates_can_be_asked() -> None:
    assert not why_not(session("TRL 1.16.0 GRPOTrainer", live=True, engine=False))
