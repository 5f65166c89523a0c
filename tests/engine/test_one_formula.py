"""One function, three readings: the engine's with tensors, the screen's with numpy, and the equation as it is shown."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlplay.algorithms.aggregation import AGGREGATIONS, token_weights
from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.credit import advantages
from rlplay.algorithms.divergences import ESTIMATORS
from rlplay.algorithms.equations import estimator, surrogate, terms
from rlplay.algorithms.expression_text import equation
from rlplay.algorithms.masks import on_policy, top_entropy
from rlplay.algorithms.pair_equations import compared, scored
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.setting_values import choices
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.streams import normalized, overlong, shaped
from rlplay.engine.credit_phase import reference_kl
from rlplay.engine.objective import Inputs, objective
from rlplay.engine.pair_loss import pair_loss
from rlplay.engine.tensors import Tensors
from rlplay.ui.formula import surrogate as on_screen
from rlplay.ui.formula.formula_lines import TokenNumbers
from tests.engine.test_process import batch_of
from tests.scenario.shown import evaluated

few = settings(max_examples=20)
"""Of random numbers, of which any serve: an equation that is wrong is so for nearly all of them."""
WIDTH = 4
BOUNDS = {"epsilon": 0.15, "epsilon_high": 1.3, "delta": 2.0, "beta": 0.3, "kl_placement": "loss"}


@st.composite
def answers(draw: st.DrawFn, rows: int = 1) -> dict[str, Any]:
    """Log-probabilities new, old and of the reference, and advantages of some answers of four tokens, float64."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    old, change = -generator.exponential(size=(rows, WIDTH)), generator.normal(scale=0.6, size=(rows, WIDTH))
    advantages = generator.normal() + np.zeros((rows, WIDTH))
    return {
        "logprobs": np.minimum(old + change, -0.01), "old_logprobs": old,
        "ref_logprobs": -generator.exponential(size=(rows, WIDTH)), "advantages": advantages,
    }  # fmt: skip


def inputs(answer: dict[str, Any]) -> Inputs:
    """As the engine holds them."""
    return Inputs(**{name: torch.from_numpy(values) for name, values in answer.items()})


@pytest.mark.parametrize("level", choices("importance_sampling_level"))
@pytest.mark.parametrize("name", choices("surrogate"))
@few
@given(answer=answers())
def test_the_surrogate_on_the_screen_is_the_engines_and_the_equation_gives_it(
    name: str, level: str, answer: dict[str, Any]
) -> None:
    s = msgspec.structs.replace(Settings(), surrogate=name, importance_sampling_level=level, **BOUNDS)
    known = {key: values[0].tolist() for key, values in answer.items()}
    for place in range(WIDTH):
        keep = torch.zeros(1, WIDTH, dtype=torch.double)
        keep[0, place] = 1
        found = objective(inputs(answer), torch.ones(1, WIDTH, dtype=torch.double), s, 0.0, keep)
        shown = TokenNumbers(
            known["logprobs"][place], known["advantages"][place], found.ratio[0, place].item(), place=place,
            answer={key: values[0] for key, values in answer.items()}
            | {"ratio": found.ratio[0].numpy(), "mask": np.ones(WIDTH, dtype=bool)},
        )  # fmt: skip
        assert on_screen.value(s, shown) == pytest.approx(found.policy_loss.item(), rel=1e-9, abs=1e-12)
        symbols: dict[str, Any] = {
            "ℓ": known["logprobs"], "ℓ_old": known["old_logprobs"], "A": known["advantages"],
            "w": found.ratio[0].tolist(),
        }  # fmt: skip
        written = {key.replace("ℓ", "l"): values for key, values in symbols.items()}
        assert evaluated(surrogate(s), written, place) == pytest.approx(found.policy_loss.item(), rel=1e-5, abs=1e-9)
        if "w" in terms(s):
            assert evaluated(terms(s)["w"], written, place) == pytest.approx(found.ratio[0, place].item(), rel=1e-5)


@pytest.mark.parametrize("anchor", ["ref", "old"])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "full"])
@few
@given(answer=answers())
def test_the_kl_of_a_token_is_its_equation(name: str, anchor: str, answer: dict[str, Any]) -> None:
    s = Settings(kl_estimator=name, kl_anchor=anchor, kl_placement="loss", beta=1.0, use_bias_correction_kl=False)  # type: ignore[arg-type]
    found = objective(inputs(answer), torch.ones(1, WIDTH, dtype=torch.double), s, 1.0)
    p, p_old, p_ref = (np.exp(answer[key][0]).tolist() for key in ("logprobs", "old_logprobs", "ref_logprobs"))
    for place in range(WIDTH):
        shown = evaluated(estimator(s)[1], {"p": p, "p_old": p_old, "p_ref": p_ref}, place)
        assert found.kl is not None
        assert shown == pytest.approx(found.kl[0, place].item(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "full"])
@few
@given(answer=answers())
def test_the_kl_in_the_reward_is_its_equation_with_the_policy_that_sampled(name: str, answer: dict[str, Any]) -> None:
    s = Settings(kl_estimator=name, kl_placement="reward", beta=0.5)
    of = inputs(answer)
    batch = replace(batch_of([(WIDTH, {}, 0.0)]), old_logprobs=of.old_logprobs, ref_logprobs=of.ref_logprobs)
    found = reference_kl(batch, s)[0]
    shown = terms(s)["r"].removeprefix("R on the last token − 0.5·").removesuffix(" on every token")
    p_old, p_ref = (np.exp(answer[key][0]).tolist() for key in ("old_logprobs", "ref_logprobs"))
    for place in range(WIDTH):
        known = {"p_old": p_old, "p_ref": p_ref}
        assert evaluated(shown, known, place) == pytest.approx(found[place].item(), rel=1e-6, abs=1e-9)


