"""The checks of runs that learn from given answers or from a teacher, in order of gravity."""

from __future__ import annotations

from rlplay.health import chosen_checks as chosen
from rlplay.health import imitation_checks as imitation
from rlplay.health import pair_checks as pair
from rlplay.health.finding import Check, Need, Problem
from rlplay.health.needs import ANSWERS, any_of, metric
from rlplay.health.run_kind import COMPARED, GIVEN, RunKind
from rlplay.health.trend import WINDOW

_JUDGED: frozenset[RunKind] = COMPARED | {"reward model"}
_PAIRED: frozenset[RunKind] = frozenset({"pairs", "reward model"})
_TAUGHT: frozenset[RunKind] = frozenset({"imitation", "distillation"})
_LOSS = metric("loss")
_JUDGE = Need(
    "which answer is the better one, without which swapped columns look like any other pairs", pair.judged,
    "give rlplay.record a column such as answer, or a reward of weight 0 that judges both answers. TRL's callback "
    "records neither of pairs: read twenty of them",
)  # fmt: skip
_NOTHING: set[Problem] = {"no gradient", "step too small", "few weights", "rounding", "template", "flat"}
"""What a run does whose data say nothing."""

GIVEN_CHECKS = (
    Check("no labels", "Loss", imitation.no_labels, imitation.falls, frozenset(_NOTHING), frozenset({"imitation"}),
          (_LOSS,)),
    Check("same teacher", "Loss", imitation.teaches_nothing, imitation.falls, frozenset(_NOTHING),
          frozenset({"distillation"}), (_LOSS,)),
    Check("step too large", "Loss", imitation.jumped, imitation.falls, frozenset({"spike", "overfit", *_NOTHING}),
          frozenset({"imitation"}), (_LOSS,)),
    Check("same answers", "Pairs", pair.same_answers, pair.of_pairs,
          frozenset({*_NOTHING, "no preference", "reference"}), _PAIRED,
          (any_of(ANSWERS, metric("rewards/margins", "margin")),), f"{pair.ENOUGH} pairs"),
    Check("swapped", "Labels", pair.swapped, pair.labels, frozenset(), _JUDGED, (ANSWERS, _JUDGE),
          f"{pair.JUDGED} pairs"),
    Check("one length", "Pairs", pair.one_length, pair.of_pairs, frozenset(), _PAIRED, (ANSWERS,)),
    Check("lopsided", "Labels of both kinds", pair.lopsided, pair.even, frozenset(), frozenset({"kto"}), (ANSWERS,)),
    Check("overfit", "Held-out loss", imitation.overfit, imitation.holds, frozenset(), GIVEN, (metric("eval_loss"),),
          f"{imitation.EVALUATIONS} evaluations"),
    Check("displaced", "Chosen answers", chosen.displaced, chosen.stays_likely, frozenset(), COMPARED,
          (metric("logps/chosen", "rewards/chosen"),), f"{2 * chosen.ENDS} updates"),
    Check("no preference", "Preference", pair.no_preference, pair.learned, frozenset(), _PAIRED,
          (metric("rewards/accuracies", "accuracy"),), f"{WINDOW} updates"),
    Check("flat", "Loss", imitation.stuck, imitation.falls, frozenset(), _TAUGHT, (_LOSS,), "8 updates"),
)  # fmt: skip
