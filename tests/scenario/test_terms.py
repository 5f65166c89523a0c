"""Algorithms in symbols: every choice has its symbols, and two algorithms differ where their settings do."""

import msgspec
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.equations import difference, equation, terms
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.pair_losses import IMITATIONS
from rlplay.algorithms.setting_values import choices
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.trl_verl import loss_type, trainer
from rlplay.algorithms.value_losses import VALUE_LOSSES

AXES = (
    "reward_stream", "multi_objective_aggregation", "returns", "baseline", "scale_rewards", "importance_sampling_level",
    "surrogate", "kl_placement", "kl_estimator", "kl_anchor", "aggregation", "loss_type",
)  # fmt: skip


FIXED = ("policy_gradient", *IMITATIONS, "reward", *VALUE_LOSSES)
DPO = {"loss_type": "sigmoid", "beta": 0.1}


def equation_text(**given) -> str:
    return "\n".join(equation(*entry) for entry in terms(msgspec.structs.replace(Settings(), **given)).items())


@pytest.mark.parametrize("axis", AXES)
def test_every_choice_of_an_axis_reads_differently(axis):
    base = {"beta": 0.5, "kl_placement": "loss", "label_smoothing": 0.1}
    assert len({equation_text(**base | {axis: word}) for word in choices(axis)}) == len(choices(axis))


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("epsilon", 0.3, {}),
        ("epsilon_high", 0.4, {}),
        ("epsilon_high", 3.0, {"surrogate": "cispo"}),
        ("delta", 3.0, {}),
        ("sapo_temperature_pos", 2.0, {"surrogate": "sapo"}),
        ("sapo_temperature_neg", 2.0, {"surrogate": "sapo"}),
        ("vespo_k_pos", 1.0, {"surrogate": "vespo"}),
        ("vespo_lambda_neg", 1.0, {"surrogate": "vespo"}),
        ("gamma", 0.9, {"returns": "to_go"}),
        ("gamma", 0.9, {"returns": "vine"}),
        ("vine_samples", 3, {"returns": "vine"}),
        ("lam", 0.5, {"returns": "gae", "baseline": "value"}),
        ("beta", 0.1, {}),
        ("beta", 0.1, {"kl_placement": "reward"}),
        ("use_bias_correction_kl", False, {"beta": 0.1}),
        ("kl_ctrl", "ziegler", {"beta": 0.1}),
        ("kl_ctrl", "ppo", {"beta": 0.1, "kl_anchor": "old"}),
        ("overlong_buffer", 8, {}),
        ("mask_truncated_completions", True, {}),
        ("top_entropy_quantile", 0.2, {}),
        ("off_policy_mask_threshold", 0.02, {}),
        ("entropy_coef", 0.01, {}),
        ("vf_coef", 0.5, {"baseline": "value"}),
        ("cliprange_value", 0.5, {"baseline": "value"}),
        ("num_iterations", 4, {}),
        ("num_minibatches", 4, {}),
        ("dynamic_sampling", True, {}),
        ("retokenize_turns", True, {}),
        ("max_kl", 0.1, {"surrogate": "trpo", "kl_placement": "constraint"}),
        ("cg_iterations", 5, {"surrogate": "trpo"}),
        ("cg_damping", 0.5, {"surrogate": "trpo"}),
        ("line_search_steps", 5, {"surrogate": "trpo"}),
        ("max_completion_length", 64, {"aggregation": "constant"}),
        ("label_noise", 0.1, {"loss_type": "sigmoid", "beta": 0.1}),
        ("label_smoothing", 0.1, {"loss_type": "sigmoid", "beta": 0.1}),
        ("label_smoothing", 0.2, {"loss_type": "robust", "beta": 0.1}),
        ("simpo_gamma", 1.0, {"loss_type": "simpo", "beta": 0.1}),
        ("cpo_alpha", 0.5, {"loss_type": "cpo", "beta": 0.1}),
        ("desirable_weight", 2.0, {"loss_type": "kto", "beta": 0.1}),
        ("undesirable_weight", 2.0, {"loss_type": "kto", "beta": 0.1}),
        ("loss_weights", {"sigmoid": 0.8, "sft": 1.0}, DPO),
        ("loss_weights", {"sigmoid": 1.0, "aot": 0.5}, {**DPO, "loss_weights": {"sigmoid": 1.0}}),
        ("answers_of", "policy", DPO),
        ("f_divergence_type", "forward_kl", DPO),
        ("f_alpha_divergence_coef", 0.3, {**DPO, "f_divergence_type": "alpha_divergence"}),
        ("ld_alpha", 0.3, DPO),
        ("ld_alpha", 0.3, {**DPO, "loss_type": "aot"}),
        ("use_weighting", True, DPO),
        ("discopop_tau", 0.1, {**DPO, "loss_type": "discopop"}),
        ("alpha", 0.3, {"loss_type": "simpo", "beta": 0.1}),
        ("labeller", "user", {"loss_type": "sft"}),
        ("center_rewards_coefficient", 0.1, {"loss_type": "reward"}),
        ("exploration_rate", 0.3, {"loss_type": "sarsa"}),
        ("learning_rate", 0.3, {"loss_type": "q_learning"}),
        ("gamma", 0.9, {"loss_type": "q_learning"}),
        *((("beta", 0.3, {"loss_type": name, "beta": 0.1})) for name in choices("loss_type") if name not in FIXED),
    ],
)
def test_every_number_that_counts_is_in_the_formula(name, value, given):
    assert name in KNOBS
    assert equation_text(**given) != equation_text(**{**given, name: value})


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.after])
def test_an_algorithm_differs_from_the_one_before_in_its_formula(name):
    before, after = resolve({"algorithm": PRESETS[name].after}), resolve({"algorithm": name})
    changed = difference(before, after)
    assert changed
    assert changed == [
        (left, terms(before).get(left), terms(after).get(left))
        for left, *_ in changed
        if terms(before).get(left) != terms(after).get(left)
    ]


