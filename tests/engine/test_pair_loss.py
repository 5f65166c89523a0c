"""Every loss of pairs and its derivative by each token, against an independent reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlplay.algorithms import pair_functions
from rlplay.algorithms.apply import resolve
from rlplay.engine.pair_loss import kto_baseline, pair_loss, with_reference
from rlplay.engine.tensors import Tensors
from tests.engine import pair_reference as reference
from tests.engine.conftest import FROM_ANSWERS

PAIRS, WIDTH = 5, 7
ALGORITHMS = [name for name in FROM_ANSWERS if name != "reward-model"]
CASES: list[dict[str, Any]] = [{"algorithm": name} for name in ALGORITHMS] + [
    {"algorithm": "dpo", "beta": 2.0, "label_smoothing": 0.2},
    {"algorithm": "hinge", "beta": 0.5},
    {"algorithm": "simpo", "beta": 2.5, "simpo_gamma": 1.4, "cpo_alpha": 0.5, "label_smoothing": 0.1},
    {"algorithm": "cpo", "cpo_alpha": 0.0, "beta": 0.7, "label_smoothing": 0.1},
    {"algorithm": "kto", "beta": 0.6, "desirable_weight": 1.3, "undesirable_weight": 0.4},
    {"algorithm": "orpo", "beta": 1.5},
    {"algorithm": "cpo", "loss_type": "cpo_hinge", "beta": 0.4},
    {"algorithm": "cpo", "loss_type": "cpo_ipo", "beta": 0.4},
    *(
        {"algorithm": "cpo", "loss_type": name, "alpha": alpha, "beta": 0.3}
        for name in ("cpo", "cpo_hinge", "cpo_ipo", "simpo")
        for alpha in (0.25, -0.4)
    ),
    *(
        {"algorithm": name, "f_divergence_type": kind, "beta": 0.04, "label_smoothing": 0.2}
        for name in ("dpo", "dpo-norm", "hinge", "ipo", "robust-dpo", "exo", "discopop")
        for kind in ("forward_kl", "js_divergence", "alpha_divergence")
    ),
    *({"algorithm": "dpo", "f_divergence_type": "alpha_divergence", "f_alpha_divergence_coef": a} for a in (1.0, 1.7)),
    *(
        {"algorithm": name, "ld_alpha": alpha, "beta": 0.3}
        for name in ("dpo", "ipo", "nca", "aot", "aot-unpaired")
        for alpha in (0.0, 0.6)
    ),
    *({"algorithm": name, "use_weighting": True, "beta": 0.3} for name in ("dpo", "ipo", "bco", "mpo")),
    *({"algorithm": name, "label_smoothing": 0.2} for name in ("aot", "aot-unpaired")),
    {
        "algorithm": "mpo",
        "loss_weights": {"sigmoid": 0.5, "ipo": 0.3, "aot": 0.8, "exo_pair": 1.2, "sft": 0.4},
        "label_smoothing": 0.1,
        "ld_alpha": 0.5,
    },
    {"algorithm": "mpo", "loss_weights": {"sigmoid": 0.0, "hinge": -0.5}, "f_divergence_type": "js_divergence"},
    {"algorithm": "apo-zero-unpaired", "desirable_weight": 1.3, "undesirable_weight": 0.4},
]


def _batch(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Own and reference log-probabilities [10, 7] and lengths: unequal pairs of unequal length."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, WIDTH + 1, 2 * PAIRS)
    own, ref = -rng.exponential(1.5, (2, 2 * PAIRS, WIDTH))
    return own, ref, lengths


@pytest.mark.parametrize("given_settings", CASES, ids=lambda g: " ".join(f"{k}={v}" for k, v in g.items()))
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-7)])
def test_a_loss_and_its_derivative_equal_the_reference(
    given_settings: dict[str, Any], dtype: torch.dtype, tolerance: float
) -> None:
    settings = resolve(given_settings)
    s = {name: getattr(settings, name) for name in settings.__struct_fields__}
    own, ref, lengths = _batch(3)
    mask = torch.arange(WIDTH) < torch.from_numpy(lengths)[:, None]
    z, weights = 0.8, np.exp(-np.arange(2.0 * PAIRS) / 5)
    leaf = torch.tensor(own, dtype=dtype, requires_grad=True)
    compared = pair_loss(
        leaf * mask, torch.tensor(ref, dtype=dtype), mask, torch.arange(2 * PAIRS) < PAIRS,
        torch.tensor(z, dtype=dtype), settings, torch.tensor(weights, dtype=dtype) if settings.use_weighting else None,
    )  # fmt: skip
    compared.loss.backward()
    rows = [(own[i, :n], ref[i, :n]) for i, n in enumerate(lengths)]
    of_pairs = weights[:PAIRS] * weights[PAIRS:] if settings.use_weighting else None
    loss, pulls = reference.whole(settings.loss_type, rows[:PAIRS], rows[PAIRS:], s, z, of_pairs)
    assert compared.loss.item() == pytest.approx(loss, abs=tolerance, rel=tolerance)
    assert leaf.grad is not None
    for i, n in enumerate(lengths):
        np.testing.assert_allclose(leaf.grad[i, :n].numpy(), pulls[i], atol=tolerance, rtol=tolerance)
        assert not leaf.grad[i, n:].any()
    if compared.rewards is None:
        assert settings.kind == "imitation"
    else:
        shared = 2 * [min(*pair) for pair in zip(lengths[:PAIRS], lengths[PAIRS:], strict=True)]
        names = zip(rows, shared, strict=True)
        expected = [settings.beta * reference.rewarded(settings.loss_type, o, r, s, k) for (o, r), k in names]
        np.testing.assert_allclose(compared.rewards.detach().numpy(), expected, atol=10 * tolerance)
    wanted = {"kto/kl": z} if settings.kind != "imitation" else {}
    imitates = settings.cpo_alpha if settings.loss_type in reference.FREE else settings.loss_weights.get("sft", 0.0)
    if imitates or settings.loss_type == "orpo":
        wanted["nll_loss"] = reference.imitated("sft", rows[:PAIRS])[0]
    if settings.loss_type == "orpo":
        p = np.exp([reference.rewarded("orpo", *row, s) for row in rows])
        odds_ratios = (p / (1 - p))[:PAIRS] / (p / (1 - p))[PAIRS:]
        wanted["log_odds_chosen"] = np.log(odds_ratios).mean()
        wanted["log_odds_ratio"] = np.log(odds_ratios / (1 + odds_ratios)).mean()
    assert {name: float(value) for name, value in compared.metrics.items()} == pytest.approx(
        wanted, abs=tolerance, rel=tolerance
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_reference_is_read_where_the_loss_depends_on_it(algorithm: str) -> None:
    settings = resolve({"algorithm": algorithm})
    s = {name: getattr(settings, name) for name in settings.__struct_fields__}
    own, ref, lengths = _batch(4)
    losses = []
    for policy in (ref, ref / 2):
        rows = [(own[i, :n], policy[i, :n]) for i, n in enumerate(lengths)]
        losses.append(reference.whole(settings.loss_type, rows[:PAIRS], rows[PAIRS:], s)[0])
    assert with_reference(settings.loss_type) == (losses[0] != losses[1])


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 2), st.floats(0, 1))
def test_bradley_terry_with_margin_and_centring(c: float, r: float, margin: float, center: float) -> None:
    chosen, rejected, apart = (torch.tensor([x], dtype=torch.double) for x in (c, r, margin))
    found = pair_functions.bradley_terry(Tensors, chosen - rejected, apart, chosen, rejected, center)
    assert found.item() == pytest.approx(reference.bradley_terry(c, r, margin, center), abs=1e-9)


@given(st.floats(-5, 5), st.floats(0, 0.45))
def test_robust_dpo_is_dpo_in_expectation_over_flipped_labels(gap: float, flipped: float) -> None:
    pair = torch.tensor([gap, -gap], dtype=torch.double)
    seen = pair_functions.robust(Tensors, pair, 0.7, flipped)
    expectation = (1 - flipped) * seen[0] + flipped * seen[1]
    assert expectation.item() == pytest.approx(pair_functions.sigmoid(Tensors, pair, 0.7, 0.0)[0].item(), abs=1e-9)


def test_log_odds_are_exact_for_likely_and_for_unlikely_answers() -> None:
    for p in (1e-9, 0.3, 0.5, 0.7, 1 - 1e-9):
        found = Tensors.log_odds(torch.tensor([np.log(p)], dtype=torch.double))
        assert found.item() == pytest.approx(np.log(p) - np.log1p(-p), rel=1e-7)


def test_the_baseline_of_kto_is_never_negative_and_has_no_gradient() -> None:
    ratios = torch.tensor([0.5, 0.1], requires_grad=True)
    assert kto_baseline(ratios).item() == pytest.approx(0.3)
    assert not kto_baseline(ratios).requires_grad
    assert kto_baseline(-ratios).item() == 0
