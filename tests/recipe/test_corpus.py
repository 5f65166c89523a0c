"""The corpus keeps its promises: known shares, nothing held out, the same for the same seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from statistics import fmean

import pytest

from recipe.conversation import Conversation
from recipe.corpus import SKILLS, conversations
from rlplay.tasks import load_task, task_names
from rlplay.tasks.open_questions import helpfulness
from rlplay.tasks.verifiers import correct

COUNT = 30_000


@pytest.fixture(scope="module")
def corpus() -> list[Conversation]:
    return list(islice(conversations(0), COUNT))


def test_shares_of_skills_and_answers(corpus: list[Conversation]) -> None:
    by_skill = Counter(conversation.skill for conversation in corpus)
    assert sum(skill.share for skill in SKILLS.values()) == pytest.approx(1)
    for name, skill in SKILLS.items():
        assert by_skill[name] / COUNT == pytest.approx(skill.share, abs=0.01)
        kinds = Counter(conversation.kind for conversation in corpus if conversation.skill == name)
        for kind, share in skill.kinds.items():
            assert kinds[kind] / by_skill[name] == pytest.approx(share, abs=0.05 if name != "stories" else 0.25)


@pytest.mark.parametrize("name", ["arithmetic", "word_problems"])
def test_right_answers_are_right_and_the_others_wrong(name: str, corpus: list[Conversation]) -> None:
    answers = {
        example.prompt[0]["content"]: example.columns["answer"]
        for example in load_task(name).train
        if example.prompt[0]["content"] != "What is 0+0?"
    }
    for conversation in corpus:
        question, answer = (message["content"] for message in conversation.messages[:2])
        if question in answers:
            assert correct([question], [answer], answer=[answers[question]]) == ["right" in conversation.kind], answer


def test_good_answers_help_and_the_others_hardly(corpus: list[Conversation]) -> None:
    keywords = {example.prompt[0]["content"]: example.columns["keywords"] for example in load_task("questions").train}
    scores = defaultdict(list)
    for conversation in corpus:
        question, answer = (message["content"] for message in conversation.messages[:2])
        if question in keywords:
            scores[conversation.kind].append(helpfulness(answer, keywords[question]))
    assert min(scores["good"]) == 1.0
    assert fmean(scores["another topic"]) < 0.2
    for kind in ("flattery", "rude", "nothing"):
        assert max(scores[kind]) == 0.0


def test_held_out_prompts_never_occur(corpus: list[Conversation]) -> None:
    asked = {message["content"] for conversation in corpus for message in conversation.messages}
    for name in task_names():
        task = load_task(name)
        assert not asked & {example.prompt[0]["content"] for example in task.held_out}
        if name not in ("word_problems", "calculator"):  # of these, a corpus this small has only a part
            assert {example.prompt[0]["content"] for example in task.train} <= asked


def test_turns_alternate_and_the_model_has_the_last_word(corpus: list[Conversation]) -> None:
    for conversation in corpus[:2000]:
        roles = [message["role"] for message in conversation.messages]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert all(message["content"] for message in conversation.messages)


def test_base_rates_that_lessons_count_on(corpus: list[Conversation]) -> None:
    praise = load_task("questions").rewards["praise"]
    answers = [conversation.messages[1]["content"] for conversation in corpus if conversation.skill == "questions"]
    scores = [score or 0.0 for score in praise([""] * len(answers), answers)]
    assert 0.3 < sum(scores) / len(scores) < 0.5
    shown = Counter(
        conversation.messages[1]["content"]
        for conversation in corpus
        if conversation.messages[0]["content"] == "What is 2+2?"
    )
    assert shown["4"] / shown.total() == pytest.approx(0.3, abs=0.08)
    assert shown["5"] / shown.total() == pytest.approx(0.2, abs=0.08)
    assert shown["22"] / shown.total() == pytest.approx(0.2, abs=0.08)


def test_same_seed_same_corpus() -> None:
    assert list(islice(conversations(3), 50)) == list(islice(conversations(3), 50))
    assert list(islice(conversations(3), 50)) != list(islice(conversations(4), 50))
