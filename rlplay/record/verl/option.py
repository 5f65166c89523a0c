"""What a configuration has at a path."""

from __future__ import annotations

from typing import Any


def option(config: Any, path: str, default: Any = None) -> Any:
    """What a configuration has at a path, such as "data.train_batch_size"; `default` where it has nothing."""
    for name in path.split("."):
        try:
            config = config.get(name)
        except (AttributeError, KeyError):
            return default
        if config is None:
            return default
    return config
