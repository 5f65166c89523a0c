"""Pairs that carry no preference: they get no label, nothing is learned from them, and the record says so."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.engine import learn_from_answers
from rlplay.engine.preference_pairs import label_metrics, simulated_labels
from rlplay.trace.codec import RECORDS
from rlplay.trace.records import AnyRecord, Credited, Finished, Notice, Sampled, Scored, Stepped
from rlplay.trace.update import PHASES
from tests.engine import pair_reference, reference
from tests.engine.conftest import SMALL

Start = Callable[..., Any]
COARSE = {"algorithm": "dpo", "num_prompts": 8, "temperature": 0.4, "learning_rate": 5e-3}


def never() -> bool:
    return False


def _of(records: list[AnyRecord], kind: type[Any], update: int) -> Any:
    return [r for r in records if isinstance(r, kind) and r.update == update][-1]


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gold score of two values, so that about half of the pairs tie."""

    def score(completion_ids: list[list[int]], **_columns: Any) -> list[float]:
        return [float(sum(ids) % 2) for ids in completion_ids]

    monkeypatch.setattr(import_module("rlplay.tasks.arithmetic"), "correct", score)


def _answers(sampled: Any) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    ids = [tuple(sampled.token_ids[a:b].tolist()) for a, b in itertools.pairwise(sampled.offsets.tolist())]
    return list(zip(ids[::2], ids[1::2], strict=True))


@pytest.mark.parametrize("algorithm", ["dpo", "kto", "reward-model"])
def test_what_ties_is_neither_labelled_nor_learned_from(start: Start, coarse: None, algorithm: str) -> None:
    given = COARSE | {"algorithm": algorithm}
    driver, records = start(**given)
    driver.advance("update", 2, never)
    driver.close()
    sampled, scored, credited, step, finished = (
        _of(records, kind, 2) for kind in (Sampled, Scored, Credited, Stepped, Finished)
    )
    roles, chosen, rejected = [], [], []
    for pair, (one, other) in enumerate(_answers(sampled)):
        lead = sum(one) % 2 - sum(other) % 2
        roles += ["tie", "tie"] if lead == 0 else ["chosen", "rejected"] if lead > 0 else ["rejected", "chosen"]
        if lead:
            chosen.append(2 * pair + (lead < 0))
            rejected.append(2 * pair + (lead > 0))
    tied = np.array(roles) == "tie"
    assert 0 < tied.sum() < 16, "both kinds are there"
    assert scored.roles == roles
    np.testing.assert_array_equal(np.isnan(scored.rewards), tied)
    assert step.rows.tolist() == chosen + rejected
    assert finished.metrics["frac_pairs_tied"] == tied.mean()
    assert finished.metrics["label_accuracy"] == 1.0
    of_tied = np.repeat(tied, np.diff(sampled.offsets))
    assert not credited.advantages[of_tied].any()
    if algorithm == "reward-model":
        return
    assert credited.advantages[~of_tied].any()
    own = reference.split(step.logprobs, np.concatenate([[0], np.cumsum(np.diff(sampled.offsets)[step.rows])]))
    everyone = reference.split(credited.ref_logprobs, sampled.offsets)
    rows = [(mine, everyone[row]) for mine, row in zip(own, step.rows, strict=True)]
    settings = resolve(SMALL | given)
    s = {name: getattr(settings, name) for name in settings.__struct_fields__}
    count, z = len(chosen), step.metrics.get("kto/kl", 0.0)
    loss, pulls = pair_reference.whole(settings.loss_type, rows[:count], rows[count:], s, z)
    assert step.metrics["loss"] == pytest.approx(loss, abs=1e-5)
    np.testing.assert_allclose(step.dloss_dlogp, np.concatenate(pulls), atol=1e-5)


def _weights(driver: Any) -> list[bytes]:
    return [p.detach().numpy().tobytes() for p in driver._state.lm.policy.parameters()]


