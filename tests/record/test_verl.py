"""verl's trainers recorded: on a stand-in with its calls and shapes, and its own names where it is installed."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.foreign.copy import Copy
from rlplay.health.digest import digest
from rlplay.record.verl import compat, hook
from rlplay.record.verl.batches import chosen
from rlplay.record.verl.options import settings_of
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from tests.record import verl_stand_in as verl


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hook, "CURRENT", hook._Current())
    finders = list(sys.meta_path)
    yield
    sys.meta_path[:] = finders


def trained(folder: Path, which: str, steps: int = 2, **loss: Any) -> Any:
    """A stand-in's trainer that has trained with the recorder."""
    found = verl.modules()
    with verl.imported(found):
        hook.install()
        name = next(name for name, (trainer, _) in compat.TRAINERS.items() if trainer == which)
        trainer = getattr(found[name], which)(verl.config(folder, **loss))
        trainer.fit(steps)
    return trainer


def updates_of(folder: Path) -> dict[int, Update]:
    with RunReader(Copy(folder).path) as run:
        return {number: run.load(number) for number in run.updates()}


def flat(rows: Any) -> np.ndarray:
    return torch.cat([torch.as_tensor(row) for row in rows]).numpy()


@pytest.mark.parametrize("which", ["RayPPOTrainer", "PPOTrainer"])
def test_every_number_comes_out_equal(which: str, tmp_path: Path) -> None:
    trainer = trained(tmp_path, which)
    found = updates_of(tmp_path)
    assert sorted(found) == [1, 2]
    own = flat(verl.MASKS) == 1
    for step, update in found.items():
        known, sampled = verl.numbers(step), update.sampled
        assert sampled.token_ids.tolist() == flat(verl.RESPONSES).tolist()
        assert sampled.prompt_ids.tolist() == [5, 6, 7, 8, 9]
        assert sampled.mask.tolist() == flat(verl.MASKS).tolist()
        assert sampled.group.tolist() == [0, 0, 1, 1]
        assert sampled.prompts == ["5 6", "7 8 9"]
        assert sampled.texts == [str(i) for row in verl.RESPONSES for i in row]
        assert sampled.columns == [{"ground_truth": "3"}, {"ground_truth": "4"}]
        for name, theirs in (("old_logprobs", "old_log_probs"), ("sampling_logprobs", "rollout_log_probs")):
            np.testing.assert_array_equal(getattr(sampled, name), np.where(own, flat(known[theirs]), np.nan))
        np.testing.assert_array_equal(update.credited.ref_logprobs, np.where(own, flat(known["ref_log_prob"]), np.nan))
        np.testing.assert_array_equal(update.credited.advantages, np.where(own, flat(known["advantages"]), 0))
        if which == "PPOTrainer":
            np.testing.assert_array_equal(sampled.entropy, np.where(own, flat(known["entropy"]), np.nan))
        assert update.scored.rewards.tolist() == list(verl.SCORES)
        assert {name: values.tolist() for name, values in update.scored.gold.items()} == (
            {"acc": [1, 0, 0, 1]} if which == "RayPPOTrainer" else {}
        )
        assert digest(update).apart
        assert update.finished.metrics["reward"] == 0.4
        assert update.finished.metrics["grad_norm"] == 2.0
        assert update.finished.seconds == 3.5
        assert update.finished.trainer_steps == (step, step)
    assert [step for step, _ in trainer.logger.seen if step] == [1, 2]
    with RunReader(Copy(tmp_path).path) as run:
        assert run.started.source.startswith("verl")
        assert run.started.model == "Qwen/Qwen3-0.6B"


def test_the_options_are_settings(tmp_path: Path) -> None:
    trained(tmp_path, "PPOTrainer", 1)
    with RunReader(Copy(tmp_path).path) as run:
        settings = run.started.settings
    expected = {
        "algorithm": "grpo", "epsilon": 0.2, "epsilon_high": 0.28, "delta": 3.0, "aggregation": "token_mean",
        "beta": 0.0, "scale_rewards": "group", "num_prompts": 2, "num_generations": 2, "num_minibatches": 1,
        "temperature": 0.9, "learning_rate": 1e-6, "top_k": 0, "max_completion_length": 8,
    }  # fmt: skip
    assert {name: settings.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"policy_loss": verl.Config(loss_mode="own")}, {"loss_agg_mode": "seq-mean-token-sum-norm"},
        {"policy_loss": verl.Config(loss_mode="cispo")},  # with a lower bound of the ratio
        {"policy_loss": verl.Config(loss_mode="kl_cov"), "use_kl_loss": True, "kl_loss_coef": 0.1},
        {"entropy_coeff": 0.01, "loss_agg_mode": "seq-mean-token-mean"},
        {"use_kl_loss": True, "kl_loss_coef": 0.1, "kl_loss_type": "abs"},
    ],
)  # fmt: skip
def test_a_loss_that_rlplay_lacks_has_no_formula(changed: dict[str, Any], tmp_path: Path) -> None:
    config = verl.config(tmp_path)
    assert settings_of(config)["algorithm"] == "grpo"
    config["actor_rollout_ref"]["actor"].update(changed)
    assert "algorithm" not in settings_of(config)
    assert settings_of(config)["learning_rate"] == 1e-6


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        ("algorithm", {"adv_estimator": "gae"}), ("algorithm", {"use_kl_in_reward": True}),
        ("algorithm", {"rollout_correction": verl.Config(rollout_is="token")}),
        ("distillation", {"enabled": True}),
    ],
)  # fmt: skip
def test_nor_has_one_with_other_advantages(place: str, changed: dict[str, Any], tmp_path: Path) -> None:
    config = verl.config(tmp_path)
    config.setdefault(place, verl.Config()).update(changed)
    assert "algorithm" not in settings_of(config)


