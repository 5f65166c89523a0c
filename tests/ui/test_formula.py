"""The objective written out: the term that won is the one that counts, and clipped means a gradient of zero."""

import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.setting_values import choices, decoded
from rlplay.engine.objective import Inputs
from rlplay.engine.objective import objective as engine_objective
from rlplay.trace.records import LEFT_OUT, CorrectionRule
from rlplay.ui.formula.advantage import credit
from rlplay.ui.formula.difference import differing
from rlplay.ui.formula.formula_lines import PairScores, TokenNumbers
from rlplay.ui.formula.loss import objective
from rlplay.ui.formula.surrogate import filled
from tests.ui.stage import CHOSEN


def told(settings, **numbers):
    if "ratio" in numbers or "logprob" in numbers:
        numbers = {"logprob": -0.4, "ratio": 1.0, **numbers}
    return objective(decoded({**CHOSEN, "beta": 0.0, **settings}), TokenNumbers(**numbers))


def words(lines):
    return ["".join(text for text, _ in line) for line in lines]


def won(lines):
    return [text for line in lines for text, kind in line if kind == "won"]


def test_clipped_high():
    lines = told({}, advantage=0.93, ratio=1.39, log_ratio=0.33, clip_state=1, weight=1 / 128, dloss_dlogp=0.0)
    assert words(lines) == [
        "w = exp(ℓ − ℓ_old) = 1.39",
        "S = −min(w·A, clip(w, 0.8, 1.2)·A)",
        "= −min(1.39·0.93, 1.20·0.93)",
        "= −min(+1.29, +1.12) = −1.12",
        "▲ clipped: A > 0 and w > 1.2",
        "It is already more than 1.2 times as likely as when it was sampled. There min takes 1.2·A, a constant: "
        "moving it further gains nothing, so the surrogate's gradient is zero.",
        "adds 1/(N·n)·S to L",
        "= 0.00781·(−1.12) = −0.00872",
        "∂L/∂ℓ = 0: leaves it alone",
    ]
    assert won(lines) == ["1.39", "1.20·0.93", "+1.12", "−1.12", "−0.00872"]


def test_clipped_low():
    lines = told({}, advantage=-1.0, ratio=0.5, clip_state=-1)
    assert won(lines) == ["0.80·(−1.00)", "−0.80", "+0.80"]
    assert "▼ clipped: A < 0 and w < 0.8" in words(lines)
    assert any(line.startswith("It is already less than 0.8 times as likely") for line in words(lines))


def test_outside_on_the_harmless_side_still_pulls():
    lines = told({}, advantage=-1.0, ratio=1.5, clip_state=0)
    assert won(lines) == ["1.50·(−1.00)", "−1.50", "+1.50"]
    assert "outside the band, on the side that is not clipped: it still pulls" in words(lines)


def test_inside_both_terms_are_the_same():
    assert len(won(told({}, advantage=1.0, ratio=1.0, clip_state=0))) == 5


def test_an_upper_bound_of_its_own():
    assert "S = −min(w·A, clip(w, 0.8, 1.28)·A)" in words(told({"epsilon_high": 0.28}))


def test_plain_policy_gradient():
    lines = told({"surrogate": "logp", "kl_placement": "none"}, advantage=0.5, logprob=-0.4)
    assert words(lines)[:3] == ["S = −A·ℓ", "= −0.50·(−0.40) = +0.20", "A > 0: pulls this token up"]


@pytest.mark.parametrize(
    ("estimator", "meaning"),
    [
        ("k1", "log(p/p_ref)"),
        ("k2", "log(p_ref/p)²/2"),
        ("k3", "p_ref/p − 1 − log(p_ref/p)"),
        ("full", "Σᵥ p·log(p/p_ref)"),
    ],
)
def test_the_kl_term_is_named_filled_and_added(estimator, meaning):
    how = {"kl_placement": "loss", "beta": 0.05, "kl_estimator": estimator, "use_bias_correction_kl": False}
    lines = words(told(how, advantage=1.0, ratio=1.0, kl=0.2, weight=0.5))
    assert f"K = {meaning} = 0.200" in lines
    assert "adds 1/(N·n)·(S + 0.05·K) to L" in lines
    assert "= 0.5·(−1.00 + 0.05·0.200) = −0.495" in lines


def test_a_corrected_kl_term_is_shown_times_the_ratio():
    how = {"kl_placement": "loss", "beta": 0.05, "kl_estimator": "k3", "use_bias_correction_kl": True}
    lines = words(told(how, advantage=1.0, ratio=1.5, kl=0.03))
    assert "K = w·(p_ref/p − 1 − log(p_ref/p)) = 0.030" in lines, "the recorded term has the ratio in it"


