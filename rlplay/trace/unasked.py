"""Why a recording alone cannot answer who taught a token."""

from __future__ import annotations


def lacks_weights(source: str) -> str:
    """What the recording of another trainer's run lacks for the question, and what can answer it; one line."""
    if source.startswith("TRL "):
        return (
            "a recording of TRL has no weights and no optimizer; the trainer has, with RlplayCallback(listen=True): "
            "rlplay attach, then Y"
        )
    return f"a recording of {source} has no weights and no optimizer; rlplay's own runs and TRL's trainers can be asked"
