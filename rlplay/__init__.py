"""rlplay: reinforcement learning on language models, visible and playable in a terminal.

In Python: `open_run` reads a recorded run, `play` trains step by step (docs/python.md). `import rlplay` loads neither.
"""

from typing import TYPE_CHECKING, Any

from rlplay.version import __version__

if TYPE_CHECKING:
    from rlplay.api.live import Live, play
    from rlplay.api.recorded import RecordedRun, open_run

__all__ = ["Live", "RecordedRun", "__version__", "open_run", "play"]

_ROOMS = {"Live": "live", "play": "live", "RecordedRun": "recorded", "open_run": "recorded"}


def __getattr__(name: str) -> Any:
    """Import what is asked for first; `import rlplay` itself takes no time."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'rlplay' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rlplay.api.{_ROOMS[name]}"), name)
