"""The draft of changed settings: steps, refusals, what applies and what differs."""

import msgspec
import pytest

from rlplay.algorithms.apply import apply, in_order, resolve, validated
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import choices, decoded, written
from rlplay.algorithms.settings import Settings
from rlplay.link.messages import Abilities
from rlplay.trusted import grants
from rlplay.ui.knobs.draft import Draft


def settings(**given):
    return resolve({"algorithm": "grpo", **given})


def draft(**given) -> Draft:
    return Draft(settings(**given))


def test_every_setting_can_be_stepped_both_ways_and_stays_allowed():
    for name in KNOBS:
        for direction in (1, -1):
            changed, seen = draft(), []
            for _ in range(40):
                changed.nudge(name, direction)
                seen.append(changed.value(name))
            assert getattr(apply(Settings(), name, seen[-1]), name) == seen[-1], name
            moved = len(set(map(str, seen))) > 1
            alone = seen[0] in (None, _end(name, direction)) or isinstance(seen[0], dict)
            assert moved or alone, name


def _end(name: str, direction: int) -> float | None:
    """Where stepping in a direction stops."""
    return KNOBS[name].high if direction > 0 else KNOBS[name].low


@pytest.mark.parametrize(
    ("name", "steps", "expected"),
    [
        ("epsilon", 2, 0.3),
        ("temperature", -20, 0.05),
        ("num_prompts", 3, 11),
        ("kl_estimator", -1, "k2"),
        ("surrogate", -1, "ratio"),
        ("learning_rate", 1, 0.0006),
        ("epsilon_high", 1, 0.2),
        ("algorithm", -1, "reinforce++"),
    ],
)
def test_steps_are_those_of_the_registry(name, steps, expected):
    changed = draft()
    for _ in range(abs(steps)):
        changed.nudge(name, 1 if steps > 0 else -1)
    assert changed.value(name) == expected


def test_a_logarithmic_step_up_and_down_returns():
    changed = draft()
    changed.nudge("learning_rate", 1)
    changed.nudge("learning_rate", -1)
    assert changed.value("learning_rate") == pytest.approx(4e-4)


def test_the_upper_clip_can_be_emptied_again():
    changed = draft(epsilon_high=0.0)
    changed.nudge("epsilon_high", -1)
    assert changed.value("epsilon_high") is None


def test_a_word_that_is_not_allowed_is_refused_and_changes_nothing():
    changed = draft()
    with pytest.raises(ValueError, match=r"a number from 0[.]05 to 5, e[.]g[.] 1; got 'hot'"):
        changed.put("temperature", "hot")
    with pytest.raises(ValueError, match="got '9'"):
        changed.put("temperature", "9")
    assert not any(changed.changed(name) for name in KNOBS)


@pytest.mark.parametrize("typed", ["-1", "−1", "{correct: -1}"])
def test_a_number_is_enough_for_the_weight_of_the_only_reward(typed):
    changed = draft(reward_weights={"correct": 1})
    changed.put("reward_weights", typed)
    assert changed.value("reward_weights") == {"correct": -1.0}


@pytest.mark.parametrize("typed", ["inf", "nan", "1e99", "much"])
def test_what_is_no_weight_is_refused(typed):
    changed = draft(reward_weights={"correct": 1})
    with pytest.raises(ValueError, match="reward_weights"):
        changed.put("reward_weights", typed)


def test_of_several_rewards_a_number_names_none():
    changed = draft(reward_weights={"correct": 1, "brief": 1})
    with pytest.raises(ValueError, match="reward_weights is a weight for each reward"):
        changed.put("reward_weights", "-1")


def test_settings_that_do_not_fit_have_a_reason():
    changed = draft()
    changed.put("returns", "gae")
    assert "baseline=value" in changed.problem
    changed.put("baseline", "value")
    assert changed.problem == ""


@pytest.mark.parametrize("first", list(PRESETS))
def test_changes_can_be_set_one_after_the_other(first):
    """As the engine does it: each one alone has to be allowed when it comes."""
    start = resolve({"algorithm": first})
    for second in PRESETS.values():
        changed = Draft(start)
        for name, value in second.axes.items():
            changed.put(name, value)
        now = start
        for name, value in in_order(start, changed.changes()):
            now = validated(apply(now, name, value))
        assert all(getattr(now, name) == value for name, value in second.axes.items()), second.name


def test_choosing_an_algorithm_is_one_change_and_what_differs_from_it_follows():
    changed = draft()
    changed.put("algorithm", "ppo")
    assert changed.changes() == {"algorithm": "ppo"}
    changed.put("num_iterations", 2)
    assert changed.changes() == {"algorithm": "ppo", "num_iterations": 2}
    changed.reset("algorithm")
    changed.reset("num_iterations")
    assert changed.changes() == {}


