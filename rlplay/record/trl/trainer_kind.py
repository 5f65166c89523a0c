"""Which trainer of TRL a trainer is, and whether its loss is that trainer's own."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from typing import Any

from rlplay.record.trl import compat

_RENAMED = re.compile(r"^_?Unsloth")
"""What unsloth puts before the names of its trainers, which are copies of TRL's."""


@dataclass(frozen=True)
class KnownTrainer:
    """A trainer: its class, the kind of TRL that it is, "" for any other, and whether its loss is that kind's."""

    name: str
    kind: str
    same_loss: bool


def recognise(trainer: Any) -> KnownTrainer:
    """What is known of a trainer by its classes; an override of a method that makes the loss makes it another loss."""
    kind = next((kind for cls in type(trainer).__mro__ if (kind := _kind(cls, trainer))), "")
    return KnownTrainer(type(trainer).__name__, kind, bool(kind) and _same_loss(trainer, kind))


def _kind(cls: type, trainer: Any) -> str:
    """The trainer of TRL that a class is or is a copy of; "" if it only has the name of one, or another name."""
    name = _RENAMED.sub("", cls.__name__)
    if name not in compat.METHODS:
        return ""
    return name if _is_from(cls, "trl") or name != cls.__name__ or not compat.gone(trainer, name) else ""


def _same_loss(trainer: Any, kind: str) -> bool:
    original = getattr(importlib.import_module("trl"), kind)  # unsloth puts its copy there
    if not _is_from(original, "trl") or not isinstance(trainer, original):
        return False
    if callable(getattr(trainer, "compute_loss_func", None)):
        return False
    methods = [(_method(trainer, name), getattr(original, name, None)) for name in compat.METHODS[kind]]
    return all(own is its and (its is None or _is_from(its, "trl", "transformers")) for own, its in methods)


def _is_from(thing: Any, *packages: str) -> bool:
    return thing.__module__.partition(".")[0] in packages


def _method(trainer: Any, name: str) -> Any:
    """The function behind a method, without what was wrapped around it on this trainer; None if there is none."""
    own = vars(trainer).get(name)
    if own is None:
        return getattr(type(trainer), name, None)
    inner = inspect.unwrap(own, stop=inspect.ismethod)
    return getattr(inner, "__func__", inner)
