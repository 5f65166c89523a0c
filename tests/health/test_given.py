"""Learning from given answers: pairs, single answers with labels, imitation and a teacher; each at its threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlplay.health import chosen_checks as chosen
from rlplay.health import imitation_checks as imitation
from rlplay.health import pair_checks as pair
from rlplay.health.counts import WinCount
from rlplay.health.examine import findings, verdicts
from rlplay.health.finding import NOT_USED, Evidence
from rlplay.health.pair_numbers import PairNumbers, pair_numbers
from rlplay.trace.records import Scored
from rlplay.trace.update import Update
from tests.health.evidence import curves, evidence
from tests.recorded import synthetic_update

DPO, KTO, SFT = "TRL 1.16.0 DPOTrainer", "TRL 1.16.0 KTOTrainer", "TRL 1.16.0 SFTTrainer"
RM, DISTILL = "TRL 1.16.0 RewardTrainer", "TRL 1.16.0 DistillationTrainer"
WELL = PairNumbers(16, 16, 16, 0, 8, 6, frozenset(range(16)), WinCount(15, 16), 0)


def run(found: PairNumbers = WELL, updates: int = 6, source: str = DPO, **series: list[float]) -> Evidence:
    """Each update has other pairs of this kind."""
    each = [replace(found, keys=frozenset(key + 100 * n for key in found.keys)) for n in range(updates)]
    return evidence(
        updates, {name.replace("__", "/"): x for name, x in series.items()}, pairs=each, source=source, on_record=()
    )


def test_pairs_are_counted_by_hand() -> None:
    update = Update(1)
    sampled, scored, *_ = synthetic_update(1, prompts=3, generations=2, length=4)
    update.add(sampled)
    assert isinstance(scored, Scored)
    roles = ["chosen", "rejected", "rejected", "chosen", "chosen", "rejected"]
    gold = {"gold": np.array([1.0, 0.0, 1.0, 0.0, 0.5, 0.5])}
    update.add(Scored(update=1, rewards=scored.rewards, parts={}, weights={}, gold=gold, roles=roles))
    found = pair_numbers(update, {})
    assert found is not None
    sizes = np.diff(sampled.offsets)
    ahead = sizes[[0, 3, 4]] - sizes[[1, 2, 5]]
    assert (found.chosen, found.rejected, found.pairs) == (3, 3, 3)
    assert (found.longer, found.shorter) == (int((ahead > 0).sum()), int((ahead < 0).sum()))
    assert found.better == WinCount(1, 2)
    assert len(found.keys) == 3
    assert pair_numbers(Update(2), {}) is None


def test_answers_that_are_the_same() -> None:
    same = replace(WELL, identical=8)
    found = pair.same_answers(run(same, 1))
    assert found is not None
    assert found.evidence.startswith("In 8 of 16 pairs")
    assert pair.same_answers(run(replace(WELL, identical=7), 1)) is None
    margins = {"rewards/margins": [0.0] * 5, "rewards/chosen": [0.0, 0.1, 0.1, 0.1, 0.1]}
    assert pair.same_answers(curves(5, margins, DPO)) is not None
    assert pair.same_answers(curves(5, margins | {"rewards/chosen": [0.0] * 5}, DPO)) is None, "the reference, then"
    assert pair.same_answers(curves(4, {"margin": [0.0] * 4}, RM)) is None
    assert pair.same_answers(curves(5, {"margin": [0.0] * 5}, RM)) is not None


def test_a_length_that_tells_the_chosen_answer() -> None:
    longer = replace(WELL, longer=16, shorter=0)
    found = pair.one_length(run(longer, 4))
    assert found is not None
    assert "In 64 of 64 pairs of unequal length, 64 of them different" in found.evidence
    better = replace(longer, better=WinCount(16, 16))
    assert pair.one_length(run(better, 4)) is None, "a score tells as much"
    assert pair.one_length(run(longer, 3)) is None
    assert pair.one_length(run(replace(longer, longer=15, shorter=1), 6)) is None
    again = evidence(6, pairs=longer, source=DPO, on_record=())
    assert pair.one_length(again) is None, "16 different pairs are no rule"
    shorter = pair.one_length(run(replace(WELL, longer=0, shorter=16), 4))
    assert shorter is not None
    assert "shorter" in shorter.title


def test_labels_that_a_score_contradicts() -> None:
    found = pair.swapped(run(replace(WELL, better=WinCount(4, 16)), 2))
    assert found is not None
    assert "In 24 of 32 pairs" in found.evidence
    assert pair.swapped(run(replace(WELL, better=WinCount(4, 16)), 1)) is None
    assert pair.swapped(run(replace(WELL, better=WinCount(7, 16)), 2)) is None


STILL = [0.001, -0.001] * 10
CHANCE = [0.5, 0.55, 0.45, 0.5] * 5


def test_pairs_from_which_nothing_is_learned() -> None:
    found = pair.no_preference(curves(20, {"rewards/accuracies": CHANCE, "rewards/margins": STILL}, DPO))
    assert found is not None
    assert "ahead in 50.0 % ± 1.6 % of the pairs" in found.evidence
    for change in (
        {"rewards/accuracies": [0.6, 0.65, 0.55, 0.6] * 5}, {"rewards/margins": [0.1 * n for n in range(20)]},
    ):  # fmt: skip
        numbers = {"rewards/accuracies": CHANCE, "rewards/margins": STILL} | change
        assert pair.no_preference(curves(20, numbers, DPO)) is None
    assert pair.no_preference(curves(19, {"accuracy": CHANCE[:19], "margin": STILL[:19]}, RM)) is None
    assert pair.no_preference(curves(20, {"accuracy": CHANCE, "margin": STILL}, RM)) is not None
    falling = {"accuracy": CHANCE, "margin": STILL, "loss": [0.7 - 0.01 * n for n in range(20)]}
    assert pair.no_preference(curves(20, falling, RM)) is None, "the loss says that something is learned"


def test_chosen_answers_that_become_unlikely() -> None:
    falling = [-20.0 - n for n in range(10)]
    sick = {"logps/chosen": falling, "rewards/chosen": [-0.1 * n for n in range(10)]}
    found = chosen.displaced(curves(10, sick, DPO))
    assert found is not None
    assert found.evidence.startswith("A chosen answer has lost 5 ± 2 nats since training began")
    assert found.evidence.endswith("logps/chosen went from −22 to −27 in 10 updates.")
    assert chosen.displaced(curves(10, sick | {"rewards/chosen": [0.0] * 10}, DPO)) is None, "other answers"
    assert chosen.displaced(curves(10, sick | {"logps/chosen": [-20.0 - n / 2 for n in range(10)]}, DPO)) is None
    lowered = curves(10, sick, DPO, loss_type="apo_down")
    assert chosen.displaced(lowered) is None, "the loss means to"
    assert chosen.stays_likely(lowered) == NOT_USED
    assert chosen.displaced(curves(9, {name: x[:9] for name, x in sick.items()}, DPO)) is None
    assert chosen.displaced(curves(10, {"logps/chosen": falling}, "TRL 1.16.0 CPOTrainer")) is not None
    early = [-5.0, -9.0, -14.0, -18.0, -20.0, *[-30.0, -31.0, -29.0, -30.0] * 5]
    assert chosen.displaced(curves(25, {"logps/chosen": early}, DPO)) is not None, "it fell at the beginning"
    later = [-32.7, -31.0, -30.0, -28.2, -29.0, *[-34.0] * 5, -40.0, -41.0, -41.5, -40.0, -42.0]
    assert chosen.displaced(curves(15, {"logps/chosen": later}, DPO)) is not None, "it rose before it fell"


def test_what_chosen_answers_lost_is_read_from_their_implicit_reward() -> None:
    def displaced(reward: float, margin: float = 1.0, logps: float = -10.0, beta: float = 0.1) -> bool:
        rewards = {"rewards/chosen": [0.0] * 5 + [reward] * 5, "rewards/margins": [margin] * 10}
        return chosen.displaced(curves(10, {"logps/chosen": [logps] * 10} | rewards, DPO, beta=beta)) is not None

    assert displaced(-0.21)
    assert not displaced(-0.2), "an answer may become 7 times less likely"
    assert not displaced(-0.21, beta=0.2)
    assert not displaced(-0.4, margin=1.4, logps=-300.0), "little for long answers, and beside what the pairs gain"
    assert displaced(-0.4, margin=1.3, logps=-300.0)
    noisy = {"rewards/chosen": [0.0] * 5 + [-0.05, -0.6, -0.1, -0.6, -0.1], "logps/chosen": [-10.0] * 10}
    assert chosen.displaced(curves(10, noisy, DPO, beta=0.1)) is None, "not surely so much"
    alone = {"rewards/chosen": [0.0] * 5 + [-0.5] * 5, "rewards/margins": [1.0] * 10}
    assert chosen.displaced(curves(10, alone, DPO, beta=0.1)) is not None, "no log-probability was logged"


def test_swapped_columns_cannot_be_seen_without_a_judge() -> None:
    (said,) = [each for each in verdicts(run(replace(WELL, better=WinCount())), []) if each.title == "Labels"]
    assert not said.ticked
    assert said.text.startswith("not recorded: which answer is the better one")
    assert "a column such as answer" in said.record


def test_labels_of_one_kind_in_kto() -> None:
    rare = replace(WELL, pairs=0, chosen=20, rejected=2)
    found = pair.lopsided(run(rare, 2, KTO))
    assert found is not None
    assert found.title == "Hardly any answer is rejected"
    assert pair.lopsided(run(rare, 1, KTO)) is None
    assert pair.lopsided(run(replace(rare, rejected=3), 2, KTO)) is None
    weighted = evidence(2, pairs=rare, settings={"undesirable_weight": 8.0})
    assert pair.lopsided(weighted) is None


def test_answers_that_are_not_in_the_loss() -> None:
    none = {"loss": [0.0] * 3, "grad_norm": [0.0] * 3, "entropy": [0.0] * 3}
    assert [each.name for each in findings(curves(3, none, SFT))] == ["no labels"]
    assert imitation.no_labels(curves(2, {name: x[:2] for name, x in none.items()}, SFT)) is None
    assert imitation.no_labels(curves(3, none | {"entropy": [0.1] * 3}, SFT)) is None, "learned by heart"
    found = imitation.no_labels(run(replace(WELL, ended_at_once=8), 1, SFT))
    assert found is not None
    assert found.evidence.startswith("8 of 16 answers hold one token")
    assert imitation.no_labels(run(replace(WELL, ended_at_once=7), 1, SFT)) is None


def test_a_teacher_that_is_the_student() -> None:
    assert [each.name for each in findings(curves(3, {"loss": [0.0, 2e-8, 1e-7]}, DISTILL))] == ["same teacher"]
    assert imitation.teaches_nothing(curves(3, {"loss": [0.0, 2e-8, 1e-5]}, DISTILL)) is None


def test_a_loss_that_does_not_fall() -> None:
    noisy = [2.0, 2.2, 1.9, 2.1] * 10
    found = imitation.stuck(curves(40, {"loss": noisy}, SFT))
    assert found is not None
    assert "2.06 on average over the first 10 updates and 2.04 over the last 10 of 40" in found.evidence
    assert imitation.stuck(curves(39, {"loss": noisy[:39]}, SFT)) is None
    assert imitation.stuck(curves(40, {"loss": [x - n / 50 for n, x in enumerate(noisy)]}, SFT)) is None


def _evaluated(held: list[float], loss: list[float]) -> Evidence:
    points = {"loss": loss, "eval_loss": held}
    return curves(len(loss), points, SFT)


def test_a_held_out_loss_that_rises() -> None:
    falling = [2.0 - 0.1 * n for n in range(5)]
    found = imitation.overfit(_evaluated([2.0, 1.5, 1.6, 1.7], falling))
    assert found is not None
    assert "lowest after update 2, 1.5, and is 1.7 after 4: 13.3 % higher" in found.evidence
    for held in ([2.0, 1.5], [2.0, 1.5, 1.6], [2.0, 1.9, 1.5, 1.7], [2.0, 1.5, 1.5, 1.7], [2.0, 1.5, 1.6, 1.6]):
        assert imitation.overfit(_evaluated(held, falling)) is None
    assert imitation.overfit(_evaluated([2.0, 1.5, 1.6, 1.7], [2.0, 1.5, 1.8, 2.1, 2.4])) is None, "it diverges"


@pytest.mark.parametrize("trainer", ["DPOTrainer", "KTOTrainer", "SFTTrainer", "RewardTrainer", "DistillationTrainer"])
def test_a_healthy_recording_has_no_finding(trainer: str, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')
    from tests.health.recorded_trl import examined
    from tests.record.watched import Run

    made = Run(trainer, tmp_path)
    made.trainer.args.max_steps = 12
    made.train()
    assert [each.name for each in findings(examined(tmp_path / "rec"))] == []


def _masked(trainer: Any) -> None:
    inner = trainer.data_collator

    def collate(rows: Any) -> Any:
        batch = inner(rows)
        batch["labels"][:] = -100
        return batch

    trainer.data_collator = collate


def _itself(trainer: Any) -> None:
    trainer.teacher_model = trainer.model


@pytest.mark.parametrize(
    ("trainer", "change", "cause"),
    [("SFTTrainer", _masked, "no labels"), ("DistillationTrainer", _itself, "same teacher")],
)
def test_a_recording_names_the_cause(trainer: str, change: Any, cause: str, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason='TRL is not installed: pip install -e ".[parity]"')
    from tests.health.recorded_trl import examined
    from tests.record.watched import Run

    made = Run(trainer, tmp_path)
    change(made.trainer)
    made.train()
    assert [each.name for each in findings(examined(tmp_path / "rec"))] == [cause]
