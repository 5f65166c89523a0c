"""Which update a checkpoint ends, and whether a model is on this machine."""

from __future__ import annotations

from pathlib import Path

from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.foreign.from_checkpoint.checkpoint import ADAPTERS, Checkpoint
from rlplay.trace.runfile import RunReader


def update_of(reader: RunReader, checkpoint: Checkpoint) -> int:
    """The update that the checkpoint's step ends. Raises ForeignRunError, one line, if there is none on record."""
    clock, step, name = reader.history().clock, checkpoint.step, checkpoint.path.name
    if not clock:
        raise ForeignRunError(f"{reader.path.stem} does not say which steps its updates are of")
    update = clock.update_at(step)
    first, last = (clock.last + 1, clock.last) if update is None else clock.steps(update) or (0, 0)
    if update is None or step < first:
        raise ForeignRunError(
            f"{name} is of step {step:,}, which is not on record: the recording has updates up to step {clock.last:,}"
        )
    if step < last:
        raise ForeignRunError(
            f"{name} is of step {step:,}, within update {update:,}, which has steps {first:,} to {last:,}: its answers "
            "are half learned from; give a checkpoint at the end of an update"
        )
    return update


def model_here(name: str) -> str:
    """The absolute folder, or the name, of a model that is on this machine; "" if it is not."""
    folder = Path(name).expanduser()
    if name and any((folder / file).is_file() for file in ("config.json", ADAPTERS)):
        return str(folder.resolve())
    return name if _is_cached(name) else ""


def _is_cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except ValueError:  # it is no name of a model
        return False