def test_the_exact_kl_in_the_reward_is_that_of_the_policy_that_sampled() -> None:
    s = Settings(kl_estimator="full", kl_placement="reward", beta=0.5)
    assert terms(s)["r"] == "R on the last token − 0.5·Σᵥ p_old·log(p_old/p_ref) on every token"


@pytest.mark.parametrize("name", [name for name in PAIR_LOSSES if name != "reward"])
@few
@given(answer=answers(rows=2), smoothing=st.sampled_from([0.0, 0.1]))
def test_the_loss_of_a_pair_is_its_equation(name: str, smoothing: float, answer: dict[str, Any]) -> None:
    if name == "exo_pair":
        smoothing = max(smoothing, 0.02)
    s = msgspec.structs.replace(Settings(), loss_type=name, beta=0.3, label_smoothing=smoothing, cpo_alpha=0.0)
    mask, chosen, z = torch.ones(2, WIDTH, dtype=torch.bool), torch.tensor([True, False]), torch.tensor(0.2).double()
    of = inputs(answer)
    baseline = z if "kto_baseline" in PAIR_LOSSES[name].reads else None
    found = pair_loss(of.logprobs, of.ref_logprobs, mask, chosen, baseline, s)
    term = scored(s)
    assert term is not None
    scores = [
        evaluated(equation(term), {"l": row.tolist(), "l_ref": ref.tolist(), "n": WIDTH})
        for row, ref in zip(answer["logprobs"], answer["ref_logprobs"], strict=True)
    ]
    # Of a single pair, the number that ranks as its own is its own.
    written = re.sub(r"the (\w+) of the minibatch that ranks as \w+", r"\1", equation(compared(s)))
    gaps = [float(np.subtract(*answer[who].sum(-1))) for who in ("logprobs", "ref_logprobs")]
    of_pair = {
        "z": 0.2, "Δ": scores[0] - scores[1], "Δn": (scores[0] - scores[1]) / WIDTH, "s_chosen": scores[0],
        "s_rejected": scores[1], "g": gaps[0], "r": gaps[1], "l": [0.0],
    }  # fmt: skip
    parts = [
        evaluated(written, of_pair | {"s": score, "chosen": kind})
        for score, kind in zip(scores, (True, False), strict=True)
    ]
    loss = found.loss.item() - float(found.metrics.get("nll_loss", 0.0))
    assert np.mean(parts) == pytest.approx(loss, rel=1e-4, abs=1e-4), "constants are shown to six digits"


CREDITS = [
    {"returns": returns, "baseline": baseline, "scale_rewards": scale}
    for returns in choices("returns")
    for baseline in choices("baseline")
    for scale in choices("scale_rewards")
    if (returns == "gae") <= (baseline == "value") and (returns == "vine") <= (baseline == "none")
]


@pytest.mark.parametrize("given_settings", CREDITS, ids=lambda c: "-".join(c.values()))
@few
@given(seed=st.integers(0, 10_000))
def test_credit_is_the_same_in_numpy_and_in_torch(given_settings: dict[str, Any], seed: int) -> None:
    generator = np.random.default_rng(seed)
    s = msgspec.structs.replace(Settings(), gamma=0.9, **given_settings)
    mask = np.arange(WIDTH) < generator.integers(1, WIDTH + 1, size=(6, 1))
    stream, values = (generator.normal(size=(6, WIDTH)) * mask for _ in range(2))
    group, greedy = np.array([0, 0, 0, 1, 1, 1]), generator.normal(size=6)
    ends = mask & (generator.random((6, WIDTH)) < 0.4)
    arrays = stream, group, mask
    more = {"values": values, "greedy": greedy, "step_ends": ends}
    ours = advantages(NumpyArrays, *arrays, s, **more)
    tensors = [torch.from_numpy(array) for array in arrays]
    theirs = advantages(Tensors(tensors[0]), *tensors, s, **{k: torch.from_numpy(v) for k, v in more.items()})
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-9, atol=1e-9)


@few
@given(seed=st.integers(0, 10_000))
def test_streams_weights_and_masks_are_the_same_in_numpy_and_in_torch(seed: int) -> None:
    generator = np.random.default_rng(seed)
    mask = np.arange(WIDTH) < generator.integers(1, WIDTH + 1, size=(6, 1))
    x = generator.normal(size=(6, WIDTH)) * mask
    last, group, ends = mask.sum(-1) - 1, np.array([0, 0, 0, 1, 1, 1]), mask & (generator.random((6, WIDTH)) < 0.5)
    ends[[0, 3], 0] = True
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (shaped, (x, mask, last, 0.9)), (normalized, (x, ends, group, 1e-4)), (overlong, (last + 1, WIDTH, 2)),
        (top_entropy, (np.abs(x), mask, 0.5)), (on_policy, (x, x, mask, 0.1)),
        *((token_weights, (name, mask, mask.astype(float), 9)) for name in AGGREGATIONS),
    ]  # fmt: skip
    for function, given_arrays in calls:
        ours = function(NumpyArrays, *given_arrays)
        theirs = function(
            Tensors(torch.zeros(1, dtype=torch.double)),
            *(torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in given_arrays),
        )
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-9, atol=1e-12)
