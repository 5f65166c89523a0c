"""What an engine answers to a probe, and the screen opened on it."""

from __future__ import annotations

from typing import Any

from rlplay.trace.questions import AnyProbed, Peeked, Prefix, Tail
from rlplay.ui.probe.probe_screen import ProbeScreen
from rlplay.ui.session.probing import Probing
from tests.ui.stage import settled

SIZES = [(160, 45), (120, 35), (80, 24)]


PIECES = {7: " seven", 8: "[bold]\x1b", 9: "<|end|>"}


def peeked(prefix: Prefix, **fields: Any) -> Peeked:
    """What an engine would say: three candidates."""
    n = len(prefix.answer)
    known: dict[str, Any] = {
        "update": 3, "prompt_texts": ["<|user|>", "How", " many", "?", "<|end|>"],
        "texts": [PIECES.get(i, f"t{i}") for i in prefix.answer], "pieces": PIECES, "probabilities": [0.9] * n,
        "top_ids": [7, 8, 9], "top": [0.5, 0.25, 0.002], "ref_top": [0.25, 0.5, 0.1],
        "entropy": 1.25, "ref_entropy": 1.5, "kl": 0.125,
    }  # fmt: skip
    return Peeked(prefix, **known | fields)


def tail(*ids: int, reward: float | None = 1.0, truncated: bool = False) -> Tail:
    return Tail(list(ids), [PIECES.get(i, f"t{i}") for i in ids], truncated, reward)


def begun() -> Probing:
    """A prompt of one's own, answered by the engine."""
    probing = Probing()
    probing.type("How many?")
    probing.take(peeked(probing.prefix))
    return probing


async def opened(pilot: Any, source: Any) -> tuple[ProbeScreen, list[Any]]:
    """The probe on the third token of the first answer, and what it asked."""
    source.update(1)
    await settled(pilot)
    source.commands.clear()
    await pilot.press("right", "right", "i")
    await settled(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, ProbeScreen)
    return screen, source.commands


async def answer(pilot: Any, source: Any, *answers: AnyProbed) -> None:
    source.put(*answers)
    await settled(pilot)
    pilot.app.screen.follow()
    await pilot.pause()
