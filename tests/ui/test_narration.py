"""The narration: the sentences about an update, with its numbers and its warnings."""

import dataclasses

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from rlplay.algorithms.surrogates import SURROGATES
from rlplay.health.health_of_run import Health
from rlplay.trace.history import History
from rlplay.trace.records import Credited, Evaluated, Finished, Sampled, Scored, Stepped, Survey
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from rlplay.ui.format.keyed import KEY, keyed
from rlplay.ui.formula.formula_lines import has_band
from rlplay.ui.words.mean_changes import became, on_average
from rlplay.ui.words.narration import Narration, _clipping, narrate, narrate_run
from tests.recorded import SETTINGS, synthetic_sampling, synthetic_update

CHOSEN = SETTINGS


def narrated(*kinds, number=1, steps=4, settings=CHOSEN, **changes) -> Narration:
    """The narration after the records of `kinds`; `changes` replace fields of the last one."""
    update, history = Update(number), History()
    records = [record for record in synthetic_update(number, steps=steps) if isinstance(record, kinds)]
    if changes:
        records[-1] = msgspec.structs.replace(records[-1], **changes)
    for record in records:
        update.add(record)
        history.add(record)
    return narrated_with_findings(update, history, settings)


def narrated_with_findings(update, history, settings, place="live") -> Narration:
    """The narration as the screen has it: with the gravest finding."""
    run = Run()
    run.history = history
    health = Health(run)
    health.add(update)
    finding = next(iter(health.findings(update.number, msgspec.structs.asdict(settings))), None)
    return narrate(update, history, settings, place, finding=finding)


def record(kind, number=1, **how):
    return next(entry for entry in synthetic_update(number, **how) if isinstance(entry, kind))


def test_before_anything_happened_it_says_which_keys_begin():
    assert "`u`" in narrate(None, History(), CHOSEN).next


def test_while_sampling_it_counts_the_answers_still_open():
    partial = synthetic_sampling(1)[6]
    update = Update(1)
    update.add(partial)
    happened = narrate(update, History(), CHOSEN).happened
    assert f"7 of at most 12 tokens, {int(partial.truncated.sum())} of 16 answers still open" in happened


def test_after_sampling_it_counts_different_answers_and_how_they_begin():
    sampled = record(Sampled)
    happened = narrated(Sampled).happened
    assert "16 answers to 4 prompts: 15 different" in happened
    assert f"{np.diff(sampled.offsets).mean():.1f} tokens long" in happened
    assert '5 begin with "start", 5 with "the" and 3 with "4"' in happened


def walked(records: list) -> Update:
    """The update as a world's: every second token is a square, which the environment writes."""
    update = Update(1, "move")
    even = np.log(np.full((1, 2), 0.5, dtype=np.float32))
    survey = Survey(states=["a1"], actions=["←", "→"], logprobs=even, values=None)
    for entry in records:
        if isinstance(entry, Sampled):
            moves = np.concatenate([np.arange(n) % 2 == 0 for n in np.diff(entry.offsets)]).astype(np.uint8)
            update.add(msgspec.structs.replace(entry, mask=moves, survey=survey))
        else:
            update.add(entry)
    return update


@pytest.mark.parametrize("phases", [*range(1, 6), "sampling"])
def test_in_a_world_it_counts_moves_and_names_no_tokens(phases):
    records = synthetic_sampling(1)[6:7] if phases == "sampling" else synthetic_update(1, steps=2)[:phases]
    update = walked(records)
    happened = narrate(update, History(), CHOSEN).happened
    assert "token" not in happened
    if phases == "sampling":
        assert f"{update.sampled.mask[: update.sampled.offsets[1]].sum()} moves" in happened
    if phases == 1:
        own = update.sampled.mask.sum() / update.completions
        assert f"{own:.1f} moves long on average" in happened


def test_in_a_world_a_run_has_the_length_of_its_walks_in_moves():
    history = History()
    history.add(msgspec.structs.replace(record(Finished), metrics={"completions/mean_length": 7.5}))
    assert "length 7.5 moves" in narrate_run(history, "move").happened
    assert "length 7.5 tokens" in narrate_run(history).happened


def test_two_rewards_are_counted_and_more_are_averaged():
    binary = np.array([1.0] * 5 + [0.0] * 11, dtype=np.float32)
    assert narrated(Sampled, Scored, rewards=binary).happened.startswith("5 of 16 answers earned 1, the others 0.")
    mixed = narrated(Sampled, Scored).happened
    assert mixed.startswith(f"Reward {record(Scored).rewards.mean():.3g} on average, from 0 to 1.2.")


