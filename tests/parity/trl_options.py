"""Writes docs/trl-options.md: what every option of TRL's trainers is here that changes a loss or what is sampled.

`python -m tests.parity.trl_options` needs TRL; the test that holds the page to it, too.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.trl_options import HERE, OUTSIDE, REFUSED

PAGE = Path(__file__).parents[2] / "docs" / "trl-options.md"

CORE = ("DPO", "Distillation", "GRPO", "KTO", "RLOO", "Reward", "SFT")
"""The trainers of `trl.trainer`; the others are those of `trl.experimental`."""

_HEAD = """# Options of TRL's trainers

Every option of the trainers in `trl.trainer` and `trl.experimental` of TRL 1.16.0 that changes a loss or what is
sampled, with its name in rlplay. Options of data, logging, servers and memory are left out, and so are those that all
trainers of transformers have. The others are refused, and `--set` gives the same reason as this table. The parity
tests compare losses and gradients with TRL's own code.

| trainers | options | work | share |
| --- | --- | --- | --- |
"""


def trainers() -> dict[str, list[str]]:
    """The options that each trainer's configuration adds to those of transformers, by the trainer's name."""
    import trl
    from transformers import TrainingArguments

    common = {field.name for field in dataclasses.fields(TrainingArguments)}
    found: dict[str, list[str]] = {}
    for module in _modules(Path(trl.__file__).parent):
        for name, kind in inspect.getmembers(importlib.import_module(module), dataclasses.is_dataclass):
            if getattr(kind, "__module__", "") == module:
                options = [field.name for field in dataclasses.fields(kind) if field.name not in common]
                found[f"{name.removesuffix('Config')}Trainer"] = options
    return found


def _modules(root: Path) -> Iterator[str]:
    for folder, name in (root / "trainer", "trl.trainer"), (root / "experimental", "trl.experimental"):
        for found in pkgutil.walk_packages([str(folder)], f"{name}."):
            if found.name.endswith("_config") and not found.name.endswith((".base_config", ".model_config")):
                yield found.name


def answer(trainer: str, option: str) -> tuple[bool, str]:
    """Whether an option works, and its name here or the reason why not. Raises KeyError if nobody has decided."""
    for name in f"{trainer}.{option}", option:
        if name in HERE:
            return True, HERE[name]
        if name in REFUSED:
            return False, REFUSED[name]
    if option in KNOBS:
        return True, option
    raise KeyError(f"{trainer}.{option}")


def rows() -> list[tuple[str, str, bool, str]]:
    """Trainer, option, whether it works, and how, of every option that changes a loss or what is sampled."""
    return [
        (trainer, option, *answer(trainer, option))
        for trainer, options in sorted(trainers().items())
        for option in sorted(options)
        if option not in OUTSIDE
    ]


def page() -> str:
    """The page of the documentation."""
    every = rows()
    core = [row for row in every if row[0].removesuffix("Trainer") in CORE]
    lines = [_HEAD + "\n".join((_count("`trl.trainer`", core), _count("all", every))) + "\n"]
    for trainer in dict.fromkeys(row[0] for row in every):
        lines += [f"## {trainer}\n", "| option | here |", "| --- | --- |"]
        lines += [_line(*row[1:]) for row in every if row[0] == trainer]
        lines.append("")
    return "\n".join(lines)


def _count(what: str, some: list[tuple[str, str, bool, str]]) -> str:
    works = sum(row[2] for row in some)
    return f"| {what} | {len(some)} | {works} | {100 * works / len(some):.0f} % |"


def _line(option: str, works: bool, how: str) -> str:
    shown = f"`{how}`" if how in KNOBS else how
    return f"| `{option}` | {shown if works else f'**refused**: {how}'} |"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
