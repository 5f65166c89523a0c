"""Algorithms as combinations of axes, and changes of several settings at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.algorithms.apply import apply, apply_all, in_order, resolve, validated
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.settings import Settings


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_sets_every_axis_and_fits_together(name: str) -> None:
    assert set(PRESETS[name].axes) == set(PRESETS["grpo"].axes)
    assert resolve({"algorithm": name}).algorithm == name


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_what_it_changes_against_one_that_exists(name: str) -> None:
    preset = PRESETS[name]
    assert preset.changes.endswith(".")
    if preset.after is not None:
        before = PRESETS[preset.after].axes
        assert before != preset.axes


UNLIKE_PUBLISHED = {
    "grpo": ["0.04", "β is {beta:g}"],
    "grpo-process": ["0.04", "β is {beta:g}"],
    "ppo-penalty": ["0.003 to 0.03", "target_kl is {target_kl:g}"],
    "rlhf-ppo": ["β stays {beta:g}", "kl_ctrl=ziegler"],
    "ipo": ["averaged over tokens", "sums them"],
    **{key: ["set it to about 0.1", "in the book it follows every step"] for key in ("sarsa", "q-learning")},
    "dpo-norm": ["in the paper it is 5", "β is {beta:g}"],
    "discopop": ["in the paper it is 0.05", "β is {beta:g}"],
    "nca": ["in the paper it is 0.01", "β is {beta:g}"],
    "bco": ["not shifted", "subtracts δ"],
    "mpo": ["not shifted", "running mean"],
    "sppo": ["with probability 1", "estimates the probability"],
    "online-dpo": ["gold score labels", "language model compares"],
    "gkd": ["The policy writes all", "may come from a dataset"],
    "alphapo": ["β is {beta:g} and γ {simpo_gamma:g}", "β is 2.5 and γ 0.1"],
    "simpo": ["2 to 2.5", "γ/β is 0.1 to 0.8", "β is {beta:g} and γ {simpo_gamma:g}"],
}
"""What the sentence has to say: the papers' values, and ours as the settings have them."""


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_that_is_not_as_published_says_so_with_both_values(name: str) -> None:
    preset, settings = PRESETS[name], resolve({"algorithm": name})
    assert bool(preset.differs) == (name in UNLIKE_PUBLISHED)
    assert preset.explained.startswith(preset.changes)
    assert preset.explained.endswith(preset.differs or preset.changes)
    for words in UNLIKE_PUBLISHED.get(name, []):
        assert words.format(**msgspec.structs.asdict(settings)) in preset.differs
    if name == "simpo":
        assert f"gap of {settings.simpo_gamma / settings.beta:g} nats" in preset.differs


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"returns": "gae"}, "value head"),
    ({"baseline": "value"}, "expectation"),
    ({"num_generations": 1}, "siblings"),
    ({"algorithm": "rloo", "num_generations": 1}, "siblings"),
    ({"algorithm": "reinforce", "num_generations": 1, "dynamic_sampling": True}, "siblings"),
    ({"algorithm": "opo", "num_generations": 1}, "baseline=length_weighted needs num_generations"),
    ({"scale_rewards": "none", "num_generations": 1}, "baseline=group_mean needs num_generations"),
    ({"algorithm": "simpo", "beta": 0}, "loss_type=simpo needs a beta above 0"),
    ({"algorithm": "cpo", "beta": 0, "cpo_alpha": 0}, "a cpo_alpha above 0"),
    ({"surrogate": "logp", "importance_sampling_level": "sequence"}, "no ratio"),
    ({"surrogate": "cispo"}, "largest weight"),
    ({"kl_placement": "reward", "kl_anchor": "old", "beta": 0.1}, "is 0 when rewards are given"),
    ({"kl_ctrl": "ziegler"}, "beta above 0"),
    ({"kl_ctrl": "ppo", "beta": 0.1}, "kl_anchor=old"),
    ({"kl_ctrl": "ziegler", "beta": 0.1, "kl_anchor": "old"}, "kl_anchor=ref"),
    ({"num_prompts": 1, "num_minibatches": 9}, "8 completions"),
    ({"returns": "vine"}, "baseline=none"),
    ({"surrogate": "trpo", "kl_placement": "loss", "beta": 0.1}, "need each other"),
    ({"kl_placement": "constraint", "kl_anchor": "old"}, "need each other"),
    ({"algorithm": "trpo", "kl_anchor": "ref"}, "kl_anchor=old"),
    ({"algorithm": "trpo", "num_iterations": 2}, "one step on the whole batch"),
    ({"algorithm": "trpo", "num_minibatches": 2}, "one step on the whole batch"),
    ({"algorithm": "trpo", "num_iterations": 2, "num_minibatches": 2}, "one step on the whole batch"),
    ({"algorithm": "kto", "num_prompts": 3, "num_minibatches": 2}, "2 prompts or more in a minibatch"),
    ({"algorithm": "q-learning", "reward_stream": "process_normalized"}, "rewards as they are"),
    ({"algorithm": "q-learning", "multi_objective_aggregation": "normalize_then_sum"}, "rewards as they are"),
    ({"algorithm": "trpo", "importance_sampling_level": "sequence"}, "line search"),
    ({"algorithm": "trpo", "entropy_coef": 0.01}, "line search"),
    ({"algorithm": "trpo", "beta": 0.1, "kl_ctrl": "ppo"}, "loss or reward"),
    ({"algorithm": "vineppo", "kl_placement": "reward", "beta": 0.1}, "no KL in the reward"),
    ({"algorithm": "vineppo", "reward_stream": "process"}, "whole answers"),
    ({"algorithm": "vineppo", "retokenize_turns": True}, "returns other than vine"),
    ({"reward_stream": "process", "retokenize_turns": True}, "reward_stream=outcome"),
    ({"old_logprobs_of": "sampler", "retokenize_turns": True}, "old_logprobs_of=trainer"),
    ({"algorithm": "gdpo", "reward_stream": "process"}, "count twice"),
    ({"sync_ref_model": True}, "something that reads the reference"),
    ({"entropy_coef_min": 0.5, "entropy_coef_max": 0.1}, "stays between them"),
    ({"algorithm": "gspo", "clip_cov_ratio": 0.1}, "PPO's clip has not"),
    ({"clip_cov_lb": 5.0}, "no token lies between"),
    ({"beta": 0.1, "kl_cov_ratio": 0.1}, "which tokens that KL holds"),
    ({"pass_at_k": 8, "num_generations": 8}, "num_generations of 9 or more"),
    ({"algorithm": "pass-at-k", "baseline": "greedy"}, "whole answers of a group"),
    ({"algorithm": "pass-at-k", "reward_stream": "process"}, "whole answers of a group"),
    ({"reward_clip_min": 0, "reward_stream": "process"}, "the whole reward of an answer"),
    ({"reward_clip_min": 1, "reward_clip_max": 0.5}, "no reward lies between them"),
    ({"algorithm": "vineppo", "reward_clip_max": 1}, "no bounds of it"),
    ({"algorithm": "grpo-process", "multi_objective_aggregation": "normalize_then_sum"}, "reward_stream=outcome"),
    (
        {"scale_rewards": "pass_rate", "baseline": "none", "num_generations": 1},
        "scale_rewards=pass_rate needs num_generations",
    ),
    ({"algorithm": "exo", "label_smoothing": 0}, "loss_type=exo_pair needs a label_smoothing above 0"),
    (
        {"loss_type": "sigmoid", "beta": 0.1, "loss_weights": {"kto": 1, "sigmoid": 1}},
        "loss_weights takes .* got 'kto'",
    ),
    ({"loss_type": "sigmoid", "beta": 0.1, "loss_weights": {"ipo": 1}}, "has no sigmoid"),
    ({"algorithm": "bco", "f_divergence_type": "forward_kl"}, "only the gap counts"),
    ({"algorithm": "aot", "use_weighting": True}, "sorts those of a minibatch"),
    ({"algorithm": "trpo", "importance_sampling_mode": "token_mask"}, "importance_sampling_mode=none"),
    ({"algorithm": "vespo", "importance_sampling_mode": "sequence_mask"}, "its own weight is the answer's"),
    ({"importance_sampling_mode": "token_mask", "old_logprobs_of": "sampler"}, "the ratio itself corrects"),
    ({"rollout_rs": "token_k2", "old_logprobs_of": "sampler"}, "the ratio itself corrects"),
    ({"importance_sampling_clip_min": 0.5, "importance_sampling_clip_max": 0.1}, "within both"),
    ({"rollout_rs": "seq_mean_k1", "rollout_rs_threshold": 0.5}, "its inverse is the lower bound"),
    ({"distillation_weight": 1, "teacher_model_kind": "live"}, "the policy itself"),
    (
        {"algorithm": "reinforce", "num_generations": 1, "distillation_weight": 1, "teacher_context": "group"},
        "teacher_context=group needs num_generations",
    ),
    ({"algorithm": "trpo", "distillation_weight": 0.5}, "distillation_mode=advantage"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED)