def test_answers_without_a_score_are_counted_apart():
    rewards = np.array([1.0] * 5 + [0.0] * 9 + [np.nan] * 2, dtype=np.float32)
    happened = narrated(Sampled, Scored, rewards=rewards).happened
    assert happened.startswith("5 of 14 answers earned 1, the others 0. 2 more answers got no score.")
    assert "No answer was scored" in narrated(Sampled, Scored, rewards=rewards * np.nan).happened


def test_groups_without_signal_matter_only_to_a_group_baseline():
    assert "1 of 4 groups without signal" in narrated(Sampled, Scored).happened
    assert "signal" not in narrated(Sampled, Scored, settings=replace(CHOSEN, baseline="none")).happened


def test_an_answer_without_a_score_does_not_hide_that_the_others_of_its_group_are_equal():
    rewards = np.array([0.0, 1.0, np.nan, 1.0] + [0.97] * 3 + [np.nan] + [np.nan] * 4 + [0.0, 1e-9, 0.0, 0.0])
    assert "2 of 4 groups without signal" in narrated(Sampled, Scored, rewards=rewards).happened


def test_credit_says_who_is_favoured_and_how_long_they_are():
    sampled, credited = record(Sampled), record(Credited)
    first = credited.advantages[sampled.offsets[:-1]]
    lengths = np.diff(sampled.offsets)
    happened = narrated(Sampled, Scored, Credited).happened
    assert f"{(first > 0).sum()} answers get a positive advantage, {(first < 0).sum()} a negative one" in happened
    assert (
        f"{lengths[first > 0].mean():.1f} tokens long on average, the negative ones {lengths[first < 0].mean():.1f}"
        in happened
    )


def test_credit_that_differs_within_answers_is_counted_by_token():
    uneven = np.linspace(-1, 1, len(record(Credited).advantages), dtype=np.float32)
    happened = narrated(Sampled, Scored, Credited, advantages=uneven).happened
    assert "differ from token to token" in happened
    assert "from −1 to +1" in happened


def test_one_step_per_batch_is_explained_as_normal():
    happened = narrated(Sampled, Scored, Credited, Stepped, steps=1).happened
    assert "every ratio is 1 and nothing is clipped; that is normal." in happened


def test_the_first_of_several_steps_has_not_moved():
    steps = [entry for entry in synthetic_update(1, steps=4) if isinstance(entry, Stepped)]
    update = Update(1)
    update.add(record(Sampled, steps=4))
    update.add(steps[0])
    assert "step 1 of 4: every ratio is still 1" in narrate(update, History(), CHOSEN).happened


@pytest.mark.parametrize("steps", [1, 4])
def test_ratios_that_have_moved_are_not_reported_as_1(steps):
    first = next(entry for entry in synthetic_update(1, steps=steps) if isinstance(entry, Stepped))
    update = Update(1)
    update.add(record(Sampled, steps=steps))
    moved = first.importance_ratio.copy()
    moved[3] = 1.002
    update.add(msgspec.structs.replace(first, importance_ratio=moved))
    happened = narrate(update, History(), CHOSEN).happened
    assert "ratios from 1 to 1" in happened
    assert "still 1" not in happened
    assert "every ratio is 1" not in happened


def test_backticks_of_the_model_name_no_key():
    sampled = record(Sampled)
    pieces = dict.fromkeys(sampled.pieces, "`x`")
    happened = keyed(narrated(Sampled, pieces=pieces).happened)
    assert 'begin with "`x`"' in happened.plain
    assert not [span for span in happened.spans if span.style == KEY]


def test_later_steps_give_the_range_of_ratios_and_the_clipped_share():
    last = [entry for entry in synthetic_update(1, steps=4) if isinstance(entry, Stepped)][-1]
    happened = narrated(Sampled, Scored, Credited, Stepped).happened
    low, high = last.importance_ratio.min(), last.importance_ratio.max()
    assert f"step 4 of 4: ratios from {low:.3g} to {high:.3g}" in happened
    assert f"{100 * last.metrics['clip_ratio/region_mean']:.1f} % of the tokens are clipped" in happened


def test_an_objective_without_clipping_reports_none():
    happened = narrated(Sampled, Scored, Credited, Stepped, settings=replace(CHOSEN, surrogate="logp")).happened
    assert happened.endswith("this objective does not clip.")


