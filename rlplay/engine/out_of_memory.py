"""What to do when an update does not fit into memory: free what failed, and cut its passes into smaller parts.

Imports no torch: the engine's process explains errors before it has any.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import traceback
from collections.abc import Iterator

from rlplay.algorithms.settings import Settings

_IN_PARTS = ("credit", "update", "after")
"""The phases whose passes `per_device_train_batch_size` cuts."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, be it Python's, torch's on the CPU or an accelerator's.

    A graph that cannot be captured for want of memory says something else; what it says comes of this error.
    """
    return any(
        isinstance(each, MemoryError) or "out of memory" in str(each).lower() or "can't allocate" in str(each).lower()
        for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it comes of, and so on."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def remedy(settings: Settings, phase: str, caches: bool) -> dict[str, int] | None:
    """The settings with which a phase may fit when it begins again; None if none would help.

    They stay as they are where sampling keeps `caches` between batches, which can go first.
    """
    parts = smaller_parts(settings, phase)
    return {} if caches else None if parts is None else {"per_device_train_batch_size": parts}


def smaller_parts(settings: Settings, phase: str) -> int | None:
    """Half of the completions that a pass takes now; None where parts are as small as they get or would not help."""
    answers = settings.num_prompts * (settings.num_generations if settings.rewarded else 2)
    whole = -(-answers // settings.num_minibatches)
    now = min(settings.per_device_train_batch_size or whole, whole)
    return now // 2 if phase in _IN_PARTS and now > 1 else None


def release(error: BaseException) -> None:
    """Let go of what the failed pass computed, which its traceback keeps alive."""
    for each in _chain(error):
        traceback.clear_frames(each.__traceback__)
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None:
        with contextlib.suppress(RuntimeError):  # a capture that has failed may be open in the allocator's books
            torch.cuda.empty_cache()


def begins_again(update: int, phase: str, changed: dict[str, int]) -> str:
    """What to tell the user about an update that is tried again with `changed` settings, or without caches."""
    how = ", ".join(f"with {name}={value}" for name, value in changed.items())
    return (
        f"out of memory in update {update} ({phase}): it begins again from the end of update {update - 1}, "
        f"{how or 'and sampling keeps no cache between batches'}"
    )
