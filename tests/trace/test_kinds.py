"""What an update learns from, and how statistics are called and scaled accordingly."""

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.settings import UNKNOWN
from rlplay.trace.answers import repeated
from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Sampled
from rlplay.trace.update import Update
from tests.recorded import synthetic_sampling, synthetic_update


def settings(algorithm, **others):
    return resolve({"algorithm": algorithm, **others})


@pytest.mark.parametrize(
    ("algorithm", "others", "kind"),
    [
        ("grpo", {}, "rewards"),
        ("rlhf-ppo", {"reward_weights": {"reward_model": 1}}, "learned rewards"),
        ("rlhf-ppo", {"reward_weights": {"reward_model": 0, "helpful": 1}}, "rewards"),
        ("sft", {}, "imitation"),
        ("reward-model", {}, "reward model"),
        *((name, {}, "pairs") for name in ("dpo", "ipo", "hinge", "kto", "simpo", "cpo", "orpo", "robust-dpo")),
    ],
)
def test_the_kind_of_an_update(algorithm, others, kind):
    assert settings(algorithm, **others).kind == kind
    assert UNKNOWN.kind == "rewards"


@pytest.mark.parametrize("algorithm", ["dpo", "sft", "reward-model"])
def test_only_an_advantage_is_called_one(algorithm):
    lens = LENSES["advantages"].of(settings(algorithm))
    words = f"{lens.title} {lens.formula} {lens.reading}"
    assert lens.title == "Pull"
    assert "return" not in words
    assert "dvantage" not in words
    assert "∂" in lens.symbol


def test_a_statistic_that_is_the_same_everywhere_is_the_registry_s_own():
    assert all(lens.of(settings("grpo")) is lens for lens in LENSES.values())
    assert LENSES["probability"].of(settings("dpo")) is LENSES["probability"]


def test_scores_of_a_reward_model_have_a_scale_with_two_sides():
    trained, used = settings("reward-model"), settings("rlhf-ppo", reward_weights={"reward_model": 1})
    for lens in (LENSES["values"].of(trained), *(LENSES[name].of(used) for name in ("values", "returns"))):
        assert (lens.scale, lens.low, lens.high) == ("diverging", -2, 2)
    assert LENSES["values"].of(trained).title == "Score"
    assert (LENSES["values"].scale, LENSES["values"].high) == ("sequential", 1), "a value head's is the task's reward"


def test_what_several_passes_add_up_to_has_a_scale_as_much_wider():
    once, twice = (LENSES["credit"].of(settings("grpo", num_iterations=count)) for count in (1, 2))
    assert (once.high, twice.low, twice.high) == (2, -4, 4)
    assert LENSES["credit"].of(UNKNOWN) is LENSES["credit"], "another trainer's run without settings"
    assert LENSES["advantages"].of(settings("grpo", num_iterations=4)).high == 2


def test_answers_that_repeat_another_are_found():
    sampled = synthetic_update(1, prompts=2, generations=3)[0]
    first, second = (sampled.token_ids[sampled.offsets[i] : sampled.offsets[i + 1]] for i in (0, 1))
    rows = [first, second, first, first, second, second]
    twice = msgspec.structs.replace(
        sampled, token_ids=np.concatenate(rows), offsets=np.cumsum([0, *map(len, rows)]).astype(np.int64)
    )
    assert repeated(_of(twice), range(6)) == {2: 1, 5: 2}, "only among answers to the same prompt"
    assert repeated(_of(twice), [2, 1, 0, 5, 4, 3]) == {0: 1, 4: 1}, "places are those of the list"
    assert repeated(_of(sampled), range(6)) == {}
    begun = synthetic_sampling(1, prompts=2, generations=3)[0]
    assert repeated(_of(begun), range(6)) == {}, "answers that grow may still differ"


def _of(sampled: Sampled) -> Update:
    update = Update(sampled.update)
    update.add(sampled)
    return update


def test_log_probabilities_add_up_within_each_answer_over_the_tokens_of_the_policy():
    update = Update(1)
    update.add(synthetic_update(1)[0])
    sampled = update.sampled
    sampled.mask[sampled.offsets[1] + 1] = 0
    found = LENSES["cumulative_logprob"].values(update)
    for start, end in pairwise(sampled.offsets):
        own = [t for t in range(start, end) if sampled.mask[t]]
        product = 1.0
        for token in own:
            product *= math.exp(sampled.old_logprobs[token])
            assert found[token] == pytest.approx(math.log(product), abs=1e-5)
    assert np.isnan(found[sampled.mask == 0]).all()
