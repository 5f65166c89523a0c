"""The numbers of a run, as curves need them."""

from __future__ import annotations

import pytest

from rlplay.trace.history import History
from rlplay.trace.records import Changed, Finished, Rewound, Staged
from tests.recorded import synthetic_evaluated, synthetic_update


def lived(*numbers: int) -> History:
    history = History()
    for number in numbers:
        for record in synthetic_update(number):
            history.add(record)
    return history


def reward(number: int, seed: int = 0) -> float:
    finished = synthetic_update(number, seed)[-1]
    assert isinstance(finished, Finished)
    return finished.metrics["reward"]


def test_series_hold_every_finished_update() -> None:
    history = lived(1, 2, 3)
    assert history.series("reward") == ([1, 2, 3], [reward(1), reward(2), reward(3)])
    assert history.latest("reward") == reward(3)
    assert "clip_ratio/high_mean" in history.names()


def test_a_part_of_a_series_has_both_its_ends() -> None:
    history = lived(1, 2, 3, 4)
    assert history.between("reward", 2, 3) == ([2, 3], [reward(2), reward(3)])
    assert history.between("reward", 5, 9) == history.between("nothing", 0, 9) == ([], [])


def test_the_metrics_of_an_update_are_those_that_were_recorded_with_it() -> None:
    history = lived(1, 2, 3)
    history.add(synthetic_evaluated(2))
    finished = synthetic_update(2)[-1]
    assert isinstance(finished, Finished)
    assert history.at(2) == finished.metrics | synthetic_evaluated(2).metrics
    assert "eval_reward" not in history.at(3)
    assert history.at(4) == {}


def test_an_unknown_metric_is_empty() -> None:
    assert History().series("reward") == ([], [])
    assert History().latest("reward") is None
    assert History().abandoned("reward") == []


def test_an_evaluation_done_again_replaces_the_first() -> None:
    history = lived(1, 2)
    history.add(synthetic_evaluated(2))
    history.add(synthetic_evaluated(2))
    assert history.series("eval_reward")[0] == [2]


def test_a_rewind_keeps_the_abandoned_part_apart() -> None:
    history = lived(1, 2, 3)
    history.add(Rewound(update=1, abandoned=3))
    assert history.series("reward") == ([1], [reward(1)])
    for record in synthetic_update(2, seed=9):
        history.add(record)
    history.add(Rewound(update=0, abandoned=2))
    assert history.latest("reward") is None
    assert history.abandoned("reward") == [
        ([2, 3], [reward(2), reward(3)]),
        ([1, 2], [reward(1), reward(2, seed=9)]),
    ]


def test_a_rewind_forgets_the_settings_changed_after_its_update() -> None:
    history = lived(1, 2)
    for update, phase in ((2, "sample"), (2, "update"), (3, "sample")):
        history.add(Changed(update=update, phase=phase, name="epsilon", value=0.1, previous=0.2))
    history.add(Rewound(update=1, abandoned=2))
    assert history.marks == [(2, "epsilon 0.2 → 0.1", "changed"), (1, "rewound from 2", "back")]


def test_marks_are_short() -> None:
    history = History()
    history.add(Changed(update=1, phase="sample", name="learning_rate", value=4e-4 * 1.5, previous=4e-4))
    history.add(Rewound(update=2, abandoned=2, asked=True))  # an unfinished update was given up
    history.add(Rewound(update=2, abandoned=2))
    assert history.marks == [(1, "learning_rate 0.0004 → 0.0006", "changed"), (2, "resumed from 2", "on")]


def test_going_back_to_the_start_before_any_update_leaves_no_mark() -> None:
    history = History()
    history.add(Rewound(update=0, abandoned=0))
    assert history.marks == []


def test_undoing_one_update_after_the_other_gives_up_one_curve() -> None:
    history = lived(1, 2, 3)
    history.add(Rewound(update=2, abandoned=3))
    history.add(Rewound(update=1, abandoned=2))
    both = [2, 3], [reward(2), reward(3)]
    assert history.abandoned("reward") == [both]
    for record in synthetic_update(2, 1):
        history.add(record)
    history.add(Rewound(update=1, abandoned=2))
    assert history.abandoned("reward") == [both, ([2], [reward(2, 1)])]


@pytest.mark.parametrize(
    ("name", "phase", "also", "since"),
    [
        ("temperature", "sample", {}, 6),
        ("temperature", "score", {}, 7),
        ("gamma", "credit", {}, 6),
        ("gamma", "update", {}, 7),
        ("num_iterations", "update", {}, 6),
        ("num_iterations", "after", {}, 7),
        ("kl_ctrl", "after", {}, 6),
        ("algorithm", "update", {"returns": "gae"}, 6),
        ("algorithm", "after", {"surrogate": "logp"}, 7),
    ],
)
def test_a_change_too_late_for_its_update_is_marked_at_the_next(name, phase, also, since) -> None:
    history = History()
    history.add(Changed(update=6, phase=phase, name=name, value=1, previous=0, also=also))
    assert history.marks == [(since, f"{name} 0 → 1", "changed")]


def test_the_extent_of_a_run_is_that_of_all_its_numbers():
    history = History()
    assert history.extent() == (0, 0)
    history.add(synthetic_evaluated(0))
    for number in range(1, 7):
        history.add(synthetic_update(number)[-1])
    assert history.extent() == (0, 6)
    history.add(Rewound(update=2, abandoned=6))
    assert (history.extent(), history.extent(1)) == ((0, 2), (0, 6))


def test_borders_between_stages_stay_where_the_scenario_put_them():
    history = History()
    for number in range(1, 6):
        if number in (1, 4):
            history.add(Staged(update=number, index=number // 4, stages=2, name="next", settings={}))
        history.add(synthetic_update(number)[-1])
    assert history.stage_borders == [4], "the first stage borders on none"
    history.add(Rewound(update=1, abandoned=5))
    assert history.stage_borders == [4], "what was rewound away is still cut there"
    assert not [mark for mark in history.marks if mark.kind == "changed"]


def test_numbers_are_settled_once_an_update_has_finished_under_the_settings():
    history = lived(1, 2)
    assert history.settled
    history.add(Changed(update=3, phase="sample", name="algorithm", value="ppo", previous="grpo"))
    assert not history.settled
    history.add(synthetic_update(3)[-1])
    assert history.settled
    history.add(Staged(update=4, index=1, stages=2, name="next", settings={}))
    assert not history.settled
    history.add(synthetic_evaluated(4))
    assert not history.settled, "held-out answers are no update"
    assert not History().settled
