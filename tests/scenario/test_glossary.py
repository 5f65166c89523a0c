"""The glossary: every word once, every way to see it live leads somewhere, and typing finds it."""

import re
from collections import Counter

import pytest

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.glossary import TERMS, matching, term_called
from rlplay.scenario.lesson import step_saying, whole_script
from rlplay.scenario.loader import bundled, load
from rlplay.scenario.script import parse_step
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import METRICS
from rlplay.verbs import VERBS

CONFUSED = {
    "Curse of dimensionality", "Environment specification", "Online and offline learning", "Tool use", "Proxy",
    "Self-supervised learning", "ε-greedy",
}  # fmt: skip
CURRICULUM = """
agent, environment, simulated environment, state, observation, time step, action, reward, return, policy, deterministic
policy, stochastic policy, behaviour policy, target policy, on-policy, off-policy, value V, value function, action value
Q, advantage, Bellman equation, episode, trajectory, gamma, exploration, exploitation, temperature, entropy, policy
gradient, REINFORCE, baseline, actor-critic, TD, GAE, TRPO, PPO, clipping, ratio, KL divergence, KL to reference, KL to
old policy, beta, reference, RLHF, SFT, reward model, Bradley-Terry, preference pair, DPO, GRPO, group, dead group,
RLVR, process reward, outcome reward, hierarchical reward, credit assignment, credit, reward hacking, Monte Carlo
estimate, LLM judge, Constitutional AI, RLOO, Dr. GRPO, DAPO, GSPO, CISPO, REINFORCE++, VinePPO, IPO, KTO, ORPO, SimPO,
supervised learning, unsupervised learning, RL loop, MDP, value-based, Q-learning, SARSA, epsilon-greedy, reasoning,
epoch, minibatch, loss mask, truncation, sparse reward, implicit reward, trust region, greedy, log-probability,
proxy, curse of dimensionality, environment specification, online learning, offline learning, batch learning, tool use,
self-supervised, turn
"""


def test_the_moments_of_the_lessons_that_show_them_exist():
    moments = {name: term.moment for name, term in TERMS.items() if term.moment is not None}
    scenarios = {lesson: load(lesson) for lesson, _ in moments.values()}
    assert set(scenarios) <= set(bundled())
    for name, (lesson, words) in moments.items():
        step = step_saying(scenarios[lesson], words)
        assert words in " ".join(whole_script(scenarios[lesson])[step - 1]["say"].split()), name


@pytest.mark.parametrize("words", ["no lesson says this", "the"])
def test_words_that_no_step_or_several_say_are_no_moment(words: str):
    with pytest.raises(ValueError, match="a moment of a lesson needs one"):
        step_saying(load("flattery"), words)


def test_a_lesson_shows_every_word():
    assert [name for name, term in TERMS.items() if not term.algorithm and term.moment is None] == []


def test_common_confusions_are_cleared_up():
    assert [name for name in CONFUSED if "Common confusion: " not in TERMS[name].text] == []


def test_no_word_means_two_things():
    called = Counter(
        each.casefold().replace("–", "-") for term in TERMS.values() for each in (term.name, *term.aliases)
    )
    assert [name for name, count in called.items() if count > 1] == []


def test_where_each_can_be_seen_live_exists():
    for term in TERMS.values():
        if term.see is not None:
            verb, argument = term.see
            assert VERBS[verb].where == "screen", f"looking {term.name} up changes nothing of the run"
            parse_step({verb: argument})
        assert not term.algorithm or term.algorithm in PRESETS, term.name


def test_each_is_explained_in_a_few_whole_sentences():
    for name, text in ((term.name, term.text) for term in TERMS.values()):
        assert text.endswith((".", ".)")), name
        assert len(re.findall(r"[.!?:;)](?:\s|$)", text)) <= 9, name
        assert 20 < len(text) < 560, name
        assert text[0].isupper(), name


def test_the_words_of_the_curriculum_are_there():
    for name in CURRICULUM.split(","):
        assert term_called(" ".join(name.split()))


def test_every_algorithm_is_there():
    assert {term.algorithm for term in TERMS.values()} - {""} == set(PRESETS)


def test_what_the_screen_names_is_in_the_glossary_or_explains_itself():
    seen = {term.see for term in TERMS.values()}
    for lens in LENSES.values():
        assert ("lens", lens.name) in seen or len(lens.reading) > 15, lens.name
    for knob in KNOBS.values():
        assert ("knobs", knob.name) in seen or len(knob.meaning) + len(knob.effect) > 40, knob.name
    for metric in METRICS.values():
        assert ("curve", metric.name) in seen or len(metric.formula) > 8, metric.name


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("kl", "KL divergence"),
        ("TD", "Temporal difference"),
        ("critic", "Actor–critic"),
        ("bradley-terry", "Bradley–Terry"),
        ("β", "KL weight β"),
        ("goodhart", "Reward hacking"),
        ("td error", "Temporal difference"),
        ("on policy", "On-policy"),
        ("ppo", "PPO"),
        ("idk lol", "Preference pair"),
        ("completion", "Answer"),
    ],
)
def test_typing_finds_it(typed: str, first: str):
    assert matching(typed)[0].name == first


def test_every_name_and_alias_finds_its_own_entry_first():
    for term in TERMS.values():
        for name in (term.name, *term.aliases):
            assert matching(name)[0] is term, name
            assert term_called(name.upper()) is term, name


def test_nothing_typed_is_everything_and_nonsense_is_nothing():
    assert matching(" ") == list(TERMS.values())
    assert matching("xyzzy") == []
    assert matching("(") != matching("")


def test_an_unknown_word_is_reported_with_the_nearest_one():
    with pytest.raises(ValueError, match=r"^the glossary has no 'Advantag'; did you mean 'Advantage'\?$"):
        term_called("Advantag")
    with pytest.raises(ValueError, match=r"^the glossary has no 'xyzzy'$"):
        term_called("xyzzy")