def test_a_kl_to_the_reference_is_a_setting(tmp_path: Path) -> None:
    config = verl.config(tmp_path, use_kl_loss=True, kl_loss_coef=0.1, kl_loss_type="low_var_kl")
    assert (settings_of(config)["beta"], settings_of(config)["kl_estimator"]) == (0.1, "k3")


def test_copied_log_probabilities_are_nothing_to_hold_the_sampler_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = verl.numbers  # as with bypass_mode
    monkeypatch.setattr(verl, "numbers", lambda step: real(step) | {"old_log_probs": real(step)["rollout_log_probs"]})
    trained(tmp_path, "PPOTrainer", 1)
    assert updates_of(tmp_path)[1].sampled.sampling_logprobs is None


@pytest.mark.parametrize("which", ["RayPPOTrainer", "PPOTrainer"])
def test_a_recording_never_ends_a_training_run(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = verl.numbers
    monkeypatch.setattr(verl, "numbers", lambda step: real(step) if step < 2 else {"old_log_probs": "broken"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(verl, "tensors", lambda step, made=verl.tensors: made(step) if step < 2 else "broken")
        trainer = trained(tmp_path, which, 3)
    assert [step for step, _ in trainer.logger.seen if step] == [1, 2, 3]
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if "the recording ends here, training goes on" in line]) == 1
    assert sorted(updates_of(tmp_path)) == [1]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    trainer = trained(tmp_path / "file", "PPOTrainer")
    assert len(trainer.logger.seen) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_second_run_in_the_same_folder_has_its_own_recording(tmp_path: Path) -> None:
    for _ in range(2):
        hook.CURRENT = hook._Current()
        trained(tmp_path, "PPOTrainer", 1)
    assert sorted(path.name for path in tmp_path.glob("rlplay*")) == ["rlplay", "rlplay-2"]


def test_whole_groups_are_kept() -> None:
    groups = ["a", "b", "a", "b", "c", "c"]
    assert chosen(groups, 4) == [0, 1, 2, 3]
    assert chosen(groups, 1) == [0, 2]
    assert chosen(groups, 6) == list(range(6))


class Panic(BaseException):
    """As Rust's, which is no Exception."""


class Unread(io.StringIO):
    """A standard error that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("error", [OSError("disk full"), Panic("rust")])
def test_not_even_by_what_is_no_exception_or_cannot_be_said(error: BaseException, monkeypatch: Any) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(sys, "stderr", Unread())
    hook.CURRENT.guarded(fails)
    assert hook.CURRENT.of(object()) is None


def test_nor_by_a_step_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = trained(tmp_path, "PPOTrainer", 1)
    trainer.logger.log({"a": 1.0}, None)
    assert trainer.logger.seen[-1] == (None, {"a": 1.0})
    assert capsys.readouterr().err.count("the recording ends here, training goes on") == 1


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A verl that is not imported yet."""
    package = tmp_path / "verl" / "utils"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "tracking.py").write_text("class Tracking:\n    def log(self, data, step):\n        return step\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("verl", "verl.utils", "verl.utils.tracking")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    hook.install()
    yield
    for name in names:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


@pytest.mark.usefixtures("later")
def test_a_trainer_that_is_imported_later_is_watched() -> None:
    assert importlib.util.find_spec("verl.utils.tracking") is not None  # who only looks changes nothing
    tracking = importlib.import_module("verl.utils.tracking")
    assert tracking.Tracking().log({}, 3) == 3
    assert tracking.Tracking.log.rlplay_records


class Fixed(importlib.machinery.SourceFileLoader):
    """A loader that lets nobody change it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "exec_module":
            raise AttributeError(name)
        super().__setattr__(name, value)


class Finds(importlib.abc.MetaPathFinder):
    """A finder of somebody else's."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "verl.utils.tracking":
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=Fixed(name, self._path))


@pytest.mark.usefixtures("later")
def test_an_import_goes_on_where_the_loader_cannot_be_changed(tmp_path: Path) -> None:
    sys.meta_path.insert(1, Finds(tmp_path / "verl/utils/tracking.py"))
    tracking = importlib.import_module("verl.utils.tracking")
    assert tracking.Tracking().log({}, 3) == 3
    assert not hasattr(tracking.Tracking.log, "rlplay_records")


class FixedKind(type):
    """The kind of a class that lets nobody change it."""

    def __setattr__(cls, name: str, value: Any) -> None:
        raise TypeError(name)


class Immutable(metaclass=FixedKind):
    """Such a class."""

    def log(self, data: Any, step: int) -> None:
        pass


def test_an_import_goes_on_where_a_class_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    module = types.ModuleType("verl.utils.tracking")
    module.Tracking = Immutable  # type: ignore[attr-defined]
    hook.patch(module)
    assert capsys.readouterr().err.count("this release of verl is not recorded") == 1


def test_a_release_without_what_is_needed_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = verl.modules()
    del found["verl.trainer.ppo.v1.trainer_base"].PPOTrainer._compute_metrics
    with verl.imported(found):
        hook.install()
    assert capsys.readouterr().err.count("this release of verl is not recorded") == 1


@pytest.mark.parametrize("module", [*compat.TRAINERS, compat.TRACKING[0]])
def test_verl_has_these_names(module: str) -> None:
    if importlib.util.find_spec("verl") is None:
        pytest.skip("verl is not installed")
    found = importlib.import_module(module)
    kind, method = compat.TRAINERS.get(module, compat.TRACKING[1:])
    assert callable(compat.wrapped(getattr(found, kind), method))
