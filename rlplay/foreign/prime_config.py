"""What the resolved configuration of a run of prime-rl says, as arguments of `beginning`.

prime-rl writes those of its trainer and its orchestrator beside the run, as JSON or TOML, with every default filled in
(prime_rl/configs/trainer.py and algorithm.py at 065a864). Its loss is known for certain only where every option of it
is: options come and go from version to version.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlplay.foreign.json_lines import check_file
from rlplay.trace.kinds import SomeSettings

_FOLDERS = ("configs/latest/resolved", "configs/resolved", "configs")
_CREDIT = ("algo", "algorithm", "advantage")
"""Where the orchestrator's configuration says, for one environment or all, how advantages are made."""
_PLAIN, _NO_MATTER = ("grpo", "default"), ("type", "sampling", "failsafe_min_members")
"""Names of a reward minus the mean of its group, and what may stand beside them whatever it is."""
_READERS = (("json", json.loads), ("toml", tomllib.loads))
_OPTIMIZER = {"lr": "learning_rate", "weight_decay": "weight_decay", "max_norm": "max_grad_norm"}


def configured(folder: Path) -> dict[str, Any]:
    """The model, and the settings that rlplay has; the folder is the run's, or its `token_exports`."""
    run = folder.parent if folder.name == "token_exports" else folder
    trainer, orchestrator = (_read(run, name) for name in ("trainer", "orchestrator"))
    model, optimizer = _part(trainer, "model").get("name"), _part(trainer, "optim")
    known: SomeSettings = {ours: optimizer[theirs] for theirs, ours in _OPTIMIZER.items() if _number(optimizer, theirs)}
    size = orchestrator.get("group_size", orchestrator.get("rollouts_per_example"))
    if isinstance(size, int):
        known["num_generations"] = size
    if _group_mean(orchestrator):
        known |= _loss(_part(trainer, "loss"))
    return {"model": model if isinstance(model, str) else "", "settings": known}


def _loss(loss: Mapping[str, Any]) -> SomeSettings:
    """The axes of the trainer's loss; empty unless it is one of rlplay's for certain."""
    kind, left = loss.get("type"), {name: value for name, value in loss.items() if name != "type"}
    thresholds = {
        "default": ("dppo_mask_low", "dppo_mask_high"), "ipo": ("eps",) if "eps" in left else ("ipo_threshold",),
    }  # fmt: skip
    names = thresholds.get(kind) if isinstance(kind, str) else None
    if names is None or not all(_number(left, name) for name in (*names, "adv_tau")):
        return {}
    low, high = left.pop(names[0]), left.pop(names[-1], None)
    largest = left.pop("max_importance_ratio", None)
    pull = left.pop("kl_tau", None if largest is None else 0.0)  # a version with the one has not the other
    if left.pop("adv_tau") != 1 or not isinstance(pull, int | float) or any(left.values()):
        return {}
    found: SomeSettings = {"algorithm": "prime-rl", "epsilon": low, "epsilon_high": high, "beta": 2 * pull}
    return found if kind == "default" else found | {"surrogate": "tv_mask", "delta": largest}


def _group_mean(orchestrator: Mapping[str, Any]) -> bool:
    """Whether every advantage is a reward minus the mean of its group."""
    found = list(_credits(orchestrator))
    return bool(found) and all(isinstance(each, Mapping) and _is_plain(each) for each in found)


def _is_plain(credit: Mapping[str, Any]) -> bool:
    others = {name: value for name, value in credit.items() if name not in _NO_MATTER and name != "loss_aggregation"}
    return (
        credit.get("type") in _PLAIN and credit.get("loss_aggregation", "token") == "token" and not any(others.values())
    )


def _credits(content: Any, deeper: int = 8) -> Iterator[Any]:
    """What stands under a name of `_CREDIT`, wherever."""
    inside = content.items() if isinstance(content, Mapping) else ()
    for name, value in inside:
        if name in _CREDIT:
            yield value
    if deeper:
        for value in content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ():
            yield from _credits(value, deeper - 1)


def _read(run: Path, name: str) -> dict[str, Any]:
    """A configuration of the newest layout that is there; empty without one."""
    for path, read in ((run / folder / f"{name}.{kind}", read) for folder in _FOLDERS for kind, read in _READERS):
        try:
            check_file(path)
            found = read(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def _part(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _number(content: Mapping[str, Any], name: str) -> bool:
    return isinstance(content.get(name), int | float) and not isinstance(content[name], bool)
