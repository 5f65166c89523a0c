"""verl's losses and rollout correction as formulas, masks and weights, in batches of its shapes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.algorithms.equations import correction, surrogate
from rlplay.algorithms.setting_values import decoded
from rlplay.foreign.copy import Copy
from rlplay.foreign.foreign_run import known_settings
from rlplay.health.digest import digest
from rlplay.record.verl import compat, hook
from rlplay.record.verl.options import settings_of
from rlplay.trace.records import CorrectionRule
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from tests.record import verl_stand_in as verl
from tests.record.test_verl import flat, trained, updates_of


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hook, "CURRENT", hook._Current())
    finders = list(sys.meta_path)
    yield
    sys.meta_path[:] = finders


def config(folder: Path, *, actor: dict[str, Any] | None = None, **correction: Any) -> Any:
    """A configuration with this in the actor and this rollout correction."""
    found = verl.config(folder, **(actor or {}))
    found["actor_rollout_ref"]["rollout"]["calculate_log_probs"] = True
    own = {"rollout_is": None, "rollout_is_threshold": 2.0, "rollout_rs": None, "bypass_mode": False}
    found["algorithm"]["rollout_correction"] = verl.Config(own | correction)
    return found


def loss_mode(name: str, **options: Any) -> dict[str, Any]:
    return {"policy_loss": verl.Config(loss_mode=name, **options)}


@pytest.mark.parametrize(
    ("actor", "expected"),
    [
        (loss_mode("dppo_tv"), {"algorithm": "dppo", "surrogate": "dppo_tv", "epsilon_high": 0.28, "delta": 3.0}),
        (loss_mode("dppo_kl"), {"algorithm": "dppo", "surrogate": "dppo_kl", "aggregation": "token_mean"}),
        (loss_mode("gspo"), {"importance_sampling_level": "sequence", "delta": None, "epsilon": 0.2}),
        (loss_mode("geo_mean"), {"importance_sampling_level": "geometric", "aggregation": "seq_mean_token_mean"}),
        (loss_mode("sapo") | {"tau_neg": 1.5}, {"surrogate": "sapo", "sapo_temperature_neg": 1.5}),
        (loss_mode("gpg"), {"surrogate": "logp", "aggregation": "token_mean"}),
        (loss_mode("cispo") | {"clip_ratio_low": 1.0}, {"surrogate": "cispo", "epsilon_high": 1.28}),
        (loss_mode("clip_cov", clip_cov_ratio=0.01), {"clip_cov_ratio": 0.01, "clip_cov_ub": 5.0, "surrogate": "ppo"}),
        (loss_mode("kl_cov"), {"kl_cov_ratio": 2e-4, "beta": 0.1, "kl_estimator": "abs", "kl_anchor": "old"}),
        (loss_mode("dro", dro_beta=0.5), {"surrogate": "dro", "dro_beta": 0.5}),
        ({"entropy_coeff": 0.01}, {"entropy_coef": 0.01, "surrogate": "ppo"}),
    ],
)
def test_a_loss_has_its_formula(actor: dict[str, Any], expected: dict[str, Any], tmp_path: Path) -> None:
    known = known_settings(settings_of(config(tmp_path, actor=actor)))
    assert {name: known[name] for name in expected} == expected
    assert (known["baseline"], known["scale_rewards"]) == ("group_mean", "group")


def test_rloos_advantages_have_theirs(tmp_path: Path) -> None:
    given = config(tmp_path)
    given["algorithm"]["adv_estimator"] = "rloo"
    known = known_settings(settings_of(given))
    assert (known["baseline"], known["scale_rewards"], known["surrogate"]) == ("leave_one_out", "none", "ppo")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"rollout_is": "token"}, ("token_truncate", None, 2.0, "none")),
        ({"rollout_is": "sequence", "rollout_is_threshold": "0.5_5"}, ("sequence_mask", 0.5, 5.0, "none")),
        ({"rollout_rs": "seq_mean_k1", "rollout_rs_threshold": "0.999_1.001"}, ("none", None, 3.0, "seq_mean_k1")),
        ({"rollout_is": "token", "rollout_rs": "token_k3", "rollout_rs_threshold": 0.01},
         ("token_truncate", None, 2.0, "token_k3")),
    ],
)  # fmt: skip
def test_a_correction_has_its_formula(how: dict[str, Any], expected: Any, tmp_path: Path) -> None:
    known = known_settings(settings_of(config(tmp_path, **how)))
    names = ("mode", "clip_min", "clip_max")
    assert (*(known[f"importance_sampling_{name}"] for name in names), known["rollout_rs"]) == expected
    assert known["algorithm"] == "grpo"


@pytest.mark.parametrize(
    "correction",
    [
        {"rollout_is": "token", "rollout_is_threshold": "4_5"},  # bounds that rlplay does not allow
        {"rollout_is": "token", "rollout_is_batch_normalize": True},
        {"rollout_rs": "seq_mean_k1", "rollout_rs_threshold": "0.5_3"}, {"rollout_rs": "token_k3"},
        {"rollout_rs": "token_k3,seq_sum_k1", "rollout_rs_threshold": "0.1"},
        {"bypass_mode": True, "rollout_rs": "token_k3", "rollout_rs_threshold": 0.1},
    ],
)  # fmt: skip
def test_one_that_rlplay_lacks_has_none(correction: dict[str, Any], tmp_path: Path) -> None:
    assert known_settings(settings_of(config(tmp_path, **correction)))["algorithm"] == ""


def test_a_correction_without_the_samplers_numbers_is_not_certain(tmp_path: Path) -> None:
    given = config(tmp_path, rollout_is="token")
    given["actor_rollout_ref"]["rollout"]["calculate_log_probs"] = False
    assert "algorithm" not in settings_of(given)


def test_bypass_mode_measures_from_the_sampler(tmp_path: Path) -> None:
    given = config(tmp_path, actor=loss_mode("dppo_tv"), bypass_mode=True, loss_type="reinforce", rollout_is="token")
    newer, older = (known_settings(settings_of(given, older)) for older in (False, True))
    assert {newer["old_logprobs_of"], older["old_logprobs_of"]} == {"sampler"}
    assert newer["surrogate"] == "dppo_tv", "the newer trainer keeps the loss mode"
    assert (older["surrogate"], older["epsilon_high"]) == ("cispo", 2.0)
    given = config(tmp_path, actor=loss_mode("dppo_tv"), bypass_mode=True, rollout_is="sequence")
    assert known_settings(settings_of(given, True))["surrogate"] == "ppo"
    given = config(tmp_path, bypass_mode=True, loss_type="reinforce", rollout_is="sequence")
    assert "algorithm" not in settings_of(given, True)


def test_the_equations_have_the_factor_and_the_cap(tmp_path: Path) -> None:
    given = config(tmp_path, actor=loss_mode("dppo_tv"), rollout_is="token", rollout_is_threshold=1.5)
    found = decoded(known_settings(settings_of(given)))
    assert correction(found) == "min(exp(ℓ_old − ℓ_sampler), 1.5)"
    assert "sg[min(w, 3)]" in surrogate(found)


def weights(step: int) -> list[torch.Tensor]:
    return [0.5 + torch.arange(len(each)) / 10 + step for each in verl.RESPONSES]


def corrected(folder: Path, which: str, monkeypatch: pytest.MonkeyPatch, masks: Any, **correction: Any) -> Update:
    """The first update of a recording whose batches have these masks and, with rollout_is, weights."""
    real, plain = verl.numbers, verl.config
    monkeypatch.setattr(verl, "MASKS", masks)
    monkeypatch.setattr(verl, "config", lambda path, **loss: config_of(plain, path, loss, correction))
    if correction.get("rollout_is"):
        monkeypatch.setattr(verl, "numbers", lambda step: real(step) | {"rollout_is_weights": weights(step)})
    trained(folder, which, 1)
    return updates_of(folder)[1]


def config_of(plain: Any, path: Path, loss: dict[str, Any], correction: dict[str, Any]) -> Any:
    found = plain(path, **loss)
    found["actor_rollout_ref"]["rollout"]["calculate_log_probs"] = True
    found["algorithm"]["rollout_correction"] = verl.Config(correction)
    return found


@pytest.mark.parametrize("which", ["RayPPOTrainer", "PPOTrainer"])
def test_weights_and_what_is_left_out(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = ((0, 0, 0), (1,), (1, 1, 0, 1), (1, 1))  # an answer and a token are left out
    how = {"rollout_is": "token", "rollout_is_threshold": 3.0, "rollout_rs": "token_k3", "rollout_rs_threshold": 0.1}
    update = corrected(tmp_path, which, monkeypatch, masks, **how)
    assert update.sampled.mask.tolist() == [1] * 10, "they are the policy's all the same"
    np.testing.assert_allclose(update.credited.correction, flat(weights(1)) * flat(masks), rtol=1e-6)
    assert update.credited.correction_rule == CorrectionRule("token", "truncate", None, 3.0)
    np.testing.assert_array_equal(update.sampled.sampling_logprobs, flat(verl.numbers(1)["rollout_log_probs"]))
    assert digest(update).apart
    with RunReader(Copy(tmp_path).path) as run:
        assert run.started.settings["rollout_rs"] == "token_k3"


def test_a_tools_tokens_stay_a_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = verl.numbers

    def numbers(step: int) -> Any:
        found = real(step)
        for row, place in ((0, 1), (2, 1)):  # where a tool spoke, which the sampler has not scored
            found["rollout_log_probs"][row][place] = 0.0
        return found

    monkeypatch.setattr(verl, "numbers", numbers)
    masks = ((0, 0, 0), (1,), (1, 0, 0, 1), (1, 1))
    update = corrected(tmp_path, "PPOTrainer", monkeypatch, masks, rollout_rs="token_k3", rollout_rs_threshold=0.1)
    assert update.sampled.mask.tolist() == [1, 0, 1, 1, 1, 0, 1, 1, 1, 1]
    expected = [0, np.nan, 0, 1, 1, np.nan, 0, 1, 1, 1]
    np.testing.assert_array_equal(update.credited.correction, expected)
    assert update.credited.correction_rule is None


def test_a_trainer_is_known_by_its_class() -> None:
    found = verl.modules()
    older, newer = found["verl.trainer.ppo.ray_trainer"], found["verl.trainer.ppo.v1.trainer_base"]
    assert compat.is_older(older.RayPPOTrainer(verl.config("")))
    assert not compat.is_older(newer.PPOTrainer(verl.config("")))
