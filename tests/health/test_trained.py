"""Which tokens the loss trains, and how turns go on: on batches that are written, and on evidence."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.health.digest import digest
from rlplay.health.finding import NOT_USED, Evidence, NoTick
from rlplay.health.sampler_numbers import Surprise
from rlplay.health.token_checks import ends_trained, no_end_trained, of_others, only_own
from rlplay.health.trained_tokens import TrainedTokens, trained_tokens
from rlplay.health.turn_checks import broken_turns, whole_turns
from rlplay.health.turn_numbers import TurnNumbers, turn_numbers
from rlplay.trace.records import Sampled, Stepped
from rlplay.trace.turns import turns_of_others
from rlplay.trace.update import Update
from tests.health.evidence import evidence
from tests.recorded import synthetic_update

IDS = {word: number for number, word in enumerate("abcdefghijklmnop", 1)}


def said(*answers: str, prompts: tuple[str, ...] = ("a", "b"), headings: tuple[str, ...] = ()) -> Sampled:
    """A batch of words of one letter, of which `answers` belong to the prompts in turn; «think» stands in for t."""
    first, *_ = synthetic_update(1, prompts=2, generations=1, length=1)
    assert isinstance(first, Sampled)
    pieces = [answer.split() for answer in answers]
    asking = [prompt.split() for prompt in prompts]
    ids = [abs(hash(word)) % 1000 if word not in IDS else IDS[word] for row in pieces for word in row]
    asked_ids = [abs(hash(word)) % 1000 if word not in IDS else IDS[word] for row in asking for word in row]
    return msgspec.structs.replace(
        first, prompts=list(headings or prompts), columns=[{}] * len(prompts),
        prompt_ids=np.array(asked_ids, dtype=np.int32),
        prompt_offsets=np.cumsum([0] + [len(row) for row in asking]),
        prompt_texts=[word.split("_")[0] + " " for row in asking for word in row],
        group=np.arange(len(answers), dtype=np.int32), offsets=np.cumsum([0] + [len(row) for row in pieces]),
        token_ids=np.array(ids, dtype=np.int32), texts=[word.split("_")[0] + " " for row in pieces for word in row],
        mask=np.ones(len(ids), dtype=np.uint8), old_logprobs=np.full(len(ids), -0.5, dtype=np.float32),
        entropy=np.full(len(ids), 0.5, dtype=np.float32), truncated=np.zeros(len(answers), dtype=np.uint8),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "later", "continued", "changed"),
    [
        ("c d e f", "a c d e f k b", 1, None),
        ("c d e f", "a c d e k b", 1, None),  # another mark ends it
        ("hello_1 there_2 world_3 again", "a hello_9 there_8 world_7 again k", 0, "tokens"),
        ("hmm yes </think> the answer is seven", "a the answer is seven k", 0, "thinking"),
        ("c d e f g h i j k", "a c d e f g o p", 0, "text"),
        ("c d e f", "a p o k b", 0, None),  # another conversation
        ("c d e f", "b c d e f", 0, None),  # that does not begin with the prompt
    ],
)
def test_how_a_later_prompt_goes_on(answer: str, later: str, continued: int, changed: str | None) -> None:
    found = turn_numbers(said(answer, "p", prompts=("a", later)))
    assert found is not None
    assert (found.continued, list(found.changed)) == (continued, [changed] if changed else [])
    assert (found.broken is None) == (changed is None)


def test_turns_that_change_what_was_sampled() -> None:
    found = broken_turns(evidence(turns=TurnNumbers(2, Counter({"thinking": 2, "tokens": 1}))))
    assert found is not None
    assert found.name == "turns"
    assert "15 of 25 prompts" in found.evidence
    assert "thinking" in found.cause
    assert broken_turns(evidence(turns=TurnNumbers(60, Counter({"text": 1})))) is None
    whole = evidence(turns=TurnNumbers(2))
    assert broken_turns(whole) is None
    assert whole_turns(whole).startswith("12 prompts begin with")
    assert whole_turns(evidence(turns=TurnNumbers())) == NOT_USED


def test_answers_that_are_tokenized_again() -> None:
    shares = {"retokenized/answers": [0.3] * 6, "retokenized/tokens": [0.02] * 6}
    found = broken_turns(evidence(series=shares))
    assert found is not None
    assert (found.name, found.settings) == ("turns", ("retokenize_turns",))
    assert "30.0 % of the answers" in found.evidence
    assert "2.0 % of the sampled tokens" in found.evidence
    assert broken_turns(evidence(series={name: [0.05] * 6 for name in shares})) is None
    assert "gives the tokens that were sampled" in whole_turns(evidence(series={name: [0.0] * 6 for name in shares}))


def test_turns_of_others_in_a_text() -> None:
    texts = ["so", "<|im_end|>", "\n", "<|im_start|>", "user", "\n", "42", "<|im_start|>", "assistant", "\n", "ok"]
    assert turns_of_others(texts) == [slice(3, 7)]
    assert turns_of_others(["a", "<|user|>", "b"]) == [slice(1, 3)]
    assert turns_of_others(["a", "<|end|>", "b"]) == turns_of_others(["a", "b"]) == []


def test_what_the_loss_covers() -> None:
    update = Update(1)
    for record in synthetic_update(1, prompts=2, generations=2, steps=1):
        update.add(record)
    sampled, step = update.sampled, update.steps[0]
    assert sampled is not None
    whole = trained_tokens(update)
    assert whole is not None
    assert (whole.written, whole.pulled, whole.unmasked.tokens) == (0, 0, 0)
    mask = sampled.mask.copy()
    mask[3:6] = 0
    update.add(msgspec.structs.replace(sampled, mask=mask))
    update.add(msgspec.structs.replace(step, dloss_dlogp=np.ones_like(step.dloss_dlogp)))
    found = trained_tokens(update)
    assert found is not None
    assert (found.written, found.pulled, found.token) == (3, 3, 3)
    update.add(msgspec.structs.replace(step, dloss_dlogp=np.zeros_like(step.dloss_dlogp)))
    clean = trained_tokens(update)
    assert clean is not None
    assert (clean.written, clean.pulled) == (3, 0)
    made = digest(update)
    assert made is not None
    assert "pulled stranger" not in made.places
    assert isinstance(step, Stepped)


def covers(**fields: Any) -> TrainedTokens:
    known: dict[str, Any] = {"written": 0, "pulled": 0, "token": None, "unmasked": Surprise(), "stranger": None,
                             "ends": Counter(), "early": 0}  # fmt: skip
    return TrainedTokens(**known | fields)


def test_an_environments_tokens_with_a_derivative() -> None:
    places = {"pulled stranger": evidence().now.places["cut"]}
    found = of_others(evidence(trained=covers(written=50, pulled=40), places=places))
    assert found is not None
    assert (found.name, found.place is not None) == ("others' tokens", True)
    assert "240 of 300 tokens" in found.evidence
    masked = evidence(trained=covers(written=50))
    assert of_others(masked) is None
    assert only_own(masked) == "none of 300 tokens that an environment wrote has a derivative"


@pytest.mark.parametrize(
    ("minus", "entropy", "tokens", "found"),
    [(3.0, 0.5, 40, True), (0.6, 0.5, 40, False), (3.0, 0.5, 3, False), (0.9, 0.5, 40, False)],
)
def test_turns_that_no_mask_leaves_out(minus: float, entropy: float, tokens: int, found: bool) -> None:
    turn = Surprise(tokens, minus * tokens, entropy * tokens, tokens * (minus - entropy) ** 2)
    run = evidence(trained=covers(unmasked=turn))
    assert (of_others(run) is not None) == found
    assert only_own(run) != NOT_USED


def test_turns_that_an_older_policy_made_up_are_no_fault_of_the_mask() -> None:
    turn = Surprise(40, 120.0, 20.0, 250.0)
    assert of_others(evidence(trained=covers(unmasked=turn))) is not None
    assert of_others(evidence(trained=covers(unmasked=turn), settings={"sampler_lag": 8})) is None


END = {1: "<end>"}


def given(last: Counter[int], **options: Any) -> Evidence:
    return evidence(trained=covers(ends=last), settings={"loss_type": "sft"}, **{"ends": END} | options)


def test_given_answers_whose_end_has_no_label() -> None:
    found = no_end_trained(given(Counter({5: 9})))
    assert found is not None
    assert found.name == "end untrained"
    assert "none ends with <end> (id 1)" in found.evidence
    whole = given(Counter({5: 9, 1: 16}))
    assert no_end_trained(whole) is None
    assert ends_trained(whole) == "100.0 % of 96 answers have their end in the loss"
    assert no_end_trained(given(Counter({5: 9}), ends={})) is None
    assert no_end_trained(given(Counter({5: 9}), updates=1)) is not None, "all given answers should end"
    assert no_end_trained(given(Counter({5: 9}), updates=1, answers=11)) is None
    one = given(Counter({1: 1}), updates=1, answers=64)
    assert no_end_trained(one) is not None
    some = given(Counter({1: 4}))
    assert (no_end_trained(some), type(ends_trained(some))) == (None, NoTick)


def test_sampled_answers_whose_end_the_mask_leaves_out() -> None:
    cut = {"cut": 14, "empty": 2, "limit": 32, "ends": END}
    found = no_end_trained(evidence(trained=covers(early=8), **cut))
    assert found is not None
    assert "48 are shorter than three quarters of the longest, 32 tokens" in found.evidence
    assert no_end_trained(evidence(trained=covers(early=1), **cut)) is None, "cut at the limit"
    assert no_end_trained(evidence(trained=covers(early=8, ends=Counter({1: 3})), **cut)) is None, "some have ended"
    unknown = cut | {"ends": {}}
    assert no_end_trained(evidence(trained=covers(early=8), **unknown)) is not None
    assert no_end_trained(evidence(trained=covers(early=8), **unknown | {"cut": 13})) is None
    assert no_end_trained(evidence(trained=covers(early=8, written=3), **cut)) is None, "turns have limits of their own"
    marked = Counter({"</s>": 16})
    assert no_end_trained(evidence(trained=covers(early=8), marks_within=marked, **cut)) is None, "another end token"