def test_afterwards_it_compares_probabilities_and_names_the_kl():
    update = Update(1)
    for entry in synthetic_update(1, steps=4):
        update.add(entry)
    before, after = np.exp(update.sampled.old_logprobs), np.exp(update.new_logprobs())
    up = update.credited.advantages > 0
    happened = narrated(Sampled, Scored, Credited, Stepped, Finished).happened
    assert f"tokens with A > 0 became likelier ({before[up].mean():.3f} → {after[up].mean():.3f})" in happened
    assert f"KL of this update {update.finished.metrics['kl_old']:.3g}." in happened


def test_a_new_surrogate_is_said_to_clip_as_its_row_says(monkeypatch):
    for band in (True, False):
        monkeypatch.setitem(SURROGATES, "new", dataclasses.replace(SURROGATES["ppo"], name="new", band=band))
        new = replace(CHOSEN, surrogate="new")
        happened = narrated(Sampled, Scored, Credited, Stepped, settings=new).happened
        assert ("this objective does not clip" in happened) != band
        assert has_band(new) == band


NAMELESS = replace(CHOSEN, algorithm="")


def test_a_run_whose_baseline_is_not_on_record_has_no_groups_without_signal():
    assert "signal" in narrated(Sampled, Scored).happened
    assert "signal" not in narrated(Sampled, Scored, settings=NAMELESS).happened


def test_a_run_without_a_reward_on_record_says_its_loss():
    assert narrated(Sampled, Finished, metrics={"loss": 0.25}, settings=NAMELESS).happened == "Update 1: loss 0.25."
    assert (
        narrated(Sampled, Finished, metrics={}, settings=NAMELESS).happened == "Update 1: its reward is not on record."
    )


def test_a_step_of_an_unnamed_algorithm_is_not_judged():
    last = [each for each in synthetic_update(1, steps=4) if isinstance(each, Stepped)][-1]
    ratios = np.resize(np.float32([0.5, 2.0, np.nan]), len(last.logprobs))
    said = narrated(Sampled, Stepped, settings=NAMELESS, importance_ratio=ratios).happened
    assert said == "Optimizer step 4 of 4: ratios from 0.5 to 2."
    unknown = narrated(Sampled, Stepped, settings=NAMELESS, importance_ratio=ratios * np.nan).happened
    assert unknown == "Optimizer step 4 of 4: its ratios are not on record."


def test_advantages_that_are_not_on_record_are_not_counted():
    nothing = np.full(len(record(Credited).advantages), np.nan, dtype=np.float32)
    assert narrated(Sampled, Credited, advantages=nothing).happened == "The run records no advantages."


def test_the_reward_is_compared_with_the_update_before():
    assert "reward 0.5 (−0.25)" in after_rewards(0.75, 0.5)
    assert "reward 0.5 (+0.25)" in after_rewards(0.25, 0.5)


def test_rounding_is_no_change_of_the_reward():
    assert "reward 0.363." in after_rewards(0.363 + 6e-8, 0.363)


def after_rewards(*rewards) -> str:
    history, update = History(), Update(2)
    for number, reward in enumerate(rewards, start=1):
        for entry in synthetic_update(number):
            record = (
                msgspec.structs.replace(entry, metrics={"reward": reward}) if isinstance(entry, Finished) else entry
            )
            history.add(record)
            update.add(record)
    return narrate(update, history, CHOSEN).happened


def test_while_running_the_narration_covers_the_whole_run():
    history = History()
    for number in (1, 2, 3):
        for entry in synthetic_update(number):
            history.add(entry)
    reward = history.series("reward")[1]
    narration = narrate_run(history)
    assert f"3 updates: reward {reward[0]:.3g} → {reward[-1]:.3g}" in narration.happened
    assert "`space`" in narration.next


def test_while_running_a_single_measurement_has_no_arrow_and_an_older_one_its_update():
    history = History()
    held = {"prompts": [], "completions": [], "rewards": np.zeros(1), "seconds": 1.0}
    history.add(Evaluated(update=0, metrics={"eval_reward": 0.273}, **held))
    for entry in (entry for number in (1, 2, 3) for entry in synthetic_update(number)):
        history.add(entry)
    assert "held out 0.273 (update 0)," in narrate_run(history).happened
    history.add(Evaluated(update=2, metrics={"eval_reward": 0.5}, **held))
    assert "held out 0.273 → 0.5 (update 2)," in narrate_run(history).happened


def _broken() -> Narration:
    return narrated(Sampled, Scored, Credited, Stepped, Finished, metrics={"loss": float("nan"), "reward": 0.5})