def test_what_is_written_can_be_read_back():
    changed = draft()
    for name in KNOBS:
        changed.put(name, written(changed.value(name)))
    assert not any(changed.changed(name) for name in KNOBS)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("epsilon", {}, "one optimizer step"),
        ("epsilon_high", {}, "one optimizer step"),
        ("epsilon", {"num_iterations": 2}, ""),
        ("epsilon", {"num_minibatches": 2}, ""),
        ("epsilon", {"num_iterations": 2, "num_minibatches": 2}, ""),
        ("beta", {"surrogate": "trpo"}, "only max_kl limits"),
        ("max_grad_norm", {"surrogate": "trpo"}, "only max_kl limits"),
        ("max_grad_norm", {}, ""),
        ("kl_estimator", {"surrogate": "trpo"}, "max_kl limits the exact KL"),
        ("kl_estimator", {}, ""),
        ("kl_anchor", {"kl_placement": "none"}, "leaves the KL out"),
        ("warmup_steps", {}, "lr_scheduler_type=constant has none"),
        ("warmup_steps", {"lr_scheduler_type": "linear"}, ""),
        ("learning_rate", {"surrogate": "trpo"}, "takes no Adam step"),
        ("learning_rate", {"surrogate": "trpo", "returns": "gae", "baseline": "value"}, ""),
        ("learning_rate", {}, ""),
        ("gamma", {}, "returns=broadcast does not discount"),
        ("gamma", {"returns": "to_go"}, ""),
        ("gamma", {"reward_stream": "shaping"}, ""),
        ("epsilon", {"surrogate": "logp", "num_iterations": 2}, "only with surrogate=ppo"),
        ("beta", {"kl_placement": "none"}, "leaves the KL out"),
        ("lam", {}, "only with returns=gae"),
        ("temperature", {}, ""),
        ("num_generations", {}, ""),
        ("dynamic_sampling", {}, ""),
        ("num_generations", {"algorithm": "dpo"}, "loss_type=sigmoid does not use it"),
        ("dynamic_sampling", {"loss_type": "sft"}, "loss_type=sft does not use it"),
        ("reward_weights", {"algorithm": "dpo"}, ""),
        ("reward_weights", {"loss_type": "reward"}, ""),
        ("overlong_buffer", {"algorithm": "dpo"}, "loss_type=sigmoid does not use it"),
        ("beta", {"loss_type": "sigmoid", "beta": 0.1, "kl_placement": "none"}, ""),
        ("beta", {"loss_type": "reward"}, "loss_type=reward does not use it"),
        ("learning_rate", {"loss_type": "sft", "surrogate": "trpo"}, ""),
        ("max_grad_norm", {"loss_type": "sft", "surrogate": "trpo"}, ""),
        ("cg_iterations", {"loss_type": "sft", "surrogate": "trpo"}, "loss_type=sft does not use it"),
        ("vf_coef", {"loss_type": "sft", "baseline": "value"}, "loss_type=sft does not use it"),
    ],
)
def test_settings_without_effect_say_why(name, given, words):
    idle = draft(**given).idle(name)
    assert words in idle
    assert bool(idle) == bool(words)


def test_a_clip_range_belongs_to_an_own_surrogate_that_takes_it(tmp_path):
    file = tmp_path / "my.py"
    file.write_text(
        "def soft(xp, ratio, advantages, epsilon):\n    return -epsilon * xp.tanh((ratio - 1) / epsilon) * advantages\n"
        "def plain(xp, ratio, advantages):\n    return -ratio * advantages\n",
        encoding="utf-8",
    )
    unread = Draft(msgspec.structs.replace(settings(), surrogate=f"{file}:plain"), live=False)
    assert unread.foreign("epsilon") == ""
    soft, plain = draft(), draft()
    soft.put("surrogate", f"{file}:soft")
    plain.put("surrogate", f"{file}:plain")
    assert soft.foreign("epsilon") == ""
    assert "only with surrogate=ppo" in plain.foreign("epsilon")


def test_a_foreign_run_says_nothing_of_settings_that_are_not_on_record():
    known = {"algorithm": "", "epsilon": 0.3, "learning_rate": 1e-5}
    draft = Draft(decoded(known), live=False, on_record=known)
    assert set(draft.listed(None, list(KNOBS))) == {"algorithm", "learning_rate", "epsilon"}
    assert draft.idle("epsilon") == ""
    assert "one optimizer step" in Draft(settings()).idle("epsilon")


def test_only_what_the_trainer_reads_anew_can_change():
    there = Draft(settings(), abilities=Abilities("TRL", {}, ["epsilon"]))
    assert (there.fixed("epsilon"), draft().fixed("epsilon")) == ("", "")
    assert there.fixed("beta") == there.idle("beta") == "TRL reads it only when training begins"
    with pytest.raises(ValueError, match="beta cannot be changed here: TRL reads it only when training begins"):
        there.put("beta", 0.5)
    there.put("epsilon", 0.3)
    assert there.differing() == {"epsilon": 0.3}
    assert (there.original("epsilon"), there.now.epsilon, there.settings.epsilon) == (0.2, 0.2, 0.3)
    there.take_back(there.now)
    assert there.differing() == {}


@pytest.mark.parametrize(
    ("name", "counts"),
    [("temperature", True), ("epsilon_high", True), ("num_prompts", True), ("algorithm", False), ("surrogate", False),
     ("reward_weights", False), ("dynamic_sampling", False)],
)  # fmt: skip
def test_what_is_a_number_or_none_counts(name, counts):
    assert draft().counts(name) is counts


def test_a_step_from_a_function_of_the_users_leads_to_the_words_that_there_are():
    own = msgspec.structs.replace(settings(), surrogate="/nowhere/my.py:f")
    first, last = Draft(own, live=False), Draft(own, live=False)
    first.nudge("surrogate", 1)
    last.nudge("surrogate", -1)
    assert (first.value("surrogate"), last.value("surrogate")) == (choices("surrogate")[0], choices("surrogate")[-1])


@pytest.mark.parametrize("kept", [{"live": False}, {"abilities": Abilities("TRL", {}, ["surrogate"])}])
def test_a_function_is_read_and_trusted_only_where_rlplay_itself_trains(kept):
    changed = Draft(settings(), **kept)
    changed.put("surrogate", "/nowhere/my.py:f")
    assert changed.value("surrogate") == "/nowhere/my.py:f"
    assert "/nowhere/my.py" not in grants().followed
    with pytest.raises(ValueError, match=r"my\.py"):
        draft().put("surrogate", "/nowhere/my.py:f")