def test_each_term_is_told_with_its_pull():
    how = {"kl_placement": "loss", "beta": 0.05}
    lines = words(told(how, advantage=1.0, ratio=1.0, kl=0.02, dloss_dlogp=-0.012, dkl_dlogp=0.003))
    assert lines[lines.index("∂L/∂ℓ = −0.012: pulls it up") + 1] == "of this −0.015 from S, +0.003 from K"


def test_an_entropy_bonus_acts_too_where_the_surrogate_does_not():
    clipped = {"advantage": 0.93, "ratio": 1.39, "clip_state": 1, "kl": 0.02}
    kl = {"kl_placement": "loss", "beta": 0.05}
    for how, rest in (
        ({"entropy_coef": 0.01}, "; only the entropy bonus acts."),
        (kl | {"entropy_coef": 0.01}, "; only the KL term and the entropy bonus act."),
        ({}, "so the surrogate's gradient is zero."),
    ):
        assert any(line.endswith(rest) for line in words(told(how, **clipped)))


@pytest.mark.parametrize(
    ("numbers", "note"),
    [
        (
            {"advantage": 0.93, "ratio": 1.39, "clip_state": 1},
            "so the surrogate's gradient is zero; only the KL term acts.",
        ),
        ({"advantage": 1.0, "ratio": 1.0, "clip_state": 0}, "A > 0: the surrogate pulls this token up"),
        ({"advantage": 0.0, "ratio": 1.0, "clip_state": 0}, "A = 0: only the KL term acts"),
    ],
)
def test_beside_a_kl_term_the_surrogate_is_not_all_that_pulls(numbers, note):
    lines = words(told({"kl_placement": "loss", "beta": 0.05}, kl=0.02, **numbers))
    assert any(line.endswith(note) for line in lines), lines


@pytest.mark.parametrize(
    ("derivative", "told_as"),
    [
        (-0.0125, "∂L/∂ℓ = −0.0125: pulls it up"),
        (2.0, "∂L/∂ℓ = +2: pushes it down"),
        (0.0, "∂L/∂ℓ = 0: leaves it alone"),
        (-0.0, "∂L/∂ℓ = 0: leaves it alone"),
    ],
)
def test_the_recorded_derivative_has_the_last_word(derivative, told_as):
    lines = told({}, advantage=1.0, ratio=1.0, clip_state=0, dloss_dlogp=derivative)
    assert told_as in words(lines)


def test_a_penalty_in_the_reward_is_part_of_the_credit_and_not_of_the_loss():
    settings = decoded({**CHOSEN, "kl_placement": "reward", "beta": 0.1, "kl_estimator": "k1"})
    assert not any(line.startswith("K = ") for line in words(objective(settings, TokenNumbers(advantage=1.0))))
    lines = words(credit(settings, TokenNumbers(reward=-0.02)))
    assert lines[0] == "r = R on the last token − 0.1·log(p_old/p_ref) on every token: here −0.02"


def test_a_constraint_stands_beside_the_surrogate():
    how = {"surrogate": "trpo", "kl_placement": "constraint", "max_kl": 0.02}
    lines = words(told(how, advantage=0.5, ratio=1.0))
    assert "S = −w·A" in lines
    assert lines[-1] == "limit: mean over tokens of Σᵥ p_old·log(p_old/p) ≤ 0.02"


def test_the_tokens_that_count_are_part_of_the_formula():
    assert words(told({"top_entropy_quantile": 0.2}, advantage=0.5, ratio=1.0))[-1].startswith(
        "counts: only the 20 % of tokens of highest entropy"
    )


def test_what_is_not_known_yet_is_not_filled_in():
    assert words(told({})) == [
        "w = exp(ℓ − ℓ_old)",
        "S = −min(w·A, clip(w, 0.8, 1.2)·A)",
        "adds 1/(N·n)·S to L",
    ]
    assert "w shown once the update begins" in words(told({}, advantage=0.5))
    assert words(credit(decoded(CHOSEN), TokenNumbers()))[-1] == "shown once credit is given"


@pytest.mark.parametrize(
    ("given", "last"),
    [
        ({}, "= (1.00 − 0.40)/0.50 = +1.20"),
        ({"scale_rewards": "none"}, "= 1.00 − 0.40 = +1.20"),
        ({"scale_rewards": "whiten"}, "= (1.00 − 0.40 − μ)/σ = +1.20"),
    ],
)
def test_how_an_advantage_came_about(given, last):
    lines = words(credit(decoded(CHOSEN | given), TokenNumbers(reward=0.0, returned=1.0, baseline=0.4, advantage=1.2)))
    assert lines[:3] == [
        "r = R on the last token: here 0.00", "G = Σ r over the answer: +1.00", "b = mean reward of the group: +0.40",
    ]  # fmt: skip
    assert lines[-1] == last