def test_a_difference_names_the_terms_that_change_and_no_others():
    assert difference(resolve({"algorithm": "grpo"}), resolve({"algorithm": "dr-grpo"})) == [
        ("A", "(G − b)/(σ + 0.0001), σ = std of the group's rewards", "G − b"),
        ("L", "1/N Σᵢ 1/nᵢ Σₜ S", "1/(N·32) Σᵢ Σₜ S"),
    ]
    added = {left: (old, new) for left, old, new in difference(Settings(), Settings(beta=0.05))}
    assert added["K"] == (None, "w·(p_ref/p − 1 − log(p_ref/p))")


def test_whatever_does_nothing_is_left_out():
    assert "K" not in terms(Settings(beta=0.0))
    assert "w" not in terms(resolve({"algorithm": "reinforce"}))
    assert "L_V" not in terms(resolve({"algorithm": "grpo"}))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"algorithm": "grpo"}, "grpo"),
        ({"algorithm": "gspo"}, "grpo"),
        ({"algorithm": "dr-grpo"}, "dr_grpo"),
        ({"algorithm": "dapo"}, "bnpo"),
        ({"algorithm": "dapo", "num_minibatches": 1}, "dapo"),
        ({"algorithm": "luspo"}, "luspo"),
        ({"algorithm": "cispo"}, "cispo"),
        ({"algorithm": "sapo"}, "sapo"),
        ({"algorithm": "vespo"}, "vespo"),
        ({"algorithm": "reinforce"}, None),
        ({"algorithm": "rloo"}, None),
        ({"algorithm": "gmpo"}, None),
        ({"algorithm": "ppo"}, None),
        ({"algorithm": "sapo", "aggregation": "token_mean"}, None),
        ({"importance_sampling_level": "sequence_sum"}, None),
        ({"importance_sampling_level": "geometric"}, None),
    ],
)
def test_the_name_that_trl_gives_it(given, name):
    assert loss_type(resolve(given)) == name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"algorithm": "grpo"}, "GRPOTrainer with loss_type=grpo"),
        ({"algorithm": "a2c"}, None),
        ({"algorithm": "rloo"}, "RLOOTrainer"),
        ({"algorithm": "rloo", "beta": 0}, "RLOOTrainer"),
        ({"algorithm": "rloo", "kl_estimator": "k3"}, None),
        ({"algorithm": "rloo", "kl_placement": "loss"}, None),
        ({"algorithm": "rloo", "baseline": "group_mean"}, None),
        ({"algorithm": "rloo", "delta": 2.0}, None),
        ({"algorithm": "rloo", "aggregation": "token_mean"}, None),
        ({"algorithm": "ipo"}, "DPOTrainer with loss_type=ipo"),
        ({"algorithm": "cdpo"}, None),
        ({"algorithm": "orpo"}, None),
        ({"algorithm": "cpo"}, "CPOTrainer with loss_type=sigmoid"),
    ],
)
def test_the_trainer_that_trl_has_for_it(given, name):
    assert trainer(resolve(given)) == name


def test_the_labeller_is_named_as_the_engine_decides():
    """The user's labels come before a file's, a file's before the gold score's."""
    assert terms(resolve({"algorithm": "dpo", "labeller": "user"}))["labels"] == "yours"
    assert terms(resolve({"algorithm": "dpo"}))["labels"] == "by the gold score, unless a file has them"


def test_shaping_says_that_step_scores_count_as_potential_only():
    stream = terms(resolve({"reward_stream": "shaping", "returns": "to_go"}))["r"]
    assert stream.startswith("R less its step scores on the last token")
