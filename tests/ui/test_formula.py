"""The objective written out: the term that won is the one that counts, and clipped means a gradient of zero."""

import msgspec
import pytest
import torch

from rlplay.engine.objective import Inputs
from rlplay.engine.objective import objective as engine_objective
from rlplay.scenario.algorithms import PRESETS
from rlplay.scenario.presets import resolve
from rlplay.ui.formula import Numbers, objective
from tests.ui.stage import CHOSEN


def told(settings, **numbers):
    if "ratio" in numbers or "logprob" in numbers:
        numbers = {"logprob": -0.4, "ratio": 1.0, **numbers}
    return objective({**CHOSEN, "beta": 0.0, **settings}, Numbers(**numbers))


def words(lines):
    return ["".join(text for text, _ in line) for line in lines]


def won(lines):
    return [text for line in lines for text, kind in line if kind == "won"]


def test_clipped_high():
    lines = told({}, advantage=0.93, ratio=1.39, clip_state=1)
    assert words(lines) == [
        "−min(w·A, clip(w, 0.8, 1.2)·A)",
        "= −min(1.39·0.93, 1.20·0.93)",
        "= −min(+1.29, +1.12) = −1.12",
        "▲ clipped: A > 0 and w > 1.2",
        "It is already more than 1.2 times as likely as when it was sampled. There min takes 1.2·A, a constant: "
        "moving it further gains nothing, so it no longer pulls.",
    ]
    assert won(lines) == ["1.20·0.93", "+1.12", "−1.12"]


def test_clipped_low():
    lines = told({}, advantage=-1.0, ratio=0.5, clip_state=-1)
    assert won(lines) == ["0.80·(−1.00)", "−0.80", "+0.80"]
    assert words(lines)[-2] == "▼ clipped: A < 0 and w < 0.8"
    assert words(lines)[-1].startswith("It is already less than 0.8 times as likely")


def test_outside_on_the_harmless_side_still_pulls():
    lines = told({}, advantage=-1.0, ratio=1.5, clip_state=0)
    assert won(lines) == ["1.50·(−1.00)", "−1.50", "+1.50"]
    assert "still pulls" in words(lines)[-1]


def test_inside_both_terms_are_the_same():
    assert len(won(told({}, advantage=1.0, ratio=1.0, clip_state=0))) == 5


def test_an_upper_bound_of_its_own():
    assert words(told({"epsilon_high": 0.28}))[0] == "−min(w·A, clip(w, 0.8, 1.28)·A)"


def test_plain_policy_gradient():
    lines = told({"surrogate": "logp", "kl_placement": "none"}, advantage=0.5, logprob=-0.4)
    assert words(lines) == ["−A·ℓ", "= −(+0.50)·(−0.40) = +0.20", "A > 0: pulls this token up"]


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_the_kl_term_is_named_and_filled(estimator):
    how = {"kl_placement": "loss", "beta": 0.05, "kl_estimator": estimator, "use_bias_correction_kl": False}
    lines = told(how, advantage=1.0, ratio=1.0, kl=0.02)
    assert words(lines)[0].endswith(f" + β·{estimator}")
    assert f"+ β·{estimator} = 0.05·0.020 = +0.0010" in words(lines)
    still = told(how, advantage=1.0, ratio=1.0, kl=0.0)
    assert f"+ β·{estimator} = 0.05·0.000 = 0.0000" in words(still)


def test_a_corrected_kl_term_is_shown_times_the_ratio():
    how = {"kl_placement": "loss", "beta": 0.05, "kl_estimator": "k3", "use_bias_correction_kl": True}
    lines = words(told(how, advantage=1.0, ratio=1.5, kl=0.03))
    assert lines[0].endswith(" + β·k3·w")
    assert "+ β·(k3·w) = 0.05·0.030 = +0.0015" in lines, "the recorded term has the ratio in it"


@pytest.mark.parametrize(
    ("numbers", "note"),
    [
        ({"advantage": 0.93, "ratio": 1.39, "clip_state": 1}, "so it no longer pulls; only the KL term does."),
        ({"advantage": 1.0, "ratio": 1.0, "clip_state": 0}, "A > 0: the surrogate pulls this token up"),
        ({"advantage": 0.0, "ratio": 1.0, "clip_state": 0}, "A = 0: only the KL term pulls"),
    ],
)
def test_beside_a_kl_term_the_surrogate_is_not_all_that_pulls(numbers, note):
    lines = words(told({"kl_placement": "loss", "beta": 0.05}, kl=0.02, **numbers))
    assert any(line.endswith(note) for line in lines), lines


@pytest.mark.parametrize(
    ("derivative", "told_as"),
    [
        (-0.0125, "∂L/∂ℓ = −0.0125: pulls it up"),
        (2.0, "∂L/∂ℓ = 2: pushes it down"),
        (0.0, "∂L/∂ℓ = 0: leaves it alone"),
        (-0.0, "∂L/∂ℓ = 0: leaves it alone"),
    ],
)
def test_the_recorded_derivative_has_the_last_word(derivative, told_as):
    lines = told({}, advantage=1.0, ratio=1.0, clip_state=0, dloss_dlogp=derivative)
    assert words(lines)[-1].endswith(told_as)