def test_what_does_not_fit_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        resolve(changes)


def test_limits_themselves_are_allowed() -> None:
    assert resolve({"algorithm": "cispo", "epsilon_high": 1.0}).epsilon_high == 1
    assert resolve({"algorithm": "kto", "num_prompts": 4, "num_minibatches": 2}).num_minibatches == 2


@pytest.mark.parametrize("name", ["sft", "reward-model", "cpo", "orpo"])
def test_losses_with_another_term_or_without_a_gap_take_a_beta_of_0(name: str) -> None:
    assert resolve({"algorithm": name, "beta": 0}).beta == 0


@pytest.mark.parametrize("name", ["reinforce", "reinforce-baseline", "remax"])
def test_what_compares_no_siblings_takes_one_completion_per_prompt(name: str) -> None:
    assert resolve({"algorithm": name, "num_generations": 1}).num_generations == 1


@pytest.mark.parametrize("first", PRESETS)
def test_a_change_of_algorithm_leaves_nothing_behind(first: str) -> None:
    before = apply(Settings(), "algorithm", first)
    for second in PRESETS:
        assert apply(before, "algorithm", second) == resolve({"algorithm": second}), second


def test_the_passes_of_the_classics() -> None:
    ppo, reinforce = resolve({"algorithm": "ppo"}), resolve({"algorithm": "reinforce"})
    assert (ppo.num_iterations, ppo.num_minibatches) == (4, 2)
    assert (reinforce.num_iterations, reinforce.num_minibatches) == (1, 1)