def _stale() -> Narration:
    off = record(Stepped, steps=1).logprobs + np.float32(0.4)
    return narrated(Sampled, Credited, Stepped, steps=1, logprobs=off)


def _flat() -> Narration:
    return narrated(Sampled, Scored, Credited, advantages=np.zeros_like(record(Credited).advantages))


def _flat_with_bonus() -> Narration:
    nothing = np.zeros_like(record(Credited).advantages)
    return narrated(Sampled, Scored, Credited, advantages=nothing, settings=replace(CHOSEN, entropy_coef=0.01))


def _cut() -> Narration:
    return narrated(Sampled, truncated=np.array([1] * 9 + [0] * 7, dtype=np.uint8))


def _far() -> Narration:
    return narrated(Sampled, Scored, Credited, Stepped, Finished, metrics={"kl": 5.5, "reward": 0.5})


@pytest.mark.parametrize(
    ("diagnosed", "words"),
    [
        (_broken, "The loss is not a number"),
        (_stale, "a KL of 0.0918 nats per token"),
        (_flat, "Only the KL term still acts"),
        (_flat_with_bonus, "Only the KL term and the entropy bonus still act"),
        (_cut, "9 of 16 answers were cut at 9 tokens"),
        (_far, "5.5 nats per token"),
    ],
)
def test_what_is_wrong_is_named_with_its_number(diagnosed, words):
    assert words in diagnosed().warning


def over_time(**metrics) -> str:
    history, update = History(), Update(6)
    for number in range(1, 7):
        now = {name: values[0] + (values[1] - values[0]) * (number - 1) / 5 for name, values in metrics.items()}
        history.add(msgspec.structs.replace(record(Finished), update=number, metrics=now))
    update.add(record(Sampled))
    update.add(msgspec.structs.replace(record(Finished), metrics=now))
    return narrated_with_findings(update, history, CHOSEN).warning


def test_entropy_near_zero_is_a_collapse_only_where_nothing_was_learned():
    assert "stopped exploring" in over_time(entropy=(1.0, 0.05), reward=(0.3, 0.3))
    assert over_time(entropy=(1.0, 0.05), reward=(0.3, 0.9)) == ""


def test_a_reward_that_rises_while_gold_falls_is_gamed():
    assert "is being gamed" in over_time(**{"reward": (0.2, 0.9), "gold/helpful/mean": (0.5, 0.1)})
    assert over_time(**{"reward": (0.2, 0.9), "gold/helpful/mean": (0.5, 0.6)}) == ""


def test_a_healthy_update_has_no_warning():
    assert narrated(Sampled, Scored, Credited, Stepped, Finished).warning == ""


async def test_held_out_results_do_not_disturb_the_narration():
    history, update = History(), Update(1)
    for entry in synthetic_update(1):
        update.add(entry)
        history.add(entry)
    history.add(
        Evaluated(update=1, metrics={"eval_reward": 0.4}, prompts=[], completions=[], rewards=np.zeros(1), seconds=1)
    )
    assert "held out 0.4" in narrate(update, history, CHOSEN).happened


def test_a_second_sign_that_moved_the_same_way_is_said_to_have_done_so_too():
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    update.sampled.old_logprobs[:] = -1.0
    update.finished.logprobs[:] = -0.5
    (said,) = on_average(update, ("with A > 0", "with A < 0"))
    assert said.count("became likelier") == 1
    assert ", and so did those with A < 0 (" in said


def test_how_tokens_moved_is_read_off_the_numbers():
    """A token with a positive advantage may still fall: all share their weights."""
    assert became(0.97, 0.008) == "became likelier (0.970 → 0.978)"
    assert became(0.854, -0.01) == "became less likely (0.854 → 0.844)"
    assert became(0.5, 0.0004) == "hardly changed (0.500 → 0.500)"


def test_where_an_answer_has_one_ratio_the_clipped_share_is_of_answers():
    step = record(Stepped)
    metrics = {"clip_ratio/region_mean": 0.25, "clip_ratio/high_mean": 0.25, "clip_ratio/low_mean": 0.0}
    clipped = msgspec.structs.replace(step, metrics=metrics)
    assert "of the tokens are clipped" in _clipping(clipped, CHOSEN, "token")
    whole = replace(CHOSEN, importance_sampling_level="sequence")
    assert "of the answers are clipped" in _clipping(clipped, whole, "token")


def test_without_a_reward_entropy_near_zero_is_no_collapse():
    assert over_time(entropy=(1.0, 0.05)) == ""
