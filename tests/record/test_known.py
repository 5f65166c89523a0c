"""A formula is given to a trainer whose loss is TRL's own, under whatever name, and to no other."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')

import trl

from rlplay.foreign.foreign_run import known_settings
from rlplay.record.trl.trainer_kind import KnownTrainer, recognise
from rlplay.record.trl.trainer_options import settings_of
from tests.record.trainers import TRAINERS


def _as(cls: type, folder: Path, kind: str) -> Any:
    """A trainer of a `kind` of TRL, made one of this subclass."""
    trainer = TRAINERS[kind](folder, [])
    trainer.__class__ = cls
    return trainer


def _copied(**own: Any) -> type:
    """A copy of GRPOTrainer that does not descend from it, as unsloth makes them."""
    names = {name: value for name, value in vars(trl.GRPOTrainer).items() if name not in ("__dict__", "__weakref__")}
    return type("_UnslothGRPOTrainer", trl.GRPOTrainer.__bases__, names | own)


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("GRPOTrainer", {"use_adaptive_entropy": True, "entropy_target": 0.3, "entropy_coef": 0.01},
         {"algorithm": "grpo", "use_adaptive_entropy": True, "entropy_target": 0.3, "entropy_coef": 0.01}),
        ("GRPOTrainer", {"sync_ref_model": True, "ref_model_sync_steps": 7, "beta": 0.1, "min_p": 0.1,
                         "repetition_penalty": 1.2},
         {"algorithm": "grpo", "sync_ref_model": True, "ref_model_sync_steps": 7, "min_p": 0.1,
          "repetition_penalty": 1.2, "ref_model_mixup_alpha": 0.6}),
        ("RLOOTrainer", {"normalize_advantages": True, "reward_clip_range": (-1.0, 2.0)},
         {"algorithm": "rloo", "scale_rewards": "answers", "reward_clip_min": -1.0, "reward_clip_max": 2.0}),
        ("RLOOTrainer", {}, {"algorithm": "rloo", "scale_rewards": "none"}),
    ],
)  # fmt: skip
def test_options_that_change_the_loss_are_in_the_formula(
    kind: str, options: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    trainer = TRAINERS[kind](tmp_path, [])
    for name, value in options.items():
        setattr(trainer.args, name, value)
    found = known_settings(settings_of(trainer, recognise(trainer)))
    assert {name: found.get(name) for name in expected} == expected


def other(self: Any, *_: Any, **__: Any) -> Any:
    """Not TRL's."""


@pytest.mark.parametrize(
    ("kind", "own", "same"),
    [
        ("GRPOTrainer", {}, True),
        ("GRPOTrainer", {"log": other, "_calculate_rewards": other, "evaluate": other}, True),
        ("GRPOTrainer", {"compute_loss": other}, False),
        ("GRPOTrainer", {"_compute_loss": other}, False),
        ("GRPOTrainer", {"training_step": other}, False),
        ("GRPOTrainer", {"get_off_policy_mask": staticmethod(other)}, False),
        ("GRPOTrainer", {"_generate_and_score_completions": other}, False),
        ("SFTTrainer", {}, True),
        ("SFTTrainer", {"compute_loss": other}, False),
        ("DPOTrainer", {"compute_ref_log_probs": other}, False),
        ("KTOTrainer", {"_compute_kl_logps": other}, False),
        ("RewardTrainer", {"compute_loss": other}, False),
    ],
)
def test_a_subclass(kind: str, own: dict[str, Any], same: bool, tmp_path: Path) -> None:
    cls = type("_UnslothMyTrainer", (getattr(trl, kind),), own)
    assert recognise(_as(cls, tmp_path, kind)) == KnownTrainer("_UnslothMyTrainer", kind, same)


def test_a_copy_is_watched_as_its_original_without_a_formula(tmp_path: Path) -> None:
    assert recognise(_as(_copied(), tmp_path, "GRPOTrainer")) == KnownTrainer(
        "_UnslothGRPOTrainer", "GRPOTrainer", False
    )


def test_a_method_set_on_the_trainer(tmp_path: Path) -> None:
    trainer = TRAINERS["GRPOTrainer"](tmp_path, [])
    inner = trainer.compute_loss

    @functools.wraps(inner)
    def timed(*values: Any, **options: Any) -> Any:
        return inner(*values, **options)

    trainer.compute_loss = timed
    assert recognise(trainer).same_loss
    trainer.compute_loss = functools.partial(other, trainer)
    assert not recognise(trainer).same_loss


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("experimental.GMPOTrainer", "GRPOTrainer"), ("experimental.GOLDTrainer", "SFTTrainer"),
        ("experimental.GKDTrainer", "SFTTrainer"), ("experimental.CPOTrainer", ""), ("DistillationTrainer", ""),
    ],
)  # fmt: skip
def test_trainers_of_trl_with_a_loss_of_their_own(name: str, kind: str, tmp_path: Path) -> None:
    found = recognise(TRAINERS[name](tmp_path, []))
    assert (found.kind, found.same_loss) == (kind, False)


def test_a_copy_that_takes_the_place_of_its_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsloth assigns its copies, and its versions of some methods, to TRL's names."""
    patched = TRAINERS["GRPOTrainer"](tmp_path, [])
    monkeypatch.setattr(trl.GRPOTrainer, "_compute_loss", other)
    assert not recognise(patched).same_loss
    monkeypatch.undo()
    copy = _copied(__module__="unsloth_compiled_module_grpo_trainer")
    trainer = _as(copy, tmp_path, "GRPOTrainer")
    monkeypatch.setattr(trl, "GRPOTrainer", copy)
    assert recognise(trainer) == KnownTrainer("_UnslothGRPOTrainer", "GRPOTrainer", False)


def test_a_trainer_that_only_has_the_name_of_one(tmp_path: Path) -> None:
    base = type(TRAINERS["experimental.CPOTrainer"](tmp_path, []))
    cls = type("RLOOTrainer", (base,), {"__module__": "mine"})
    assert recognise(_as(cls, tmp_path, "experimental.CPOTrainer")) == KnownTrainer("RLOOTrainer", "", False)