def test_credit_that_is_taken_away_is_no_quotient():
    numbers = TokenNumbers(reward=0.0, returned=1.0, baseline=0.4, advantage=0.0, withheld=True)
    assert words(credit(decoded(CHOSEN), numbers))[-1] == "= 0.00: its credit is taken away"


def test_an_advantage_of_zero_does_not_tell_its_scale():
    lines = words(credit(decoded(CHOSEN), TokenNumbers(reward=0.0, returned=1.0, baseline=1.0, advantage=0.0)))
    assert lines[-1] == "= (1.00 − 1.00)/σ = 0.00"


def test_a_narrow_band_gets_the_digits_it_needs():
    lines = words(told({"epsilon": 3e-4, "epsilon_high": 4e-4}, advantage=1.0, ratio=1.00035))
    assert "= −min(1.00035·1.00, 1.00035·1.00)" in lines


@pytest.mark.parametrize("code", [1, 2, 3])
def test_a_token_that_is_left_out_says_why(code):
    lines = words(told({}, advantage=1.0, ratio=1.0, weight=0.25, left_out=code))
    assert f"S is left out of the loss: {LEFT_OUT[code]}" in lines
    assert "= 0.25·0 = 0" in lines


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (("sequence", "mask", None, 3.0), "0 if ρ > 3 else ρ, ρ = exp(Σ of ℓ_old − ℓ_sampler over the answer)"),
        (
            ("geometric", "mask", 0.5, 2.0),
            "0 if ρ < 0.5 or ρ > 2 else ρ, ρ = exp(mean of ℓ_old − ℓ_sampler over the answer)",
        ),
        (("token", "mask", 0.5, 5.0), "0 if ρ < 0.5 or ρ > 5 else ρ, ρ = exp(ℓ_old − ℓ_sampler)"),
        (("token", "truncate", None, 3.0), "min(exp(ℓ_old − ℓ_sampler), 3)"),
        (("token", "truncate", 0.5, 3.0), "clip(exp(ℓ_old − ℓ_sampler), 0.5, 3)"),
        (("token", "mask", None, None), "exp(ℓ_old − ℓ_sampler)"),
        (("token", "of another program", 1.0, 2.0), "as recorded"),
    ],
)
def test_a_correction_for_the_sampler_is_a_factor_of_the_surrogate(rule, text):
    known = {"advantage": 1.0, "ratio": 1.0, "log_ratio": 0.0, "weight": 0.5, "correction": 1.25}
    lines = words(told({}, correction_rule=CorrectionRule(*rule), **known))
    written = [f"c = {text}", "= 1.250"] if ", ρ = " in text else [f"c = {text} = 1.250"]
    assert any(lines[place : place + len(written)] == written for place in range(len(lines)))
    assert lines[lines.index("adds 1/(N·n)·c·S to L") + 1] == "= 0.5·1.250·(−1.00) = −0.625"
    both = words(told({"beta": 0.1}, correction_rule=CorrectionRule(*rule), kl=0.2, **known))
    assert both[both.index("adds 1/(N·n)·(c·S + 0.1·K) to L") + 1] == "= 0.5·(−1.25 + 0.1·0.200) = −0.615"
    assert not any("c =" in line or "c·S" in line for line in words(told({}, **known)))
    with_ratio = words(told({}, correction_rule=CorrectionRule(*rule), sampler_ratio=0.37, **known))
    alone = rule[:2] == ("token", "mask") and rule[2:] != (None, None)
    assert ("= 1.250, ρ = 0.370" in with_ratio) == alone


def test_a_weight_above_the_cap_still_pulls():
    lines = words(told({"surrogate": "cispo", "epsilon_high": 3.0}, advantage=1.0, ratio=4.0))
    assert "= −3.00·1.00·(−0.40) = +1.20" in lines
    assert "w is above the cap: it pulls with the weight 3, not 4.00" in lines


def test_the_difference_of_two_algorithms_is_told_by_signs_as_well_as_colours():
    lines = differing(resolve({"algorithm": "grpo"}), resolve({"algorithm": "dr-grpo"}))
    assert words(lines) == [
        "− A = (G − b)/(σ + 0.0001), σ = std of the group's rewards",
        "+ A = G − b",
        "− L = 1/N Σᵢ 1/nᵢ Σₜ S",
        "+ L = 1/(N·32) Σᵢ Σₜ S",
    ]
    assert {kind for line in lines for _, kind in line} == {"old", "new"}


