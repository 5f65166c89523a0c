"""In which tokens, answers and turns a sampler disagrees: its numbers on batches that are drawn, and what is said."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.health.examine import findings, verdicts
from rlplay.health.finding import Evidence
from rlplay.health.gap_shape import GapShape, gap_shape, later_turns
from rlplay.health.sampler_numbers import Surprise, later_surprise, sampler_gap, surprise
from rlplay.trace.records import Array, Sampled
from rlplay.trace.turns import earlier_turns
from rlplay.trace.update import Update
from tests.health.evidence import evidence
from tests.recorded import synthetic_update

UPDATES, ANSWERS, LENGTH = 20, 16, 20


def normalised(logits: Array) -> Array:
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))


def update(number: int, sampler: str, seed: int, apart: bool = True) -> Update:
    """An update of 320 tokens in conversations of two turns, drawn from a policy that `sampler` has got wrong."""
    random = np.random.default_rng([seed, number, 5])
    own = normalised(random.normal(0, 2, (ANSWERS, LENGTH, 24)))
    theirs = own + random.normal(0, 0.05, own.shape)
    drift = random.normal(0, 1, own.shape)
    mask = np.ones((ANSWERS, LENGTH), dtype=np.uint8)
    mask[:, 9:11] = 0
    if sampler == "few":
        wrong = random.random((ANSWERS, LENGTH)) < 0.06
        theirs = np.where(wrong[..., None], own + 3 * drift, theirs)
    elif sampler == "coarse":
        theirs = np.round(own / 2) * 2
    elif sampler == "lagging":
        theirs = own + drift * (0.1 * np.minimum(random.integers(0, 9, ANSWERS), number - 1))[:, None, None]
    elif sampler == "hot":
        theirs = own / 1.4
    elif sampler == "turns":
        theirs[:, 11:] = own[:, 11:] + drift[:, 11:]
    elif sampler == "some":
        theirs[::2] = own[::2] + drift[::2]
    theirs = normalised(theirs)
    tokens = (np.exp(theirs).cumsum(axis=-1) > random.random((ANSWERS, LENGTH, 1))).argmax(axis=-1)
    of = [np.take_along_axis(each, tokens[..., None], axis=-1).ravel().astype(np.float32) for each in (own, theirs)]
    sampled, *_ = synthetic_update(number, prompts=4, generations=4, length=1)
    assert isinstance(sampled, Sampled)
    made = Update(number)
    made.add(
        msgspec.structs.replace(
            sampled, offsets=np.arange(ANSWERS + 1) * LENGTH, token_ids=tokens.ravel().astype(np.int32),
            texts=["a"] * tokens.size, mask=mask.ravel(), old_logprobs=of[0],
            entropy=-(np.exp(own) * own).sum(axis=-1).ravel().astype(np.float32),
            sampling_logprobs=of[1] if apart else None,
        )
    )  # fmt: skip
    return made


def run(sampler: str, seed: int, apart: bool = True) -> Evidence:
    updates = [update(n, sampler, seed, apart) for n in range(1, UPDATES + 1)]
    gaps = [sampler_gap(each) for each in updates]
    fields: dict[str, Any] = {
        "surprise": [surprise(each) for each in updates], "later": [later_surprise(each) for each in updates],
        "gap": gaps, "apart": apart, "episodes": True,
        "mismatch": [None if gap is None or gap.shape is None else mean_of(gap.shape) for gap in gaps],
    }  # fmt: skip
    return evidence(UPDATES, source="Test 1.0", **fields)


def mean_of(shape: GapShape) -> float:
    both = shape.first + shape.later
    return float(both[1] / both[0])


SAID = {
    "coarse": "Sampling and training disagree",
    "few": "Sampling and training disagree on a few tokens",
    "some": "Sampling and training disagree on some answers",
    "lagging": "The sampler answers with weights some updates old",
    "hot": "The sampler is hotter than the policy",
    "turns": "Later turns are scored after other tokens than they were sampled after",
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("sampler", "title"), SAID.items())
def test_what_a_sampler_gets_wrong_is_told_by_where_it_is(sampler: str, title: str, seed: int) -> None:
    found = findings(judged := run(sampler, seed))
    assert [each.title for each in found] == [title]
    ticked = {each.title for each in verdicts(judged, found) if each.ticked}
    assert not ticked & {"Sampler", "Template"}


@pytest.mark.parametrize("apart", [True, False])
def test_noise_like_that_of_bfloat16_is_healthy(apart: bool) -> None:
    found = findings(judged := run("own", 1, apart))
    assert not found
    ticked = {each.title: each.text for each in verdicts(judged, found) if each.ticked}
    assert "later turns" in ticked["Turns"]
    assert "−log p " in ticked["Sampler"]


@pytest.mark.parametrize("sampler", ["hot", "turns"])
def test_without_the_samplers_numbers_the_surprise_tells_some_of_it(sampler: str) -> None:
    assert [each.title for each in findings(run(sampler, 3, apart=False))] == [SAID[sampler]]


@pytest.mark.parametrize(("far", "title"), [(150.0, SAID["hot"]), (200.0, "The answers are less likely than the")])
def test_a_surplus_in_tokens_that_are_far_out_is_no_temperature(far: float, title: str) -> None:
    (found,) = findings(evidence(surprise=Surprise(1000, 700.0, 500.0, 500.0, far)))
    assert found.name == "sampler"
    assert found.title.startswith(title)


def test_the_temperature_of_a_sampler_is_read_off_the_line() -> None:
    said = findings(run("hot", 1))[0].evidence
    assert "1.4 times the temperature" in said


def test_the_shape_of_differences_by_hand() -> None:
    sampled = update(1, "own", 1).sampled
    assert sampled is not None
    ours = np.full(len(sampled.mask), np.nan)
    theirs = ours.copy()
    ours[:8], theirs[:8] = -1.0, -1.0
    theirs[0] = -3.0
    ours[8], theirs[8] = -0.01, -0.01  # certain
    shape = gap_shape(sampled, ours, theirs)
    assert (shape.open, shape.wider(1.0), shape.first[0], shape.later[0]) == (8, 1, 9, 0)
    assert shape.first[1] == pytest.approx(np.expm1(2.0) - 2.0)
    assert shape.carriers() == pytest.approx(0.8 / 8)
    assert (shape.token(0.5), shape.token(1.0)) == (0.0, pytest.approx(2.0, rel=0.2))
    assert shape.answer(0.5) == pytest.approx(2 / 8**0.5, rel=0.2)
    assert (shape + shape).open == 16


def test_a_later_turn_stands_behind_another_in_its_answer_or_in_its_prompt() -> None:
    sampled = update(1, "own", 1).sampled
    assert sampled is not None
    later = later_turns(sampled).reshape(ANSWERS, LENGTH)
    assert later[0].tolist() == [False] * 9 + [True] * 11
    first = sampled.mask.reshape(ANSWERS, LENGTH).copy()
    first[:, 0] = 0
    first[:, 9:11] = 1
    assert not later_turns(msgspec.structs.replace(sampled, mask=first.ravel())).any(), "the prompt's end"
    asked = "<|im_start|>user\nHi<|im_end|><|im_start|>assistant\n"
    assert not earlier_turns(asked)
    assert earlier_turns(asked + "Ho<|im_end|>" + asked)
