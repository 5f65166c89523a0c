"""Whatever the engine logs, the registry can explain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import argument_names, call_choice
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES
from rlplay.algorithms.ratios import LEVELS
from rlplay.algorithms.setting_values import choices
from rlplay.algorithms.settings import CHOICES, Settings
from rlplay.algorithms.surrogates import SURROGATES
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.metrics import METRICS, describe, means_the_same
from rlplay.trace.records import Evaluated, Finished, Stepped


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize(
    ("given", "logs"),
    [
        (
            {"algorithm": "ppo", "delta": 3.0, "num_iterations": 1},
            {"kl", "clip_ratio/delta_mean", "explained_variance"},
        ),
        ({"algorithm": "ppo-penalty", "num_iterations": 1}, {"kl", "kl_penalty", "kl_coef"}),
        (
            {"algorithm": "cispo", "dynamic_sampling": True},
            {"kl", "cispo_clip_ratio", "dynamic_sampling/dropped_groups"},
        ),
        ({"algorithm": "sft"}, {"loss", "logps/chosen", "mean_token_accuracy", "entropy"}),
        ({"algorithm": "dpo"}, {f"rewards/{name}" for name in ("chosen", "rejected", "margins", "accuracies")}),
        ({"algorithm": "kto"}, {"kto/kl", "logps/rejected", "frac_pairs_tied", "label_accuracy"}),
        ({"algorithm": "orpo"}, {"nll_loss", "log_odds_chosen", "log_odds_ratio"}),
        ({"algorithm": "reward-model"}, {"accuracy", "margin", "min_reward", "mean_reward", "max_reward"}),
    ],
)
def test_every_number_that_the_engine_logs_has_a_row(
    start: Callable[..., Any], given: dict[str, Any], logs: set[str]
) -> None:
    driver, records = start(eval_every=1, **given)
    driver.advance("update", 1, lambda: False)
    driver.close()
    names = {
        name for record in records if isinstance(record, Stepped | Finished | Evaluated) for name in record.metrics
    }
    assert logs | {"eval_reward"} <= names
    assert not [name for name in names if describe(name) is None]


@pytest.mark.parametrize("name", CHOICES)
def test_a_setting_takes_the_names_of_its_rows_in_their_order(name: str) -> None:
    assert choices(name) == tuple(CHOICES[name])


def test_a_loss_type_is_the_policy_gradient_imitation_or_a_row() -> None:
    assert {*choices("loss_type")} == {"policy_gradient", *IMITATIONS, *PAIR_LOSSES, *VALUE_LOSSES}


def test_a_setting_needs_words_that_another_one_takes() -> None:
    needs = [knob.needs for knob in KNOBS.values() if knob.needs is not None]
    assert needs
    assert not [(name, word) for name, words in needs for word in words if word not in (choices(name) or (True, False))]


def test_a_row_says_what_its_surrogate_reads() -> None:
    for surrogate in SURROGATES.values():
        assert surrogate.compute is not None
        names = argument_names(surrogate.compute)
        assert surrogate.has_ratio == bool({"ratio", "log_ratio"} & {*names}), surrogate.name
        assert surrogate.band <= ({"epsilon", "epsilon_high"} <= {*names}), surrogate.name
        needs = {name: KNOBS[name].needs for name in names if name in KNOBS}
        assert not [name for name, need in needs.items() if need and surrogate.name not in need[1]], surrogate.name


def test_a_level_with_one_ratio_gives_all_tokens_of_an_answer_the_same() -> None:
    known = {"log_ratio": np.array([0.1, -0.3, 0.4]), "mask": np.ones(3, dtype=bool), "advantages": np.ones(3)}
    for level in LEVELS.values():
        found = call_choice(level.compute, NumpyArrays, known | {"epsilon": 0.2, "epsilon_high": 0.2}, Settings())
        assert (level.one_ratio or level.band) == (np.size(found) == 1), level.name
        assert level.band == (level.gradient_zero is not None), level.name


def test_rows_say_what_they_are() -> None:
    for row in METRICS.values():
        assert row.title
        assert row.formula


def test_a_curve_runs_on_into_the_next_stage_where_its_number_means_the_same() -> None:
    names = ("num_tokens", "eval_gold/correct/mean", "eval_reward", "reward", "loss", "completions/mean_length")
    assert [means_the_same(name) for name in names] == [True, True, False, False, False, False]