@pytest.mark.parametrize("surrogate", choices("surrogate"))
@pytest.mark.parametrize("delta", [None, 3.0])
@pytest.mark.parametrize("advantage", [0.93, -1.08])
@pytest.mark.parametrize("change", [-0.5, 0.0, 0.3, 1.5])
def test_what_is_filled_in_is_the_loss_that_was_trained(surrogate, delta, advantage, change):
    high = 3.0 if surrogate == "cispo" else 0.28
    settings = resolve({"algorithm": "grpo", "surrogate": surrogate, "delta": delta, "epsilon_high": high})
    old = torch.tensor([[-2.0]])
    inputs = Inputs(old + change, old, old, torch.full((1, 1), advantage))
    terms = engine_objective(inputs, torch.ones(1, 1), settings, beta=0.0)
    lines = filled(
        settings,
        TokenNumbers(-2.0 + change, advantage, terms.ratio.item(), int(terms.clip_state.item()), log_ratio=change),
    )
    assert float(won(lines)[-1].replace("−", "-")) == pytest.approx(terms.policy_loss.item(), abs=0.0051)
    assert any(line.startswith(("▲", "▼")) for line in words(lines)) == bool(terms.clip_state.item())


@pytest.mark.parametrize("name", PRESETS)
def test_every_algorithm_has_its_formula(name):
    settings = resolve({"algorithm": name})
    for clip_state in (-1, 0, 1):
        for numbers in (
            TokenNumbers(),
            TokenNumbers(advantage=-0.5),
            TokenNumbers(-0.4, 0.5, 1.5, clip_state, kl=0.02, beta=0.3, dloss_dlogp=0.1),
        ):
            assert "".join(words(objective(settings, numbers)))


def test_a_ratio_of_the_whole_answer_says_so():
    lines = words(told({"importance_sampling_level": "sequence"}, advantage=1.0, ratio=1.5, clip_state=1))
    assert lines[0] == "w = exp(mean of ℓ − ℓ_old over the answer)"
    assert any(line.startswith("Its answer, by w, is already more than 1.2 times") for line in lines)


def test_a_token_bounded_inside_the_answers_ratio():
    how = {"importance_sampling_level": "geometric", "surrogate": "ratio", "epsilon": 0.4}
    lines = words(told(how, advantage=1.0, ratio=1.1, clip_state=1))
    assert "▲ bounded: A > 0 and ℓ − ℓ_old > 0.4" in lines


def test_the_dual_clip():
    lines = told({"delta": 3.0}, advantage=-1.0, ratio=5.0, clip_state=2)
    assert won(lines) == ["3.00·(−1.00)", "−3.00", "+3.00"]
    assert "▲ clipped: A < 0 and w > δ = 3" in words(lines)


def test_an_adaptive_weight_is_the_one_that_was_used():
    how = {"kl_placement": "loss", "beta": 1.0, "kl_ctrl": "ppo", "kl_anchor": "old"}
    lines = words(told(how, advantage=1.0, ratio=1.0, kl=0.02, beta=0.5, weight=0.5))
    assert "K = p/p_old − 1 − log(p/p_old) = 0.020" in lines
    assert "= 0.5·(−1.00 + 0.5·0.020) = −0.495" in lines


def test_an_entropy_bonus_is_told():
    lines = words(told({"entropy_coef": 0.01}, advantage=1.0, ratio=1.0, dloss_dlogp=0.0))
    assert "The entropy bonus also acts on all candidates." in lines


@pytest.mark.parametrize(
    ("given", "of", "told_as"),
    [
        ({"loss_type": "sigmoid", "beta": 0.5}, PairScores(True, 1.5, -0.5), "; this one: +0.31"),
        ({"loss_type": "sigmoid", "beta": 0.5}, PairScores(False, -0.5, 1.5), "; this one: +0.31"),
        ({"loss_type": "hinge", "beta": 0.1}, PairScores(True, 2.0, -3.0), "; this one: +0.50"),
        ({"loss_type": "ipo", "beta": 0.5}, PairScores(True, 0.25, -0.25), "; this one: +0.25"),
        ({"loss_type": "kto", "beta": 1.0}, PairScores(False, 0.0, baseline=0.0), "; this one: +0.50"),
    ],
)
def test_a_pairs_loss_is_filled(given, of, told_as):
    settings = decoded({**CHOSEN, **given})
    lines = words(objective(settings, TokenNumbers(pair=of)))
    assert next(line for line in lines if line.startswith("L = ")).endswith(told_as)
    assert f"this is the {'chosen' if of.chosen else 'rejected'} answer" in lines


def test_settings_of_another_version_are_passed_over():
    assert words(objective(decoded({"surrogate": "logp", "unheard_of": 1}), TokenNumbers()))[0] == "S = −A·ℓ"
