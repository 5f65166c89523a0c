"""Share codes: every setting comes back, every damage is refused, nothing of one's own disk goes along."""

import contextlib
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlplay.algorithms.apply import apply, apply_all, resolve, validated
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import choices
from rlplay.algorithms.settings import Settings
from rlplay.scenario import reproduction, share
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.loader import load
from rlplay.scenario.names import bundled
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.script_settings import settings_at
from rlplay.scenario.share import PREFIX, Shared, ShareError, shared_in
from rlplay.scenario.stage_settings import stage_settings

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture(autouse=True, scope="module")
def _read_once():
    """Each scenario's file is read once for all examples."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (share, reproduction):
            patch.setattr(module, "load", cache(load))
        yield


WITHOUT_STAGES = [name for name in bundled() if not load(name).stages]


def values(name):
    """What a setting may be given."""
    knob, default = KNOBS[name], getattr(Settings(), name)
    if name == "reward_weights":
        return st.dictionaries(st.sampled_from(["correct", "helpful"]), st.floats(-2, 2), max_size=2)
    if words := tuple(PRESETS) if name == "algorithm" else choices(name):
        return st.sampled_from(words)
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, int):
        return st.integers(int(knob.low), int(knob.high))
    return st.floats(knob.low, knob.high)


CHANGE = st.sampled_from(list(KNOBS)).flatmap(lambda name: st.tuples(st.just(name), values(name)))


@given(st.sampled_from(WITHOUT_STAGES), st.integers(0, 2**40), st.integers(1, 999), st.lists(CHANGE, max_size=8))
@settings(max_examples=60)
def test_scenario_seed_and_settings_come_back(name, seed, updates, changes):
    scenario = with_changes(load(name), seed=seed, updates=updates)
    wanted = resolve(scenario.settings)
    for setting, value in changes:
        with contextlib.suppress(ValueError):
            wanted = validated(apply(wanted, setting, value))
    code, remark = Reproduction(scenario).code(wanted)
    again = shared_in(code).scenario_with()
    assert resolve(again.settings) == wanted
    assert msgspec.structs.replace(again, settings={}) == msgspec.structs.replace(scenario, settings={})
    assert not remark


@given(st.sampled_from(bundled()), st.integers(0, 2**40), st.data(), st.lists(CHANGE, max_size=8))
@settings(max_examples=60)
def test_a_moment_of_a_lesson_comes_back(name, seed, data, changes):
    scenario = with_changes(load(name), seed=seed)
    step = data.draw(st.integers(1, len(whole_script(scenario))))
    held = settings_at(scenario, step)
    for setting, value in changes:
        with contextlib.suppress(ValueError):
            held = validated(apply(held, setting, value))
    code, remark = Reproduction(scenario).moment(step, held)
    shared = shared_in(code)
    again = shared.scenario_with()
    assert again == scenario
    assert shared.moment.step == step
    assert apply_all(settings_at(again, step), shared.moment.changed) == held
    assert not remark


def test_before_the_first_step_a_code_is_that_of_the_run():
    scenario = load("flattery")
    held = apply(resolve(scenario.settings), "beta", 0.5)
    whole = Reproduction(scenario)
    assert whole.moment(0, held) == whole.code(held)


def test_what_the_script_sets_is_not_in_the_code_and_what_the_command_line_sets_is():
    scenario = with_changes(load("flattery"), sets=["temperature=0.8"])
    steps = whole_script(scenario)
    after = next(at for at, step in enumerate(steps, start=1) if "set" in step)
    shared = shared_in(Reproduction(scenario).moment(after, settings_at(scenario, after))[0])
    assert (shared.settings, shared.changed) == ({"temperature": 0.8}, {})


CODES = [
    Shared("flattery", 3, 20, "dapo", {"epsilon": 0.1, "reward_weights": {"helpful": 1.0}}).code,
    Shared("flattery", 3, None, None, {}, 7, {"beta": 0.5}).code,
]


@given(st.data(), st.sampled_from(CODES))
@settings(max_examples=150)
def test_any_other_character_is_refused(data, code):
    at = data.draw(st.integers(0, len(code) - 1))
    other = data.draw(st.sampled_from([letter for letter in LETTERS + "é =." if letter != code[at]]))
    with pytest.raises(ShareError):
        shared_in(code[:at] + other + code[at + 1 :])


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_code_that_was_cut_is_refused(cut):
    code = Shared("flattery", 3).code
    for part in (code[:-cut], code[cut:], code + "A" * cut):
        with pytest.raises(ShareError):
            shared_in(part)


@given(st.text(LETTERS, max_size=60))
def test_no_noise_is_a_code(noise):
    with pytest.raises(ShareError):
        shared_in(PREFIX + noise)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("rlp2-AAAA", "upgrade rlplay"),
        ("hello", "one begins with rlp1-"),
        (Shared("no-such").code, "which this rlplay does not have"),
        (Shared("../../etc/x.yaml").code, "which this rlplay does not have"),
        (Shared("flattery", settings={"epsilom": 1}).code, "does not fit this version of rlplay: unknown setting"),
        (Shared("flattery", algorithm="newest").code, "unknown algorithm 'newest'"),
        (Shared("flattery", settings={"beta": -1}).code, "got '-1'"),
        (Shared("flattery", step=999).code, "leads to step 999 of the lesson 'flattery', which has "),
        (Shared("flattery", step=-1).code, "leads to step -1 of the lesson 'flattery'"),
        (Shared("no-such", step=3).code, "which this rlplay does not have"),
        (Shared("flattery", step=3, changed={"epsilom": 1}).code, "unknown setting 'epsilom'"),
        (Shared("flattery", step=3, changed={"beta": -1}).code, "got -1"),
        (Shared("flattery", step=3, changed={"surrogate": "/etc/x.py:f"}).code, "names a file"),
    ],
)
def test_the_limits_of_a_share_code_are_one_line(code, words):
    with pytest.raises(ShareError) as caught:
        shared_in(code).scenario_with()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_code_of_a_pipeline_is_of_the_whole(tmp_path):
    for name in set(bundled()) - set(WITHOUT_STAGES):
        scenario = load(name)
        for held in stage_settings(scenario):
            assert shared_in(Reproduction(scenario).code(held)[0]).scenario_with() == scenario


def test_what_is_ones_own_is_named_and_left_out(tmp_path):
    (tmp_path / "rows.csv").write_text("prompt\nx\n")
    (tmp_path / "score.py").write_text("def f(**_): return []\n")
    reward, rows = f"{tmp_path}/score.py:f", str(tmp_path / "rows.csv")
    own = with_changes(load("learn-to-think"), model="some/model", dataset=rows, reward=[reward], seed=5)
    code, remark = Reproduction(own).code(resolve(own.settings))
    assert remark == "Not in the code: your --model, --dataset, --reward."
    shared = shared_in(code)
    assert "score" not in str(shared)
    assert "model" not in str(shared.settings)
    given = {"model": "some/model", "dataset": rows, "reward": [reward]}
    again = shared.scenario_with(given)
    assert resolve(again.settings) == resolve(own.settings)
    assert msgspec.structs.replace(again, settings={}) == msgspec.structs.replace(own, settings={})


def test_a_scenario_file_of_ones_own_has_no_code(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("title: T\nquestion: Q\ntask: arithmetic\n")
    code, remark = Reproduction(load(path)).code(resolve({}))
    assert not code
    assert "file of your own" in remark


def test_what_the_command_line_says_besides_wins():
    shared = Shared("flattery", 3, None, "dapo", {"epsilon": 0.1})
    scenario = shared.scenario_with({"seed": 9, "algorithm": "ppo", "sets": ["epsilon=0.3"], "updates": None})
    assert (scenario.seed, resolve(scenario.settings).epsilon) == (9, 0.3)
    assert resolve(scenario.settings).algorithm == "ppo"
