"""The sentences of a token's panel: rewards as in the list, small probabilities by ratio, reasons from the records."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from rich.style import Style
from textual.content import Content

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Withheld
from rlplay.trace.update import Update
from rlplay.ui.format.folded import folded, wrapped
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.reasons import reasons
from tests.recorded import synthetic_update

SETTINGS = decoded({"algorithm": "grpo"})


def update_with(rewards: tuple[float, float] = (0.0, 1.0)) -> Update:
    update = Update(1)
    for record in synthetic_update(1, prompts=1, generations=2):
        update.add(record)
    update.scored = msgspec.structs.replace(update.scored, rewards=np.array(rewards), parts={}, roles=[])
    return update


def said(update: Update, settings: Settings = SETTINGS, advantage: float | None = None) -> str:
    numbers = TokenNumbers(advantage=advantage, returned=None, baseline=None)
    return reasons(update, 0, facts_of(update).answer(0), 0, settings, numbers)


def test_rewards_are_rounded_as_in_the_list_of_answers() -> None:
    assert "2 answers, rewards 0.50 to 1.00; this one earned 1.00." in said(update_with((0.999, 0.5)))
    assert "2 answers, rewards 0.999 to 1; this one earned 0.999." in said(update_with((0.999, 0.9999)))


@pytest.mark.parametrize(("old", "new", "words"), [
    (0.002, 0.001, "It went down: 0.2 % → 0.1 %."), (0.5, 0.502, "hardly moved it"), (0.002, 0.0021, "hardly moved it"),
])  # fmt: skip
def test_a_small_probability_is_judged_by_its_ratio(old: float, new: float, words: str) -> None:
    update = update_with()
    assert update.sampled is not None
    assert update.finished is not None
    for logprobs, share in ((update.sampled.old_logprobs, old), (update.finished.logprobs, new)):
        logprobs[0] = np.log(share)
    update.steps.clear()
    assert words in said(update)


def test_a_percent_sign_stays_with_its_number() -> None:
    for width in range(8, 30):
        lines = ["".join(s.text for s in line) for line in folded([("It went down: 61.5 % → 50.0 %.", Style())], width)]
        assert not any(line.strip().startswith("%") for line in lines)
        text = Content.assemble("It went down: ", ("61.5 %", "bold"), " → 50.0 %.")
        screen = wrapped(text, width)
        assert not any(line.plain.strip().startswith("%") for line in screen)
        assert " ".join(line.plain.strip() for line in screen) == text.plain


def test_credit_that_is_taken_away_is_the_reason() -> None:
    update = update_with()
    assert update.sampled is not None
    numbers, answer = TokenNumbers(advantage=0.0), facts_of(update).answer(1)
    update.add(Withheld(update=1, tokens=[int(update.sampled.offsets[1])]))
    assert "credit of this token" not in said(update, advantage=0.0).lower(), "it is of the other answer"
    assert "The credit of this token is taken away" in reasons(update, 1, answer, 0, SETTINGS, numbers)
    assert "as expected" in reasons(update, 1, answer, 1, SETTINGS, numbers)


def test_a_token_that_nobody_sampled_is_named() -> None:
    update = update_with()
    assert update.sampled is not None
    reported = np.full(len(update.sampled.mask), -1.0, np.float32)
    again = decoded({"algorithm": "grpo", "retokenize_turns": True})
    for value, named in ((-1.0, False), (np.nan, True)):
        reported[0] = value
        update.add(msgspec.structs.replace(update.sampled, sampling_logprobs=reported.copy()))
        assert ("Nobody sampled it" in said(update, again)) == named
        assert "Nobody sampled it" not in said(update)


def test_a_tie_is_one_of_the_pair() -> None:
    update = update_with()
    assert update.scored is not None
    update.scored = msgspec.structs.replace(update.scored, roles=["tie", "tie"])
    assert "This pair is a tie, so nothing pulls." in said(update, resolve({"algorithm": "dpo"}), 0.0)


def test_where_a_teacher_alone_teaches_no_reward_is_the_reason() -> None:
    assert "Rewards do not count" in said(update_with(), resolve({"algorithm": "gkd"}), advantage=1.0)
    assert "To the teacher it is less likely" in said(update_with(), resolve({"algorithm": "opd"}), advantage=-0.5)
    nearly = said(update_with(), resolve({"algorithm": "opd"}), advantage=-2e-5)
    assert "nearly the same probability, so hardly anything pulls (advantage −2e-5)" in nearly