def test_a_penalty_in_the_reward_is_not_in_the_loss():
    lines = told({"kl_placement": "reward", "beta": 0.1, "kl_estimator": "k1"}, advantage=1.0)
    assert "β" not in words(lines)[0]
    assert "taken off each token's reward" in words(lines)[-1]


def test_a_constraint_stands_beside_the_surrogate():
    how = {"surrogate": "trpo", "kl_placement": "constraint", "max_kl": 0.02}
    lines = words(told(how, advantage=0.5, ratio=1.0))
    assert lines[0] == "−w·A"
    assert lines[-1] == "subject to Σᵥ p_old·log(p_old/p) ≤ 0.02, mean over all tokens"


def test_what_is_not_known_yet_is_not_filled_in():
    assert words(told({}))[1:] == ["A comes with phase ③ credit"]
    assert words(told({}, advantage=0.5))[1:] == ["A = +0.50; w comes with phase ④ update"]


@pytest.mark.parametrize("surrogate", ["logp", "ratio", "ppo", "trpo", "cispo", "sapo"])
@pytest.mark.parametrize("delta", [None, 3.0])
@pytest.mark.parametrize("advantage", [0.93, -1.08])
@pytest.mark.parametrize("change", [-0.5, 0.0, 0.3, 1.5])
def test_what_is_filled_in_is_the_loss_that_was_trained(surrogate, delta, advantage, change):
    high = 3.0 if surrogate == "cispo" else 0.28
    settings = resolve({"algorithm": "grpo", "surrogate": surrogate, "delta": delta, "epsilon_high": high})
    old = torch.tensor([[-2.0]])
    inputs = Inputs(old + change, old, old, torch.full((1, 1), advantage))
    terms = engine_objective(inputs, torch.ones(1, 1), settings, beta=0.0)
    lines = objective(
        msgspec.to_builtins(settings),
        Numbers(-2.0 + change, advantage, terms.ratio.item(), int(terms.clip_state.item())),
    )
    assert float(won(lines)[-1].replace("−", "-")) == pytest.approx(terms.policy_loss.item(), abs=0.0051)
    assert any(line.startswith(("▲", "▼")) for line in words(lines)) == bool(terms.clip_state.item())


@pytest.mark.parametrize("name", PRESETS)
def test_every_algorithm_has_its_formula(name):
    settings = msgspec.to_builtins(resolve({"algorithm": name}))
    for clip_state in (-1, 0, 1):
        for numbers in (
            Numbers(),
            Numbers(advantage=-0.5),
            Numbers(-0.4, 0.5, 1.5, clip_state, kl=0.02, beta=0.3, dloss_dlogp=0.1),
        ):
            assert "".join(words(objective(settings, numbers)))


def test_a_ratio_of_the_whole_answer_says_so():
    lines = words(told({"importance_sampling_level": "sequence"}, advantage=1.0, ratio=1.5, clip_state=1))
    assert lines[1] == "w = exp(mean of ℓ − ℓ_old over the answer)"
    assert lines[-1].startswith("Its answer, by w, is already more than 1.2 times")


def test_a_token_bounded_inside_the_answers_ratio():
    how = {"importance_sampling_level": "geometric", "surrogate": "ratio", "epsilon": 0.4}
    lines = words(told(how, advantage=1.0, ratio=1.1, clip_state=1))
    assert lines[-2] == "▲ bounded: A > 0 and ℓ − ℓ_old > 0.4"


def test_the_dual_clip():
    lines = told({"delta": 3.0}, advantage=-1.0, ratio=5.0, clip_state=2)
    assert won(lines) == ["3.00·(−1.00)", "−3.00", "+3.00"]
    assert words(lines)[-2] == "▲ clipped: A < 0 and w > δ = 3"


def test_an_adaptive_weight_is_the_one_that_was_used():
    how = {"kl_placement": "loss", "beta": 1.0, "kl_ctrl": "ppo", "kl_anchor": "old"}
    lines = words(told(how, advantage=1.0, ratio=1.0, kl=0.02, beta=0.5))
    assert "+ β·k3 = 0.5·0.020 = +0.0100" in lines
    assert "k3 = p/p_old − log(p/p_old) − 1" in lines


def test_tokens_that_do_not_count_and_an_entropy_bonus_are_told():
    lines = words(told({"top_entropy_quantile": 0.2, "entropy_coef": 0.01}, advantage=1.0, ratio=1.0, dloss_dlogp=0.0))
    assert any("only the 20 % of tokens of highest entropy" in line for line in lines)
    assert "entropy bonus" in lines[-1]


def test_settings_of_another_version_are_passed_over():
    assert words(objective({"surrogate": "logp", "unheard_of": 1}, Numbers()))[0] == "−A·ℓ"
