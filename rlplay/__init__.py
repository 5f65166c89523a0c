"""rlplay: reinforcement learning on language models, visible and playable in a terminal."""

__version__ = "0.1.0"
