"""A repair that is tried, as plain data: what the engine is asked, what its answers mean, and how they are judged."""

import asyncio
import threading

import pytest

from rlplay.health.health_of_run import Health
from rlplay.health.remedies import outcome
from rlplay.health.remedies.remedy import Trial
from rlplay.health.remedies.trial import first_to_try
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from rlplay.ui.format.bars import tall_bars
from rlplay.ui.health.tried_rows import scale
from rlplay.ui.health.tried_summary import summary
from rlplay.ui.health.tried_tokens import shown_tokens
from rlplay.ui.session.judging import Judging
from rlplay.ui.session.rehearsing import MOST, Rehearsing
from tests.recorded import synthetic_started
from tests.ui.rehearsed import answers, cut

SINCE = 3


@pytest.fixture(scope="module")
def sick():
    """The evidence of a run in which most answers are cut."""
    run = Run()
    health = Health(run)
    run.add(synthetic_started())
    for number in range(1, SINCE + 1):
        for record in cut(number):
            run.add(record)
        health.add(run.updates[number])
    return health.evidence(SINCE, synthetic_started().settings), health.findings(SINCE, synthetic_started().settings)


@pytest.fixture
def tried(sick):
    plan = first_to_try(*sick)
    assert isinstance(plan, Trial)
    assert plan.finding.name == "truncated"
    return Rehearsing(plan, sick[0])


def judged(tried):
    async def all_of_it():
        judging = Judging(tried)
        while judging.busy:
            judging.go_on()
            await asyncio.sleep(0.005)

    asyncio.run(all_of_it())


def states(tried):
    return [each.state for each in tried.candidates]


def verdicts(tried):
    return [each.judged and each.judged.outcome and each.judged.outcome.verdict for each in tried.candidates]


def test_the_question_begins_with_the_unchanged_run(tried):
    question = tried.ask()
    assert question == Rehearse(SINCE, 5, [each.remedy.changes for each in tried.candidates], 1)
    assert question.changes[0] == {}
    assert question.changes[1] == {"max_completion_length": 24}


def test_it_says_how_far_each_is(tried):
    question = tried.ask()
    assert states(tried) == ["under way", "waiting", "waiting"]
    for answer in list(answers(question))[:7]:
        tried.take(answer)
    assert states(tried) == ["tried", "under way", "waiting"]
    assert "2 of 3: twice the limit of tokens, update 3 of 5. The run is paused" in summary(tried)
    tried.end()
    assert states(tried) == ["tried", "stopped", "stopped"]
    assert not tried.under_way


def test_what_was_ended_is_tried_again_alone_and_late_answers_are_ignored(tried):
    first = tried.ask()
    for answer in list(answers(first))[:6]:
        tried.take(answer)
    tried.end()
    assert tried.fresh
    second = tried.ask()
    assert second.changes == first.changes[1:]
    tried.take(list(answers(first))[6])
    assert [each.tried for each in tried.candidates] == [5, 0, 0]
    for answer in answers(second):
        tried.take(answer)
    assert states(tried) == ["tried"] * 3
    assert not tried.fresh
    judged(tried)
    assert verdicts(tried) == ["unchanged", "gone", "gone"]


def test_each_is_judged_beside_the_unchanged_run(tried):
    for answer in answers(tried.ask()):
        tried.take(answer)
    judged(tried)
    assert verdicts(tried) == ["unchanged", "gone", "gone"]
    unchanged, twice, four = (each.judged for each in tried.candidates)
    assert unchanged.points == [(SINCE + at, (9 + at % 2) / 16) for at in range(1, 6)]
    assert unchanged.number > twice.number > four.number
    assert tried.best is tried.candidates[2]
    said = summary(tried)
    assert "Helped: twice the limit of tokens · four times the limit of tokens." in said
    assert "Did not help" not in said


def test_bars_of_shares_begin_at_0(tried):
    assert scale(tried) == (0.0, 9 / 16), "of the run before"
    for answer in list(answers(tried.ask()))[:2]:
        tried.take(answer)
    judged(tried)
    assert scale(tried) == (0.0, 10 / 16)


def test_what_did_not_help_is_said(tried):
    tried.add({"beta": 0.2})
    for answer in answers(tried.ask()):
        tried.take(answer)
    judged(tried)
    assert verdicts(tried)[-1] == "same"
    assert "Did not help: beta=0.2." in summary(tried)
    tried.candidates = [tried.candidates[0], tried.candidates[-1]]
    assert "Nothing that was tried helped in " in summary(tried)


def test_what_cannot_be_tried_leaves_the_others_alone(tried):
    tried.candidates[1].remedy.changes["temperature"] = 0.05
    for answer in answers(tried.ask()):
        tried.take(answer)
    judged(tried)
    assert states(tried) == ["tried", "refused", "tried"]
    assert tried.candidates[1].refused == "out of memory"
    assert verdicts(tried)[2] == "gone"


def test_a_refusal_of_the_whole_question_is_said(tried):
    question = tried.ask()
    tried.take(Rehearsed(question.number, len(question.changes), refused="its weights are gone", done=True))
    assert not tried.under_way
    assert summary(tried) == "Nothing can be tried: its weights are gone."


def test_settings_of_the_users_are_asked_for_alone_and_only_once(tried):
    for answer in answers(tried.ask()):
        tried.take(answer)
    tried.add({"max_completion_length": 24})
    assert not tried.fresh, "the same settings are there already"
    tried.add({"max_completion_length": 36})
    question = tried.ask()
    assert question.changes == [{"max_completion_length": 36}]
    for answer in answers(question):
        tried.take(answer)
    judged(tried)
    assert verdicts(tried) == ["unchanged", "gone", "gone", "gone"]


def test_another_number_of_updates_is_tried_for_all(tried):
    for answer in answers(tried.ask()):
        tried.take(answer)
    assert not tried.fresh
    tried.more(-3)
    assert tried.fresh
    question = tried.ask()
    assert (question.updates, len(question.changes)) == (2, 3)
    for answer in answers(question):
        tried.take(answer)
    judged(tried)
    assert [len(each.judged.points) for each in tried.candidates] == [2, 2, 2]
    tried.more(99)
    assert tried.updates == MOST


def test_a_thread_judges(tried, monkeypatch):
    here, threads, plain = threading.current_thread(), set(), outcome.Rehearsal.take

    def noted(self, answer):
        threads.add(threading.current_thread())
        plain(self, answer)

    monkeypatch.setattr(outcome.Rehearsal, "take", noted)
    for answer in answers(tried.ask()):
        tried.take(answer)
    judged(tried)
    assert threads
    assert here not in threads


def test_the_tokens_of_the_same_prompt_stand_side_by_side(tried):
    shown = Update(SINCE)
    for record in cut(SINCE):
        shown.add(record)
    for answer in answers(tried.ask()):
        tried.take(answer)
    judged(tried)
    place = tried.trial.finding.place
    assert place is not None
    text = str(shown_tokens(tried, tried.candidates[1], shown, 90))
    assert f"update {place.update}, in the run" in text
    assert f"update {SINCE + 5}, unchanged" in text
    assert f"update {SINCE + 5}, changed" in text
    assert "[bold]" in text, "what a model writes is no markup"
    assert all(len(line) <= 90 for line in text.split("\n"))
    assert shown_tokens(tried, tried.candidates[1], None, 90).plain.count("in the run") == 0


def test_bars_have_one_scale_and_leave_out_what_is_no_number():
    assert tall_bars([0, 4, 8, float("nan")], 0, 8) == [" ▁█ ", "▁██ "]
    assert tall_bars([5, 5], 5, 5) == ["  ", "▁▁"]
