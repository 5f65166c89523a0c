"""What the registries say: no claim that was found false comes back, and no turn of phrase that is not English."""

import re

import pytest

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.glossary import TERMS, matching, term_called
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import METRICS
from rlplay.ui.help.help_screen import GENERAL
from rlplay.verbs import VERBS

SENTENCES = {
    **{f"term {term.name}": term.text for term in TERMS.values()},
    **{f"knob {knob.name}": f"{knob.meaning} {knob.effect}" for knob in KNOBS.values()},
    **{f"preset {preset.name}": preset.changes for preset in PRESETS.values()},
    **{f"verb {verb.name}": verb.help for verb in VERBS.values()},
    **{f"lens {lens.name}": lens.reading for lens in LENSES.values()},
    **{f"metric {metric.name}": metric.reading for metric in METRICS.values()},
    "help": GENERAL,
}

FALSE = {
    "Nobody rewards length": "flattery counts words of praise, and a reward of one's own may count anything",
    "its share of the outcome": "broadcasting gives every token all of it",
    "What the update really does": "shared weights and the softmax may move a token against its own pull",
    "train this difference and nothing else": "ORPO and CPO also imitate, KTO compares with a baseline",
    "a limit such as TRPO's forbids": "it limits the size of an update, not an action",
    "a wrong second step need not spoil": "a token's return includes all later steps",
    "where abilities come from": "a disputed thesis",
    "is trained to make both sides agree": "at λ = 0 only",
    "with probability ε any other": "the best action is among those drawn from",
    "From the second on, the policy": "from the second minibatch on",
    "largest where the policy has not moved": "VESPO's weight is largest at W = k/λ: 2/3 for A ≥ 0, 3/2 for A < 0",
    "fades smoothly as its ratio leaves 1": "SAPO's pull on ℓ grows up to a ratio of 2, though less than without it",
    "none: only the reward's sign decides": "whitening subtracts a mean, too",
    "Every group teaches something": "after four rounds dynamic sampling makes do with fewer",
    "stale answers count less": "a larger k makes answers that have become likelier count more",
}

TRANSLATED = "|".join(
    (
        r"\bdear\b",
        r"\bto be had\b",
        r"\bof (?:its|one's) own\b",
        r"\bis none of\b",
        r"\bso \w+ as\b",
        r"\bas it is\b",
        r"\b(?:is|are|was|were) (?:told|said)\b(?! apart)",
        r"\bstands? (?:here|there|below|beside)\b",
        r"\bgoes? on from\b",
    )
)


@pytest.mark.parametrize("claim", FALSE)
def test_a_claim_that_was_false_stays_away(claim: str):
    assert [where for where, words in SENTENCES.items() if claim in words] == [], FALSE[claim]


def test_no_phrase_is_a_translation():
    found = {where: re.findall(TRANSLATED, words) for where, words in SENTENCES.items()}
    assert {where: phrases for where, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("proxy", "Proxy"),
        ("turn", "Turn"),
        ("specification", "Environment specification"),
        ("batch learning", "Online and offline learning"),
        ("self-supervised", "Self-supervised learning"),
        ("tools", "Tool use"),
        ("dimensionality", "Curse of dimensionality"),
    ],
)
def test_a_word_leads_to_what_it_means(typed: str, name: str):
    assert matching(typed)[0].name == name
    assert term_called(typed).name == name


def test_mode_collapse_differs_from_entropy_collapse():
    assert matching("mode collapse")[0].name == "Entropy collapse"
    assert "Mode collapse is different" in TERMS["Entropy collapse"].text
    with pytest.raises(ValueError, match="mode collapse"):
        term_called("mode collapse")


def test_states_and_actions_count_from_the_prompt_on():
    """s₀ is the prompt alone, and the action taken in sₜ is the token that makes sₜ₊₁."""
    assert TERMS["State"].formula == "sₜ = (x, y₁ … yₜ)"
    assert TERMS["Action"].formula.startswith("aₜ = yₜ₊₁ ")
