"""What became of a finding: gone, better, the same or worse, beside the run as it is."""

from __future__ import annotations

import msgspec
import pytest

from rlplay.health.examine import CHECKS
from rlplay.health.finding import Check, Evidence, Finding
from rlplay.health.remedies import outcome
from rlplay.health.remedies.margin import gain
from rlplay.health.remedies.measures import CUT_ANSWERS, MEASURES, REWARD
from rlplay.health.remedies.outcome import Outcome
from rlplay.trace.records import Finished
from rlplay.trace.rehearsals import Rehearsed
from tests.health.evidence import evidence
from tests.health.remedies.made_up_answers import FOUND, SINCE, UPDATES, answers, rehearsal


def judged(cut: list[float]) -> Outcome:
    return rehearsal(answers(1, cut)).outcomes()[1]


def test_the_run_as_it_is_comes_first() -> None:
    unchanged, other = rehearsal(answers(1, [1.0] * UPDATES)).outcomes()
    assert (unchanged.verdict, unchanged.number, unchanged.remedy.changes) == ("unchanged", 1.0, {})
    assert [n for n, _ in unchanged.numbers] == [SINCE + 1, SINCE + 2, SINCE + 3]
    assert (other.verdict, other.helped) == ("same", False)
    assert other.reward == unchanged.reward


@pytest.mark.parametrize(
    ("cut", "verdict"),
    [([0.0] * 3, "gone"), ([0.4] * 3, "better"), ([0.9] * 3, "same"), ([0.0, 1.0, 1.0], "same")],
)
def test_a_finding_is_gone_only_where_the_check_no_longer_sees_it(cut: list[float], verdict: str) -> None:
    assert judged(cut).verdict == verdict


def test_nothing_is_said_of_a_branch_before_its_last_update() -> None:
    made = rehearsal(answers(1, [0.0, 0.0]))
    assert [each.verdict for each in made.outcomes()] == ["unchanged"]
    assert made.best() is None


def test_a_refusal_is_an_outcome() -> None:
    made = rehearsal([Rehearsed(0, 1, refused="no memory"), Rehearsed(0, 2, done=True)])
    assert [(each.verdict, each.text) for each in made.outcomes()[1:]] == [("refused", "no memory")]


def test_the_best_is_gone_before_it_is_better() -> None:
    made = rehearsal(answers(1, [0.4] * 3), answers(2, [0.0] * 3), lengths=(24, 48))
    best = made.best()
    assert best is not None
    assert best.remedy.changes == {"max_completion_length": 48}


def test_the_token_is_the_one_of_the_unchanged_run_where_both_sampled_it() -> None:
    alike, other = (rehearsal(answers(1, [0.0] * 3, seed)).outcomes() for seed in (0, 7))
    shown = [each.token for each in alike]
    assert shown[0] is not None
    assert shown[1] is not None
    assert (shown[0].place, shown[0].text, shown[1].same) == (shown[1].place, shown[1].text, True)
    assert shown[0].place.update == SINCE + 1
    assert other[1].token is not None
    assert not other[1].token.same


def test_a_number_counts_only_beyond_chance() -> None:
    then = [(n, 1.0) for n in range(5)]

    def now(*values: float) -> int:
        return gain(REWARD, list(enumerate(values)), then)

    assert now(2, 2, 2, 2, 2) == 1
    assert now(0.2, 0.2, 0.2, 0.2, 0.2) == -1
    assert now(1.1, 1.1, 1.1, 1.1, 1.1) == 0, "too little"
    assert now(2, 0.7, 1.5, 1.5, 1.5) == 0, "the updates do not agree"
    rare = [(n, x / 64) for n, x in enumerate((0, 2, 0, 0, 0))]
    assert gain(REWARD, [(n, x / 64) for n, x in enumerate((2, 0, 2, 2, 0))], rare) == 0, "three answers by luck"
    assert now(1, 1, 1, 1, 3) == 0, "by one update alone"
    assert now(0.7, 0.7, 4, 8, 8) == 1, "so far off that single updates do not matter"
    assert gain(REWARD, [(0, 1.5), (1, 1.5)], then) == 0, "two updates cannot agree"
    assert now(1, 1.5, 1.5, 1.5, 1.5) == 1, "the first is sampled before a change of the loss can tell"
    assert gain(REWARD, [], then) == 0
    steps = MEASURES["step too large"]
    assert gain(steps, [(n, 0.25) for n in range(5)], [(n, 0.4) for n in range(5)]) == 0, "a wild number"
    assert gain(steps, [(n, 0.1) for n in range(5)], [(n, 0.4) for n in range(5)]) == 1
    assert gain(steps, [(n, 0.1) for n in range(5)], [(0, 0.9), *((n, 0.01) for n in range(1, 5))]) == 1, "the largest"
    assert gain(CUT_ANSWERS, [(0, 0.02)], [(0, 0.0)]) == 0, "shares differ by a twentieth or more"


def test_a_number_that_falls_fast_differs_as_a_share_of_it():
    then = list(enumerate([0.894, 0.2, 0.1, 0.07, 0.046]))
    assert gain(CUT_ANSWERS, [(at, 0.13 * x) for at, x in then], then) == 1
    assert gain(CUT_ANSWERS, [(0, 0.1), *then[1:]], then) == 0, "but for one update they are equal"


def test_how_a_run_began_is_no_new_problem_of_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def begins(run: Evidence) -> list[tuple[Check, Finding]]:
        """Every run that has no update 4 or less "begins too well", unless answers are cut."""
        same = next(check for check in CHECKS if check.name == "same reward")
        late = run.first > SINCE or not any(each.update <= SINCE for each in run.digests)
        return [(same, FOUND)] if late and not run.now.cut else []

    monkeypatch.setattr(outcome, "problems", begins)
    assert rehearsal(answers(1, [0.0] * 3), run=evidence(4)).outcomes()[1].brings == ()
    late = evidence(4, first=9)
    assert rehearsal(answers(1, [0.0] * 3), run=late).outcomes()[1].brings == ("same reward",)


def test_what_a_cure_costs_in_reward_is_said() -> None:
    def paid(given: Rehearsed) -> Rehearsed:
        fewer = [
            msgspec.structs.replace(each, metrics=each.metrics | {"reward": 0.01})
            if isinstance(each, Finished)
            else each
            for each in given.records
        ]
        return msgspec.structs.replace(given, records=fewer)

    cured = answers(1, [0.0] * 3)
    plain, dear = (rehearsal(each).outcomes()[1] for each in (cured, [paid(each) for each in cured]))
    assert (plain.costs_reward, dear.costs_reward) == (False, True)
    assert dear.helped, "whether it is worth it is for the user to say"
    assert "It costs reward: 0.01 instead of" in dear.text
