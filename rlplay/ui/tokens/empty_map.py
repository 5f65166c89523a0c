"""What the token map says while it has nothing to show."""

from __future__ import annotations

from rlplay.ui.words.narration import Place

VACANT: dict[Place, str] = {
    "live": "Press `n` to sample the first answers, `space` to run.",
    "ended": "The engine ended before it had sampled anything.",
    "looking": "No tokens of this update were kept.",
    "replay": "Press `n` to show the first answers, `space` to play the recording.",
    "end": "This recording holds no update yet. New updates appear here.",
}
"""The text of an empty map."""
COMING = "The first answers appear here, coloured token by token; their rewards are at the left."
"""The text while the engine starts, or samples them."""