def test_ppo_for_rlhf_has_its_kl() -> None:
    settings = resolve({"algorithm": "rlhf-ppo"})
    assert (settings.kl_placement, settings.beta) == ("reward", 0.05)


WORDS = st.sampled_from(["broadcast", "to_go", "gae", "none", "batch_mean", "group_mean", "value", "group"])
PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"returns": "gae", "baseline": "value"}),
    ({}, {"baseline": "value", "returns": "gae"}),
    ({"algorithm": "ppo"}, {"baseline": "group_mean", "returns": "broadcast"}),
    ({"algorithm": "ppo"}, {"returns": "broadcast", "baseline": "group_mean", "num_iterations": 1}),
    ({}, {"baseline": "group_mean", "algorithm": "ppo", "returns": "broadcast"}),
    ({"num_generations": 1, "algorithm": "reinforce"}, {"baseline": "group_mean", "num_generations": 4}),
    ({"num_prompts": 1}, {"num_minibatches": 16, "num_prompts": 2}),
    ({}, {"kl_placement": "constraint", "surrogate": "trpo", "kl_anchor": "old"}),
    ({"algorithm": "ppo"}, {"surrogate": "trpo", "num_iterations": 1, "num_minibatches": 1}),
    ({"algorithm": "trpo"}, {"kl_placement": "loss", "beta": 0.1, "surrogate": "ppo", "num_iterations": 2}),
    ({"algorithm": "ppo"}, {"returns": "vine", "baseline": "none"}),
    ({"algorithm": "vineppo"}, {"baseline": "value", "returns": "gae"}),
]


@pytest.mark.parametrize(("held", "changes"), PAIRS)
def test_an_order_in_which_every_step_is_allowed(held: dict[str, Any], changes: dict[str, Any]) -> None:
    start = settings = resolve(held)
    for name, value in in_order(start, changes):
        settings = validated(apply(settings, name, value))
    assert settings == apply_all(start, changes)


@given(
    st.sampled_from(list(PRESETS)), st.dictionaries(st.sampled_from(["returns", "baseline", "scale_rewards"]), WORDS)
)
def test_any_order_ends(algorithm: str, changes: dict[str, Any]) -> None:
    start = settings = resolve({"algorithm": algorithm})
    try:
        goal = apply_all(start, changes)
    except ValueError:
        return
    for name, value in in_order(start, changes):
        settings = validated(apply(settings, name, value))
    assert settings == goal


def test_what_does_not_fit_is_refused_as_a_whole() -> None:
    with pytest.raises(ValueError, match="returns=gae needs baseline=value"):
        in_order(Settings(), {"lam": 1, "returns": "gae"})