@pytest.mark.parametrize("algorithm", ["dpo", "kto", "orpo", "reward-model"])
def test_an_update_of_ties_alone_takes_no_step_and_says_so(start: Start, algorithm: str) -> None:
    driver, records = start(algorithm=algorithm, num_prompts=4)  # whose answers all have a gold score of 0
    before = _weights(driver)
    seen = [driver.status().phase]
    for _ in range(4):
        driver.advance("phase", 1, never)
        seen.append(driver.status().phase)
    assert seen == [*PHASES[:4], "sample"], "without a step, the update ends with its fourth phase"
    driver.advance("update", 1, never)
    assert (driver.status().update, driver.status().phase) == (2, "sample")
    assert _weights(driver) == before
    assert not [r for r in records if isinstance(r, Stepped)]
    metrics = _of(records, Finished, 2).metrics
    assert metrics["frac_pairs_tied"] == 1.0
    assert "kl_old" not in metrics
    assert "loss" not in metrics
    assert not any(np.isnan(value) for value in metrics.values())
    _, second = [r for r in records if isinstance(r, Notice)]
    assert "No pair of update 2 has a better answer" in second.text
    driver.rewind(1)
    driver.advance("update", 1, never)
    assert (driver.status().update, driver.status().phase) == (2, "sample")
    driver.close()
    resumed, _ = start(resume=True, algorithm=algorithm, num_prompts=4)
    assert (resumed.status().update, resumed.status().phase) == (2, "sample")
    resumed.close()


