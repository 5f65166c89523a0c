"""What the reward pays for: each check at its threshold, and what it names."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.health import reward_checks as reward
from rlplay.health import signal_checks as signal
from rlplay.health.counts import WinCount
from rlplay.health.finding import Evidence
from tests.health.evidence import evidence, seen_at

RISING = [0.1 * n for n in range(1, 21)]
FALLING = RISING[::-1]


def test_one_reward_for_every_answer() -> None:
    found = signal.same(evidence(2, reward=0.5))
    assert found is not None
    assert found.title == "Every answer earned exactly 0.5"
    assert found.evidence == "All 32 answers of 2 updates earned 0.5."
    assert (found.settings, seen_at(found), len(found.examples)) == (("reward_weights",), (2, "example"), 1)
    assert "compares things of" not in found.cause
    contained = signal.same(evidence(2, reward=0.0, contained={"row": 9, "Answer": 3}))
    assert contained is not None
    assert contained.evidence.endswith(" 6 of them contain the value of their column “Answer”, and earned 0 too.")
    assert "compares things of different types" in contained.cause
    other = signal.same(evidence(2, reward=0.0, contained=[{"row": 9, "col": 3}, {"col": 9}]))
    assert other is not None
    assert " 12 of them contain the value of their column “col”" in other.evidence
    for paid, held, words in (
        (1.0, 16, "The answers are right"), (1.0, 3, "those that do not contain that value too"),
        (1.0, 0, "its test is always met"), (0.0, 0, "No answer earned anything"),
    ):  # fmt: skip
        found = signal.same(evidence(2, reward=paid, contained={"answer": held} if held else {}))
        assert found is not None
        assert words in found.cause
    bare = signal.same(evidence(2, reward=0.0, examples=()))
    assert bare is not None
    assert bare.place is None


@pytest.mark.parametrize(
    ("updates", "fields"),
    [
        (1, {"reward": 0.5, "answers": 99}),
        (2, {"reward": 0.5, "answers": [16, 15]}),
        (2, {"reward": [0.5, None]}),
        (2, {"reward": [0.5, 0.4]}),
        (2, {"reward": 0.5, "scored": [True, False]}),
        (2, {"reward": 0.5, "scored": False}),
    ],
)
def test_too_few_answers_with_one_reward(updates: int, fields: dict[str, Any]) -> None:
    assert signal.same(evidence(updates, **fields)) is None


EASY = {"reward": [0.92, 0.94, 0.9, 0.9], "frac_reward_zero_std": [0.5, 0.7, 0.0, 0.0]}


def test_a_reward_that_is_too_easy_to_earn() -> None:
    found = signal.same(evidence(4, EASY, best=[0.5, 1.0, None, 0.8]))
    assert found is not None
    assert found.evidence == (
        "Already in the first two updates the mean reward was 0.93 of 1, and in 60.0 % of the groups all answers "
        "earned the same."
    )
    assert (found.settings, seen_at(found), len(found.examples)) == (("reward_weights",), (4, "example"), 1)
    for series in (
        {"reward": [0.92, 0.94, 0.89]}, {"frac_reward_zero_std": []}, {"frac_reward_zero_std": [0.49, 0.9]},
        {"frac_reward_zero_std": [0.9, 0.49]}, {"reward": [0.92]},
    ):  # fmt: skip
        assert signal.same(evidence(4, EASY | series)) is None
    for best in (None, 0.0, 1.1):
        assert signal.same(evidence(4, EASY, best=best)) is None
    assert signal.same(evidence(2, EASY, examples=())) is not None


def test_a_reward_that_punishes_right_answers() -> None:
    found = reward.inverted(evidence(gold={"row": WinCount(0, 99), "Target": WinCount(0.5, 5)}))
    assert found is not None
    assert found.evidence.startswith("In 22.5 of 25 pairs of answers to the same prompt, the one that contains ")
    assert "“Target”" in found.evidence
    assert (found.settings, seen_at(found), len(found.examples)) == (("reward_weights",), (6, "example"), 1)
    for gold in (
        {"row": WinCount(0, 99)},
        {"target": WinCount(2, 19)},
        {"target": WinCount(0, 2)},
        {"target": WinCount(11, 99)},
        {},
    ):
        assert reward.inverted(evidence(gold=[{}, {}, {}, {}, {}, gold])) is None, gold
    assert reward.inverted(evidence(gold=[{}, {}, {}, {}, {}, {"target": WinCount(2, 20)}])) is not None


def test_a_gold_score_tells_right_answers_where_wrong_ones_contain_the_value() -> None:
    loose = {"answer": WinCount(3, 20)}
    found = reward.inverted(evidence(gold=loose, scores={"correct": WinCount(0, 20)}))
    assert found is not None
    assert "the one that the gold score “correct” says is right earned less" in found.evidence
    assert reward.inverted(evidence(gold=loose)) is None
    early = [{"answer": WinCount(0, 200)}, {}, {}, {}, {}, loose]
    found = reward.inverted(evidence(gold=early))
    assert found is not None
    assert found.evidence.startswith("In 217 of 220 pairs of answers to the same prompt since the run began, ")
    flattered = [{"helpful": WinCount(1, 25)}] * 3 + [{}] * 2 + [{"helpful": WinCount(1, 20)}]  # it has more levels
    assert reward.inverted(evidence(scores=flattered)) is None
    assert reward.inverted(evidence(scores={"helpful": WinCount(1, 40)})) is not None
    brevity = {"characters": WinCount(0, 200), "tokens": WinCount(10, 200)}
    assert reward.inverted(evidence(scores={"helpful": WinCount(1, 40)}, longer=brevity)) is None
    assert reward.inverted(evidence(scores={"helpful": WinCount(0, 40)}, longer=brevity)) is not None
    mended = [{"answer": WinCount(0, 200)}, {}, {}, {}, {}, {"answer": WinCount(20, 20)}]
    assert reward.inverted(evidence(gold=mended)) is None


def longer(in_tokens: WinCount, in_characters: WinCount | None = None, **fields: Any) -> Evidence:
    return evidence(1, longer={"tokens": in_tokens, "characters": in_characters or WinCount()}, **fields)


@pytest.mark.parametrize(
    ("run", "title", "words"),
    [
        (longer(WinCount(98, 100)), "longer", "In 98.0 % of 100 pairs of {}, the longer one (in tokens)"),
        (longer(WinCount(2, 100)), "shorter", "In 98.0 % of 100 pairs of {}, the shorter one (in tok"),
        (longer(WinCount(98, 100), tokens=False), "longer", "In 98.0 % of 100 pairs of {}, the longer one (in words)"),
        (longer(WinCount(98, 100), WinCount(99, 100)), "longer", "In 99.0 % of 100 pairs of {}, the longer one (in ch"),
        (longer(WinCount(98, 100), gold={"a": WinCount(19, 19)}), "longer", ""),
        (longer(WinCount(98, 100), gold={"a": WinCount(97, 100)}), "longer", ""),
    ],
)  # fmt: skip
def test_a_reward_that_pays_for_length(run: Evidence, title: str, words: str) -> None:
    found = reward.length(run)
    assert found is not None
    assert found.title == f"The reward pays for {title} answers"
    assert found.evidence.startswith(words.format("answers to the same prompt"))
    assert found.evidence.endswith(" earned more.")
    assert ("divide by the length" in found.change) == (title == "longer")
    assert (found.settings, seen_at(found)) == (("reward_weights",), (1, "longest"))


@pytest.mark.parametrize(
    "run",
    [
        longer(WinCount(99, 99)),
        longer(WinCount(97, 100)),
        longer(WinCount(98, 100), gold={"a": WinCount(98, 100)}),
        longer(WinCount(98, 100), gold={"a": WinCount(20, 20)}),
        evidence(1),
    ],
)
def test_a_reward_that_does_not_pay_for_length(run: Evidence) -> None:
    assert reward.length(run) is None


def test_how_long_answers_have_become() -> None:
    lengths = [10.0, 10.0, 12.0, 14.0, 20.0, 20.0]
    run = evidence(
        longer={"tokens": WinCount(20, 20), "characters": WinCount()}, series={"completions/mean_length": lengths}
    )
    found = reward.length(run)
    assert found is not None
    assert found.evidence.endswith(" earned more. Answers went from 10 to 20 tokens.")


def gaming(**series: list[float]) -> dict[str, list[float]]:
    return {"reward": RISING} | {name.replace("__", "/"): values for name, values in series.items()}


def test_a_reward_that_is_gamed() -> None:
    found = reward.gamed(evidence(20, gaming(gold__true__mean=FALLING, gold__other__mean=RISING)))
    assert found is not None
    assert found.title == "The reward is being gamed"
    assert found.evidence == (
        "From the first 5 to the last 5 of 20 updates, the mean reward rose from 0.3 to 1.8 while the gold score "
        "“true” fell from 1.8 to 0.3."
    )
    assert (found.settings, seen_at(found)) == (("reward_weights", "beta"), (20, "longest"))
    part = reward.gamed(evidence(20, gaming(rewards__short__mean=FALLING)))
    assert part is not None
    assert part.title == "One part of the reward rises at another's expense"
    assert "while its part “short” fell" in part.evidence
    assert "Raise the weight of “short”" in part.change
    slow = [1.0 - 0.0159 * n for n in range(20)]
    assert reward.gamed(evidence(20, gaming(gold__true__mean=slow))) is not None
    assert reward.gamed(evidence(20, gaming(gold__true__mean=[5 * x for x in slow]))) is not None
    gentle = [3.0 - 0.03 * n for n in range(20)]
    for series in (
        gaming(gold__true__mean=gentle), gaming(gold__true__mean=RISING), gaming(gold__true__std=FALLING),
        gaming(other__true__mean=FALLING), gaming(gold__true__mean=FALLING, reward=FALLING), {},
    ):  # fmt: skip
        assert reward.gamed(evidence(20, series)) is None


SILENT = {"frac_reward_zero_std": [0.9, 0.95, 0.9, 0.95, 0.9, 0.95], "reward": [0.5, 0.6, 0.4, 0.6, 0.4, 0.6]}


def test_groups_that_teach_nothing() -> None:
    found = signal.silent(evidence(series=SILENT))
    assert found is not None
    assert found.title == "Most groups teach nothing"
    assert found.evidence == (
        "In the last 5 updates all answers to a prompt earned the same in 93.0 % of the groups. The mean reward is "
        "0.52."
    )
    assert (found.settings, seen_at(found), len(found.examples)) == (("num_generations",), (6, "example"), 1)
    for series in (
        {"frac_reward_zero_std": [0.8] * 6},
        {"frac_reward_zero_std": [0.95] * 4},
        {"frac_reward_zero_std": []},
    ):
        assert signal.silent(evidence(series=SILENT | series)) is None
    assert signal.silent(evidence(series=SILENT, settings={"baseline": "none"})) is None
    assert signal.silent(evidence(series=SILENT | {"reward": [0.1, *[0.95] * 5]})) is None
    assert signal.silent(evidence(series=SILENT | {"reward": [0.4, *[0.89] * 5]})) is None
    assert signal.silent(evidence(series=SILENT | {"reward": [0.4, *[0.87] * 5]})) is not None
    assert signal.silent(evidence(series=SILENT, groups=2)) is None, "8 updates are needed"
    assert (
        signal.silent(evidence(8, {name: [*x, 0.9, 0.9] for name, x in SILENT.items()}, groups=2, best=3)) is not None
    )


@pytest.mark.parametrize(
    ("updates", "silent", "settings", "words"),
    [
        (1, True, {"beta": 0.0}, "update 1 can learn nothing from its rewards. In this update all"),
        (1, True, {}, "update 1 can learn nothing from its rewards. Only the KL term still acts. In "),
        (1, True, {"entropy_coef": 0.1}, "update 1 can learn nothing from its rewards. Only the KL term and the "),
        (4, True, {"beta": 0.0}, "update 4 can learn nothing from its rewards. In the last 4"),
        (6, [True, True, False, True, True, True], {}, None),
        (1, False, {}, None),
    ],
)  # fmt: skip
def test_updates_without_any_advantage(
    updates: int, silent: bool | list[bool], settings: dict[str, Any], words: str | None
) -> None:
    series = {"frac_reward_zero_std": [0.5] * updates, "reward": [0.5] * updates}
    found = signal.silent(evidence(updates, series, silent=silent, settings=settings))
    assert (found is None) == (words is None)
    if found is not None and words is not None:
        assert found.evidence.startswith(f"Every advantage is 0: {words}")
        assert found.title == "Every advantage is 0"
        ungrouped = signal.silent(evidence(updates, silent=silent, settings=settings | {"baseline": "none"}))
        assert ungrouped is not None
        assert ungrouped.settings == ()
        assert "In " not in ungrouped.evidence
