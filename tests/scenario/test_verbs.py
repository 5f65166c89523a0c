"""The registry of verbs: no key does two things."""

from collections import Counter

from rlplay.scenario.verbs import VERBS


def test_no_key_does_two_things():
    pressed = Counter(key for verb in VERBS.values() for key in verb.keys)
    assert [key for key, count in pressed.items() if count > 1] == []