def test_ktos_baseline_reads_an_answer_after_another_prompt_also_where_one_pair_is_left(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    baseline = lambda gaps: seen.append(gaps.tolist()) or gaps.mean().clamp(min=0)  # noqa: E731
    monkeypatch.setattr(learn_from_answers, "kto_baseline", baseline)
    driver, records = start(algorithm="kto", labeller="user", num_prompts=2, learning_rate=1e-2)
    for update in (1, 2):
        driver.advance("phase", 1, never)
        for pair, choice in zip(driver.asks(), ("a", "skip"), strict=True):
            driver.prefer(pair, choice)
        if update == 1:
            driver.advance("update", 1, never)
    driver.advance("phase", 2, never)
    lm, sampled = driver._state.lm, _of(records, Sampled, 2)
    start_of_other, end_of_other = sampled.prompt_offsets[1:3]
    prompt = torch.tensor(sampled.prompt_ids[start_of_other:end_of_other], dtype=torch.long)

    def whole(model: Any, answer: tuple[int, ...]) -> float:
        ids = torch.cat([prompt, torch.tensor(answer)])[None]
        with torch.no_grad():
            logprobs = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        return float(logprobs[torch.arange(len(answer)), torch.tensor(answer)].sum())

    moved = [whole(lm.policy, answer) - whole(lm.reference, answer) for answer in _answers(sampled)[0]]
    driver.advance("step", 1, never)
    driver.close()
    assert _of(records, Stepped, 2).rows.tolist() == [0, 1]
    assert seen[-1] == pytest.approx(moved, abs=1e-3)
    assert min(map(abs, moved)) > 0.1, "the policy has moved"


def test_going_back_brings_the_same_ties(start: Start, coarse: None) -> None:
    driver, records = start(**COARSE, label_noise=0.5)
    driver.advance("update", 3, never)

    def numbers() -> list[bytes]:
        return [RECORDS.encode(r) for r in records if r.update == 3 and isinstance(r, (Scored, Credited, Stepped))]

    first = numbers()
    assert "tie" in _of(records, Scored, 3).roles
    driver.rewind(1)
    del records[:]
    driver.advance("update", 2, never)
    assert numbers() == first
    driver.close()


def test_noise_decides_only_where_there_is_a_difference() -> None:
    judged = np.array([0.5, 0.5, 0.2, 0.9, 0.9, 0.2, 0.0, 0.0] * 500)
    for noise in (0.0, 0.4):
        labels = simulated_labels(judged, noise, 3, 1).reshape(-1, 4)
        assert np.isnan(labels[:, [0, 3]]).all()
        assert set(np.unique(labels[:, 1:3])) == {0.0, 1.0}
        right = 1.0 if noise == 0 else 1 / (1 + np.exp(-0.7 / 0.4))
        assert labels[:, 1].mean() == pytest.approx(right, abs=0.06)
        assert labels[:, 2].mean() == pytest.approx(1 - right, abs=0.06)


def test_scores_that_differ_by_rounding_tie() -> None:
    sums = np.array([0.3, np.nextafter(np.float32(0.3), np.float32(1)), 0.3, 0.3001], dtype=np.float32)
    labels = simulated_labels(sums, 0.0, 0, 1)
    assert np.isnan(labels[0])
    assert labels[1] == 1.0


def test_labels_are_compared_with_the_gold_score_where_it_sees_a_difference() -> None:
    gold = np.array([0.1, 0.9, 0.9, 0.1, 0.5, 0.5, 0.0, 1.0, 0.3, 0.3])
    roles = ["rejected", "chosen", "rejected", "chosen", "chosen", "rejected", "", "", "tie", "tie"]
    scored = Scored(update=1, rewards=np.zeros(10), parts={}, weights={}, gold={"g": gold}, roles=roles)
    assert label_metrics(scored) == {"frac_pairs_tied": 0.2, "label_accuracy": 0.5}
    demonstrations = Scored(update=1, rewards=np.ones(2), parts={}, weights={}, gold={}, roles=["chosen"] * 2)
    assert label_metrics(demonstrations) == {}


def test_the_user_is_not_asked_about_the_same_text_twice(start: Start) -> None:
    given = COARSE | {"labeller": "user", "temperature": 0.15}
    driver, records = start(**given)
    driver.advance("phase", 1, never)
    sampled = _of(records, Sampled, 1)
    same = [pair for pair, (one, other) in enumerate(_answers(sampled)) if one == other]
    asked = [pair for pair in range(8) if pair not in same]
    assert same, "some pairs are alike"
    assert len(asked) > 1, "and some are not"
    assert driver.asks() == asked
    with pytest.raises(ValueError, match=f"pair {same[0]} isn't awaiting a label"):
        driver.prefer(same[0], "a")
    driver.advance("update", 1, never)
    assert driver.status().update == 0
    driver.prefer(asked[0], "skip")
    for pair in asked[1:]:
        driver.prefer(pair, "a")
    assert driver.asks() == []
    driver.advance("update", 1, never)
    driver.close()
    roles = _of(records, Scored, 1).roles
    assert [roles[2 * pair] for pair in same] == ["tie"] * len(same)
    assert [roles[2 * pair] for pair in asked] == ["", *["chosen"] * (len(asked) - 1)]


def test_where_all_answers_are_alike_nobody_is_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("preference_pairs", "driver"):
        monkeypatch.setattr(
            f"rlplay.engine.{module}.identical_answers", lambda sampled: np.ones(len(sampled.prompts), dtype=bool)
        )
    driver, records = start(**COARSE | {"labeller": "user"})
    driver.advance("update", 1, never)
    assert driver.status().update == 1
    assert set(_of(records, Scored, 1).roles) == {"tie"}
    assert not [r for r in records if isinstance(r, Stepped)]
    driver.close()


def test_a_margin_that_may_be_rounding_is_a_tie() -> None:
    won = torch.tensor([1e-7, -1e-7, 0.0, 2e-6, 0.3, -0.3, -100.00001, -100.0])
    lost = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.1, 0.1, -100.0, -100.00001])
    found = learn_from_answers._margin_metrics(won, lost)
    assert found["rewards/accuracies"].item() == 2 / 8
    assert found["rewards/margins"].item() == pytest.approx(-0.2 / 8, abs=1e-5)
